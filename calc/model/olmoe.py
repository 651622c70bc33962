"""OLMoE: a norm over all heads of queries and keys, and experts in every layer. Mirrors transformers 5.24.0 models/olmoe/modeling_olmoe.py."""

from __future__ import annotations

from calc.autograd.elementwise import clamp_in_place
from calc.autograd.tensor import Tensor
from calc.model.attention import attention, split
from calc.model.config import Config
from calc.model.decoder import decoder, pre_norm, sizes
from calc.model.experts import MixtureDims, chosen, experts, router
from calc.model.family import Dims, Family
from calc.model.modules import Modules
from calc.model.norms import rms_norm
from calc.model.rotary import Rotation, rotated


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    return decoder(m, ids, block)


def block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """One decoder layer."""
    return pre_norm(m, x, self_attention, mixture, mask, positions)


def self_attention(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """Grouped-query attention with normed, perhaps clipped projections."""
    c = m.c
    q = rms_norm(
        m, "self_attn.q_norm", m.linear("self_attn.q_proj", x, c.num_attention_heads * c.head_dim, c.attention_bias)
    )
    k = rms_norm(
        m, "self_attn.k_norm", m.linear("self_attn.k_proj", x, c.num_key_value_heads * c.head_dim, c.attention_bias)
    )
    v = m.linear("self_attn.v_proj", x, c.num_key_value_heads * c.head_dim, c.attention_bias)
    if c.clip_qkv:
        q, k, v = clamp_in_place(q), clamp_in_place(k), clamp_in_place(v)
    q, k, v = (
        split(m, q, c.num_attention_heads, c.head_dim),
        split(m, k, c.num_key_value_heads, c.head_dim),
        split(m, v, c.num_key_value_heads, c.head_dim),
    )
    rotated_q, rotated_k = rotated(q, positions), rotated(k, positions)
    q, k = rotated_q, rotated_k
    del rotated_q, rotated_k
    out = attention(m, q, k, v, mask, dropout_p=c.attention_dropout)
    return m.linear("self_attn.o_proj", out, c.hidden_size, c.output_bias)


def mixture(m: Modules, x: Tensor) -> Tensor:
    """Router and experts."""
    routed = router(m, "mlp.gate", x)
    return experts(m, "mlp.experts", x, routed)


def dims(config: Config) -> Dims:
    """OlmoeConfig's fields and defaults."""
    common = sizes(
        config, vocab_size=50304, hidden_size=2048, intermediate_size=2048, num_hidden_layers=16, num_attention_heads=16,
    )  # fmt: skip
    bias = config.boolean("attention_bias", default=False)
    count, top = chosen(config, "num_experts", "num_local_experts", default=64, top=8)
    return MixtureDims(
        **common,
        attention_bias=bias,
        output_bias=bias,
        clip_qkv=config.given("clip_qkv") is not None,
        num_experts=count,
        num_experts_per_tok=top,
        moe_intermediate_size=common["intermediate_size"],
        norm_topk_prob=config.boolean("norm_topk_prob", default=False),
    )


FAMILIES = (
    Family(
        id="olmoe",
        types={"olmoe": "OLMoE"},
        dims=dims,
        body=body,
        source="transformers 5.24.0, models/olmoe/modeling_olmoe.py",
    ),
)
