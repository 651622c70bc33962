"""The best plan that fits, under what the visitor will not give up: by each method, the least change that does it.

The search goes through combinations of the levers that are marked for it, at most one of a kind, and the micro-batches that keep the
global batch. The best is the one with the least risk to the result, then with the least time, then with the fewest changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import log2, prod
from typing import Annotated, Any, Literal

from pydantic import Field

from calc.catalog.dtypes import DTYPES
from calc.catalog.optimizers import OPTIMIZERS
from calc.catalog.optimizers.states import Projected, kept
from calc.memory.breakdown import Breakdown
from calc.planner.levers import LEVERS, RISKS, Kind, Lever, method, with_values
from calc.planner.room import fits
from calc.planner.suggestions import UNFELT, answered, applied
from calc.scenario import Frozen, Scenario

Method = Literal["full", "lora", "qlora"]
METHODS: tuple[Method, ...] = ("full", "lora", "qlora")
"""From the most that is trained to the least."""


class Constraints(Frozen):
    """What a plan must keep."""

    methods: tuple[Method, ...] = METHODS
    """Methods that may be chosen."""
    narrow_states: bool = True
    """Whether optimizer states may be held in 8 bits or fewer."""
    global_batch: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """Sequences per optimizer step, kept by accumulation; none: what the scenario has, in no larger micro-batch."""
    installs: bool = True
    """Whether something may have to be installed."""
    margin: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Share of the card that must stay free."""


Cost = tuple[int, float, int]
"""Risk to the result, factor on the time, number of changes."""


@dataclass(frozen=True, slots=True)
class Fitting:
    """The best plan of one method that fits."""

    method: Method
    levers: tuple[Lever, ...]
    scenario: Scenario
    answer: Breakdown
    cost: Cost


def plans(
    scenario: Scenario, constraints: Constraints | None = None, *, config: Mapping[str, Any] | None = None
) -> tuple[Fitting, ...]:
    """The best plan that fits of each method, from the most that is trained to the least; a method without one is left out."""
    constraints = constraints or Constraints()
    found = (_best(scenario, name, constraints, config) for name in METHODS if name in constraints.methods)
    return tuple(plan for plan in found if plan is not None)


def _best(
    scenario: Scenario, name: Method, constraints: Constraints, config: Mapping[str, Any] | None
) -> Fitting | None:
    base = method(name)(scenario)
    if not _allowed_optimizer(base, constraints):
        base = with_values(base, {"plan.optimizer": "adamw_torch_fused", "plan.optimizer_args": {}})
    sizes = micro_batches(base, constraints.global_batch)
    best: Fitting | None = None
    for levers in sorted(combinations(base, constraints), key=lambda levers: cost(levers, 1)):
        if best is not None and cost(levers, 1) >= best.cost:
            return best
        changed = applied(levers, base)
        fitting = None if changed is None else _largest(changed, sizes, constraints, config)
        if fitting is not None:
            placed, answer = fitting
            spent = cost(levers, sizes[-1] / placed.plan.micro_batch_size)
            if best is None or spent < best.cost:
                best = Fitting(name, levers, placed, answer, spent)
    return best


def micro_batches(scenario: Scenario, global_batch: int | None) -> list[int]:
    """Micro-batches that divide the global batch, ascending. Without one asked for, none is larger than the scenario's."""
    now = scenario.plan.micro_batch_size
    whole = global_batch or now * scenario.plan.gradient_accumulation_steps
    most = whole if global_batch else now
    return [size for size in range(1, min(most, 65536) + 1) if whole % size == 0]


def combinations(scenario: Scenario, constraints: Constraints) -> Iterator[tuple[Lever, ...]]:
    """Every set of levers that the search may apply to the scenario, one of a kind at most."""
    choices: dict[Kind, list[Lever | None]] = {}
    for lever in LEVERS.values():
        changed = lever.change(scenario) if lever.searched else None
        if (
            changed is None
            or (lever.installs and not constraints.installs)
            or not _allowed_optimizer(changed, constraints)
        ):
            continue
        choices.setdefault(lever.kind, [None]).append(lever)
    for chosen in product(*choices.values()):
        yield tuple(lever for lever in chosen if lever is not None)


def cost(levers: Sequence[Lever], split: float) -> Cost:
    """What a combination costs, its micro-batch split into that many. A gain in time does not pay for a change that is not needed."""
    times = [UNFELT if lever.time is None else max(1.0, lever.time.expected) for lever in levers]
    halving = LEVERS["batch-half"].time
    assert halving is not None
    risk = max((RISKS.index(lever.risk) for lever in levers), default=0)
    return risk, prod(times) * halving.expected ** log2(split), len(levers) + (split > 1)


def _largest(
    scenario: Scenario, sizes: Sequence[int], constraints: Constraints, config: Mapping[str, Any] | None
) -> tuple[Scenario, Breakdown] | None:
    """The scenario with the largest of the micro-batches that fits, the global batch kept."""
    whole = constraints.global_batch or scenario.plan.micro_batch_size * scenario.plan.gradient_accumulation_steps
    best: tuple[Scenario, Breakdown] | None = None
    low, high = 0, len(sizes)
    while low < high:
        # The smallest first: most combinations that do not fit are done with it.
        middle = low if best is None else (low + high) // 2
        size = sizes[middle]
        placed = with_values(
            scenario, {"plan.micro_batch_size": size, "plan.gradient_accumulation_steps": whole // size}
        )
        answer = answered(placed, config)
        if answer is not None and fits(answer, margin=constraints.margin):
            best, low = (placed, answer), middle + 1
        elif best is None:
            return None
        else:
            high = middle
    return best


def _allowed_optimizer(scenario: Scenario, constraints: Constraints) -> bool:
    return constraints.narrow_states or not narrow(scenario.plan.optimizer)


def narrow(optimizer: str) -> bool:
    """Whether an optimizer holds the states of a large matrix in 8 bits or fewer."""
    row = OPTIMIZERS[optimizer]
    required = {argument.name: argument.default for argument in row.arguments if argument.required}
    matrix = Projected("layers.0.mlp.up_proj.weight", (4096, 4096), "bf16", "linear", 1)
    return any(
        DTYPES[state.dtype].size < 2 and state.numel >= 4096
        for state in kept(row.states, matrix, row.settings(required))
    )
