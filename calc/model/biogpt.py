"""BioGPT and XGLM: scaled embeddings with positions added, layer norms before each half.

Mirrors transformers 5.24.0 models/biogpt/modeling_biogpt.py and models/xglm/modeling_xglm.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from calc.autograd.elementwise import add, add_broadcast, cast, dropout, minimum, scale, softmax
from calc.autograd.linear import bmm
from calc.autograd.shapes import contiguous, rows
from calc.autograd.tensor import Tensor, empty
from calc.model.activations import activated
from calc.model.attention import Eager, attention, causal_mask, lowered, split
from calc.model.config import Config, ConfigError
from calc.model.decoder import share, sizes
from calc.model.family import Dims, Family
from calc.model.gpt2 import with_positions
from calc.model.modules import Modules
from calc.model.norms import layer_norm
from calc.model.rotary import position_ids


@dataclass(frozen=True)
class BioGptDims(Dims):
    """Sizes, the number of positions, and dropouts."""

    max_position_embeddings: int = 1024
    hidden_dropout: float = 0.1
    activation_dropout: float = 0.0


def body(m: Modules, ids: Tensor) -> Tensor:
    """BioGPT: token ids (rows,) to hidden states (rows, hidden_size)."""
    c = m.c
    inputs_embeds = m.embedding("biogpt.embed_tokens", ids, c.vocab_size, c.hidden_size, scaled=True)
    every = None if m.recipe.padded else empty((m.rows,), "fp32", "ones")
    mask = causal_mask(m, inputs_embeds.dtype)
    counted = position_ids(m)
    shifted = empty((m.length,), "i64", "add")
    positions = m.embedding("biogpt.embed_positions", shifted, c.max_position_embeddings + 2, c.hidden_size)
    del shifted
    x = dropout(with_positions(m, inputs_embeds, positions), c.hidden_dropout)
    for layer in m.layers("biogpt.layers", c.kinds):
        x = layer(block, x, mask, counted)
    x = layer_norm(m, "biogpt.layer_norm", x)
    del inputs_embeds, positions, every  # transformers holds them until its forward returns
    return x


def head(m: Modules, x: Tensor) -> Tensor:
    """Logits; the head's matrix is called output_projection."""
    c = m.c
    return (
        m.product(x, m.tied()) if c.tie_word_embeddings else m.linear("output_projection", x, c.vocab_size, role="head")
    )


def xglm_body(m: Modules, ids: Tensor) -> Tensor:
    """XGLM: token ids (rows,) to hidden states (rows, hidden_size); positions are rows of a table that is not trained."""
    c = m.c
    inputs_embeds = m.embedding("model.embed_tokens", ids, c.vocab_size, c.hidden_size, scaled=True)
    mask = causal_mask(m, inputs_embeds.dtype)
    counted = empty((m.length,), "i64", "arange")
    shifted = empty((m.length,), "i64", "add")
    positions = empty((m.length, c.hidden_size), inputs_embeds.dtype, "index_select")
    del shifted
    x = with_positions(m, inputs_embeds, positions)
    del positions
    x = dropout(x, c.hidden_dropout)
    for layer in m.layers("model.layers", c.kinds):
        x = layer(xglm_block, x, mask)
    x = layer_norm(m, "model.layer_norm", x)
    del inputs_embeds, counted  # transformers holds them until its forward returns
    return x


def block(m: Modules, x: Tensor, mask: Tensor | None, counted: Tensor) -> Tensor:
    """BioGPT's layer."""
    return _halves(m, x, mask, self_attention, nested=False)


def xglm_block(m: Modules, x: Tensor, mask: Tensor | None) -> Tensor:
    """XGLM's layer."""
    return _halves(m, x, mask, xglm_attention, nested=True)


def _halves(
    m: Modules,
    x: Tensor,
    mask: Tensor | None,
    attend: Callable[[Modules, Tensor, Tensor | None], Tensor],
    *,
    nested: bool,
) -> Tensor:
    """Both halves of a layer; with `nested` the first product and the activation are one expression, which holds what goes into it."""
    c = m.c
    residual = x
    x = layer_norm(m, "self_attn_layer_norm", x)
    x = attend(m, x, mask)
    x = dropout(x, c.hidden_dropout)
    x = add(residual, x)
    residual = x
    x = layer_norm(m, "final_layer_norm", x)
    if nested:
        x = activated(m, m.linear("fc1", x, c.intermediate_size, True), c.hidden_act)
    else:
        x = m.linear("fc1", x, c.intermediate_size, True)
        x = activated(m, x, c.hidden_act)
    x = dropout(x, c.activation_dropout)
    x = m.linear("fc2", x, c.hidden_size, True)
    x = dropout(x, c.hidden_dropout)
    return add(residual, x)


