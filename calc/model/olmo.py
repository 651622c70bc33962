"""OLMo: norms without weights, rotation in fp32. Mirrors transformers 5.24.0 models/olmo/modeling_olmo.py."""

from __future__ import annotations

from dataclasses import dataclass

from calc.autograd.elementwise import cast, clamp_in_place, layer_norm
from calc.autograd.tensor import Tensor
from calc.model.attention import attention, split
from calc.model.config import Config
from calc.model.decoder import decoder, pre_norm, sizes
from calc.model.family import Dims, Family
from calc.model.llama import mlp
from calc.model.modules import Modules
from calc.model.rotary import Rotation, rotated


@dataclass(frozen=True)
class OlmoDims(Dims):
    """Sizes, and whether queries, keys and values are clamped."""

    clip_qkv: bool = False


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    return decoder(m, ids, block, norm=plain_norm, rotary_dtype="fp32")


def plain_norm(m: Modules, name: str, x: Tensor) -> Tensor:
    """Layer norm in fp32 without weight and bias."""
    return cast(layer_norm(cast(x, "fp32"), None, None), x.dtype)


def block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """One decoder layer."""
    return pre_norm(m, x, self_attention, mlp, mask, positions, norm=plain_norm)


def self_attention(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """Grouped-query attention; queries, keys and values may be clamped."""
    c = m.c
    q = m.linear("self_attn.q_proj", x, c.num_attention_heads * c.head_dim, c.attention_bias)
    k = m.linear("self_attn.k_proj", x, c.num_key_value_heads * c.head_dim, c.attention_bias)
    v = m.linear("self_attn.v_proj", x, c.num_key_value_heads * c.head_dim, c.attention_bias)
    if c.clip_qkv:
        q, k, v = clamp_in_place(q), clamp_in_place(k), clamp_in_place(v)
    q = split(m, q, c.num_attention_heads, c.head_dim)
    k = split(m, k, c.num_key_value_heads, c.head_dim)
    v = split(m, v, c.num_key_value_heads, c.head_dim)
    q, k = rotated_in_fp32(q, k, positions)
    out = attention(m, q, k, v, mask, dropout_p=c.attention_dropout)
    return m.linear("self_attn.o_proj", out, c.hidden_size, c.output_bias)


def rotated_in_fp32(q: Tensor, k: Tensor, positions: Rotation) -> tuple[Tensor, Tensor]:
    """Queries and keys rotated by fp32 positions, and cast back when both are done."""
    wide_q, wide_k = rotated(q, positions), rotated(k, positions)
    return cast(wide_q, q.dtype), cast(wide_k, k.dtype)


def dims(config: Config) -> Dims:
    """OlmoConfig's fields and defaults."""
    bias = config.boolean("attention_bias", default=False)
    return OlmoDims(
        **sizes(
            config,
            vocab_size=50304,
            hidden_size=4096,
            intermediate_size=11008,
            num_hidden_layers=32,
            num_attention_heads=32,
        ),
        attention_bias=bias,
        output_bias=bias,
        clip_qkv=config.given("clip_qkv") is not None and config.number("clip_qkv") is not None,
    )


FAMILIES = (
    Family(
        id="olmo",
        types={"olmo": "OLMo"},
        dims=dims,
        body=body,
        source="transformers 5.24.0, models/olmo/modeling_olmo.py",
    ),
)
