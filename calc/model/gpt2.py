"""GPT-2: learned positions, one matrix for queries, keys and values, weights lying (in, out).

Mirrors transformers 5.24.0 models/gpt2/modeling_gpt2.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from calc.autograd.elementwise import add, add_broadcast, dropout
from calc.autograd.shapes import split as pieces
from calc.autograd.tensor import Tensor
from calc.model.activations import activated
from calc.model.attention import Eager, attention, causal_mask, split
from calc.model.config import Config, ConfigError
from calc.model.decoder import share, sizes
from calc.model.family import Dims, Family
from calc.model.modules import Modules
from calc.model.norms import layer_norm
from calc.model.rotary import position_ids

NAMES = {
    "hidden_size": ("n_embd", "hidden_size"),
    "num_hidden_layers": ("n_layer", "num_hidden_layers"),
    "num_attention_heads": ("n_head", "num_attention_heads"),
    "intermediate_size": ("n_inner",),
    "hidden_act": ("activation_function",),
    "attention_dropout": ("attn_pdrop",),
}
"""How GPT-2 and its kin spell their sizes."""


@dataclass(frozen=True)
class Gpt2Dims(Dims):
    """Sizes, the length of the table of positions, and dropouts."""

    max_position_embeddings: int = 1024
    resid_pdrop: float = 0.1
    embd_pdrop: float = 0.1


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    c = m.c
    inputs_embeds = m.embedding("transformer.wte", ids, c.vocab_size, c.hidden_size)
    counted = position_ids(m)
    position_embeds = m.embedding("transformer.wpe", counted, c.max_position_embeddings, c.hidden_size)
    x = with_positions(m, inputs_embeds, position_embeds)
    mask = causal_mask(m, inputs_embeds.dtype)
    x = dropout(x, c.embd_pdrop)
    for layer in m.layers("transformer.h", c.kinds):
        x = layer(block, x, mask, counted)
    x = layer_norm(m, "transformer.ln_f", x)
    del inputs_embeds, position_embeds  # transformers holds them until its forward returns
    return x


def with_positions(m: Modules, x: Tensor, positions: Tensor) -> Tensor:
    """Embeddings (rows, width) and those of positions (length, width), which are alike for every sequence."""
    return add(x, positions) if m.batch == 1 else add_broadcast(x, positions)


def block(m: Modules, x: Tensor, mask: Tensor | None, counted: Tensor) -> Tensor:
    """One layer."""
    residual = x
    x = layer_norm(m, "ln_1", x)
    attended = self_attention(m, x, mask)
    x = add(attended, residual)
    residual = x
    x = layer_norm(m, "ln_2", x)
    fed = mlp(m, x)
    x = add(residual, fed)
    del attended
    return x


def self_attention(m: Modules, x: Tensor, mask: Tensor | None) -> Tensor:
    """Attention out of one product; its softmax keeps the dtype."""
    c = m.c
    h = c.hidden_size
    q, k, v = pieces(m.linear("attn.c_attn", x, 3 * h, True, transposed=True), (h, h, h))
    k = split(m, k, c.num_attention_heads, c.head_dim)
    v = split(m, v, c.num_attention_heads, c.head_dim)
    q = split(m, q, c.num_attention_heads, c.head_dim)
    out = attention(m, q, k, v, mask, dropout_p=c.attention_dropout, eager=Eager(wide_softmax=False))
    out = m.linear("attn.c_proj", out, h, True, transposed=True)
    return dropout(out, c.resid_pdrop)


def mlp(m: Modules, x: Tensor) -> Tensor:
    """Feed-forward without a gate, and a dropout."""
    c = m.c
    x = m.linear("mlp.c_fc", x, c.intermediate_size, True, transposed=True)
    x = activated(m, x, c.hidden_act)
    x = m.linear("mlp.c_proj", x, c.hidden_size, True, transposed=True)
    return dropout(x, c.resid_pdrop)


def dims(config: Config) -> Dims:
    """GPT2Config's fields and defaults."""
    common = sizes(
        config,
        vocab_size=50257,
        hidden_size=768,
        num_hidden_layers=12,
        num_attention_heads=12,
        hidden_act="gelu_new",
        attention_dropout=0.1,
        tie_word_embeddings=True,
        names=NAMES,
    )
    if config.boolean("add_cross_attention", default=False):
        raise ConfigError("add_cross_attention", "should be false: a decoder beside an encoder is not modelled")
    if config.boolean("reorder_and_upcast_attn", default=False):
        raise ConfigError("reorder_and_upcast_attn", "should be false: the other is not modelled")
    return Gpt2Dims(
        **common,
        max_position_embeddings=config.integer("n_positions", "max_position_embeddings", default=1024),
        resid_pdrop=share(config, "resid_pdrop", default=0.1),
        embd_pdrop=share(config, "embd_pdrop", default=0.1),
    )


FAMILIES = (
    Family(
        id="gpt2",
        types={"gpt2": "GPT-2", "gpt-sw3": "GPT-SW3"},
        dims=dims,
        body=body,
        buffers=lambda dims, size: 0,
        gaps=frozenset(("a mask beside activations in host memory",)),
        source="transformers 5.24.0, models/gpt2/modeling_gpt2.py",
    ),
)