def self_attention(m: Modules, x: Tensor, mask: Tensor | None) -> Tensor:
    """BioGPT's attention: its softmax keeps the dtype."""
    c = m.c
    q = split(m, m.linear("self_attn.q_proj", x, c.hidden_size, True), c.num_attention_heads, c.head_dim)
    k = m.linear("self_attn.k_proj", x, c.hidden_size, True)
    v = m.linear("self_attn.v_proj", x, c.hidden_size, True)
    k, v = split(m, k, c.num_attention_heads, c.head_dim), split(m, v, c.num_attention_heads, c.head_dim)
    eager = Eager(wide_softmax=False, lowered=False)
    out = attention(m, q, k, v, mask, dropout_p=c.attention_dropout, eager=eager)
    return m.linear("self_attn.out_proj", out, c.hidden_size, True)


def xglm_attention(m: Modules, x: Tensor, mask: Tensor | None) -> Tensor:
    """XGLM's own attention: queries scaled first, heads in the batch, scores bounded from below."""
    c = m.c
    heads, d = c.num_attention_heads, c.head_dim
    q = scale(m.linear("self_attn.q_proj", x, c.hidden_size, True))
    k = m.linear("self_attn.k_proj", x, c.hidden_size, True)
    v = m.linear("self_attn.v_proj", x, c.hidden_size, True)
    k, v = split(m, k, heads, d), split(m, v, heads, d)
    q = split(m, q, heads, d)
    if m.batch > 1:
        q = contiguous(q)
        k = contiguous(k)
        v = contiguous(v)
    shape = (m.batch, heads, m.length, m.length)
    second, first = lowered(m, k), lowered(m, q)
    weights = bmm(first, second, shape)
    del second, first
    if mask is not None:
        weights = add_broadcast(weights, mask)
        weights = minimum(weights, empty((), "fp32", "full"))
    wide = weights.dtype == "fp16" or m.recipe.autocast is not None
    shares = cast(softmax(weights, "fp32" if wide else None), weights.dtype)
    del weights
    dropped = dropout(shares, c.attention_dropout)
    second, first = lowered(m, v), lowered(m, dropped)
    out = bmm(first, second, (m.batch, heads, m.length, d))
    del second, first
    out = rows(out, (m.rows, c.hidden_size))
    m.held.append(shares)
    return m.linear("self_attn.out_proj", out, c.hidden_size, True)


def dims(config: Config) -> Dims:
    """BioGptConfig's fields and defaults."""
    common = sizes(
        config,
        vocab_size=42384,
        hidden_size=1024,
        intermediate_size=4096,
        num_hidden_layers=24,
        num_attention_heads=16,
        hidden_act="gelu",
        attention_dropout=0.1,
        tie_word_embeddings=True,
        names={"attention_dropout": ("attention_probs_dropout_prob",)},
    )
    return BioGptDims(**common, **_others(config, 1024, "hidden_dropout_prob"))


def xglm_dims(config: Config) -> Dims:
    """XGLMConfig's fields and defaults."""
    if config.boolean("add_cross_attention", default=False):
        raise ConfigError("add_cross_attention", "should be false: a decoder beside an encoder is not modelled")
    common = sizes(
        config,
        vocab_size=256008,
        hidden_size=1024,
        intermediate_size=4096,
        num_hidden_layers=24,
        num_attention_heads=16,
        hidden_act="gelu",
        attention_dropout=0.1,
        tie_word_embeddings=True,
        names={
            "hidden_size": ("d_model", "hidden_size"),
            "intermediate_size": ("ffn_dim",),
            "num_hidden_layers": ("num_layers", "num_hidden_layers"),
            "num_attention_heads": ("attention_heads", "num_attention_heads"),
            "hidden_act": ("activation_function",),
        },
    )
    return BioGptDims(**common, **_others(config, 2048, "dropout"))


def _others(config: Config, positions: int, dropped: str) -> dict[str, Any]:
    return {
        "max_position_embeddings": config.integer("max_position_embeddings", default=positions),
        "hidden_dropout": share(config, dropped, default=0.1),
        "activation_dropout": share(config, "activation_dropout"),
    }


def _table(dims: Any, size: int) -> int:
    """Bytes of XGLM's table of positions."""
    rows: int = dims.max_position_embeddings + 2
    width: int = dims.hidden_size
    return rows * width * size


FAMILIES = (
    Family(
        id="biogpt",
        types={"biogpt": "BioGPT"},
        dims=dims,
        body=body,
        head=head,
        buffers=lambda dims, size: 0,
        gaps=frozenset(("activations in host memory",)),  # its head has a name of its own, which TRL does not know
        source="transformers 5.24.0, models/biogpt/modeling_biogpt.py",
    ),
    Family(
        id="xglm",
        types={"xglm": "XGLM"},
        dims=xglm_dims,
        body=xglm_body,
        attentions=("eager",),
        buffers=_table,
        gaps=frozenset(("a mask beside activations in host memory",)),
        source="transformers 5.24.0, models/xglm/modeling_xglm.py",
    ),
)
