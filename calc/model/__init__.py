"""config.json -> a module: one file per family, its forward pass written in the primitives of `calc.autograd`."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any

from calc.model.config import Config, ConfigError
from calc.model.family import Architecture, Family, NotModelled, UnknownArchitecture
from calc.model.inventory import inventories, inventory
from calc.model.quantized_checkpoint import quantized_checkpoint
from calc.model.unsupported import UNSUPPORTED

FAMILY_FILES = (
    "llama",
    "mixtral",
    "qwen_moe",
    "olmoe",
    "exaone_moe",
    "ernie4_5_moe",
    "mellum",
    "flex_olmo",
    "phimoe",
    "gpt_oss",
    "deepseek",
    "glm4_moe",
    "minimax",
    "minimax_m2",
    "granite_moe",
    "hunyuan_moe",
    "dbrx",
    "jetmoe",
    "llama4",
    "llama4_vision",
    "llava",
    "llava_next",
    "gemma3_vision",
    "gemma4_vision",
    "mistral3",
    "qwen2_5_vl",
    "qwen2_vl",
    "paligemma",
    "internvl",
    "idefics3",
    "aya_vision",
    "glm4v",
    "qwen3_vl",
    "bert",
    "t5",
    "bart",
    "modernbert",
    "albert",
    "deberta",
    "deberta_v1",
    "eurobert",
    "mistral",
    "qwen2",
    "qwen3",
    "gemma",
    "gemma2",
    "gemma3",
    "gemma4",
    "phi3",
    "smollm3",
    "youtu",
    "lfm2",
    "granite",
    "granite_swa",
    "granite_hybrid",
    "mamba2",
    "mamba",
    "bamba",
    "jamba",
    "falcon_h1",
    "nemotron_h",
    "olmo",
    "olmo2",
    "stablelm",
    "cohere",
    "starcoder2",
    "glm",
    "gpt2",
    "gpt_neox",
    "phi",
    "gptj",
    "gpt_bigcode",
    "opt",
    "biogpt",
    "bloom",
    "falcon",
    "mpt",
    "gpt_neo",
    "nemotron",
    "apertus",
    "seed_oss",
    "ernie4_5",
    "exaone4",
    "hunyuan_v1_dense",
    "helium",
    "bitnet",
    "nanochat",
    "persimmon",
    "remote_code",
)
"""The family files of this folder. A new family is its file and its name here."""


@cache
def families() -> Mapping[str, Family]:
    """Family by model_type."""
    by_type: dict[str, Family] = {}
    for name in FAMILY_FILES:
        for model_type, family in _of_file(name).items():
            if model_type in by_type:
                raise ValueError(f"two families claim the model type '{model_type}'")
            by_type[model_type] = family
    return by_type


def family_of(model_type: str) -> Family | None:
    """The family of a model type, None for one that has none. Loads file by file and no more than it must."""
    for name in FAMILY_FILES:
        if found := _of_file(name).get(model_type):
            return found
    return None


@cache
def _of_file(name: str) -> Mapping[str, Family]:
    return {
        model_type: family for family in import_module(f"calc.model.{name}").FAMILIES for model_type in family.types
    }


def architecture(config: Mapping[str, Any]) -> Architecture:
    """The architecture that a config.json describes.

    Raises ConfigError for a config that cannot be a model, NotModelled for a model type whose parameters are known but whose forward pass
    is not, UnknownArchitecture for a model type that is not known.
    """
    reader = Config(config)
    model_type = reader.text("model_type")
    family = family_of(model_type)
    if family is None:
        if model_type in inventories():
            raise NotModelled(inventory(model_type).name)
        raise UnknownArchitecture(unknown(model_type))
    dims = family.dims(reader)
    context = reader.integer("max_position_embeddings", "n_positions", "max_sequence_length", default=None, high=10**9)
    return Architecture(family, dims, model_type, tuple(reader.notes), context, quantized_checkpoint(config))


def unknown(model_type: str) -> str:
    """What to say of a model type that is not known."""
    if model_type in UNSUPPORTED:
        return f"the architecture '{model_type}' is not modelled yet; missing is {UNSUPPORTED[model_type]}"
    near = difflib.get_close_matches(model_type[:60], [*families(), *inventories()], n=3, cutoff=0.6)
    hint = f"; the nearest that is: {', '.join(near)}" if near else ""
    return f"the architecture '{model_type[:60]}' is not modelled yet{hint}"


def typed(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The config with a model type; one that has none gets the longest that the repository's name holds.

    The first files on the Hub have none, and transformers before version 5 read it off the name in this way.
    """
    if config.get("model_type") is not None or config.get("architectures") is not None:
        return config
    found = [known for known in (*families(), *inventories()) if known in name.lower()]
    return {**config, "model_type": max(found, key=len)} if found else config


__all__ = [
    "Architecture",
    "ConfigError",
    "Family",
    "NotModelled",
    "UnknownArchitecture",
    "architecture",
    "families",
    "family_of",
    "typed",
    "unknown",
]
