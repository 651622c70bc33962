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
SMALL = {"vocab_size": 1000, "hidden_size": 240, "num_hidden_layers": 3}
CHUNKED = {"num_attention_heads": 6, "mamba_n_heads": 12, "mamba_chunk_size": 256, "num_local_experts": 0}
RECURRENT: list[dict[str, Any]] = [
    {"model_type": "mamba", **SMALL},
    {"model_type": "mamba2", **SMALL, "num_heads": 12, "head_dim": 40, "n_groups": 2},
    {"model_type": "granitemoehybrid", **SMALL, **CHUNKED, "layer_types": ["mamba", "attention", "mamba"]},
]


@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_every_cell_equals_its_estimate(plan: dict[str, Any]) -> None:
    """Bytes, components, instant and verdict, for cells on both sides of every decision that a run takes."""
    check(LLAMA, plan)


@pytest.mark.parametrize("config", RECURRENT, ids=lambda config: config["model_type"])
@pytest.mark.parametrize("checkpointing", ["none", "full"])
def test_layers_that_go_along_the_sequence_are_no_exception(config: dict[str, Any], checkpointing: str) -> None:
    """A loop over the tokens, and chunks of them: whole ones, one alone, and a part of one."""
    check(config, {"method": "full", "attention": "eager", "gradient_checkpointing": checkpointing})


def check(config: dict[str, Any], plan: dict[str, Any]) -> None:
    """The law."""
    scenario = Scenario.model_validate({"model": {"config": config}, "plan": plan, "hardware": {"gpu": "t4"}})
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
