"""Qwen3: a norm over each head of queries and keys. Mirrors transformers 5.24.0 models/qwen3/modeling_qwen3.py."""

from __future__ import annotations

from calc.autograd.tensor import Tensor
from calc.model.attention import attention, split
from calc.model.config import Config
from calc.model.decoder import decoder, pre_norm, sizes, switched_window
from calc.model.family import Dims, Family
from calc.model.llama import mlp
from calc.model.modules import Modules
from calc.model.norms import rms_norm
from calc.model.qwen2 import SIZES, masked
from calc.model.rotary import Rotation, rotated


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    return decoder(m, ids, block, masked=masked(m.c))


def block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """One decoder layer."""
    return pre_norm(m, x, self_attention, mlp, mask, positions)


def self_attention(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """Grouped-query attention with normed queries and keys."""
    c = m.c
    q = split(
        m,
        m.linear("self_attn.q_proj", x, c.num_attention_heads * c.head_dim, c.attention_bias),
        c.num_attention_heads,
        c.head_dim,
    )
    q = rms_norm(m, "self_attn.q_norm", q)
    k = split(
        m,
        m.linear("self_attn.k_proj", x, c.num_key_value_heads * c.head_dim, c.attention_bias),
        c.num_key_value_heads,
        c.head_dim,
    )
    k = rms_norm(m, "self_attn.k_norm", k)
    v = split(
        m,
        m.linear("self_attn.v_proj", x, c.num_key_value_heads * c.head_dim, c.attention_bias),
        c.num_key_value_heads,
        c.head_dim,
    )
    rotated_q, rotated_k = rotated(q, positions), rotated(k, positions)
    q, k = rotated_q, rotated_k
    del rotated_q, rotated_k
    out = attention(m, q, k, v, mask, dropout_p=c.attention_dropout)
    return m.linear("self_attn.o_proj", out, c.hidden_size, c.output_bias)


def dims(config: Config) -> Dims:
    """Qwen3Config's fields and defaults."""
    common = sizes(config, **SIZES, head_dim=128)
    bias = config.boolean("attention_bias", default=False)
    return Dims(
        **{**common, **switched_window(config, common["num_hidden_layers"])}, attention_bias=bias, output_bias=bias
    )


FAMILIES = (
    Family(
        id="qwen3",
        types={"qwen3": "Qwen3"},
        dims=dims,
        body=body,
        source="transformers 5.24.0, models/qwen3/modeling_qwen3.py",
    ),
)
