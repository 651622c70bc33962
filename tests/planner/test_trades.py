"""Batch, length, accumulation and checkpointing against each other: like is compared with like."""

from __future__ import annotations

from itertools import pairwise

import pytest
from plannable import scenarios

from calc import Scenario, estimate
from calc.planner.levers import with_values
from calc.planner.room import need
from calc.planner.trades import growths, ways


@pytest.mark.parametrize("place", [0, 22, 37, 51])
def test_every_way_has_the_same_tokens_per_step(place: int) -> None:
    """Micro-batch, length and accumulation multiply to the plan's own; each answer is the estimate of its scenario."""
    scenario = scenarios()[place][0]

    def tokens(one: Scenario) -> int:
        return one.plan.micro_batch_size * one.plan.seq_len * one.plan.gradient_accumulation_steps

    found = ways(scenario)

    assert "now" == found[0].id
    assert scenario == found[0].scenario
    assert len({way.id for way in found}) == len(found)
    for way in found:
        assert tokens(scenario) == tokens(way.scenario)
        assert way.answer.peak == estimate(way.scenario).peak


def test_accumulation_does_not_multiply_activations() -> None:
    """Half the micro-batch with twice the accumulation never needs more than the whole one."""
    for scenario, _ in scenarios()[::5]:
        found = {way.id: way for way in ways(scenario)}
        if "batch-half" in found and scenario.plan.gradient_accumulation_steps > 1:
            assert found["batch-half"].answer.peak.allocated <= found["now"].answer.peak.allocated


@pytest.mark.parametrize("place", [1, 25, 48])
def test_curves_are_what_each_size_needs_and_rise(place: int) -> None:
    """Every point is the estimate at that size."""
    scenario = scenarios()[place][0]
    batches, lengths = (1, 2, 5, 16), (256, 1024, 4096)

    for growth in growths(scenario, batches, lengths):
        changed = scenario if growth.lever is None else growth.lever.change(scenario)
        assert changed is not None
        for path, sizes, drawn in (
            ("plan.micro_batch_size", batches, growth.by_batch),
            ("plan.seq_len", lengths, growth.by_length),
        ):
            for size, memory in zip(sizes, drawn, strict=True):
                answer = estimate(with_values(changed, {path: size}))
                assert memory == need(answer.peak.reserved, answer.peak.device)
            assert all(a <= b for a, b in pairwise(drawn))
