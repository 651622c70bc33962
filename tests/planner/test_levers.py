"""Levers promise what they do: every suggestion, applied, gives exactly the bytes that it names."""

from __future__ import annotations

from itertools import combinations

import pytest
from plannable import scenarios

from calc import Scenario, estimate, link
from calc.catalog.sources import SOURCES
from calc.planner.levers import LEVERS, method, value_at
from calc.planner.suggestions import Suggestion, advice, answered, applied, blocked, pairs
from calc.units import Bytes


def seen_again(scenario: Scenario) -> Bytes:
    """The peak of a scenario after a trip through its link."""
    opened, problems = link.scenario(link.query(scenario))
    assert () == problems
    return estimate(opened).peak.allocated


@pytest.mark.parametrize(("scenario", "fits"), scenarios(), ids=range(60))
def test_a_suggestion_gives_exactly_what_it_promises(scenario: Scenario, fits: bool) -> None:
    """Applied through its link, it lowers the peak by the bytes named; what it says of fitting is so."""
    found = advice(scenario)

    before = estimate(scenario)
    assert fits == (before.verdict in ("fits", "tight"))
    assert found.helpful
    for one in found.helpful:
        assert one.saved > 0
        assert before.peak.allocated - one.saved == seen_again(one.scenario) == one.answer.peak.allocated
        assert one.turns == (not fits and one.answer.verdict in ("fits", "tight"))
        assert not blocked(one.answer)


@pytest.mark.parametrize(("scenario", "fits"), scenarios()[::5], ids=range(0, 60, 5))
def test_a_lever_without_effect_says_why(scenario: Scenario, fits: bool) -> None:
    """Applied, the peak is not lower, or the plan cannot run; the instants that it lowers are those named."""
    found = advice(scenario)

    for one in found.useless:
        changed = one.lever.change(scenario)
        assert changed is not None
        after = estimate(changed)
        assert one.problem == blocked(after)
        assert one.problem or after.peak.allocated == found.before.peak.allocated + one.raised
        assert one.reason
        was = {instant.name: instant.allocated for instant in found.before.instants}
        assert {i.name: was[i.name] - i.allocated for i in after.instants if i.allocated < was[i.name]} == dict(
            one.lowered
        )


def test_every_lever_is_tried_or_has_no_place() -> None:
    """A lever is in one list or the other, unless the plan has it already or the model refuses it."""
    scenario = scenarios()[30][0]
    found = advice(scenario)

    named = {one.levers[0].id for one in found.helpful} | {one.lever.id for one in found.useless}

    for lever in LEVERS.values():
        changed = lever.change(scenario)
        assert (lever.id in named) == (changed is not None and answered(changed, None) is not None)


def test_levers_that_make_it_fit_come_first_and_the_harmless_before_the_others() -> None:
    """Llama 3 8B, whole, 8 x 4,096 tokens on an 80 GB card: the loss breaks it, and another loss mends it at no cost."""
    plan = {"optimizer": "adamw_torch", "micro_batch_size": 8, "seq_len": 4096, "gradient_checkpointing": "full",
            "attention": "flash_attention_2"}  # fmt: skip
    scenario = Scenario.model_validate(
        {"model": "meta-llama/Meta-Llama-3-8B", "plan": plan, "hardware": {"gpu": "a100-sxm-80gb"}}
    )

    found = advice(scenario)

    assert ("does_not_fit", "loss") == (found.before.verdict, found.before.peak.instant)
    first = found.helpful[0]
    assert ("loss-liger", "same", True) == (first.id, first.risk, first.turns)
    assert "optimizer step" == first.answer.peak.instant


