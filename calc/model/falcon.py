"""Falcon: linear layers written as products, one head of keys and values or groups of them, slopes or rotation.

Mirrors transformers 5.24.0 models/falcon/modeling_falcon.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from calc.autograd import attention as kernels
from calc.autograd.elementwise import add, add_broadcast, add_in_place, cast, clone, dropout, scale_in_place, softmax
from calc.autograd.shapes import expand, indexed, part, reshape, rows
from calc.autograd.tensor import Tensor, empty
from calc.model.activations import activated
from calc.model.attention import additive, attention, broadcast_matmul, causal_mask, contiguous_rows, lowered
from calc.model.config import Config, ConfigError
from calc.model.decoder import share, sizes
from calc.model.family import Dims, Family
from calc.model.modules import Modules
from calc.model.norms import layer_norm
from calc.model.rotary import Rotation, position_ids, rotated, rotation

_NAMES = {
    "hidden_size": ("n_embed", "hidden_size"),
    "num_hidden_layers": ("num_hidden_layers", "n_layer"),
    "num_attention_heads": ("num_attention_heads", "n_head"),
    "intermediate_size": ("ffn_hidden_size",),
    "hidden_act": ("activation",),
}


@dataclass(frozen=True)
class FalconDims(Dims):
    """Sizes, and the shape of a layer."""

    alibi: bool = False
    grouped: bool = False
    """`new_decoder_architecture`: each group of heads with its keys and values, which are copied to every head."""
    multi_query: bool = True
    parallel_attn: bool = True
    two_norms: bool = False
    bias: bool = False
    hidden_dropout: float = 0.0


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    c = m.c
    inputs_embeds = m.embedding("transformer.word_embeddings", ids, c.vocab_size, c.hidden_size)
    slopes = every = None
    if c.alibi:
        every = None if m.recipe.padded else empty((m.rows,), "i64", "ones")
        slopes = _slopes(m, inputs_embeds.dtype)
    counted = position_ids(m)
    mask = causal_mask(m, inputs_embeds.dtype, windowed=True)
    if slopes is not None:
        mask = _sloped(m, slopes, mask)
    x = inputs_embeds
    positions = rotation(m, x.dtype, c.head_dim, counted)
    for layer in m.layers("transformer.h", c.kinds):
        x = layer(block, x, mask, positions, slopes)
    x = layer_norm(m, "transformer.ln_f", x)
    m.returned.clear()
    del inputs_embeds, every  # transformers holds them until its forward returns
    return x


def _slopes(m: Modules, dtype: str) -> Tensor:
    """For each head and position a number that its scores get."""
    product = empty((m.batch, m.c.num_attention_heads, m.length), "bf16", "mul")
    return cast(product, dtype)


def _sloped(m: Modules, slopes: Tensor, mask: Tensor | None) -> Tensor | None:
    """The slopes and the mask as one number for each score."""
    if mask is None:
        return None
    dtype = slopes.dtype
    if mask.dtype == "bool":
        mask = empty((m.batch, 1, m.length, m.length), dtype, "where")
    return empty((m.batch, m.c.num_attention_heads, m.length, m.length), dtype, "masked_fill")


def block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation, slopes: Tensor | None) -> Tensor:
    """One layer: attention and feed-forward side by side, or one after the other."""
    c = m.c
    residual = x
    for_mlp = None
    if c.two_norms:
        normed = layer_norm(m, "ln_attn", x)
        for_mlp = layer_norm(m, "ln_mlp", x)
    else:
        normed = layer_norm(m, "input_layernorm", x)
    attended, weights = self_attention(m, normed, mask, positions, slopes)
    if c.grouped or c.parallel_attn:
        fed = mlp(m, normed if for_mlp is None else for_mlp)
        fed = add_in_place(fed, attended)
    else:
        residual = add(residual, dropout(attended, c.attention_dropout))
        for_mlp = layer_norm(m, "post_attention_layernorm", residual)
        fed = mlp(m, for_mlp)
    y = add(residual, dropout(fed, c.hidden_dropout))
    if weights is not None:
        m.returns(weights)
    del normed, for_mlp, attended, fed
    return y


def self_attention(
    m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation, slopes: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """Attention out of one product, and its weights if they are made."""
    c = m.c
    qkv, q, k, v = _projected(m, x)
    if slopes is None:
        rotated_q, rotated_k = rotated(q, positions), rotated(k, positions)
        q, k = rotated_q, rotated_k
        del rotated_q, rotated_k
    weights = None
    if m.recipe.attention == "eager":
        out, weights = _eager(m, q, k, v, mask, slopes, x.dtype)
        out = rows(contiguous_rows(out), (m.rows, c.hidden_size))
    elif m.recipe.attention == "sdpa":
        assert mask is not None
        q, k, v = lowered(m, q), lowered(m, k), lowered(m, v)
        out = rows(kernels.efficient(q, k, v, additive(m, mask, q.dtype)), (m.rows, c.hidden_size))
    else:
        out = attention(m, q, k, v, mask)
    out = m.matmul("self_attention.dense", out, c.hidden_size, c.bias)
    del qkv  # a name of the frame
    return out, weights


def _projected(m: Modules, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The product, and queries, keys and values in it or copied from it: (batch, heads, length, head_dim)."""
    c = m.c
    h, d, heads, few = c.hidden_size, c.head_dim, c.num_attention_heads, c.num_key_value_heads
    by_head = (m.batch, heads, m.length, d)
    if c.grouped:
        group = heads // few
        qkv = m.matmul("self_attention.query_key_value", x, (few * 2 + heads) * d, c.bias)
        grouped = reshape(qkv, (m.rows, few, group + 2, d))
        q = part(grouped, (m.rows, few, group, d))
        k, v = indexed(grouped, (m.rows, few, 1, d)), indexed(grouped, (m.rows, few, 1, d))
        k, v = expand(k, (m.rows, few, group, d)), expand(v, (m.rows, few, group, d))
        q, k, v = clone(q), clone(k), clone(v)
        return qkv, reshape(q, by_head), reshape(k, by_head), reshape(v, by_head)
    if c.multi_query:
        qkv = m.matmul("self_attention.query_key_value", x, h + 2 * d, c.bias)
        joined = reshape(qkv, (m.rows, heads + 2, d))
        q = reshape(part(joined, (m.rows, heads, d)), by_head)
        k, v = (reshape(indexed(joined, (m.rows, 1, d)), (m.batch, 1, m.length, d)) for _ in range(2))
        return qkv, q, k, v
    qkv = m.matmul("self_attention.query_key_value", x, 3 * h, c.bias)
    q, k, v = (reshape(part(qkv, (m.rows, h)), by_head) for _ in range(3))
    return qkv, q, k, v


