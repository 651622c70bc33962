"""A model that exists nowhere yet, from its sizes: built like Llama, the dialect that most new decoders speak."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from calc.model.config import ConfigError
from calc.model.counting import counted


@dataclass(frozen=True, slots=True)
class Size:
    """One number that a visitor chooses, by its name in config.json."""

    name: str
    default: int | None
    """None where the class derives it from others."""
    most: int


SIZES = (
    Size("num_hidden_layers", 32, 2000),
    Size("hidden_size", 4096, 1 << 20),
    Size("intermediate_size", 14336, 1 << 22),
    Size("num_attention_heads", 32, 4096),
    Size("num_key_value_heads", 8, 4096),
    Size("head_dim", None, 65536),
    Size("vocab_size", 128256, 10**7),
)
"""The sizes of a decoder, with those of an 8-billion model to begin from."""
TIED = "tie_word_embeddings"


def custom_config(sizes: Mapping[str, int | None], *, tied: bool) -> dict[str, Any]:
    """The config.json of a Llama of these sizes. Raises ConfigError for sizes that no model can have."""
    given = {size.name: sizes[size.name] for size in SIZES if sizes.get(size.name) is not None}
    for size in SIZES:
        if size.default is not None and size.name not in given:
            raise ConfigError(size.name, "is missing")
    config: dict[str, Any] = {"model_type": "llama", **given, TIED: tied}
    hidden, heads = config["hidden_size"], config["num_attention_heads"]
    if "head_dim" not in given and hidden // heads * heads != hidden:
        raise ConfigError(
            "hidden_size",
            f"should be a multiple of num_attention_heads ({heads}) unless head_dim is given, not {hidden}",
        )
    counted(config)
    return config


def sizes_of(config: Mapping[str, Any]) -> tuple[dict[str, int | None], bool] | None:
    """The sizes and whether the head is tied, of a config that `custom_config` could have made; None for another."""
    known = {size.name for size in SIZES}
    if config.get("model_type") != "llama" or set(config) - known - {"model_type", TIED}:
        return None
    sizes = {size.name: config.get(size.name, size.default) for size in SIZES}
    if not all(value is None or type(value) is int for value in sizes.values()):
        return None
    return sizes, config.get(TIED) is True