@pytest.mark.source("fms-acceleration", "a100_80gb_liger.csv: foak-fast-kernels-liger, 8 sequences, one card")
def test_the_plan_that_the_first_lever_leads_to_was_measured() -> None:
    """With Liger's loss it ran on an A100 with a peak of 80,318,490,624 bytes; without, it ran out of memory."""
    plan = {"optimizer": "adamw_torch", "micro_batch_size": 8, "seq_len": 4096, "gradient_checkpointing": "full",
            "attention": "flash_attention_2", "loss": "liger", "kernels": "foak"}  # fmt: skip
    scenario = Scenario.model_validate(
        {"model": "meta-llama/Meta-Llama-3-8B", "plan": plan, "hardware": {"gpu": "a100-sxm-80gb"}}
    )

    answer = estimate(scenario)

    assert abs(80_318_490_624 - answer.peak.allocated) / 80_318_490_624 < 0.001


@pytest.mark.parametrize("place", [3, 24, 41])
def test_the_best_pairs_are_the_best_of_all_pairs(place: int) -> None:
    """Every pair of two kinds tried by hand, in both orders: none beats those suggested."""
    scenario = scenarios()[place][0]
    found = advice(scenario)
    alone = {one.id: int(one.saved) for one in found.helpful}

    best = pairs(found, limit=None)

    promised = {frozenset(lever.id for lever in one.levers): int(one.saved) for one in best}
    peak = int(found.before.peak.allocated)
    tried = {}
    for two in combinations(LEVERS.values(), 2):
        a, b = two
        if a.kind == b.kind:
            continue
        for order in (two, two[::-1]):
            changed = applied(order, scenario)
            after = answered(changed, None)
            if after is None or blocked(after):
                continue
            saved = peak - int(after.peak.allocated)
            if saved > max(alone.get(a.id, 0), alone.get(b.id, 0)) + 0.01 * peak:
                tried.setdefault(frozenset((a.id, b.id)), saved)
            break
    assert tried == promised
    for one in best:
        assert found.before.peak.allocated - one.saved == seen_again(one.scenario)
        assert 2 == len({lever.kind for lever in one.levers})


def test_a_pair_multiplies_what_is_known_of_the_time() -> None:
    """Without a published time for one of them the range has no high end; with none at all there is no range."""
    found = advice(scenarios()[3][0])

    def time(*names: str) -> tuple[float, float | None] | None:
        levers = tuple(LEVERS[name] for name in names)
        return Suggestion(levers, found.scenario, found.before, Bytes(0), False).time

    assert (0.99 * 1.2, 1.01 * 1.5) == time("loss-liger", "checkpointing-full")
    assert (1.2, None) == time("checkpointing-full", "optimizer-adamw_torch_4bit")
    assert time("optimizer-adamw_torch_4bit") is None


def test_every_cost_names_its_source() -> None:
    """Quality and time of each lever point into the table of sources; a range runs from low to high."""
    for lever in LEVERS.values():
        assert lever.quality_source in SOURCES
        assert lever.quality.endswith(".")
        if lever.time is not None:
            assert lever.time.sources
            assert set(lever.time.sources) <= set(SOURCES)
            assert lever.time.high is None or lever.time.low <= lever.time.high


def test_a_smaller_micro_batch_keeps_the_global_batch() -> None:
    """Accumulation takes up what the micro-batch gives."""
    for scenario, _ in scenarios():
        for name in ("batch-half", "batch-one"):
            changed = LEVERS[name].change(scenario)
            if changed is not None:
                assert changed.plan.micro_batch_size < scenario.plan.micro_batch_size
                assert (
                    changed.plan.micro_batch_size * changed.plan.gradient_accumulation_steps
                    == scenario.plan.micro_batch_size * scenario.plan.gradient_accumulation_steps
                )


def test_another_method_keeps_what_the_methods_share() -> None:
    """Length, batch, optimizer and the rest stay; the precision of a frozen base has no master copy."""
    for scenario, _ in scenarios():
        for name in ("full", "lora", "qlora"):
            changed = method(name)(scenario)
            assert name == changed.plan.method
            for path in ("micro_batch_size", "seq_len", "optimizer", "loss", "attention", "gradient_checkpointing"):
                assert value_at(scenario, f"plan.{path}") == value_at(changed, f"plan.{path}")
