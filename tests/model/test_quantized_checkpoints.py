"""Checkpoints that are stored quantised: what is read, what they load, what can be trained on them."""

from __future__ import annotations

from typing import Any

import pytest
from recordings import configurations

from calc.model import ConfigError
from calc.model.counting import counted
from calc.model.parameters import Parameter
from calc.model.quantized_checkpoint import METHODS, quantized_checkpoint, stored

MATRIX = Parameter("model.layers.*.mlp.up_proj.weight", (4096, 11008), "bf16", "linear")
HEAD = Parameter("lm_head.weight", (32000, 4096), "bf16", "head")
FP8 = {"quant_method": "fp8", "weight_block_size": [128, 128]}


def config(quantization: Any) -> dict[str, Any]:
    """A Llama whose config.json says that."""
    return {"model_type": "llama", "quantization_config": quantization}


GROUPS = 11008 // 128
STORED = {
    "FP8 in blocks": (FP8, 4096 * 11008 + 32 * GROUPS, 4096 * 11008 + 4 * 32 * GROUPS),
    "GPTQ": (
        {"quant_method": "gptq", "bits": 4, "group_size": 128},
        # eight weights to an int32, scales in half precision, zero points packed, and the order of the inputs
        4096 * 11008 // 8 + GROUPS * 4096 + GROUPS * 4096 // 8 + 11008,
        4096 * 11008 // 2 + 2 * GROUPS * 4096 + GROUPS * 4096 // 2 + 4 * 11008,
    ),
    "AWQ": (
        {"quant_method": "awq", "bits": 4, "group_size": 128},
        4096 * 11008 // 8 + GROUPS * 4096 + GROUPS * 4096 // 8,
        4096 * 11008 // 2 + 2 * GROUPS * 4096 + GROUPS * 4096 // 2,
    ),
}


@pytest.mark.parametrize("name", STORED)
def test_what_a_matrix_is_stored_as(name: str) -> None:
    """Elements as the Hub counts them, and bytes."""
    quantization, elements, size = STORED[name]
    checkpoint = quantized_checkpoint(config(quantization))
    assert checkpoint is not None
    assert checkpoint.holds(MATRIX)
    assert (elements, size) == stored([MATRIX], checkpoint)


def test_the_head_is_spared_and_loads_as_it_is() -> None:
    """Two bytes an element."""
    checkpoint = quantized_checkpoint(config(FP8))
    assert checkpoint is not None
    assert not checkpoint.holds(HEAD)
    assert stored([HEAD], checkpoint) == (32000 * 4096, 2 * 32000 * 4096)


def test_modules_that_a_config_spares() -> None:
    """By name or by pattern."""
    checkpoint = quantized_checkpoint(config({**FP8, "modules_to_not_convert": ["mlp.up_proj"]}))
    assert checkpoint is not None
    assert not checkpoint.holds(MATRIX)


@pytest.mark.parametrize("id", ["Qwen/Qwen3-32B-FP8", "openai/gpt-oss-20b"])
def test_published_checkpoints_hold_as_many_elements(id: str) -> None:
    """To the element of the Hub's total."""
    (row,) = (row for row in configurations() if row["id"] == id)
    checkpoint, model = quantized_checkpoint(row["config"]), counted(row["config"])
    assert checkpoint is not None
    held = [p for p in model.parameters if checkpoint.holds(p)]
    rest = model.total - sum(p.numel * p.count for p in held)
    assert row["hub_total"] == rest + stored(held, checkpoint).elements


@pytest.mark.parametrize("method", METHODS)
def test_every_method_says_why_its_weights_are_not_trained(method: str) -> None:
    """And what to do instead."""
    checkpoint = quantized_checkpoint(config({"quant_method": method, "bits": 4, "load_in_4bit": True}))
    assert checkpoint is not None
    assert checkpoint.refusal.startswith(
        f"the weights are stored in {METHODS[method].label}, which cannot be trained: "
    )
    assert METHODS[method].source.startswith("quantizer_")


def test_a_config_without_quantisation() -> None:
    """Says nothing of it."""
    assert quantized_checkpoint({"model_type": "llama"}) is None


@pytest.mark.parametrize(
    "quantization",
    ["fp8", {"quant_method": "wishful"}, {"quant_method": None}, {"quant_method": 4}, {"quant_method": "gptq", "bits": 7},
     {"quant_method": "gptq", "bits": 4, "group_size": "many"}, {"quant_method": "fp8", "weight_block_size": [0, -1]},
     {"quant_method": "compressed-tensors", "config_groups": {"group_0": 3}}, {"quant_method": "fp8", "ignore": 3}],
)  # fmt: skip
def test_odd_quantisations_are_refused_or_read(quantization: Any) -> None:
    """With the field; never a crash."""
    try:
        found = quantized_checkpoint(config(quantization))
    except ConfigError as error:
        assert "quantization_config" in str(error)
    else:
        assert found is not None
