"""Hunyuan, dense: queries and keys are normed after their rotation. Mirrors transformers 5.24.0 models/hunyuan_v1_dense/modeling_hunyuan_v1_dense.py."""

from __future__ import annotations

from calc.autograd.tensor import Tensor
from calc.model.attention import attention
from calc.model.config import Config
from calc.model.decoder import decoder, pre_norm, sizes
from calc.model.family import Dims, Family
from calc.model.llama import mlp, queries_keys_values
from calc.model.modules import Modules
from calc.model.norms import rms_norm
from calc.model.rotary import Rotation, rotated


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    return decoder(m, ids, block)


def block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """One decoder layer."""
    return pre_norm(m, x, self_attention, mlp, mask, positions)


def self_attention(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """Grouped-query attention with normed queries and keys."""
    c = m.c
    q, k, v = queries_keys_values(m, x)
    rotated_q, rotated_k = rotated(q, positions), rotated(k, positions)
    q, k = rotated_q, rotated_k
    del rotated_q, rotated_k
    q = rms_norm(m, "self_attn.query_layernorm", q)
    k = rms_norm(m, "self_attn.key_layernorm", k)
    out = attention(m, q, k, v, mask, dropout_p=c.attention_dropout)
    return m.linear("self_attn.o_proj", out, c.hidden_size, c.output_bias)


def dims(config: Config) -> Dims:
    """HunYuanDenseV1Config's fields and defaults."""
    bias = config.boolean("attention_bias", default=False)
    return Dims(
        **sizes(
            config,
            vocab_size=290943,
            hidden_size=4096,
            intermediate_size=11008,
            num_hidden_layers=32,
            num_attention_heads=32,
        ),
        attention_bias=bias,
        output_bias=bias,
    )


FAMILIES = (
    Family(
        id="hunyuan_v1_dense",
        types={"hunyuan_v1_dense": "Hunyuan"},
        dims=dims,
        body=body,
        source="transformers 5.24.0, models/hunyuan_v1_dense/modeling_hunyuan_v1_dense.py",
    ),
)
