"""Mistral and its kin: Llama without biases and with an optional window over all layers or some.

Mirrors transformers 5.24.0 models/mistral, models/ministral, models/ministral3 and models/cwm.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from calc.autograd.elementwise import cast, mul
from calc.autograd.tensor import Tensor, empty
from calc.model import llama
from calc.model.attention import attention
from calc.model.config import Config
from calc.model.decoder import decoder, layer_kinds, pre_norm, sizes, window
from calc.model.family import Dims, Family
from calc.model.modules import Modules
from calc.model.qwen2 import masked
from calc.model.rotary import Rotation, rotated

_SIZES: dict[str, Any] = {
    "vocab_size": 32000,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
}


def body(m: Modules, ids: Tensor) -> Tensor:
    """Mistral: token ids (rows,) to hidden states (rows, hidden_size)."""
    return decoder(m, ids, llama.block, masked=m.c.kinds[:1])


def alternating_body(m: Modules, ids: Tensor) -> Tensor:
    """Ministral: a full mask always, one with a window if a layer wants it."""
    return decoder(m, ids, llama.block, masked=masked(m.c))


def both_masks_body(m: Modules, ids: Tensor) -> Tensor:
    """CWM: both masks always."""
    return decoder(m, ids, llama.block, masked=("full", "sliding"))


def scaled_body(m: Modules, ids: Tensor) -> Tensor:
    """Ministral 3: token ids (rows,) to hidden states (rows, hidden_size)."""
    return decoder(m, ids, scaled_block, masked=m.c.kinds[:1])


def scaled_block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """Ministral 3's layer."""
    return pre_norm(m, x, scaled_attention, llama.mlp, mask, positions)


def scaled_attention(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """Grouped-query attention whose queries grow with their position."""
    c = m.c
    q, k, v = llama.queries_keys_values(m, x)
    rotated_q, rotated_k = rotated(q, positions), rotated(k, positions)
    q, k = rotated_q, rotated_k
    del rotated_q, rotated_k
    q = mul(q, cast(_growth(m), q.dtype))
    out = attention(m, q, k, v, mask, dropout_p=c.attention_dropout)
    return m.linear("self_attn.o_proj", out, c.hidden_size)


def _growth(m: Modules) -> Tensor:
    """A factor for each position, in fp32."""
    return empty((m.length, 1), "fp32", "add")


def dims(config: Config) -> Dims:
    """MistralConfig's fields and defaults."""
    common = Dims(**sizes(config, **_SIZES), sliding_window=window(config, 4096))
    kind = "full" if common.sliding_window is None else "sliding"
    return replace(common, kinds=(kind,) * common.num_hidden_layers)


def alternating_dims(config: Config) -> Dims:
    """MinistralConfig's fields and defaults."""
    common = Dims(**sizes(config, **_SIZES), sliding_window=window(config, 4096))
    kinds = layer_kinds(config, common.num_hidden_layers, lambda i: common.sliding_window is not None)
    return replace(common, kinds=kinds)


def scaled_dims(config: Config) -> Dims:
    """Ministral3Config's fields and defaults."""
    common = Dims(
        **sizes(config, **{**_SIZES, "vocab_size": 131072, "num_hidden_layers": 34, "head_dim": 128}),
        sliding_window=window(config, None),
    )
    kind = "full" if common.sliding_window is None else "sliding"
    return replace(common, kinds=(kind,) * common.num_hidden_layers)


def cwm_dims(config: Config) -> Dims:
    """CwmConfig's fields and defaults."""
    common = Dims(
        **sizes(
            config,
            vocab_size=128256,
            hidden_size=6144,
            intermediate_size=21504,
            num_hidden_layers=64,
            num_attention_heads=48,
            num_key_value_heads=8,
            head_dim=128,
        ),
        mlp_bias=config.boolean("mlp_bias", default=False),
        sliding_window=window(config, 8192),
    )
    return replace(common, kinds=layer_kinds(config, common.num_hidden_layers, lambda i: i % 4 != 0))


FAMILIES = tuple(
    Family(
        id=model_type,
        types={model_type: name},
        dims=reader,
        body=forward,
        source=f"transformers 5.24.0, models/{model_type}/modeling_{model_type}.py",
    )
    for model_type, name, reader, forward in (
        ("mistral", "Mistral", dims, body),
        ("ministral", "Ministral", alternating_dims, alternating_body),
        ("ministral3", "Ministral 3", scaled_dims, scaled_body),
        ("cwm", "CWM", cwm_dims, both_masks_body),
    )
)
