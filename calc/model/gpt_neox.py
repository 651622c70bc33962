"""GPT-NeoX, Pythia, Polyglot: queries, keys and values of a head side by side in one product, halves of a layer side by side.

Mirrors transformers 5.24.0 models/gpt_neox/modeling_gpt_neox.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from calc.autograd.elementwise import add, dropout
from calc.autograd.shapes import cat
from calc.autograd.shapes import split as pieces
from calc.autograd.tensor import Tensor
from calc.model.activations import activated
from calc.model.attention import attention, causal_mask, split
from calc.model.config import Config
from calc.model.decoder import rotary_dim, share, sizes
from calc.model.family import Dims, Family, rotary_buffers
from calc.model.modules import Modules
from calc.model.norms import layer_norm
from calc.model.rotary import Rotation, rotated, rotation
from calc.model.stablelm import beginning


@dataclass(frozen=True)
class GptNeoxDims(Dims):
    """Sizes, and the shape of a layer."""

    rotary_dim: int = 0
    use_parallel_residual: bool = True
    hidden_dropout: float = 0.0


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    c = m.c
    inputs_embeds = m.embedding("gpt_neox.embed_in", ids, c.vocab_size, c.hidden_size)
    mask = causal_mask(m, inputs_embeds.dtype)
    x = dropout(inputs_embeds, c.hidden_dropout)
    positions = rotation(m, x.dtype, c.rotary_dim)
    for layer in m.layers("gpt_neox.layers", c.kinds):
        x = layer(block, x, mask, positions)
    x = layer_norm(m, "gpt_neox.final_layer_norm", x)
    del inputs_embeds  # transformers holds them until its forward returns
    return x


def block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """One layer."""
    c = m.c
    attended = self_attention(m, layer_norm(m, "input_layernorm", x), mask, positions)
    attended = dropout(attended, c.hidden_dropout)
    if c.use_parallel_residual:
        fed = dropout(mlp(m, layer_norm(m, "post_attention_layernorm", x)), c.hidden_dropout)
        return add(add(fed, attended), x)
    attended = add(attended, x)
    fed = dropout(mlp(m, layer_norm(m, "post_attention_layernorm", attended)), c.hidden_dropout)
    return add(fed, attended)


def self_attention(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """Attention out of one product, part of each head rotated."""
    c = m.c
    qkv = split(
        m,
        m.linear("attention.query_key_value", x, 3 * c.hidden_size, c.attention_bias),
        c.num_attention_heads,
        3 * c.head_dim,
    )
    q, k, v = pieces(qkv, (c.head_dim, c.head_dim, c.head_dim))
    q_turned, q_passed = beginning(q, c.rotary_dim)
    k_turned, k_passed = beginning(k, c.rotary_dim)
    rotated_q, rotated_k = rotated(q_turned, positions), rotated(k_turned, positions)
    rotated_q = cat((rotated_q, q_passed), q.shape)
    rotated_k = cat((rotated_k, k_passed), k.shape)
    q, k = rotated_q, rotated_k
    del rotated_q, rotated_k
    out = attention(m, q, k, v, mask, dropout_p=c.attention_dropout)
    return m.linear("attention.dense", out, c.hidden_size, c.attention_bias)


def mlp(m: Modules, x: Tensor) -> Tensor:
    """Feed-forward without a gate."""
    c = m.c
    y = m.linear("mlp.dense_h_to_4h", x, c.intermediate_size, True)  # x is held by the call of the module
    y = activated(m, y, c.hidden_act)
    return m.linear("mlp.dense_4h_to_h", y, c.hidden_size, True)


def dims(config: Config) -> Dims:
    """GPTNeoXConfig's fields and defaults."""
    common = sizes(
        config,
        vocab_size=50432,
        hidden_size=6144,
        intermediate_size=24576,
        num_hidden_layers=44,
        num_attention_heads=64,
        hidden_act="gelu",
    )
    return GptNeoxDims(
        **common,
        attention_bias=config.boolean("attention_bias", default=True),
        rotary_dim=rotary_dim(config, common["head_dim"], share(config, "rotary_pct", default=0.25)),
        use_parallel_residual=config.boolean("use_parallel_residual", default=True),
        hidden_dropout=share(config, "hidden_dropout"),
    )


FAMILIES = (
    Family(
        id="gpt_neox",
        types={"gpt_neox": "GPT-NeoX"},
        dims=dims,
        body=body,
        buffers=lambda dims, size: rotary_buffers(dims.rotary_dim),
        source="transformers 5.24.0, models/gpt_neox/modeling_gpt_neox.py",
    ),
)
