"""A schedule is phases of formulas laid end to end: the rate at every optimizer step, and the formula in force there.

Convention, everywhere: `s` counts the scheduler's steps already done, so optimizer step k (from 1) trains with the
rate at s = k − 1, and a run of T steps uses s = 0 … T − 1. The rate at s = T exists but no step uses it.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from calc.schedule.expression import Formula


class ScheduleError(ValueError):
    """A schedule that its own library would refuse, or crash in, with what to do instead."""

    def __init__(self, code: str, message: str, field: str = "") -> None:
        super().__init__(message)
        self.code, self.message, self.field = code, message, field


@dataclass(frozen=True, slots=True)
class Leg:
    """A formula and the step from which it is in force, as the author of a schedule writes it."""

    name: str
    first: float
    """First step at which it applies; a fraction means the next whole step."""
    expression: str
    where: Mapping[str, str] = field(default_factory=dict)
    inputs: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Halt:
    """The step at which the library crashes."""

    first: float
    reason: str


@dataclass(frozen=True, slots=True)
class Phase:
    """One stretch of a schedule under one formula."""

    name: str
    first: int
    """First scheduler step s under this formula."""
    num_steps: int
    """How many steps of the run it holds for."""
    formula: str
    """In symbols: lr, W warmup steps, T steps, s the step."""
    numbers: str
    """The same formula with this run's numbers; s stays a symbol."""

    @property
    def last(self) -> int:
        """Last scheduler step s under this formula."""
        return self.first + self.num_steps - 1


@dataclass(frozen=True)
class Schedule:
    """A learning rate for every step of a run.

    `inputs` are the symbols that all legs share (lr, W, T and the schedule's own options). `ticks` is how often the
    scheduler is stepped for each optimizer step: 1, or the number of processes when accelerate prepared it.
    """

    kind: str
    steps: int
    """T: optimizer steps in the run."""
    legs: tuple[Leg | Halt, ...]
    inputs: Mapping[str, float]
    ticks: int = 1

    @cached_property
    def _laid(self) -> tuple[list[int], list[Leg | Halt]]:
        """Legs in force and their first scheduler steps.

        Of two that start together the later written holds, so empty ones vanish.
        """
        firsts: list[int] = []
        laid: list[Leg | Halt] = []
        for leg in self.legs:
            first = max(0, math.ceil(leg.first))
            while firsts and firsts[-1] >= first:
                firsts.pop()
                laid.pop()
            firsts.append(first)
            laid.append(leg)
        return firsts, laid

    @cached_property
    def _curves(self) -> list[Callable[[float], float]]:
        return [_halt(leg) if isinstance(leg, Halt) else _curve(leg, self.inputs) for leg in self._laid[1]]

    def at(self, step: int) -> float:
        """The learning rate after `step` optimizer steps, which optimizer step `step` + 1 uses.

        Raises `ScheduleError` where the library crashes.
        """
        if step < 0:
            raise ScheduleError("negative_step", "a step is 0 or more", "at")
        tick = step * self.ticks
        firsts, _ = self._laid
        return float(self._curves[bisect_right(firsts, tick) - 1](tick))

    def __iter__(self) -> Iterator[float]:
        """The rate of each optimizer step, in order."""
        return map(self.at, range(self.steps))

    @cached_property
    def phases(self) -> tuple[Phase, ...]:
        """The stretches of the run, in order; together they cover s = 0 … T − 1 once."""
        firsts, laid = self._laid
        starts = [-(-first // self.ticks) for first in firsts] + [self.steps]
        found = []
        for leg, first, following in zip(laid, starts, starts[1:], strict=False):
            num_steps = min(following, self.steps) - first
            if num_steps > 0 and isinstance(leg, Leg):
                found.append(Phase(leg.name, first, num_steps, *self._texts(leg)))
        return tuple(found)

    def _texts(self, leg: Leg) -> tuple[str, str]:
        formula = Formula(leg.expression, leg.where)
        return formula.typeset(), formula.typeset({**self.inputs, **leg.inputs})

    def phase_at(self, step: int) -> Phase | None:
        """The phase in force at a step of the run; None past its end."""
        index = bisect_right([phase.first for phase in self.phases], step) - 1
        return self.phases[index] if index >= 0 and step <= self.phases[index].last else None

    def working(self, step: int) -> str:
        """The formula in force at a step with every number in place, the step's too."""
        tick = step * self.ticks
        firsts, laid = self._laid
        leg = laid[bisect_right(firsts, tick) - 1]
        if isinstance(leg, Halt):
            return leg.reason
        return Formula(leg.expression, leg.where).typeset({**self.inputs, **leg.inputs, "s": tick})

    @cached_property
    def halts_at(self) -> Halt | None:
        """Where the library crashes, if it does so in this run (the scheduler is stepped T times)."""
        return next(
            (
                leg
                for first, leg in zip(*self._laid, strict=True)
                if isinstance(leg, Halt) and first <= self.steps * self.ticks
            ),
            None,
        )

    def sampled(self, points: int = 1000) -> list[int]:
        """Steps to draw.

        The first and last of every phase exactly, and others spread evenly between, `points` or so in all.
        """
        last = self.steps - 1
        if last < 0:
            return []
        if last < points:
            return list(range(self.steps))
        bounds = {phase.first for phase in self.phases} | {phase.last for phase in self.phases}
        return sorted(bounds | {round(i * last / (points - 1)) for i in range(points)})

    @cached_property
    def area(self) -> float:
        """Sum of the rates over the run. Exact to rounding up to 20,000 steps.

        Beyond, the trapezoid between 2,000 steps a phase.
        """
        if self.steps <= 20_000:
            return math.fsum(self)
        return math.fsum(self._area(phase) for phase in self.phases)

    def _area(self, phase: Phase) -> float:
        marks = (
            [phase.first + round(i * (phase.num_steps - 1) / 2000) for i in range(2001)]
            if phase.num_steps > 2001
            else list(range(phase.first, phase.last + 1))
        )
        rates = [self.at(step) for step in marks]
        # A sum over whole steps is the integral plus half of both ends.
        return (
            math.fsum((b - a) * (x + y) / 2 for a, b, x, y in zip(marks, marks[1:], rates, rates[1:], strict=False))
            + (rates[0] + rates[-1]) / 2
        )

    @cached_property
    def peak(self) -> float:
        """The highest rate among the steps drawn."""
        return max((self.at(step) for step in self.sampled()), default=0.0)


def _curve(leg: Leg, inputs: Mapping[str, float]) -> Callable[[float], float]:
    return Formula(leg.expression, leg.where).at({**inputs, **leg.inputs}, "s")


def _halt(leg: Halt) -> Callable[[float], float]:
    def crash(step: float) -> float:
        raise ScheduleError("schedule_crashes", leg.reason, "schedule")

    return crash
