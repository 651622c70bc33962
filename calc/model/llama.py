"""Llama and everything that is built like it. Mirrors transformers 5.24.0 models/llama/modeling_llama.py."""

from __future__ import annotations

from calc.autograd.elementwise import activation, add, mul
from calc.autograd.tensor import Tensor
from calc.model.attention import attention, causal_mask, split
from calc.model.config import Config
from calc.model.family import Dims, Family
from calc.model.modules import Modules
from calc.model.norms import rms_norm
from calc.model.rotary import Rotation, rotated, rotation


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    c = m.c
    x = inputs_embeds = m.embedding("model.embed_tokens", ids, c.vocab_size, c.hidden_size)
    mask = causal_mask(m, x.dtype)
    positions = rotation(m, x.dtype, c.head_dim)
    for layer in m.layers("model.layers", c.kinds):
        x = layer(block, x, mask, positions)
    x = rms_norm(m, "model.norm", x)
    del inputs_embeds  # transformers holds them until its forward returns
    return x


def block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """One decoder layer."""
    residual = x
    x = rms_norm(m, "input_layernorm", x)
    x = self_attention(m, x, mask, positions)
    x = add(residual, x)
    residual = x
    x = rms_norm(m, "post_attention_layernorm", x)
    x = mlp(m, x)
    return add(residual, x)


def self_attention(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """Grouped-query attention with rotary positions."""
    c = m.c
    q = split(m, m.linear("self_attn.q_proj", x, c.num_attention_heads * c.head_dim, c.attention_bias), c.num_attention_heads, c.head_dim)
    k = split(m, m.linear("self_attn.k_proj", x, c.num_key_value_heads * c.head_dim, c.attention_bias), c.num_key_value_heads, c.head_dim)
    v = split(m, m.linear("self_attn.v_proj", x, c.num_key_value_heads * c.head_dim, c.attention_bias), c.num_key_value_heads, c.head_dim)
    rotated_q, rotated_k = rotated(q, positions), rotated(k, positions)
    q, k = rotated_q, rotated_k
    del rotated_q, rotated_k
    out = attention(m, q, k, v, mask)
    return m.linear("self_attn.o_proj", out, c.hidden_size, c.output_bias)


def mlp(m: Modules, x: Tensor) -> Tensor:
    """Gated feed-forward."""
    c = m.c
    gate = activation(m.linear("mlp.gate_proj", x, c.intermediate_size, c.mlp_bias), c.hidden_act)
    up = m.linear("mlp.up_proj", x, c.intermediate_size, c.mlp_bias)
    return m.linear("mlp.down_proj", mul(gate, up), c.hidden_size, c.mlp_bias)


def dims(config: Config) -> Dims:
    """LlamaConfig's fields and defaults."""
    heads = config.integer("num_attention_heads", default=32, high=4096)
    hidden = config.integer("hidden_size", default=4096)
    layers = config.integer("num_hidden_layers", default=32, high=2000)
    bias = config.boolean("attention_bias", default=False)
    return Dims(
        vocab_size=config.integer("vocab_size", default=32000),
        hidden_size=hidden,
        intermediate_size=config.integer("intermediate_size", default=11008),
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=config.integer("num_key_value_heads", default=heads, high=4096),
        head_dim=config.integer("head_dim", default=hidden // heads, high=65536),
        tie_word_embeddings=config.boolean("tie_word_embeddings", default=False),
        hidden_act=config.text("hidden_act", default="silu"),
        attention_bias=bias,
        output_bias=bias,
        mlp_bias=config.boolean("mlp_bias", default=False),
        kinds=("full",) * layers,
    )


FAMILIES = (
    Family(
        id="llama",
        types={"llama": "Llama"},
        dims=dims,
        body=body,
        source="transformers 5.24.0, models/llama/modeling_llama.py",
    ),
)
