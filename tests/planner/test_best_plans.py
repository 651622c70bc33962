"""The best plan that fits: nothing cheaper does, and what must be kept is kept."""

from __future__ import annotations

import pytest
from plannable import scenarios

from calc import Scenario, estimate
from calc.catalog.optimizers import OPTIMIZERS
from calc.planner.levers import method, with_values
from calc.planner.plans import Constraints, combinations, cost, micro_batches, narrow, plans
from calc.planner.room import fits
from calc.planner.suggestions import answered, applied


def cheapest(scenario: Scenario, name: str, constraints: Constraints) -> tuple[int, float, int] | None:
    """The least cost of a plan that fits, by trying every combination with every micro-batch."""
    base = method(name)(scenario)  # type: ignore[arg-type]
    sizes = micro_batches(base, constraints.global_batch)
    whole = constraints.global_batch or base.plan.micro_batch_size * base.plan.gradient_accumulation_steps
    costs = []
    for levers in combinations(base, constraints):
        changed = applied(levers, base)
        assert changed is not None
        for size in sizes:
            placed = with_values(
                changed, {"plan.micro_batch_size": size, "plan.gradient_accumulation_steps": whole // size}
            )
            answer = answered(placed, None)
            if answer is not None and fits(answer):
                costs.append(cost(levers, sizes[-1] / size))
    return min(costs, default=None)


@pytest.mark.parametrize("place", [2, 21, 30, 44, 59])
def test_no_cheaper_plan_fits(place: int) -> None:
    """Every combination tried by hand, for each method."""
    scenario = scenarios()[place][0]

    found = {plan.method: plan for plan in plans(scenario)}

    for name in ("full", "lora", "qlora"):
        best = cheapest(scenario, name, Constraints())
        assert best == (found[name].cost if name in found else None)
    for plan in found.values():
        assert fits(estimate(plan.scenario))
        assert estimate(plan.scenario).peak == plan.answer.peak


def test_what_fits_already_is_left_alone() -> None:
    """No change is the cheapest plan."""
    for scenario, fitting in scenarios()[::4]:
        if fitting:
            same = next(plan for plan in plans(scenario) if plan.method == scenario.plan.method)
            assert scenario == same.scenario
            assert (0, 1.0, 0) == same.cost


@pytest.mark.parametrize("place", [25, 33, 50])
def test_constraints_are_kept(place: int) -> None:
    """One method, no narrow states, nothing to install, a global batch of 128, 5 % free."""
    scenario = scenarios()[place][0]
    constraints = Constraints(
        methods=("full", "qlora"), narrow_states=False, installs=False, global_batch=128, margin=0.05
    )

    for plan in plans(scenario, constraints):
        made = plan.scenario.plan
        assert plan.method in ("full", "qlora")
        assert not narrow(made.optimizer)
        assert 128 == made.micro_batch_size * made.gradient_accumulation_steps
        assert fits(plan.answer, margin=0.05)
        assert not any(lever.installs for lever in plan.levers)


def test_narrow_states_are_those_of_eight_bits_or_fewer() -> None:
    """By the row's own states, not by its name."""
    named = {name for name in OPTIMIZERS if any(word in name for word in ("8bit", "4bit", "fp8"))}

    assert named == {name for name in OPTIMIZERS if narrow(name)}


def test_micro_batches_divide_the_global_batch() -> None:
    """None larger than the plan's own, unless a global batch is asked for."""
    scenario = Scenario.model_validate(
        {"model": "x", "plan": {"micro_batch_size": 6, "gradient_accumulation_steps": 4}}
    )

    assert [1, 2, 3, 4, 6] == micro_batches(scenario, None)
    assert [1, 2, 4, 5, 10, 20] == micro_batches(scenario, 20)
