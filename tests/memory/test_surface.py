"""The peak over batch and length, from a handful of runs, is exactly what `estimate` gives for each cell."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calc import Scenario, estimate
from calc.memory.breakdown import Breakdown, Component
from calc.memory.surface import Surface
from calc.units import Bytes

LLAMA = {
    "model_type": "llama", "vocab_size": 32000, "hidden_size": 512, "intermediate_size": 1376, "num_hidden_layers": 6,
    "num_attention_heads": 8, "num_key_value_heads": 2,
}  # fmt: skip
PLANS: list[dict[str, Any]] = [
    {"method": "full"},
    {"method": "full", "attention": "eager", "precision": "bf16-mixed"},
    {"method": "full", "gradient_checkpointing": "full", "gradient_accumulation_steps": 4, "optimizer": "adamw_8bit"},
    {"method": "lora", "padded": True},
    {"method": "qlora", "gradient_checkpointing": "full", "precision": "bf16-autocast"},
    {"method": "full", "optimizer": "lomo"},
    {"method": "full", "optimizer": "adamw_torch", "optimizer_in_backward": True},
    {"method": "full", "gradient_checkpointing": "offload"},
    {"method": "lora", "sharding": {"activation_offload": True}},
]


@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_every_cell_equals_its_estimate(plan: dict[str, Any]) -> None:
    """Bytes, components, instant and verdict, for cells on both sides of every decision that a run takes."""
    scenario = Scenario.model_validate({"model": {"config": LLAMA}, "plan": plan, "hardware": {"gpu": "t4"}})
    surface = Surface(scenario)

    @settings(max_examples=40, deadline=None)
    @given(batch=st.integers(1, 64), length=st.integers(1, 5000))
    def law(batch: int, length: int) -> None:
        answer = estimate(surface.at(batch, length))
        summit = surface.summit(batch, length)

        assert surface.allocated(batch, length) == answer.peak.allocated
        assert surface.verdict(batch, length) == answer.verdict
        assert summit.allocated == sum(summit.held.values(), Bytes(0)) == answer.peak.allocated
        assert summit.instant == answer.peak.instant
        assert summit.held == by_component(answer)

    law()


def by_component(answer: Breakdown) -> dict[Component, Bytes]:
    held: dict[Component, Bytes] = {}
    for line in answer.lines:
        held[line.component] = held.get(line.component, Bytes(0)) + line.bytes
    return {component: size for component, size in held.items() if size}


def test_a_few_runs_serve_a_whole_map() -> None:
    """1,600 cells need one run for each way that sizes can be decided, not one for each cell."""
    surface = Surface(Scenario.model_validate({"model": {"config": LLAMA}}))

    for batch in range(1, 41):
        for length in range(256, 41 * 256, 256):
            surface.allocated(batch, length)

    assert len(surface.regions) <= 6
