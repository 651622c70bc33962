"""Apertus: normed queries and keys, a feed-forward without a gate and with an activation that is trained.

Mirrors transformers 5.24.0 models/apertus/modeling_apertus.py.
"""

from __future__ import annotations

from calc.autograd.tensor import Tensor
from calc.model.attention import attention
from calc.model.config import Config
from calc.model.decoder import decoder, pre_norm, sizes
from calc.model.family import Dims, Family, rotary_buffers
from calc.model.llama import queries_keys_values
from calc.model.modules import Modules
from calc.model.nemotron import mlp
from calc.model.norms import rms_norm
from calc.model.rotary import Rotation, rotated


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    return decoder(m, ids, block)


def block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """One decoder layer."""
    return pre_norm(m, x, self_attention, mlp, mask, positions, names=("attention_layernorm", "feedforward_layernorm"))


def self_attention(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation | None) -> Tensor:
    """Grouped-query attention with normed queries and keys; without positions they are left as they are."""
    c = m.c
    q, k, v = queries_keys_values(m, x)
    q = rms_norm(m, "self_attn.q_norm", q)
    k = rms_norm(m, "self_attn.k_norm", k)
    if positions is not None:
        rotated_q, rotated_k = rotated(q, positions), rotated(k, positions)
        q, k = rotated_q, rotated_k
        del rotated_q, rotated_k
    out = attention(m, q, k, v, mask, dropout_p=c.attention_dropout)
    return m.linear("self_attn.o_proj", out, c.hidden_size, c.output_bias)


def dims(config: Config) -> Dims:
    """ApertusConfig's fields and defaults."""
    bias = config.boolean("attention_bias", default=False)
    return Dims(
        **sizes(
            config,
            vocab_size=131072,
            hidden_size=4096,
            intermediate_size=14336,
            num_hidden_layers=32,
            num_attention_heads=32,
            hidden_act="xielu",
        ),
        attention_bias=bias,
        output_bias=bias,
    )


def buffers(dims: Dims, size: int) -> int:
    """Bytes of the rotary frequencies, and of xIELU's two numbers in every layer."""
    return rotary_buffers(dims.head_dim) + (2 * size * dims.num_hidden_layers if dims.hidden_act == "xielu" else 0)


FAMILIES = (
    Family(
        id="apertus",
        types={"apertus": "Apertus"},
        dims=dims,
        body=body,
        buffers=buffers,
        source="transformers 5.24.0, models/apertus/modeling_apertus.py",
    ),
)
