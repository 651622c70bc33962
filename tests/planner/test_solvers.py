"""How far one can go: what is answered fits, nothing larger does, and trying every value by hand finds the same."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plannable import scenarios

from calc import Scenario, estimate
from calc.catalog.gpus import GPUS
from calc.planner.levers import with_values
from calc.planner.room import fits
from calc.planner.solvers import (
    highest_rank,
    largest,
    largest_micro_batch,
    longest_sequence,
    smallest_card,
)

SMALL = {
    "model_type": "llama", "vocab_size": 32000, "hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 22,
    "num_attention_heads": 32, "num_key_value_heads": 4,
}  # fmt: skip


def held(scenario: Scenario, path: str, value: int) -> bool:
    return fits(estimate(with_values(scenario, {path: value})))


@pytest.mark.parametrize(("scenario", "_"), scenarios()[::2], ids=range(0, 60, 2))
def test_what_is_answered_fits_and_the_next_does_not(scenario: Scenario, _: bool) -> None:
    """Micro-batch, length and rank, each by the estimate of the very scenario; no answer means that not even one fits."""
    for solved, path in (
        (largest_micro_batch(scenario), "plan.micro_batch_size"),
        (longest_sequence(scenario), "plan.seq_len"),
        (highest_rank(scenario), "plan.lora.rank"),
    ):
        if solved is None:
            assert scenario.plan.method == "full" or not held(scenario, path, 1)
            continue
        assert path == solved.path
        assert solved.answer.peak == estimate(solved.scenario).peak
        assert held(scenario, path, solved.value)
        assert solved.bounded or not any(held(scenario, path, solved.value + more) for more in (1, 2, 3, 8, 16, 17))


CROWDED: list[dict[str, Any]] = [
    {"method": "full", "micro_batch_size": 256, "attention": "flash_attention_2"},
    {
        "method": "full",
        "micro_batch_size": 128,
        "padded": True,
        "precision": "bf16-mixed",
        "gradient_checkpointing": "full",
    },
    {"method": "lora", "micro_batch_size": 512, "precision": "bf16-autocast", "padded": True},
    {"method": "full", "micro_batch_size": 64, "attention": "eager", "optimizer": "adamw_8bit"},
]


@pytest.mark.parametrize("plan", CROWDED, ids=str)
def test_the_longest_sequence_is_what_trying_every_length_finds(plan: dict[str, Any]) -> None:
    """Batches so large that few tokens fit: every length up to twice the answer is tried."""
    scenario = Scenario.model_validate({"model": {"config": SMALL}, "plan": plan, "hardware": {"gpu": "rtx-4090"}})

    solved = longest_sequence(scenario)

    assert solved is not None
    tried = [length for length in range(1, 2 * solved.value + 40) if held(scenario, "plan.seq_len", length)]
    assert tried[-1] == solved.value


@pytest.mark.parametrize("length", [4096, 3001])
def test_the_largest_micro_batch_is_what_trying_every_one_finds(length: int) -> None:
    """Also at a length that kernels pad."""
    plan = {"seq_len": length, "padded": True, "optimizer": "adamw_8bit"}
    scenario = Scenario.model_validate({"model": {"config": SMALL}, "plan": plan, "hardware": {"gpu": "a100-sxm-80gb"}})

    solved = largest_micro_batch(scenario)

    assert solved is not None
    tried = [batch for batch in range(1, 2 * solved.value + 3) if held(scenario, "plan.micro_batch_size", batch)]
    assert tried[-1] == solved.value


@settings(max_examples=300, deadline=None)
@given(
    ends=st.lists(st.integers(-3, 300), min_size=1, max_size=8),
    low=st.integers(1, 5),
    high=st.integers(1, 320),
)
def test_the_search_finds_the_last_number_whose_remainder_still_holds(ends: list[int], low: int, high: int) -> None:
    """Each remainder has its own end, and the period is learned on the way."""
    asked: list[int] = []

    def holds(number: int) -> bool:
        asked.append(number)
        return number <= ends[number % len(ends)]

    found = largest(holds, low, high, lambda: len(ends) if asked else 1)

    tried = [number for number in range(low, high + 1) if number <= ends[number % len(ends)]]
    assert (tried[-1] if tried else None) == found


def test_a_margin_leaves_that_much_room() -> None:
    """With 8 % to stay free the answer is smaller, and what its peak needs leaves 8 % of the card."""
    scenario = scenarios()[0][0]

    whole, careful = longest_sequence(scenario), longest_sequence(scenario, margin=0.08)

    assert whole is not None
    assert careful is not None
    assert careful.value < whole.value
    assert fits(careful.answer, margin=0.08)
    assert not fits(whole.answer, margin=0.08)


def test_longer_context_on_larger_cards() -> None:
    """Llama 3.1 8B, QLoRA of rank 32 on every layer, one sequence, checkpointed, flash attention: 8 to 80 GB."""
    plan = {"method": "qlora", "lora": {"rank": 32}, "precision": "bf16-autocast", "optimizer": "adamw_8bit",
            "micro_batch_size": 1, "gradient_checkpointing": "full", "attention": "flash_attention_2"}  # fmt: skip
    cards = ("rtx-3070", "rtx-3060-12gb", "rtx-5060-ti-16gb", "rtx-4090", "a100-sxm-40gb", "rtx-a6000", "a100-sxm-80gb")

    found = []
    for gpu in cards:
        scenario = Scenario.model_validate({"model": "meta-llama/Llama-3.1-8B", "plan": plan, "hardware": {"gpu": gpu}})
        solved = longest_sequence(scenario)
        found.append(solved.value if solved else 0)

    assert sorted(set(found)) == found
    assert found[0] < 1500
    assert 25_000 < found[-1] < 60_000


def test_the_smallest_card_is_the_first_that_fits_by_memory() -> None:
    """All smaller ones were tried; cards whose capacity nobody has read are not offered."""
    scenario = next(scenario for scenario, fitting in scenarios() if scenario.plan.method == "qlora" and fitting)

    card = smallest_card(scenario)

    assert card is not None
    assert fits(card.answer)
    assert card.gpu.id == card.scenario.hardware.gpu
    known = [g for g in GPUS.values() if g.vendor == "NVIDIA" and g.capacity_status != "not looked up"]
    smaller = [g for g in known if g.capacity < card.gpu.capacity]
    assert smaller
    assert not any(fits(estimate(with_values(scenario, {"hardware.gpu": g.id}))) for g in smaller)


def test_no_card_where_none_is_large_enough() -> None:
    """A 405B model, whole in fp32, is told so."""
    plan = {"precision": "fp32", "attention": "eager"}
    scenario = Scenario.model_validate({"model": "meta-llama/Meta-Llama-3.1-405B", "plan": plan})

    assert smallest_card(scenario) is None
    assert largest_micro_batch(scenario) is None
    assert highest_rank(scenario) is None
