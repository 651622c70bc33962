"""Normalisations as the modelling code writes them."""

from __future__ import annotations

from calc.autograd.elementwise import add_constant, cast, layer_norm as native_layer_norm, mean, mul, rsqrt, scale, square
from calc.autograd.tensor import Tensor
from calc.model.modules import Modules


def _normalized(x: Tensor) -> Tensor:
    """x in fp32 times the reciprocal root of its mean square."""
    variance = mean(square(x))
    return mul(x, rsqrt(add_constant(variance)))


def rms_norm(m: Modules, name: str, x: Tensor) -> Tensor:
    """weight * normalised(x).to(dtype), as in Llama."""
    dtype = x.dtype
    weight = m.weight(f"{name}.weight", (x.shape[-1],), "norm")
    x = cast(x, "fp32")
    x = _normalized(x)
    return mul(weight, cast(x, dtype))


def gemma_rms_norm(m: Modules, name: str, x: Tensor) -> Tensor:
    """normalised(x) * (1 + weight) in fp32, then cast, as in Gemma."""
    weight = m.weight(f"{name}.weight", (x.shape[-1],), "norm")
    dtype = x.dtype
    y = _normalized(cast(x, "fp32"))
    y = mul(y, add_constant(cast(weight, "fp32")))
    return cast(y, dtype)


def layer_norm(m: Modules, name: str, x: Tensor, *, bias: bool = True, affine: bool = True) -> Tensor:
    """nn.LayerNorm: one kernel; under autocast it works in fp32."""
    weight = m.weight(f"{name}.weight", (x.shape[-1],), "norm") if affine else None
    offset = m.weight(f"{name}.bias", (x.shape[-1],), "norm") if affine and bias else None
    if m.recipe.autocast is not None:
        x = cast(x, "fp32")
    return native_layer_norm(x, weight, offset)


__all__ = ["gemma_rms_norm", "layer_norm", "rms_norm", "scale"]
