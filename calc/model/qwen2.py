"""Qwen2 and Qwen2.5: Llama with biases on queries, keys and values. Mirrors transformers 5.24.0 models/qwen2/modeling_qwen2.py."""

from __future__ import annotations

from typing import Any

from calc.autograd.tensor import Tensor
from calc.model import llama
from calc.model.config import Config
from calc.model.decoder import decoder, sizes, switched_window
from calc.model.family import Dims, Family
from calc.model.modules import Modules

SIZES: dict[str, Any] = {
    "vocab_size": 151936,
    "hidden_size": 4096,
    "intermediate_size": 22016,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
}


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    return decoder(m, ids, llama.block, masked=masked(m.c))


def masked(c: Dims) -> tuple[str, ...]:
    """A full mask always, one with a window if a layer wants it."""
    return ("full", "sliding") if any(kind.startswith("sliding") for kind in c.kinds) else ("full",)


def dims(config: Config) -> Dims:
    """Qwen2Config's fields and defaults."""
    common = sizes(config, **SIZES)
    return Dims(**{**common, **switched_window(config, common["num_hidden_layers"])}, attention_bias=True)


FAMILIES = (
    Family(
        id="qwen2",
        types={"qwen2": "Qwen2"},
        dims=dims,
        body=body,
        source="transformers 5.24.0, models/qwen2/modeling_qwen2.py",
    ),
)
