"""MPT: positions as slopes on the scores, norms without biases, one matrix for queries, keys and values. Mirrors transformers 5.24.0 models/mpt/modeling_mpt.py."""

from __future__ import annotations

from dataclasses import dataclass

from calc.autograd.elementwise import activation, add, add_broadcast, cast, clamp, dropout, masked_fill, scale, softmax
from calc.autograd.shapes import rows
from calc.autograd.shapes import split as pieces
from calc.autograd.tensor import Tensor, empty
from calc.model.attention import causal_mask, contiguous_rows, matmul, split
from calc.model.config import Config
from calc.model.decoder import share, sizes
from calc.model.family import Dims, Family
from calc.model.modules import Modules
from calc.model.norms import layer_norm

_NAMES = {
    "hidden_size": ("d_model", "hidden_size"),
    "num_hidden_layers": ("n_layers", "num_hidden_layers"),
    "num_attention_heads": ("n_heads", "num_attention_heads"),
}


@dataclass(frozen=True)
class MptDims(Dims):
    """Sizes, the length of the slopes, and whether queries, keys and values are clamped."""

    max_seq_len: int = 2048
    clip_qkv: bool = False


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    c = m.c
    x = inputs_embeds = m.embedding("transformer.wte", ids, c.vocab_size, c.hidden_size)
    slopes = empty((c.num_attention_heads, 1, c.max_seq_len), "fp32", "mul")
    additive = causal_mask(m, x.dtype)
    mask = empty((m.batch, 1, m.length, m.length), "bool", "_to_copy")
    del additive
    for layer in m.layers("transformer.blocks", c.kinds):
        x = layer(block, x, slopes, mask)
    x = layer_norm(m, "transformer.norm_f", x, bias=False)
    m.returned.clear()
    del inputs_embeds  # transformers holds them until its forward returns
    return x


def block(m: Modules, x: Tensor, slopes: Tensor, mask: Tensor) -> Tensor:
    """One layer."""
    normed = layer_norm(m, "norm_1", x, bias=False)
    residual = x
    attended, weights = self_attention(m, normed, slopes, mask)
    x = add(dropout(attended, m.c.attention_dropout), residual)
    normed = layer_norm(m, "norm_2", x, bias=False)
    residual = x
    output = mlp(m, normed, residual)
    m.returns(weights)
    return output


def self_attention(m: Modules, x: Tensor, slopes: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Attention, and its weights."""
    c = m.c
    h, heads = c.hidden_size, c.num_attention_heads
    qkv = m.linear("attn.Wqkv", x, 3 * h)
    if c.clip_qkv:
        qkv = clamp(qkv, 2)
    q, k, v = (split(m, piece, heads, c.head_dim) for piece in pieces(qkv, (h, h, h)))
    scores = scale(matmul(m, q, k, (m.batch, heads, m.length, m.length)))
    scores = add_broadcast(scores, slopes)
    scores = masked_fill(scores, mask)
    weights = cast(softmax(scores, "fp32"), v.dtype)
    weights = dropout(weights, c.attention_dropout)
    out = matmul(m, weights, v, (m.batch, heads, m.length, c.head_dim))
    out = rows(contiguous_rows(out), (m.rows, h))
    out = m.linear("attn.out_proj", out, h)
    del scores, qkv  # names of the frame
    return out, weights


def mlp(m: Modules, x: Tensor, residual: Tensor) -> Tensor:
    """Feed-forward with its residual."""
    c = m.c
    y = activation(m.linear("ffn.up_proj", x, c.intermediate_size), "gelu")
    out = m.linear("ffn.down_proj", y, c.hidden_size)
    output = dropout(out, c.attention_dropout)
    return add(output, residual)


def dims(config: Config) -> Dims:
    """MptConfig's fields and defaults; `expansion_ratio` is read by nobody."""
    common = sizes(
        config,
        vocab_size=50368,
        hidden_size=2048,
        num_hidden_layers=24,
        num_attention_heads=16,
        tie_word_embeddings=True,
        names=_NAMES,
    )
    inner = config.part("attn_config") if config.given("attn_config") is not None else Config({})
    return MptDims(
        **{**common, "attention_dropout": share(inner, "attn_pdrop")},
        max_seq_len=config.integer("max_seq_len", default=2048),
        clip_qkv=bool(inner.given("clip_qkv")),
    )


FAMILIES = (
    Family(
        id="mpt",
        types={"mpt": "MPT"},
        dims=dims,
        body=body,
        attentions=("eager",),
        buffers=lambda dims, size: 0,
        source="transformers 5.24.0, models/mpt/modeling_mpt.py",
    ),
)
