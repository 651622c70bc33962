"""ERNIE 4.5, dense: Llama with every second component rotated, in fp32. Mirrors transformers 5.24.0 models/ernie4_5/modeling_ernie4_5.py."""

from __future__ import annotations

from calc.autograd.elementwise import add, cast, mul
from calc.autograd.tensor import Tensor, empty
from calc.model.attention import attention
from calc.model.config import Config
from calc.model.decoder import decoder, pre_norm, sizes
from calc.model.family import Dims, Family
from calc.model.llama import mlp, queries_keys_values
from calc.model.modules import Modules
from calc.model.rotary import Rotation, rotate_half


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    return decoder(m, ids, block, rotary_dtype="fp32")


def block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """One decoder layer."""
    return pre_norm(m, x, self_attention, mlp, mask, positions)


def self_attention(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """Grouped-query attention."""
    c = m.c
    q, k, v = queries_keys_values(m, x)
    q, k = rotated_in_fp32_pairs(q, k, positions)
    out = attention(m, q, k, v, mask, dropout_p=c.attention_dropout)
    return m.linear("self_attn.o_proj", out, c.hidden_size, c.output_bias)


def rotated_in_fp32_pairs(q: Tensor, k: Tensor, positions: Rotation) -> tuple[Tensor, Tensor]:
    """Queries and keys rotated in fp32 by tables that are repeated for this layer, and cast back when both are done."""
    cos = empty(positions.cos.shape, positions.cos.dtype, "repeat_interleave")
    sin = empty(positions.sin.shape, positions.sin.dtype, "repeat_interleave")
    wide_q, wide_k = _turned(q, cos, sin), _turned(k, cos, sin)
    return cast(wide_q, q.dtype), cast(wide_k, k.dtype)


def _turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    return add(mul(cast(x, "fp32"), cos), mul(cast(rotate_half(x), "fp32"), sin))


def dims(config: Config) -> Dims:
    """Ernie4_5Config's fields and defaults."""
    bias = config.boolean("use_bias", default=False)
    common = sizes(
        config,
        vocab_size=103424,
        hidden_size=1024,
        intermediate_size=3072,
        num_hidden_layers=18,
        num_attention_heads=16,
        num_key_value_heads=2,
        head_dim=128,
        tie_word_embeddings=True,
    )
    return Dims(**{**common, "attention_dropout": 0.0}, attention_bias=bias, output_bias=bias, mlp_bias=bias)


FAMILIES = (
    Family(
        id="ernie4_5",
        types={"ernie4_5": "ERNIE 4.5"},
        dims=dims,
        body=body,
        source="transformers 5.24.0, models/ernie4_5/modeling_ernie4_5.py",
    ),
)