def _eager(
    m: Modules, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, slopes: Tensor | None, dtype: str
) -> tuple[Tensor, Tensor]:
    """Attention step by step; its softmax keeps the dtype of the hidden states."""
    assert mask is not None
    heads = m.c.num_attention_heads
    scores_shape, by_head = (m.batch, heads, m.length, m.length), (m.batch, heads, m.length, m.c.head_dim)
    product = scores = broadcast_matmul(m, q, k, scores_shape)
    if slopes is None:
        scores = scale_in_place(scores)
        weights = softmax(add_broadcast(scores, mask), dtype)
        return broadcast_matmul(m, weights, v, by_head), weights
    scores = cast(scores, "fp32")
    logits = scale_in_place(add_broadcast(scores, slopes))
    weights = dropout(softmax(add_broadcast(logits, mask), dtype), m.c.attention_dropout)
    out = broadcast_matmul(m, weights, v, by_head)
    del product
    return out, weights


def mlp(m: Modules, x: Tensor) -> Tensor:
    """Feed-forward without a gate."""
    c = m.c
    y = activated(m, m.matmul("mlp.dense_h_to_4h", x, c.intermediate_size, c.bias), c.hidden_act)
    return m.matmul("mlp.dense_4h_to_h", y, c.hidden_size, c.bias)


def dims(config: Config) -> Dims:
    """FalconConfig's fields and defaults."""
    common = sizes(
        config,
        vocab_size=65024,
        hidden_size=4544,
        num_hidden_layers=32,
        num_attention_heads=71,
        hidden_act="gelu",
        tie_word_embeddings=True,
        names=_NAMES,
    )
    heads = common["num_attention_heads"]
    grouped = config.boolean("new_decoder_architecture", default=False)
    multi_query = config.boolean("multi_query", default=True)
    few = config.integer("num_kv_heads", "n_head_kv", default=heads, high=4096)
    if not grouped:
        few = 1 if multi_query else heads
    if heads // few * few != heads:
        raise ConfigError("num_kv_heads", f"should divide num_attention_heads ({heads}), not {few}")
    norms = config.integer("num_ln_in_parallel_attn", default=2 if grouped else 1, high=2)
    return FalconDims(
        **{**common, "num_key_value_heads": few},
        alibi=config.boolean("alibi", default=False),
        grouped=grouped,
        multi_query=multi_query,
        parallel_attn=config.boolean("parallel_attn", default=True),
        two_norms=grouped and norms == 2,
        bias=config.boolean("bias", default=False),
        hidden_dropout=share(config, "hidden_dropout"),
    )


FAMILIES = (
    Family(
        id="falcon",
        types={
            "falcon": "Falcon",
            "RefinedWebModel": "Falcon, first revision",
            "RefinedWeb": "Falcon 40B, first revision",
        },
        dims=dims,
        body=body,
        attentions=("eager", "sdpa", "flash_attention_2"),
        source="transformers 5.24.0, models/falcon/modeling_falcon.py",
    ),
)
