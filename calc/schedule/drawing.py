"""What a chart and a table need of a schedule: few points, exact at every boundary."""

from __future__ import annotations

from dataclasses import dataclass

from calc.schedule.phases import Phase, Schedule


@dataclass(frozen=True, slots=True)
class Segment:
    """The points of one phase; `steps` are optimizer steps from 1, each with the rate that it uses."""

    phase: Phase
    steps: tuple[int, ...]
    rates: tuple[float, ...]


def segments(schedule: Schedule, points: int = 500) -> tuple[Segment, ...]:
    """The run in segments, one a phase, of about `points` points in all. Every phase keeps its first and last step."""
    marks = schedule.sampled(points)
    found = []
    place = 0
    for phase in schedule.phases:
        start = place
        while place < len(marks) and marks[place] <= phase.last:
            place += 1
        steps = marks[start:place]
        found.append(Segment(phase, tuple(step + 1 for step in steps), tuple(schedule.at(step) for step in steps)))
    return tuple(found)


def telling_steps(schedule: Schedule) -> tuple[int, ...]:
    """The optimizer steps worth a table: the first three, both sides of every boundary of up to eight phases, the last two."""
    T = schedule.steps
    bounds = [step for phase in schedule.phases[:8] for step in (phase.first, phase.first + 1, phase.last + 1)]
    return tuple(sorted({step for step in (1, 2, 3, *bounds, T - 1, T) if 1 <= step <= T}))
