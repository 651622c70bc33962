"""The formula that a line shows is the formula of the bytes that it shows."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from calc import Scenario, estimate
from calc.autograd.symbol import evaluate, merged
from calc.catalog.gpus import GPUS
from calc.memory import closed_form, in_backward
from calc.memory.recipes import recipe
from calc.memory.step import run
from calc.model import architecture

LLAMA = {
    "model_type": "llama", "vocab_size": 1096, "hidden_size": 360, "intermediate_size": 616, "num_hidden_layers": 7,
    "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 40,
}  # fmt: skip
PLANS: list[dict[str, Any]] = [
    {"method": "full"},
    {"method": "full", "attention": "eager"},
    {"method": "full", "padded": True, "seq_len": 57},
    {"method": "full", "precision": "bf16-mixed"},
    {"method": "full", "gradient_checkpointing": "full"},
    {"method": "full", "gradient_checkpointing": "offload"},
    {"method": "full", "sharding": {"activation_offload": True}},
    {"method": "full", "loss": "cce"},
    {"method": "full", "optimizer": "lomo"},
    {"method": "full", "optimizer": "adamw_torch", "optimizer_in_backward": True},
    {"method": "lora", "lora": {"rank": 12, "dropout": 0.1}},
    {"method": "qlora", "lora": {"rank": 12}, "gradient_checkpointing": "full", "precision": "bf16-autocast"},
]


@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_the_symbolic_run_comes_to_the_same_bytes(plan: dict[str, Any]) -> None:
    """At every instant and for every kind of memory."""
    scenario = Scenario.model_validate(
        {"model": {"config": LLAMA}, "plan": {"micro_batch_size": 2, "seq_len": 56, **plan}}
    )
    model, how = architecture(LLAMA), recipe(scenario.plan, GPUS[scenario.hardware.gpu])

    numeric = run(model, how, on_gradient=in_backward.stepping(scenario.plan))
    symbolic, table = closed_form.symbolic(model, how, in_backward.stepping(scenario.plan))

    for instant in ("forward", "live", "loss", "backward", "end", "after"):
        ours, theirs = getattr(numeric, instant).kinds, getattr(symbolic, instant).kinds
        assert [int(x) for x in theirs] == list(ours)
        assert [evaluate(merged(x), table) for x in theirs] == [Fraction(x) for x in ours]


def test_a_llama_block_shows_the_formula_that_everyone_can_check() -> None:
    """The design's own example: N·(16h + 4q + 4kv + 4H + 8i + 8) + 24 for each layer in bf16 with flash attention."""
    scenario = Scenario.model_validate({"model": {"config": LLAMA}, "plan": {"micro_batch_size": 2, "seq_len": 56}})

    line = next(
        line
        for i in estimate(scenario).instants
        if i.name == "loss"
        for line in i.lines
        if line.component == "activations"
    )

    assert line.formula.startswith("L·(N·(16h + 4q + 4kv + 8i + 4H + 8) + 24)")
    assert "7·(112·(16·360 + 4·240 + 4·80 + 8·616 + 4·6 + 8) + 24)" in line.numbers
