"""Repositories of quantised weights: what can be trained on them, what is refused, and what they take as they are."""

from __future__ import annotations

from typing import Any

import pytest

from calc import Breakdown, Refused, Scenario, estimate
from calc.catalog.models import MODELS
from calc.memory.floor import floor
from calc.model.counting import counted
from calc.model.quantized_checkpoint import quantized_checkpoint, stored

LLAMA: dict[str, Any] = {
    "model_type": "llama", "vocab_size": 512, "hidden_size": 128, "intermediate_size": 384, "num_hidden_layers": 4,
    "num_attention_heads": 8, "num_key_value_heads": 2,
}  # fmt: skip
FP8 = {"quant_method": "fp8", "weight_block_size": [128, 128]}
GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 128}
NF4 = {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}
INT8 = {"quant_method": "bitsandbytes", "load_in_8bit": True}


def scenario(quantization: dict[str, Any] | None, plan: dict[str, Any], gpu: str = "h100-sxm") -> Scenario:
    config = LLAMA if quantization is None else {**LLAMA, "quantization_config": quantization}
    plan = {"micro_batch_size": 2, "seq_len": 64, **plan}
    return Scenario.model_validate({"model": {"config": config}, "plan": plan, "hardware": {"gpu": gpu}})


def refused(asked: Scenario) -> Refused:
    with pytest.raises(Refused) as caught:
        estimate(asked)
    return caught.value


def bytes_of(answer: Breakdown) -> list[tuple[str, str, int]]:
    return [(line.component, line.label, int(line.bytes)) for instant in answer.instants for line in instant.lines]


@pytest.mark.parametrize("quantization", [FP8, GPTQ, NF4, {"quant_method": "mxfp4"}, {"quant_method": "awq"}], ids=str)
def test_full_fine_tuning_is_refused_with_the_reason_and_a_way_out(quantization: dict[str, Any]) -> None:
    """As transformers' Trainer does, whatever the method."""
    error = refused(scenario(quantization, {"method": "full"}))
    assert ("quantized_weights", "plan.method") == (error.code, error.field)
    assert "cannot be trained: " in error.message


@pytest.mark.parametrize("method", ["full", "lora"])
def test_dequantised_weights_are_16_bit_weights(method: str) -> None:
    """Every line as if they had never been quantised, and a note."""
    answer = estimate(scenario(FP8, {"method": method, "dequantize": True}))
    assert bytes_of(estimate(scenario(None, {"method": method}))) == bytes_of(answer)
    assert ["dequantized"] == [problem.code for problem in answer.problems]


def test_a_card_without_fp8_loads_16_bit_weights_by_itself() -> None:
    """An A100 has no FP8 products, so all can be trained, and the note says why."""
    answer = estimate(scenario(FP8, {"method": "full"}, gpu="a100-sxm-80gb"))
    assert "no FP8 products" in answer.problems[0].message
    assert not answer.problems[0].blocking


@pytest.mark.parametrize(
    ("quantization", "code"), [(GPTQ, "cannot_dequantize"), (NF4, "cannot_dequantize"), (None, "")]
)
def test_what_cannot_be_dequantised_is_said(quantization: dict[str, Any] | None, code: str) -> None:
    """Refused where the method has no way to, and a note where nothing is quantised."""
    asked = scenario(quantization, {"method": "lora", "dequantize": True})
    if code:
        assert code == refused(asked).code
    else:
        assert ["not_quantized"] == [problem.code for problem in estimate(asked).problems]


@pytest.mark.parametrize(
    ("quantization", "chosen"),
    [({**NF4, "bnb_4bit_use_double_quant": True}, {"format": "nf4"}), (NF4, {"format": "nf4", "double_quant": False}), (INT8, {"format": "int8"})],
    ids=str,
)  # fmt: skip
def test_a_base_that_bitsandbytes_stored_is_a_qlora_base(quantization: dict[str, Any], chosen: dict[str, Any]) -> None:
    """The same bytes as quantising while loading; other choices are refused by naming the stored one."""
    plan = {"method": "qlora", "quantization": chosen}
    assert bytes_of(estimate(scenario(None, plan))) == bytes_of(estimate(scenario(quantization, plan)))
    error = refused(scenario(quantization, {"method": "lora"}))
    assert error.code == "stored_for_qlora"
    assert f"quantization.format {chosen['format']}" in error.message
    assert refused(scenario(quantization, {"method": "qlora", "quantization": {"format": "fp4"}})).code == error.code


def test_other_quantised_weights_are_not_quantised_again() -> None:
    """transformers raises on two kinds of quantisation."""
    assert refused(scenario(FP8, {"method": "qlora"})).code == "already_quantized"


@pytest.mark.parametrize("method", ["mxfp4", "nvfp4", "auto-round"])
def test_nothing_is_trained_on_some_formats(method: str) -> None:
    """Adapters included."""
    assert refused(scenario({"quant_method": method}, {"method": "lora"})).code == "no_adapters"


@pytest.mark.parametrize("quantization", [FP8, GPTQ], ids=str)
def test_adapters_on_quantised_weights_are_known_but_for_activations(quantization: dict[str, Any]) -> None:
    """The weights as they are stored, the adapters, gradients and states in full."""
    asked = scenario(quantization, {"method": "lora"})
    assert refused(asked).code == "activations_not_modelled"
    config = {**LLAMA, "quantization_config": quantization}
    checkpoint = quantized_checkpoint(config)
    assert checkpoint is not None
    least = floor(asked, counted(config), checkpoint)
    weights = sum(int(line.bytes) for line in least.lines if line.component == "weights")
    assert weights == stored(counted(config).parameters, checkpoint).bytes
    plain = floor(scenario(None, {"method": "lora"}), counted(LLAMA))
    assert plain.parameters == least.parameters
    for component in ("adapters", "gradients", "optimizer states"):
        assert [line.bytes for line in plain.lines if line.component == component] == [
            line.bytes for line in least.lines if line.component == component
        ]


def test_single_layers_that_are_spared_are_loaded_as_they_are() -> None:
    """A config that names two layers of four: half of that matrix is packed."""
    names = ["model.layers.0.mlp.up_proj", "model.layers.3.mlp.up_proj", "lm_head"]
    checkpoint = quantized_checkpoint({**LLAMA, "quantization_config": {**FP8, "modules_to_not_convert": names}})
    assert checkpoint is not None
    held, rest = checkpoint.split(counted(LLAMA).parameters)
    up = "model.layers.*.mlp.up_proj.weight"
    assert [2] == [p.count for p in held if p.name == up] == [p.count for p in rest if p.name == up]
    assert [4] == [p.count for p in held if p.name.endswith("gate_proj.weight")]


def test_published_quantised_models_are_answered_or_refused() -> None:
    """All of the catalogue's: with a sentence, and once dequantised with a number where that can be."""
    numbers = 0
    for model in MODELS.values():
        if quantized_checkpoint(model.config) is None:
            continue
        for plan in ({"method": "full"}, {"method": "lora"}, {"method": "full", "dequantize": True}):
            asked = Scenario.model_validate({"model": model.id, "plan": {**plan, "attention": "eager"}})
            try:
                numbers += estimate(asked).peak.allocated > 0
            except Refused as error:
                assert 20 < len(error.message) < 400
    assert numbers >= 10
