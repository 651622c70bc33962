"""Multi-head latent attention: keys and values are expanded from one narrow latent per token, and only a part of each head is rotated.

Mirrors transformers 5.24.0 models/deepseek_v3/modeling_deepseek_v3.py and models/deepseek_v2/modeling_deepseek_v2.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from calc.autograd.elementwise import add, cast, complex_mul, mul, scale, sub
from calc.autograd.shapes import cat, copy_into, expand, part, reshape
from calc.autograd.shapes import split as split_last
from calc.autograd.tensor import Tensor, empty
from calc.model.attention import attention, split
from calc.model.config import Config
from calc.model.experts import MixtureDims
from calc.model.modules import Modules
from calc.model.norms import rms_norm
from calc.model.rotary import Rotation, position_ids, rotated


@dataclass(frozen=True)
class LatentDims(MixtureDims):
    """Sizes of latent attention."""

    q_lora_rank: int | None = None
    """Width of the latent that queries are expanded from; None for one plain projection."""
    kv_lora_rank: int = 0
    qk_nope_head_dim: int = 0
    qk_rope_head_dim: int = 0
    v_head_dim: int = 0
    rope_interleave: bool = True
    latent_bias: bool = False
    """Bias of the projections down to the latents, and of the one after attention."""


Turn = Callable[[Tensor, Tensor, Rotation], tuple[Tensor, Tensor]]
"""How the rotated parts of queries and keys are turned."""


def interleaved(q: Tensor, k: Tensor, positions: Rotation) -> tuple[Tensor, Tensor]:
    """Even and odd components of each head as pairs."""
    shape = positions.cos.shape
    cos, sin = part(positions.cos, (*shape[:-1], shape[-1] // 2)), part(positions.sin, (*shape[:-1], shape[-1] // 2))
    half_q, half_k = (*q.shape[:-1], q.shape[-1] // 2), (*k.shape[:-1], k.shape[-1] // 2)
    q1, q2 = part(q, half_q), part(q, half_q)
    k1, k2 = part(k, half_k), part(k, half_k)
    turned_q = cat((sub(mul(q1, cos), mul(q2, sin)), add(mul(q2, cos), mul(q1, sin))), q.shape)
    turned_k = cat((sub(mul(k1, cos), mul(k2, sin)), add(mul(k2, cos), mul(k1, sin))), k.shape)
    return turned_q, turned_k


def halves(q: Tensor, k: Tensor, positions: Rotation) -> tuple[Tensor, Tensor]:
    """The two halves of each head as pairs, as in Llama."""
    return rotated(q, positions), rotated(k, positions)


def as_complex(q: Tensor, k: Tensor, positions: Rotation) -> tuple[Tensor, Tensor]:
    """Pairs as complex numbers, each times one of unit length."""
    wide_q, wide_k = cast(q, "fp32"), cast(k, "fp32")
    turned_q = cast(complex_mul(wide_q, positions.cos, sliced=True), q.dtype)
    turned_k = cast(complex_mul(wide_k, positions.cos, sliced=True), k.dtype)
    del wide_q, wide_k
    return turned_q, turned_k


def complex_rotation(m: Modules, dtype: str, head_dim: int) -> Rotation:
    """A complex number of unit length for each position and pair, in fp32: (length, head_dim) numbers."""
    ids = position_ids(m)
    positions = cast(ids, "fp32")
    frequencies = empty((m.length, head_dim // 2), "fp32", "mul")
    del positions
    ones = empty((m.length, head_dim // 2), "fp32", "ones_like")
    polar = empty((m.length, head_dim), "fp32", "polar")
    del ones
    scaled = scale(polar)
    return Rotation(scaled, scaled, ids)


def latent_attention(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation, *, turn: Turn) -> Tensor:
    """Queries from a latent or plainly, keys and values from one latent; all heads share the rotated part of the key."""
    c = m.c
    heads, nope, rope = c.num_attention_heads, c.qk_nope_head_dim, c.qk_rope_head_dim
    if c.q_lora_rank is None:
        q = m.linear("self_attn.q_proj", x, heads * (nope + rope))
    else:
        q = rms_norm(m, "self_attn.q_a_layernorm", m.linear("self_attn.q_a_proj", x, c.q_lora_rank, c.latent_bias))
        q = m.linear("self_attn.q_b_proj", q, heads * (nope + rope))
    q = split(m, q, heads, nope + rope)
    q_pass, q_rot = split_last(q, (nope, rope))
    compressed = m.linear("self_attn.kv_a_proj_with_mqa", x, c.kv_lora_rank + rope, c.latent_bias)
    latent, k_rot = split_last(compressed, (c.kv_lora_rank, rope))
    latent = rms_norm(m, "self_attn.kv_a_layernorm", latent)
    k_rot = reshape(k_rot, (m.batch, 1, m.length, rope))
    q_rot, k_rot = turn(q_rot, k_rot, positions)
    query = cat((q_pass, q_rot), (m.batch, heads, m.length, nope + rope))
    key, value = _expanded(m, latent, k_rot)
    out = attention(m, query, key, value, mask, dropout_p=c.attention_dropout)
    out = m.linear("self_attn.o_proj", out, c.hidden_size, c.latent_bias)
    del q, compressed, q_pass, q_rot, latent, k_rot
    return out


def _expanded(m: Modules, latent: Tensor, k_rot: Tensor) -> tuple[Tensor, Tensor]:
    """Keys (batch, heads, length, nope + rope), written piece by piece, and values, a view."""
    c = m.c
    heads, nope, rope, width = c.num_attention_heads, c.qk_nope_head_dim, c.qk_rope_head_dim, c.v_head_dim
    both = split(m, m.linear("self_attn.kv_b_proj", latent, heads * (nope + width)), heads, nope + width)
    k_nope, value = split_last(both, (nope, width))
    key = empty((m.batch, heads, m.length, nope + rope), both.dtype, "new_empty", True)
    key = copy_into(key, k_nope)
    key = copy_into(key, expand(k_rot, (m.batch, heads, m.length, rope)))
    return key, value


def latent_sizes(
    config: Config,
    *,
    q_lora_rank: int | None,
    kv_lora_rank: int = 512,
    nope: int = 128,
    rope: int = 64,
    value: int = 128,
) -> dict[str, Any]:
    """The fields of latent attention; each argument is the class's default. A null q_lora_rank means one plain projection."""
    rope = config.integer("qk_rope_head_dim", default=rope, high=65536)
    return {
        "q_lora_rank": None
        if config.null("q_lora_rank")
        else config.integer("q_lora_rank", default=q_lora_rank, high=10**6),
        "kv_lora_rank": config.integer("kv_lora_rank", default=kv_lora_rank, high=10**6),
        "qk_nope_head_dim": config.integer("qk_nope_head_dim", default=nope, high=65536),
        "qk_rope_head_dim": rope,
        "v_head_dim": config.integer("v_head_dim", default=value, high=65536),
        "head_dim": rope,
    }


interleaved_attention = partial(latent_attention, turn=interleaved)
halved_attention = partial(latent_attention, turn=halves)
complex_attention = partial(latent_attention, turn=as_complex)
