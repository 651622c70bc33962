"""BLOOM: positions as slopes on the scores, queries, keys and values of a head side by side, a GeLU of its own.

Mirrors transformers 5.24.0 models/bloom/modeling_bloom.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from calc.autograd.elementwise import add, add_broadcast, cast, dropout, softmax
from calc.autograd.linear import baddbmm, bmm
from calc.autograd.shapes import contiguous, part, reshape, rows
from calc.autograd.tensor import Shape, Tensor, empty, record
from calc.model.attention import causal_mask, contiguous_rows
from calc.model.config import Config
from calc.model.decoder import share, sizes
from calc.model.family import Dims, Family
from calc.model.modules import Modules
from calc.model.norms import layer_norm

_NAMES = {
    "hidden_size": ("n_embed", "hidden_size"),
    "num_hidden_layers": ("n_layer", "num_hidden_layers"),
    "num_attention_heads": ("n_head", "num_attention_heads"),
}


@dataclass(frozen=True)
class BloomDims(Dims):
    """Sizes, and the shape of a layer."""

    hidden_dropout: float = 0.0
    apply_residual_connection_post_layernorm: bool = False


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    c = m.c
    inputs_embeds = m.embedding("transformer.word_embeddings", ids, c.vocab_size, c.hidden_size)
    x = layer_norm(m, "transformer.word_embeddings_layernorm", inputs_embeds)
    slopes = empty((c.num_attention_heads,), "fp32", "slopes")
    offsets = alibi(m, x.dtype)
    mask = causal_mask(m, inputs_embeds.dtype)
    for layer in m.layers("transformer.h", c.kinds):
        x = layer(block, x, offsets, mask)
    x = layer_norm(m, "transformer.ln_f", x)
    m.returned.clear()
    del inputs_embeds, slopes  # transformers holds them until its forward returns
    return x


def alibi(m: Modules, dtype: str) -> Tensor:
    """For each head and position a number that its scores get."""
    sloped = empty((m.c.num_attention_heads, 1, m.length), "fp32", "mul")
    repeated = empty((m.batch * m.c.num_attention_heads, 1, m.length), "fp32", "repeat")
    del sloped
    return cast(repeated, dtype)


def block(m: Modules, x: Tensor, offsets: Tensor, mask: Tensor) -> Tensor:
    """One layer."""
    normed = layer_norm(m, "input_layernorm", x)
    residual = normed if m.c.apply_residual_connection_post_layernorm else x
    attended, weights = self_attention(m, normed, residual, offsets, mask)
    normed = layer_norm(m, "post_attention_layernorm", attended)
    residual = normed if m.c.apply_residual_connection_post_layernorm else attended
    output = mlp(m, normed, residual)
    m.returns(weights)
    return output


def self_attention(m: Modules, x: Tensor, residual: Tensor, offsets: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Attention with its residual, and its weights."""
    c = m.c
    h, heads = c.hidden_size, c.num_attention_heads
    by_head, scores_shape = (m.batch, heads, m.length, c.head_dim), (m.batch, heads, m.length, m.length)
    qkv = m.linear("self_attention.query_key_value", x, 3 * h, True)
    q, k, v = (_together(m, reshape(part(qkv, (m.rows, h)), by_head)) for _ in range(3))
    scores = _scores(m, offsets, q, k, scores_shape)
    masked = add_broadcast(scores, mask)
    weights = cast(softmax(masked, "fp32"), q.dtype)
    weights = dropout(weights, c.attention_dropout)
    out = bmm(weights if m.recipe.autocast is None else cast(weights, m.recipe.autocast), v, by_head)
    out = rows(contiguous_rows(out), (m.rows, h))
    out = m.linear("self_attention.dense", out, h, True)
    out = add(residual, dropout(out, c.hidden_dropout))
    del scores, masked  # names of the frame
    return out, weights


def _together(m: Modules, x: Tensor) -> Tensor:
    """A head's rows as one matrix: a copy, unless there is one sequence."""
    return contiguous(x) if m.batch > 1 else x


def _scores(m: Modules, offsets: Tensor, q: Tensor, k: Tensor, shape: Shape) -> Tensor:
    """The offsets plus scaled products."""
    if m.recipe.autocast is not None:
        k, q, offsets = cast(k, m.recipe.autocast), cast(q, m.recipe.autocast), cast(offsets, m.recipe.autocast)
    return baddbmm(offsets, q, k, shape)


def mlp(m: Modules, x: Tensor, residual: Tensor) -> Tensor:
    """Feed-forward with its residual."""
    c = m.c
    x = gelu(m.linear("mlp.dense_h_to_4h", x, c.intermediate_size, True))
    out = m.linear("mlp.dense_4h_to_h", x, c.hidden_size, True)
    return add(residual, dropout(out, c.hidden_dropout))


def gelu(x: Tensor) -> Tensor:
    """x·0.5·(1 + tanh(0.79788456·x·(1 + 0.044715·x·x))) as a function of its own: saves x, and works step by step in both directions."""
    shape, dtype = x.shape, x.dtype

    def new() -> Tensor:
        return empty(shape, dtype, "gelu")

    def tanh() -> Tensor:
        factor = new()
        cubic = new()
        squared = new()
        del cubic
        plus = new()
        del squared
        product = new()
        del factor, plus
        result = new()
        del product
        return result

    def backward(g: Tensor) -> tuple[Tensor]:
        t = tanh()
        half = new()
        square = new()
        rest = new()
        del square
        cubic = new()
        squared = new()
        del cubic
        plus = new()
        del squared
        inner = new()
        del rest, plus
        first = new()
        del half, inner
        one = new()
        second = new()
        del one
        slope = new()
        del first, second
        result = new()
        del slope, t
        return (result,)

    half, t = new(), tanh()
    one = new()
    del t
    y = record("gelu", shape, dtype, (x,), backward, (x.storage,))
    del half, one
    return y


def dims(config: Config) -> Dims:
    """BloomConfig's fields and defaults."""
    return BloomDims(
        **sizes(
            config,
            vocab_size=250880,
            hidden_size=64,
            num_hidden_layers=2,
            num_attention_heads=8,
            tie_word_embeddings=True,
            names=_NAMES,
        ),
        hidden_dropout=share(config, "hidden_dropout"),
        apply_residual_connection_post_layernorm=config.boolean(
            "apply_residual_connection_post_layernorm", default=False
        ),
    )


FAMILIES = (
    Family(
        id="bloom",
        types={"bloom": "BLOOM"},
        dims=dims,
        body=body,
        attentions=("eager",),
        buffers=lambda dims, size: 0,
        source="transformers 5.24.0, models/bloom/modeling_bloom.py",
    ),
)
