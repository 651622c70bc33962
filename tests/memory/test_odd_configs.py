"""Configs that are not as they should be: each gives one precise sentence, or the class's default with a note; none crashes."""

from __future__ import annotations

from typing import Any

import pytest

from calc import Refused, Scenario, estimate
from calc.model import ConfigError, UnknownArchitecture
from calc.model.counting import counted

LLAMA: dict[str, Any] = {
    "model_type": "llama", "vocab_size": 1000, "hidden_size": 64, "intermediate_size": 160, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2,
}  # fmt: skip
MIXTRAL = {**LLAMA, "model_type": "mixtral"}
GONE = "left out"
"""A field that is left out."""

REFUSED: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    (LLAMA, {"model_type": GONE}, "model_type is missing"),
    (LLAMA, {"model_type": None}, "model_type is missing"),
    (LLAMA, {"model_type": 7}, "model_type should be a short text, not 7"),
    (LLAMA, {"model_type": ["llama"]}, "model_type should be a short text, not ['llama']"),
    (LLAMA, {"model_type": "x" * 5000}, "model_type should be a short text"),
    (LLAMA, {"model_type": "llama2"}, "'llama2' is not modelled yet; the nearest that is: llama"),
    (LLAMA, {"hidden_size": "sixty"}, "hidden_size should be a whole number, not 'sixty'"),
    (LLAMA, {"hidden_size": 64.5}, "hidden_size should be a whole number, not 64.5"),
    (LLAMA, {"hidden_size": True}, "hidden_size should be a whole number, not True"),
    (LLAMA, {"hidden_size": [64]}, "hidden_size should be a whole number, not [64]"),
    (LLAMA, {"hidden_size": {"value": 64}}, "hidden_size should be a whole number"),
    (LLAMA, {"hidden_size": -64}, "hidden_size should lie between 1 and 100,000,000, not -64"),
    (LLAMA, {"hidden_size": 0}, "hidden_size should lie between 1 and 100,000,000, not 0"),
    (LLAMA, {"hidden_size": 10**30}, "hidden_size should lie between 1 and 100,000,000"),
    (LLAMA, {"hidden_size": float("nan")}, "hidden_size should be a whole number, not nan"),
    (LLAMA, {"hidden_size": float("inf")}, "hidden_size should be a whole number, not inf"),
    (LLAMA, {"num_hidden_layers": 0}, "num_hidden_layers should lie between 1 and 2,000, not 0"),
    (LLAMA, {"num_hidden_layers": 10**9}, "num_hidden_layers should lie between 1 and 2,000"),
    (LLAMA, {"num_key_value_heads": 3}, "num_key_value_heads should divide num_attention_heads (4), not 3"),
    (LLAMA, {"num_key_value_heads": 8}, "num_key_value_heads should divide num_attention_heads (4), not 8"),
    (LLAMA, {"num_attention_heads": 128}, "num_attention_heads should not exceed hidden_size (64), not 128"),
    (LLAMA, {"head_dim": 0}, "head_dim should lie between 1 and 65,536, not 0"),
    (LLAMA, {"tie_word_embeddings": "yes"}, "tie_word_embeddings should be true or false, not 'yes'"),
    (LLAMA, {"hidden_act": "wave"}, "hidden_act should be one of"),
    (LLAMA, {"attention_dropout": 2}, "attention_dropout should be a number between 0 and 1, not 2"),
    (LLAMA, {"max_position_embeddings": "long"}, "max_position_embeddings should be a whole number, not 'long'"),
    (LLAMA, {"quantization_config": "fp8"}, "quantization_config should be an object of names and values"),
    (LLAMA, {"quantization_config": {"quant_method": "magic"}}, "quantization_config.quant_method should be one of fp8, gptq"),
    (MIXTRAL, {"num_local_experts": 0}, "num_local_experts should lie between 1 and 65,536, not 0"),
    (MIXTRAL, {"num_local_experts": 4, "num_experts_per_tok": 8}, "num_experts_per_tok should not exceed num_local_experts (4), not 8"),
    (MIXTRAL, {"num_local_experts": [8, 8]}, "num_local_experts should be a whole number, not [8, 8]"),
    ({"model_type": "qwen2"}, {"layer_types": ["full_attention"]}, "layer_types should have num_hidden_layers (32) entries, not 1"),
    ({"model_type": "gemma3"}, {"text_config": "gemma"}, "text_config should be an object of names and values"),
    ({"model_type": "gemma3"}, {"text_config": [1]}, "text_config should be an object of names and values"),
    ({"model_type": "mamba"}, {"hidden_size": "big"}, "hidden_size should be a whole number, not 'big'"),
    ({"model_type": "mamba"}, {"state_size": -1}, "state_size should lie between 1 and"),
    ({"model_type": "zamba"}, {"mamba_d_state": -1}, "mamba_d_state should lie between 0 and"),
    ({"model_type": "qwen3_next"}, {"num_hidden_layers": 1, "layer_types": "full"}, "layer_types should be a list of texts"),
    ({"model_type": "deepseek_v3"}, {"n_group": 3}, "n_group should divide the number of experts (256), not 3"),
]  # fmt: skip

