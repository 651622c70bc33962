"""GPT-Neo: GPT-2 with separate matrices, scores in fp32, and a causal mask kept in every layer.

Mirrors transformers 5.24.0 models/gpt_neo/modeling_gpt_neo.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from calc.autograd.elementwise import add, add_broadcast, cast, dropout, masked_fill, softmax
from calc.autograd.shapes import rows
from calc.autograd.tensor import Tensor, parameter
from calc.model.activations import activated
from calc.model.attention import attention, causal_mask, contiguous_rows, matmul, split
from calc.model.config import Config
from calc.model.decoder import share, sizes
from calc.model.family import Dims, Family
from calc.model.gpt2 import with_positions
from calc.model.modules import Modules
from calc.model.norms import layer_norm
from calc.model.rotary import position_ids

_NAMES = {
    "num_hidden_layers": ("num_layers", "num_hidden_layers"),
    "num_attention_heads": ("num_heads", "num_attention_heads"),
    "hidden_act": ("activation_function",),
}


@dataclass(frozen=True)
class GptNeoDims(Dims):
    """Sizes, the table of positions, and dropouts."""

    max_position_embeddings: int = 2048
    resid_dropout: float = 0.0
    embed_dropout: float = 0.0


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    c = m.c
    inputs_embeds = m.embedding("transformer.wte", ids, c.vocab_size, c.hidden_size)
    counted = position_ids(m)
    mask = causal_mask(m, inputs_embeds.dtype)
    position_embeds = m.embedding("transformer.wpe", counted, c.max_position_embeddings, c.hidden_size)
    x = with_positions(m, inputs_embeds, position_embeds)
    x = dropout(x, c.embed_dropout)
    for layer in m.layers("transformer.h", c.kinds):
        x = layer(block, x, mask)
    x = layer_norm(m, "transformer.ln_f", x)
    m.returned.clear()
    del inputs_embeds, position_embeds, counted  # transformers holds them until its forward returns
    return x


def block(m: Modules, x: Tensor, mask: Tensor | None) -> Tensor:
    """One layer."""
    residual = x
    x = layer_norm(m, "ln_1", x)
    attended, weights = self_attention(m, x, mask)
    x = add(attended, residual)
    residual = x
    x = layer_norm(m, "ln_2", x)
    fed = mlp(m, x)
    x = add(residual, fed)
    if weights is not None:
        m.returns(weights)
    del attended
    return x


def self_attention(m: Modules, x: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Attention, and its weights if they are made."""
    c = m.c
    h, heads = c.hidden_size, c.num_attention_heads
    q = m.linear("attn.attention.q_proj", x, h)
    k = m.linear("attn.attention.k_proj", x, h)
    v = m.linear("attn.attention.v_proj", x, h)
    q, k, v = (split(m, t, heads, c.head_dim) for t in (q, k, v))
    weights = None
    if m.recipe.attention == "eager":
        assert mask is not None
        out, weights = _scored(m, q, k, v, mask)
        out = rows(contiguous_rows(out), (m.rows, h))
    else:
        out = attention(m, q, k, v, mask, dropout_p=c.attention_dropout)
    out = m.linear("attn.attention.out_proj", out, h, True)
    return dropout(out, c.resid_dropout), weights


def _scored(m: Modules, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Scores in fp32, masked twice."""
    scores_shape = (*q.shape[:3], m.length)
    wide_q = cast(q, "fp32")
    wide_k = cast(k, "fp32")
    weights = matmul(m, wide_q, wide_k, scores_shape)
    longest = m.c.max_position_embeddings
    weights = masked_fill(weights, parameter((1, 1, longest, longest), "bool", "bias", False))  # a buffer
    weights = add_broadcast(weights, mask)
    weights = softmax(weights, "fp32")
    weights = cast(weights, v.dtype)
    weights = dropout(weights, m.c.attention_dropout)
    out = matmul(m, weights, v, q.shape)
    del wide_q, wide_k  # names of the frame
    return out, weights


def mlp(m: Modules, x: Tensor) -> Tensor:
    """Feed-forward without a gate, and a dropout."""
    c = m.c
    x = m.linear("mlp.c_fc", x, c.intermediate_size, True)
    x = activated(m, x, c.hidden_act)
    x = m.linear("mlp.c_proj", x, c.hidden_size, True)
    return dropout(x, c.resid_dropout)


def dims(config: Config) -> Dims:
    """GPTNeoConfig's fields and defaults. Local layers differ from global ones in their mask's numbers only."""
    return GptNeoDims(
        **sizes(
            config,
            vocab_size=50257,
            hidden_size=2048,
            num_hidden_layers=24,
            num_attention_heads=16,
            hidden_act="gelu_new",
            tie_word_embeddings=True,
            names=_NAMES,
        ),
        max_position_embeddings=config.integer("max_position_embeddings", default=2048),
        resid_dropout=share(config, "resid_dropout"),
        embed_dropout=share(config, "embed_dropout"),
    )


def _masks(dims: Dims, size: int) -> int:
    """A causal mask of every position in every layer."""
    assert isinstance(dims, GptNeoDims)
    return dims.num_hidden_layers * dims.max_position_embeddings * dims.max_position_embeddings


FAMILIES = (
    Family(
        id="gpt_neo",
        types={"gpt_neo": "GPT-Neo"},
        dims=dims,
        body=body,
        attentions=("eager", "flash_attention_2", "flash_attention_3"),
        buffers=_masks,
        gaps=frozenset(("offload without checkpointing",)),
        source="transformers 5.24.0, models/gpt_neo/modeling_gpt_neo.py",
    ),
)
