"""GPT-BigCode (SantaCoder, StarCoder): GPT-2 with one head of keys and values. Mirrors transformers 5.24.0 models/gpt_bigcode/modeling_gpt_bigcode.py."""

from __future__ import annotations

from dataclasses import dataclass

from calc.autograd.elementwise import add, dropout
from calc.autograd.shapes import reshape
from calc.autograd.shapes import split as pieces
from calc.autograd.tensor import Tensor
from calc.model.activations import activated
from calc.model.attention import attention, causal_mask, split
from calc.model.config import Config, ConfigError
from calc.model.decoder import share, sizes
from calc.model.family import Dims, Family
from calc.model.gpt2 import NAMES, Gpt2Dims, with_positions
from calc.model.modules import Modules
from calc.model.norms import layer_norm
from calc.model.rotary import position_ids


@dataclass(frozen=True)
class BigCodeDims(Gpt2Dims):
    """Sizes as GPT-2's."""


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    c = m.c
    inputs_embeds = m.embedding("transformer.wte", ids, c.vocab_size, c.hidden_size)
    counted = position_ids(m)
    mask = causal_mask(m, inputs_embeds.dtype)
    position_embeds = m.embedding("transformer.wpe", counted, c.max_position_embeddings, c.hidden_size)
    x = with_positions(m, inputs_embeds, position_embeds)
    x = dropout(x, c.embd_pdrop)
    for layer in m.layers("transformer.h", c.kinds):
        x = layer(block, x, mask)
    x = layer_norm(m, "transformer.ln_f", x)
    del inputs_embeds, position_embeds, counted  # transformers holds them until its forward returns
    return x


def block(m: Modules, x: Tensor, mask: Tensor | None) -> Tensor:
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
    """Attention out of one product: one head of keys and values for all, or each head's three side by side."""
    c = m.c
    h, d, heads = c.hidden_size, c.head_dim, c.num_attention_heads
    if c.num_key_value_heads == 1:
        joined = m.linear("attn.c_attn", x, h + 2 * d, True)
        q, k, v = pieces(joined, (h, d, d))
        q, k, v = split(m, q, heads, d), reshape(k, (m.batch, 1, m.length, d)), reshape(v, (m.batch, 1, m.length, d))
    else:
        joined = split(m, m.linear("attn.c_attn", x, 3 * h, True), heads, 3 * d)
        q, k, v = pieces(joined, (d, d, d))
    del joined
    out = attention(m, q, k, v, mask, dropout_p=c.attention_dropout)
    out = m.linear("attn.c_proj", out, h, True)
    return dropout(out, c.resid_pdrop)


def mlp(m: Modules, x: Tensor) -> Tensor:
    """Feed-forward without a gate, and a dropout."""
    c = m.c
    x = m.linear("mlp.c_fc", x, c.intermediate_size, True)
    x = activated(m, x, c.hidden_act)
    x = m.linear("mlp.c_proj", x, c.hidden_size, True)
    return dropout(x, c.resid_pdrop)


def dims(config: Config) -> Dims:
    """GPTBigCodeConfig's fields and defaults."""
    common = sizes(
        config,
        vocab_size=50257,
        hidden_size=768,
        num_hidden_layers=12,
        num_attention_heads=12,
        hidden_act="gelu_pytorch_tanh",
        attention_dropout=0.1,
        tie_word_embeddings=True,
        names=NAMES,
    )
    if config.boolean("add_cross_attention", default=False):
        raise ConfigError("add_cross_attention", "should be false: a decoder beside an encoder is not modelled")
    few = 1 if config.boolean("multi_query", default=True) else common["num_attention_heads"]
    return BigCodeDims(
        **{**common, "num_key_value_heads": few},
        max_position_embeddings=config.integer("n_positions", "max_position_embeddings", default=1024),
        resid_pdrop=share(config, "resid_pdrop", default=0.1),
        embd_pdrop=share(config, "embd_pdrop", default=0.1),
    )


def _mask(dims: Dims, size: int) -> int:
    """A causal mask of every position."""
    assert isinstance(dims, Gpt2Dims)
    return dims.max_position_embeddings * dims.max_position_embeddings


FAMILIES = (
    Family(
        id="gpt_bigcode",
        types={"gpt_bigcode": "StarCoder"},
        dims=dims,
        body=body,
        buffers=_mask,
        source="transformers 5.24.0, models/gpt_bigcode/modeling_gpt_bigcode.py",
    ),
)