NOTED: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    (LLAMA, {"hidden_size": GONE}, "hidden_size is not given; the class default 4096 is used"),
    (LLAMA, {"hidden_size": None}, "hidden_size is not given; the class default 4096 is used"),
    (LLAMA, {"hidden_size": "64"}, "hidden_size is given as text; the number in it is used"),
    (LLAMA, {"num_key_value_heads": None}, "num_key_value_heads is not given; the class default 4 is used"),
    (LLAMA, {"head_dim": None}, "head_dim is not given; the class default 16 is used"),
    (LLAMA, {"tie_word_embeddings": None}, "tie_word_embeddings is not given; the class default False is used"),
    (LLAMA, {"hidden_act": None}, "hidden_act is not given; the class default 'silu' is used"),
    ({"model_type": "mamba"}, {"state_size": None}, "state_size is not given; the class default 16 is used"),
    ({"model_type": "llama"}, {}, "vocab_size is not given; the class default 32000 is used"),
]

SAME: list[dict[str, Any]] = [
    {"hidden_size": 64.0}, {"rope_scaling": "linear"}, {"rope_parameters": [1]}, {"eos_token_id": [1, 2]}, {"torch_dtype": "auto"},
    {"nonsense": {"deep": [None] * 100}}, {"hidden_size": "64"},
]  # fmt: skip
"""What no size depends on, however it is spelled."""


def changed(config: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in (config | change).items() if value is not GONE}


def asked(config: dict[str, Any]) -> Scenario:
    return Scenario.model_validate(
        {"model": {"config": config}, "plan": {"micro_batch_size": 1, "seq_len": 16, "attention": "eager"}}
    )


@pytest.mark.parametrize(("config", "change", "sentence"), REFUSED, ids=lambda value: str(value)[:60])
def test_a_config_that_cannot_be_is_refused_by_its_field(
    config: dict[str, Any], change: dict[str, Any], sentence: str
) -> None:
    """Which field, what it should be, and what it is; the same sentence from the estimate and from the count."""
    with pytest.raises(Refused) as estimated:
        estimate(asked(changed(config, change)))
    assert sentence in estimated.value.message
    assert len(estimated.value.message) < 400
    if "quantization_config" not in change:  # which a count does not read
        with pytest.raises((ConfigError, UnknownArchitecture)) as counting:
            counted(changed(config, change))
        assert sentence in str(counting.value)


@pytest.mark.parametrize(("config", "change", "note"), NOTED, ids=lambda value: str(value)[:60])
def test_a_missing_field_is_the_class_default_and_said(
    config: dict[str, Any], change: dict[str, Any], note: str
) -> None:
    """In the notes that the page shows."""
    found = counted(changed(config, change))
    assert any(note in said for said in found.notes), found.notes


@pytest.mark.parametrize("change", SAME, ids=str)
def test_what_no_size_depends_on_changes_nothing(change: dict[str, Any]) -> None:
    """Odd or not."""
    assert estimate(asked(LLAMA)).peak.allocated == estimate(asked(changed(LLAMA, change))).peak.allocated
