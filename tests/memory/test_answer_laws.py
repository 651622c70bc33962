"""What must hold for every scenario that the type allows."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from calc import Breakdown, Refused, Scenario, estimate
from calc.catalog.optimizers import OPTIMIZERS
from calc.memory.breakdown import COMPONENTS
from calc.scenario import Attention, Checkpointing, Kernels, Loss, Precision

TINY = {
    "model_type": "llama",
    "vocab_size": 512,
    "hidden_size": 64,
    "intermediate_size": 176,
    "num_hidden_layers": 3,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
}


def scenario(plan: dict[str, Any], config: dict[str, Any] | None = None, **hardware: Any) -> Scenario:
    return Scenario.model_validate({"model": {"config": config or TINY}, "plan": plan, "hardware": hardware})


def answered(plan: dict[str, Any], config: dict[str, Any] | None = None) -> Breakdown | None:
    """The answer, or None when the plan was refused with a reason."""
    try:
        return estimate(scenario(plan, config))
    except Refused as refusal:
        assert refusal.code
        assert refusal.message.endswith((".", ")", "?"))
        return None


plans = st.fixed_dictionaries(
    {
        "method": st.sampled_from(["full", "lora", "qlora"]),
        "precision": st.sampled_from(get_args(Precision)),
        "optimizer": st.sampled_from(sorted(OPTIMIZERS)),
        "micro_batch_size": st.integers(1, 9),
        "seq_len": st.integers(1, 300),
        "gradient_accumulation_steps": st.sampled_from([1, 2, 16]),
        "gradient_checkpointing": st.sampled_from(get_args(Checkpointing)),
        "attention": st.sampled_from(get_args(Attention)),
        "loss": st.sampled_from(get_args(Loss)),
        "kernels": st.sampled_from(get_args(Kernels)),
        "padded": st.booleans(),
    }
)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    plan=plans, rank=st.integers(1, 64), dora=st.booleans(), dropout=st.sampled_from([0.0, 0.1]), saved=st.booleans()
)
def test_any_plan_is_answered_or_refused_with_a_reason(
    plan: dict[str, Any], rank: int, dora: bool, dropout: float, saved: bool
) -> None:
    """Lines sum to what is allocated at every instant, the peak is the highest instant, and the parts are the contract's."""
    if plan["method"] != "full":
        plan["lora"] = {
            "rank": rank,
            "use_dora": dora,
            "dropout": dropout,
            "modules_to_save": ["embed_tokens"] if saved else [],
        }

    answer = answered(plan)

    if answer is None:
        return
    for instant in answer.instants:
        assert sum(int(line.bytes) for line in instant.lines) == instant.allocated
        assert {line.component for line in instant.lines} <= set(COMPONENTS)
        assert all(line.bytes >= 0 for line in instant.lines)
    assert max(int(i.allocated) for i in answer.instants) == answer.peak.allocated
    assert answer.peak.instant in {i.name for i in answer.instants if i.allocated == answer.peak.allocated}
    assert answer.lines == next(i for i in answer.instants if i.name == answer.peak.instant).lines
    assert answer.peak.allocated <= answer.peak.reserved.low <= answer.peak.reserved.high
    assert answer.peak.reserved.low <= answer.peak.device.low


@pytest.mark.parametrize("plan", [
    {"method": "full"}, {"method": "full", "gradient_checkpointing": "full"}, {"method": "lora", "attention": "eager"},
    {"method": "qlora", "gradient_checkpointing": "full", "precision": "bf16-autocast"}, {"method": "full", "precision": "bf16-mixed", "padded": True},
])  # fmt: skip
@pytest.mark.parametrize("field", ["micro_batch_size", "seq_len", "rank", "num_hidden_layers"])
def test_memory_never_falls_when_something_grows(plan: dict[str, Any], field: str) -> None:
    """More sequences, longer ones, wider adapters or more layers never need less."""
    peaks = []
    for value in (1, 2, 3, 5, 8, 16, 17, 31, 32, 33, 64):
        given_plan, config = {"micro_batch_size": 2, "seq_len": 40, **plan}, dict(TINY)
        if field == "num_hidden_layers":
            config[field] = value
        elif field != "rank":
            given_plan[field] = value
        elif plan["method"] != "full":
            given_plan["lora"] = {"rank": value}
        peaks.append(int(estimate(scenario(given_plan, config)).peak.allocated))

    assert all(smaller <= larger for smaller, larger in pairwise(peaks))


def test_qlora_needs_less_than_lora_and_lora_less_than_full() -> None:
    """On weights and states, for a model of real size."""
    config = {
        **TINY,
        "hidden_size": 2048,
        "intermediate_size": 5632,
        "num_hidden_layers": 16,
        "num_attention_heads": 32,
    }
    standing = [
        sum(int(line.bytes) for line in estimate(scenario({"method": method}, config)).lines if line.component in ("weights", "adapters", "optimizer states"))
        for method in ("qlora", "lora", "full")
    ]  # fmt: skip

    assert standing == sorted(standing)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("precision", "fp32"), ("optimizer", "adamw_8bit"), ("micro_batch_size", 3), ("seq_len", 999), ("gradient_accumulation_steps", 4),
        ("gradient_checkpointing", "full"), ("attention", "eager"), ("padded", True), ("loss", "liger"), ("framework", "transformers-4.44"),
        ("method", "lora"), ("method", "qlora"),
    ],
)  # fmt: skip
def test_every_choice_changes_some_line(name: str, value: Any) -> None:
    """A choice that changes nothing would be a choice that nobody computes."""
    usual = {"method": "full", "micro_batch_size": 2, "seq_len": 512}

    before, after = estimate(scenario(usual)), estimate(scenario({**usual, name: value}))

    assert [(line.label, line.bytes) for i in before.instants for line in i.lines] != [
        (line.label, line.bytes) for i in after.instants for line in i.lines
    ]


def test_gradients_of_earlier_batches_live_on_under_accumulation() -> None:
    """With two micro-batches the loss of the second meets all gradients of the first."""
    one = estimate(scenario({"method": "full"}))
    two = estimate(scenario({"method": "full", "gradient_accumulation_steps": 2}))

    loss = {
        name: next(i for i in answer.instants if i.name == "loss").allocated
        for name, answer in (("one", one), ("two", two))
    }
    assert loss["two"] - loss["one"] == 2 * one.parameters.trainable
