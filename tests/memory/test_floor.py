"""What a step holds at least, where only the parameters of a model are known."""

from __future__ import annotations

from typing import Any

import pytest

from calc import Refused, Scenario, estimate
from calc.catalog.models import MODELS
from calc.memory.breakdown import Line
from calc.memory.floor import floor
from calc.model import families
from calc.model.counting import counted

STANDING = {"weights", "adapters", "gradients", "optimizer states", "master weights"}
PLANS: list[dict[str, Any]] = [
    {"method": "full", "optimizer": "adafactor"},
    {"method": "full", "precision": "bf16-master"},
    {"method": "lora", "precision": "bf16-mixed", "lora": {"rank": 3, "target_modules": "attention"}},
    {"method": "lora", "lora": {"target_modules": ["q_proj", "up_proj", "query", "fc1"], "modules_to_save": ["lm_head"]}},
    {"method": "qlora", "lora": {"use_dora": True}, "quantization": {"upcast_for_training": True}},
    {"method": "qlora", "quantization": {"format": "int8"}},
]  # fmt: skip
TRANSPOSED = {"gpt2"}
"""Whose weights lie the other way round, which a table does not say."""


def scenario(model: Any, plan: dict[str, Any]) -> Scenario:
    return Scenario.model_validate(
        {"model": model, "plan": {"micro_batch_size": 1, "seq_len": 16, "attention": "eager", **plan}}
    )


def lasting(lines: tuple[Line, ...]) -> list[tuple[str, str, int]]:
    return sorted((line.component, line.label, int(line.bytes)) for line in lines if line.component in STANDING)


@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_the_floor_of_a_modelled_model_is_what_its_estimate_holds(plan: dict[str, Any]) -> None:
    """Line by line at the optimizer's step, for a model of every family in the catalogue: the two ways to the parameters agree."""
    first = {model.model_type: model for model in reversed(list(MODELS.values())) if model.model_type in families()}
    assert len(first) > 50
    for model in first.values():
        if model.model_type in TRANSPOSED:
            continue
        asked = scenario(model.id, plan)
        try:
            whole = estimate(asked)
        except Refused:
            continue
        least = floor(asked, counted(model.config))
        (step,) = (instant for instant in whole.instants if instant.name == "optimizer step")
        assert lasting(step.lines) == lasting(least.instants[1].lines), model.id
        assert whole.parameters == least.parameters, model.id
        assert least.peak.allocated <= whole.peak.allocated, model.id


def test_the_lines_sum_to_the_instant() -> None:
    """As everywhere."""
    found = floor(scenario({"config": {"model_type": "mamba"}}, {}), counted({"model_type": "mamba"}))
    for instant in found.instants:
        assert sum(line.bytes for line in instant.lines) == instant.allocated


def test_mamba_in_full_takes_eight_bytes_a_parameter() -> None:
    """Weights, gradients and two states of AdamW in bf16, and a step counter for each tensor."""
    model = counted({"model_type": "mamba"})
    lines = floor(scenario({"config": {"model_type": "mamba"}}, {}), model).instants[1].lines
    steps = sum(p.count for p in model.parameters)
    assert sum(int(line.bytes) for line in lines if line.component in STANDING) == 8 * model.total + 4 * steps


def test_what_is_known_not_to_fit_is_said() -> None:
    """The verdict is certain where the floor alone is too much, and open where it is not."""
    model = counted({"model_type": "mamba"})
    asked = scenario({"config": {"model_type": "mamba"}}, {})
    assert floor(asked, model).verdict == "unknown"
    large = {"model_type": "mamba", "hidden_size": 8192, "num_hidden_layers": 96}
    assert floor(scenario({"config": large}, {}), counted(large)).verdict == "does_not_fit"


def test_routers_stay_in_fp32() -> None:
    """As the class keeps them: 4 bytes each where the rest has 2."""
    config = {"model_type": "nemotron_h"}
    plan = {"method": "lora", "lora": {"target_modules": ["in_proj"]}}
    lines = floor(scenario({"config": config}, plan), counted(config)).instants[0].lines
    wide = sum(p.numel * p.count for p in counted(config).parameters if p.name.endswith("gate.weight"))
    assert wide
    assert [4 * wide] == [line.bytes for line in lines if line.label == "Weights, float32"]


def test_a_plan_that_cannot_run_is_refused() -> None:
    """With the same sentence as for any other model."""
    with pytest.raises(Refused, match="two GPUs or more"):
        floor(
            scenario({"config": {"model_type": "mamba"}}, {"sharding": {"strategy": "ddp"}}),
            counted({"model_type": "mamba"}),
        )


@pytest.mark.parametrize(
    ("images", "trained"),
    [
        ({}, ("text",)),
        ({"per_sequence": 1}, ("text", "vision", "projector")),
        ({"per_sequence": 1, "train_vision": False}, ("text", "projector")),
        ({"per_sequence": 1, "train_text": False, "train_vision": False}, ("projector",)),
    ],
    ids=str,
)
def test_only_the_parts_that_run_and_are_not_frozen_are_trained(
    images: dict[str, Any], trained: tuple[str, ...]
) -> None:
    """A vision tower without images has no gradients, and a frozen part has none either."""
    config = {"model_type": "mllama"}
    model = counted(config)
    least = floor(scenario({"config": config}, {"images": images}), model)
    parts = model.parts()
    assert {"text", "vision", "projector"} == set(parts)
    assert sum(parts[part] for part in trained) == least.parameters.trainable  # type: ignore[index]
    (gradients,) = (line for line in least.instants[1].lines if line.component == "gradients")
    assert 2 * least.parameters.trainable == gradients.bytes
