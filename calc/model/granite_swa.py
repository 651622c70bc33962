"""Granite with a window on most layers and a learned sink for each head, which scales what attention gives.

Mirrors transformers 5.24.0 models/granite_swa/modeling_granite_swa.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from calc.autograd.elementwise import (
    add_broadcast,
    cast,
    dropout,
    from_output,
    logsumexp,
    mul,
    scale,
    softmax,
    sub_broadcast,
)
from calc.autograd.shapes import repeat, reshape, rows
from calc.autograd.tensor import Tensor
from calc.model import llama
from calc.model.attention import contiguous_rows, matmul
from calc.model.config import Config, ConfigError
from calc.model.decoder import layer_kinds, masks, pre_norm, sizes, window
from calc.model.family import Dims, Family, rotary_buffers
from calc.model.granite import head
from calc.model.modules import Modules
from calc.model.norms import rms_norm
from calc.model.rotary import Rotation, position_ids, rotated, rotation


@dataclass(frozen=True)
class GraniteSwaDims(Dims):
    """Sizes, and how many rotary bases the layers have among them. The second word of a layer's kind says which."""

    num_bases: int = 1


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    c = m.c
    x = inputs_embeds = scale(m.embedding("model.embed_tokens", ids, c.vocab_size, c.hidden_size))
    counted = position_ids(m)
    mask = masks(m, x.dtype, ("full", "sliding"))
    positions = [rotation(m, x.dtype, c.head_dim, counted) for _ in range(c.num_bases)]
    for layer, kind in zip(m.layers("model.layers", c.kinds), c.kinds, strict=True):
        mask_kind, _, base = kind.partition(" ")
        x = layer(block, x, mask[mask_kind], None if base == "unrotated" else positions[int(base)])
    x = rms_norm(m, "model.norm", x)
    del inputs_embeds  # transformers holds them until its forward returns
    return x


def block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation | None) -> Tensor:
    """One decoder layer."""
    return pre_norm(m, x, self_attention, llama.mlp, mask, positions, joined=lambda m, x: scale(x))


def self_attention(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation | None) -> Tensor:
    """Grouped-query attention with sinks."""
    c = m.c
    q, k, v = llama.queries_keys_values(m, x)
    if positions is not None:
        rotated_q, rotated_k = rotated(q, positions), rotated(k, positions)
        q, k = rotated_q, rotated_k
        del rotated_q, rotated_k
    return m.linear("self_attn.o_proj", _attention(m, q, k, v, mask), c.hidden_size, c.output_bias)


def _attention(m: Modules, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    """The class's own eager attention: its result times the sigmoid of how far the scores rise above the sink."""
    batch, heads, length, head_dim = q.shape
    dtype = q.dtype
    sinks = reshape(m.weight("self_attn.sinks", (heads,), "other"), (1, heads, 1))
    k, v = repeat(k, heads), repeat(v, heads)
    weights = scale(matmul(m, q, k, (batch, heads, length, length)))
    if mask is not None:
        weights = add_broadcast(weights, mask)
    lse = logsumexp(weights if m.recipe.autocast is None else cast(weights, "fp32"))
    share = from_output(cast(sub_broadcast(lse, sinks), "fp32"), "sigmoid")
    shares = softmax(weights, "fp32")
    weights = cast(shares, dtype)
    del shares
    weights = dropout(weights, m.c.attention_dropout)
    out = matmul(m, weights, v, (batch, heads, length, head_dim))
    out = mul(out, cast(reshape(share, (batch, heads, length, 1)), out.dtype))
    m.held.append(weights)
    del lse
    return rows(contiguous_rows(out), (m.rows, heads * head_dim))


def dims(config: Config) -> Dims:
    """GraniteSWAConfig's fields and defaults. A base of 0 in `layer_rope_theta` means that the layer has no positions."""
    bias = config.boolean("attention_bias", default=False)
    common = sizes(
        config,
        vocab_size=100352,
        hidden_size=2560,
        intermediate_size=8192,
        num_hidden_layers=24,
        num_attention_heads=20,
        num_key_value_heads=4,
        tie_word_embeddings=True,
    )
    layers = common["num_hidden_layers"]
    kinds = layer_kinds(config, layers, lambda i: i % 4 != 0)
    bases = config.given("layer_rope_theta") or [1] * layers
    if not isinstance(bases, list | tuple) or len(bases) != layers:
        raise ConfigError("layer_rope_theta", f"should be a list of num_hidden_layers ({layers}) numbers")
    if not all(type(base) in (int, float) and base >= 0 for base in bases):
        raise ConfigError("layer_rope_theta", "should hold numbers of at least 0")
    distinct = sorted({base for base in bases if base})
    words = [f"{distinct.index(base)}" if base else "unrotated" for base in bases]
    return GraniteSwaDims(
        **{**common, "kinds": tuple([f"{kind} {word}" for kind, word in zip(kinds, words, strict=True)])},
        sliding_window=window(config, 128),
        attention_bias=bias,
        output_bias=bias,
        mlp_bias=config.boolean("mlp_bias", default=False),
        num_bases=len(distinct),
    )


FAMILIES = (
    Family(
        id="granite_swa",
        types={"granite_swa": "Granite with windows"},
        dims=dims,
        body=body,
        head=head,
        attentions=("eager",),
        buffers=lambda dims, size: (1 + dims.num_bases) * rotary_buffers(dims.head_dim),
        gaps=frozenset(("offload without checkpointing",)),
        source="transformers 5.24.0, models/granite_swa/modeling_granite_swa.py",
    ),
)
