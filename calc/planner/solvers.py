"""How far one can go: the largest micro-batch, the longest sequence, the highest rank, the smallest card.

Each answer is exact: it fits by the model's own run, and nothing larger does. Memory grows with these sizes but for what
kernels pad, which makes a length that is no multiple of theirs dearer than the next multiple; so the search goes through
every remainder, and among numbers of one remainder it halves the interval.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import lcm
from typing import Any

from calc.catalog.gpus import GPUS, Gpu
from calc.memory.breakdown import Breakdown
from calc.memory.estimate import estimate, on_the_card, verdict
from calc.memory.problems import Refused, problems
from calc.memory.surface import Surface
from calc.planner.levers import with_values
from calc.planner.room import fits, within
from calc.scenario import FullFineTuning, LoraAdapter, Scenario, Training


@dataclass(frozen=True, slots=True)
class Solution:
    """The largest value that fits, as a scenario and its answer."""

    path: str
    """The field that was solved for."""
    value: int
    scenario: Scenario
    answer: Breakdown
    bounded: bool
    """It ends at the field's own bound and not at the card's."""


@dataclass(frozen=True, slots=True)
class Card:
    """The smallest card that fits, and the scenario on it."""

    gpu: Gpu
    scenario: Scenario
    answer: Breakdown
    smaller: tuple[str, ...]
    """Ids of the cards with less memory, none of which does."""


def largest(holds: Callable[[int], bool], low: int, high: int, period: Callable[[], int] = lambda: 1) -> int | None:
    """The largest number from `low` to `high` that holds; None where not even `low` does.

    Among numbers with the same remainder by `period`, all that hold must come before all that do not. `period` is asked
    again after each search, for what the search has found out.
    """
    best: int | None = None
    known = 1
    while True:
        for start in range(low, min(low + known, high + 1)):
            # The first number of this remainder above the best so far.
            first = start if best is None else start + -(-max(best + 1 - start, 0) // known) * known
            if first <= high and holds(first):
                best = _halved(holds, first, high, known)
        if known == (known := max(known, period())):
            return best


def _halved(holds: Callable[[int], bool], low: int, high: int, step: int) -> int:
    """The last of low, low + step, ... up to `high` that holds; `low` does."""
    least, most = 0, (high - low) // step + 1
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (middle, most) if holds(low + middle * step) else (least, middle)
    return low + least * step


def room(surface: Surface, batch: int, length: int, margin: float) -> bool:
    """Whether a cell of a surface fits."""
    scenario = surface.at(batch, length)
    reserved, device = on_the_card(scenario, surface.allocated(batch, length))
    found = verdict(device, surface.gpu.capacity, problems(scenario, surface.model, surface.gpu))
    return within(found, reserved, device, surface.gpu.capacity, margin)


def period(surface: Surface) -> int:
    """By what kernels of the regions run so far pad."""
    asked = [by for region in surface.regions for _, question, by, _ in region.decisions if question in "%|"]
    return lcm(*asked) if asked else 1


def largest_micro_batch(
    scenario: Scenario, *, config: Mapping[str, Any] | None = None, margin: float = 0.0, surface: Surface | None = None
) -> Solution | None:
    """The largest `per_device_train_batch_size` that fits; None where not even one sequence does."""
    surface = surface or Surface(scenario, config=config)
    length = scenario.plan.seq_len
    _, high = bounds(Training, "micro_batch_size")
    value = largest(lambda batch: room(surface, batch, length, margin), 1, high, lambda: period(surface))
    return _solution(scenario, "plan.micro_batch_size", value, high, config)


def longest_sequence(
    scenario: Scenario, *, config: Mapping[str, Any] | None = None, margin: float = 0.0, surface: Surface | None = None
) -> Solution | None:
    """The longest sequence that fits, whether or not the model's positions reach it; None where not even one token does."""
    surface = surface or Surface(scenario, config=config)
    batch = scenario.plan.micro_batch_size
    _, high = bounds(Training, "seq_len")
    value = largest(lambda length: room(surface, batch, length, margin), 1, high, lambda: period(surface))
    return _solution(scenario, "plan.seq_len", value, high, config)


def highest_rank(
    scenario: Scenario, *, config: Mapping[str, Any] | None = None, margin: float = 0.0
) -> Solution | None:
    """The highest adapter rank that fits; None where not even rank 1 does, and for full fine-tuning, which has none."""
    if isinstance(scenario.plan, FullFineTuning):
        return None
    _, high = bounds(LoraAdapter, "rank")
    path = "plan.lora.rank"

    def holds(rank: int) -> bool:
        return fits(estimate(with_values(scenario, {path: rank}), config=config), margin=margin)

    return _solution(scenario, path, largest(holds, 1, high), high, config)


def smallest_card(
    scenario: Scenario, *, vendor: str = "NVIDIA", config: Mapping[str, Any] | None = None, margin: float = 0.0
) -> Card | None:
    """The card with the least memory that fits, of one vendor's cards whose capacity is known; None where none does."""
    cards = [gpu for gpu in GPUS.values() if gpu.vendor == vendor and gpu.capacity_status != "not looked up"]
    smaller: list[str] = []
    for gpu in sorted(cards, key=lambda gpu: int(gpu.capacity)):
        placed = with_values(scenario, {"hardware.gpu": gpu.id})
        try:
            answer = estimate(placed, config=config)
        except Refused:
            smaller.append(gpu.id)
            continue
        if fits(answer, margin=margin):
            return Card(gpu, placed, answer, tuple(smaller))
        smaller.append(gpu.id)
    return None


def bounds(kind: type[Training] | type[LoraAdapter], field: str) -> tuple[int, int]:
    """The least and the greatest value that a whole-number field of the scenario takes."""
    limits = kind.model_fields[field].metadata
    return (
        next(limit.ge for limit in limits if hasattr(limit, "ge")),
        next(limit.le for limit in limits if hasattr(limit, "le")),
    )


def _solution(
    scenario: Scenario, path: str, value: int | None, high: int, config: Mapping[str, Any] | None
) -> Solution | None:
    if value is None:
        return None
    solved = with_values(scenario, {path: value})
    return Solution(path, value, solved, estimate(solved, config=config), value == high)
