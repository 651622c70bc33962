"""How micro-batch, length, accumulation and checkpointing trade against each other: curves over sizes, and like compared with like."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calc.memory.breakdown import Breakdown
from calc.memory.estimate import estimate
from calc.planner.levers import LEVERS, Lever, with_values
from calc.planner.room import need
from calc.planner.suggestions import answered, blocked
from calc.scenario import Scenario
from calc.units import Bytes

DRAWN = ("checkpointing-full", "loss-liger")
"""Levers whose curves say most about batch and length: one frees what each block keeps, the other the logits."""


@dataclass(frozen=True, slots=True)
class Growth:
    """What the peak needs on the card as one size grows, for the plan or with one change."""

    lever: Lever | None
    """None for the plan as it is."""
    by_batch: tuple[Bytes, ...]
    by_length: tuple[Bytes, ...]


@dataclass(frozen=True, slots=True)
class Way:
    """A way to the same tokens per optimizer step."""

    id: str
    scenario: Scenario
    answer: Breakdown
    levers: tuple[Lever, ...]
    """Whose time it costs; none where it is the plan's own or nobody has published it."""


def growths(
    scenario: Scenario, batches: Sequence[int], lengths: Sequence[int], *, config: Mapping[str, Any] | None = None
) -> tuple[Growth, ...]:
    """The plan's curves, and those of the levers drawn that have a place in it. Raises what `estimate` raises."""
    plan = scenario.plan
    found: list[Growth] = []
    for lever in (None, *(LEVERS[name] for name in DRAWN)):
        changed = scenario if lever is None else lever.change(scenario)
        if changed is None or (lever is not None and answered(changed, config) is None):
            continue
        by_batch = tuple(_needed(changed, batch, plan.seq_len, config) for batch in batches)
        by_length = tuple(_needed(changed, plan.micro_batch_size, length, config) for length in lengths)
        found.append(Growth(lever, by_batch, by_length))
    return tuple(found)


def _needed(scenario: Scenario, batch: int, length: int, config: Mapping[str, Any] | None) -> Bytes:
    sizes = {"plan.micro_batch_size": batch, "plan.seq_len": length}
    peak = estimate(with_values(scenario, sizes), config=config).peak
    return need(peak.reserved, peak.device)


def ways(scenario: Scenario, *, config: Mapping[str, Any] | None = None) -> tuple[Way, ...]:
    """Other ways to as many tokens per optimizer step; those that cannot run or are not modelled are left out."""
    found = []
    for name, changed, levers in _ways(scenario):
        answer = answered(changed, config)
        if answer is not None and not blocked(answer):
            found.append(Way(name, changed, answer, levers))
    return tuple(found)


def _ways(scenario: Scenario) -> Iterator[tuple[str, Scenario, tuple[Lever, ...]]]:
    plan = scenario.plan
    batch, length, steps = plan.micro_batch_size, plan.seq_len, plan.gradient_accumulation_steps
    checkpointed = plan.gradient_checkpointing != "none"
    other = with_values(scenario, {"plan.gradient_checkpointing": "none" if checkpointed else "full"})
    more = () if checkpointed else (LEVERS["checkpointing-full"],)
    yield "now", scenario, ()
    for name in ("batch-half", "batch-one"):
        changed = LEVERS[name].change(scenario)
        if changed is not None:
            yield name, changed, (LEVERS[name],)
    if steps % 2 == 0:
        sizes = {"plan.micro_batch_size": 2 * batch, "plan.gradient_accumulation_steps": steps // 2}
        yield "batch-double", with_values(scenario, sizes), ()
    if length % 2 == 0:
        yield "shorter", with_values(scenario, {"plan.micro_batch_size": 2 * batch, "plan.seq_len": length // 2}), ()
    if batch % 2 == 0:
        yield "longer", with_values(scenario, {"plan.micro_batch_size": batch // 2, "plan.seq_len": 2 * length}), ()
    yield "checkpointing-off" if checkpointed else "checkpointing-on", other, more
    changed = LEVERS["batch-one"].change(other)
    if changed is not None:
        yield f"checkpointing-{'off' if checkpointed else 'on'}+batch-one", changed, (*more, LEVERS["batch-one"])
