"""Llama and everything that is built like it. Mirrors transformers 5.24.0 models/llama/modeling_llama.py."""

from __future__ import annotations

from calc.autograd.tensor import Tensor
from calc.model.activations import gated
from calc.model.attention import attention, split
from calc.model.config import Config
from calc.model.decoder import decoder, pre_norm, sizes
from calc.model.family import Dims, Family
from calc.model.modules import Modules
from calc.model.rotary import Rotation, rotated


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    return decoder(m, ids, block)


def block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """One decoder layer."""
    return pre_norm(m, x, self_attention, mlp, mask, positions)


def self_attention(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation | None) -> Tensor:
    """Grouped-query attention with rotary positions, or none."""
    c = m.c
    q = split(m, m.linear("self_attn.q_proj", x, c.num_attention_heads * c.head_dim, c.attention_bias), c.num_attention_heads, c.head_dim)
    k = split(m, m.linear("self_attn.k_proj", x, c.num_key_value_heads * c.head_dim, c.attention_bias), c.num_key_value_heads, c.head_dim)
    v = split(m, m.linear("self_attn.v_proj", x, c.num_key_value_heads * c.head_dim, c.attention_bias), c.num_key_value_heads, c.head_dim)
    if positions is not None:
        rotated_q, rotated_k = rotated(q, positions), rotated(k, positions)
        q, k = rotated_q, rotated_k
        del rotated_q, rotated_k
    out = attention(m, q, k, v, mask, dropout_p=c.attention_dropout, softcap=c.attn_logit_softcapping)
    return m.linear("self_attn.o_proj", out, c.hidden_size, c.output_bias)


def mlp(m: Modules, x: Tensor, name: str = "mlp", width: int | None = None) -> Tensor:
    """Gated feed-forward, as wide as the config's unless `width` says otherwise."""
    c = m.c
    width = c.intermediate_size if width is None else width
    product = gated(
        m,
        m.linear(f"{name}.gate_proj", x, width, c.mlp_bias),
        lambda: m.linear(f"{name}.up_proj", x, width, c.mlp_bias),
        c.hidden_act,
    )
    return m.linear(f"{name}.down_proj", product, c.hidden_size, c.mlp_bias)


def dims(config: Config) -> Dims:
    """LlamaConfig's fields and defaults."""
    bias = config.boolean("attention_bias", default=False)
    return Dims(
        **sizes(
            config,
            vocab_size=32000,
            hidden_size=4096,
            intermediate_size=11008,
            num_hidden_layers=32,
            num_attention_heads=32,
        ),
        attention_bias=bias,
        output_bias=bias,
        mlp_bias=config.boolean("mlp_bias", default=False),
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
