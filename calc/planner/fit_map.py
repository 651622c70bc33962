"""The fit map: the peak over micro-batch and length, and for several cards how far each reaches.

One scenario's run with open sizes serves all cells, and all cards that run the same kernels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calc.catalog.gpus import Gpu
from calc.memory.breakdown import Verdict
from calc.memory.estimate import on_the_card, verdict
from calc.memory.problems import problems
from calc.memory.surface import Summit, Surface
from calc.planner.room import need
from calc.planner.solvers import largest, period, room
from calc.scenario import Scenario
from calc.units import Bytes


@dataclass(frozen=True, slots=True)
class Cell:
    """One micro-batch and length."""

    batch: int
    length: int
    summit: Summit
    """The peak, its instant and its components."""
    needed: Bytes
    """What the peak needs on the card, with nothing cached: it fits where this is within the capacity."""
    device: Bytes
    """What nvidia-smi usually shows: the cache takes the room that is left."""
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Frontier:
    """How far a card reaches: the largest micro-batch at each length, None where not one sequence fits."""

    gpu: Gpu
    batches: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class FitMap:
    """Cells by row (micro-batch) and column (length)."""

    batches: tuple[int, ...]
    lengths: tuple[int, ...]
    cells: tuple[tuple[Cell, ...], ...]
    frontiers: tuple[Frontier, ...]


def stops(low: int, high: int, number: int, *, multiple: int = 1, including: Sequence[int] = ()) -> tuple[int, ...]:
    """About `number` whole numbers from `low` to `high`, evenly apart in ratio, multiples of one number as far as they can be.

    Those to include are among them.

    >>> stops(1, 64, 7)
    (1, 2, 4, 8, 16, 32, 64)
    """
    found: set[int] = set(including)
    ratio = (high / low) ** (1 / max(number - 1, 1))
    value, last = float(low), 0
    for _ in range(number):
        # At least one step on from the last one: small numbers lie closer than the ratio can tell apart.
        last = max(last + multiple, round(value / multiple) * multiple)
        found.add(min(last, high))
        value *= ratio
    return tuple(sorted(found))


def fit_map(
    scenario: Scenario,
    batches: Sequence[int],
    lengths: Sequence[int],
    *,
    gpus: Sequence[str] = (),
    config: Mapping[str, Any] | None = None,
) -> FitMap:
    """Every cell of the scenario on its own card, and the frontier of the cards named. Raises what `estimate` raises."""
    surface = Surface(scenario, config=config)
    cells = tuple(tuple(cell(surface, batch, length) for length in lengths) for batch in batches)
    frontiers = tuple(frontier(surface.on(name), lengths, max(batches)) for name in gpus)
    return FitMap(tuple(batches), tuple(lengths), cells, frontiers)


def cell(surface: Surface, batch: int, length: int) -> Cell:
    """One cell of a surface."""
    scenario, summit = surface.at(batch, length), surface.summit(batch, length)
    reserved, device = on_the_card(scenario, summit.allocated)
    found = verdict(device, surface.gpu.capacity, problems(scenario, surface.model, surface.gpu))
    return Cell(batch, length, summit, need(reserved, device), device.expected, found)


def frontier(surface: Surface, lengths: Sequence[int], most: int, margin: float = 0.0) -> Frontier:
    """The largest micro-batch up to `most` that fits at each length."""
    return Frontier(
        surface.gpu,
        tuple(
            largest(lambda batch, at=length: room(surface, batch, at, margin), 1, most, lambda: period(surface))  # type: ignore[misc]
            for length in lengths
        ),
    )
