"""Persimmon: each head's query, key and value side by side, normed, half of it rotated. Mirrors transformers 5.24.0 models/persimmon/modeling_persimmon.py."""

from __future__ import annotations

from dataclasses import dataclass

from calc.autograd.elementwise import dropout
from calc.autograd.shapes import cat, part, reshape
from calc.autograd.tensor import Tensor
from calc.model.activations import activated
from calc.model.attention import attention
from calc.model.config import Config
from calc.model.decoder import decoder, pre_norm, rotary_dim, share, sizes
from calc.model.family import Dims, Family, rotary_buffers
from calc.model.modules import Modules
from calc.model.norms import layer_norm
from calc.model.rotary import Rotation, rotated
from calc.model.stablelm import beginning


@dataclass(frozen=True)
class PersimmonDims(Dims):
    """Sizes, and the shape of a layer."""

    rotary_dim: int = 0
    qk_layernorm: bool = True
    hidden_dropout: float = 0.0


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    return decoder(m, ids, block, norm=final_norm, rotary_dim=m.c.rotary_dim)


def final_norm(m: Modules, name: str, x: Tensor) -> Tensor:
    """The norm after the last layer, under its own name."""
    return layer_norm(m, "model.final_layernorm", x)


def block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """One decoder layer."""
    return pre_norm(m, x, self_attention, mlp, mask, positions, norm=layer_norm)


def self_attention(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """Attention out of one product; queries and keys are normed head by head."""
    c = m.c
    h, by_head = c.hidden_size, (m.batch, c.num_attention_heads, m.length, c.head_dim)
    qkv = m.linear("self_attn.query_key_value", x, 3 * h, True)
    q, k, v = (reshape(part(qkv, (m.rows, h)), by_head) for _ in range(3))
    if c.qk_layernorm:
        q = layer_norm(m, "self_attn.q_layernorm", q)
        k = layer_norm(m, "self_attn.k_layernorm", k)
    q_turned, q_passed = beginning(q, c.rotary_dim)
    k_turned, k_passed = beginning(k, c.rotary_dim)
    rotated_q, rotated_k = rotated(q_turned, positions), rotated(k_turned, positions)
    q_turned, k_turned = rotated_q, rotated_k
    del rotated_q, rotated_k
    q = cat((q_turned, q_passed), q.shape)
    k = cat((k_turned, k_passed), k.shape)
    out = attention(m, q, k, v, mask, dropout_p=c.attention_dropout)
    out = m.linear("self_attn.dense", out, h, True)
    del qkv  # a name of the frame
    return out


def mlp(m: Modules, x: Tensor) -> Tensor:
    """Feed-forward without a gate, and a dropout."""
    c = m.c
    x = m.linear("mlp.dense_h_to_4h", x, c.intermediate_size, True)
    x = activated(m, x, c.hidden_act)
    x = m.linear("mlp.dense_4h_to_h", x, c.hidden_size, True)
    return dropout(x, c.hidden_dropout)


def dims(config: Config) -> Dims:
    """PersimmonConfig's fields and defaults."""
    common = sizes(
        config,
        vocab_size=262144,
        hidden_size=4096,
        intermediate_size=16384,
        num_hidden_layers=36,
        num_attention_heads=64,
        hidden_act="relu2",
    )
    return PersimmonDims(
        **common,
        rotary_dim=rotary_dim(config, common["head_dim"], 0.5),
        qk_layernorm=config.boolean("qk_layernorm", default=True),
        hidden_dropout=share(config, "hidden_dropout"),
    )


FAMILIES = (
    Family(
        id="persimmon",
        types={"persimmon": "Persimmon"},
        dims=dims,
        body=body,
        buffers=lambda dims, size: rotary_buffers(dims.rotary_dim),
        gaps=frozenset(("offload without checkpointing",)),
        source="transformers 5.24.0, models/persimmon/modeling_persimmon.py",
    ),
)
