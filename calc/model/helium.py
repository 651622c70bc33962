"""Helium: Llama with every second component rotated and norms multiplied in fp32. Mirrors transformers 5.24.0 models/helium/modeling_helium.py."""

from __future__ import annotations

from calc.autograd.elementwise import add_constant, cast, mean, mul, rsqrt, square
from calc.autograd.tensor import Tensor, empty
from calc.model.attention import attention
from calc.model.config import Config
from calc.model.decoder import decoder, pre_norm, sizes
from calc.model.family import Dims, Family
from calc.model.llama import mlp, queries_keys_values
from calc.model.modules import Modules
from calc.model.rotary import Rotation, rotated


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    return decoder(m, ids, block, norm=norm)


def norm(m: Modules, name: str, x: Tensor) -> Tensor:
    """(weight in fp32 * normalised(x)).to(dtype)."""
    weight = m.weight(f"{name}.weight", (x.shape[-1],), "norm")
    y = cast(x, "fp32")
    variance = mean(square(y))
    y = mul(y, rsqrt(add_constant(variance)))
    y = cast(mul(cast(weight, "fp32"), y), x.dtype)
    del variance
    return y


def block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """One decoder layer."""
    return pre_norm(m, x, self_attention, mlp, mask, positions, norm=norm)


def self_attention(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """Grouped-query attention; cos and sin are repeated for this layer."""
    c = m.c
    q, k, v = queries_keys_values(m, x)
    q, k = _rotated(q, k, positions)
    out = attention(m, q, k, v, mask, dropout_p=c.attention_dropout)
    return m.linear("self_attn.o_proj", out, c.hidden_size)


def _rotated(q: Tensor, k: Tensor, positions: Rotation) -> tuple[Tensor, Tensor]:
    cos = empty(positions.cos.shape, positions.cos.dtype, "repeat_interleave")
    sin = empty(positions.sin.shape, positions.sin.dtype, "repeat_interleave")
    repeated = Rotation(cos, sin, None)
    return rotated(q, repeated), rotated(k, repeated)


def dims(config: Config) -> Dims:
    """HeliumConfig's fields and defaults."""
    return Dims(
        **sizes(
            config,
            vocab_size=48000,
            hidden_size=2560,
            intermediate_size=7040,
            num_hidden_layers=24,
            num_attention_heads=20,
            num_key_value_heads=20,
            head_dim=128,
        ),
        attention_bias=config.boolean("attention_bias", default=False),
        mlp_bias=config.boolean("mlp_bias", default=False),
    )


FAMILIES = (
    Family(
        id="helium",
        types={"helium": "Helium"},
        dims=dims,
        body=body,
        source="transformers 5.24.0, models/helium/modeling_helium.py",
    ),
)
