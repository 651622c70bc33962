"""The peak over batch and length stays exact with fused kernels, other losses, other checkpointing and held outputs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calc import Scenario, estimate
from calc.memory.surface import Surface

LLAMA = {
    "model_type": "llama", "vocab_size": 5000, "hidden_size": 512, "intermediate_size": 1376, "num_hidden_layers": 6,
    "num_attention_heads": 8, "num_key_value_heads": 2,
}  # fmt: skip
QLORA = {
    "method": "qlora",
    "lora": {"rank": 8, "target_modules": "attention", "dropout": 0.1},
    "precision": "bf16-autocast",
}
PLANS: list[dict[str, Any]] = [
    {"method": "full", "loss": "liger", "kernels": "liger"},
    {"method": "full", "loss": "chunked", "precision": "bf16-mixed"},
    {"method": "full", "loss": "triton", "gradient_checkpointing": "selective"},
    {"method": "full", "framework": "own-loop"},
    {"method": "full", "loss": "cce"},
    {
        "method": "lora",
        "framework": "transformers-4.48",
        "gradient_checkpointing": "full",
        "attention": "flash_attention_2",
    },
    {**QLORA, "framework": "transformers-4.44", "kernels": "foak", "loss": "liger", "gradient_checkpointing": "full"},
    {**QLORA, "framework": "transformers-4.44", "kernels": "foak", "loss": "triton"},
]


@pytest.mark.parametrize("gpu", ["a100-sxm-80gb", "t4"])
@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_every_cell_equals_its_estimate(plan: dict[str, Any], gpu: str) -> None:
    """Bytes and verdict, on both sides of the decisions that kernels take: chunks of powers of two, tiles, one sequence or several."""
    surface = Surface(Scenario.model_validate({"model": {"config": LLAMA}, "plan": plan, "hardware": {"gpu": gpu}}))

    @settings(max_examples=25, deadline=None)
    @given(batch=st.integers(1, 64), length=st.integers(1, 5000))
    def law(batch: int, length: int) -> None:
        answer = estimate(surface.at(batch, length))
        assert answer.peak.allocated == surface.allocated(batch, length)
        assert answer.verdict == surface.verdict(batch, length)

    law()


@pytest.mark.parametrize("plan", PLANS, ids=str)
@pytest.mark.parametrize("field", ["micro_batch_size", "seq_len"])
def test_memory_never_falls_when_something_grows(plan: dict[str, Any], field: str) -> None:
    """Chunked kernels choose their chunks by the sizes, yet never need less for more."""
    peaks = []
    for value in (1, 2, 3, 5, 8, 16, 17, 31, 32, 33, 64, 100, 128, 129):
        sizes = {"micro_batch_size": 2, "seq_len": 40, field: value}
        scenario = Scenario.model_validate({"model": {"config": LLAMA}, "plan": {**plan, **sizes}})
        peaks.append(int(estimate(scenario).peak.allocated))

    assert peaks == sorted(peaks)
