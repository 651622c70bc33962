"""Normalisations as the modelling code writes them."""

from __future__ import annotations

from calc.autograd import fused
from calc.autograd.elementwise import add_broadcast, add_constant, cast, mean, mul, rsqrt, sqrt, square, sub_broadcast
from calc.autograd.elementwise import layer_norm as native_layer_norm
from calc.autograd.routing import divided
from calc.autograd.shapes import cat, split_heads
from calc.autograd.tensor import Shape, Tensor
from calc.model.modules import Modules


def _kernel(m: Modules, name: str, x: Tensor, *, apart: bool = False) -> Tensor:
    """One kernel in place of the operations below. Where it makes no gradient of the weight, the weight is not trained."""
    trained = None if m.recipe.kernels.trains_norm else False
    weight = m.weight(f"{name}.weight", (x.shape[-1],), "norm", trainable=trained)
    return fused.rms_norm(x, weight, apart=apart)


def rms_norm(m: Modules, name: str, x: Tensor) -> Tensor:
    """weight * normalised(x).to(dtype), as in Llama."""
    if m.recipe.kernels.norm:
        return _kernel(m, name, x)
    dtype = x.dtype
    weight = m.weight(f"{name}.weight", (x.shape[-1],), "norm")
    y = cast(x, "fp32")  # x itself is held by the call of the module
    variance = mean(square(y))
    y = mul(y, rsqrt(add_constant(variance)))
    y = mul(weight, cast(y, dtype))
    del variance  # a name of the frame, as in the original
    return y


def wide_rms_norm(m: Modules, name: str, x: Tensor, *, replaced: bool = True) -> Tensor:
    """(weight * normalised(x)).to(dtype), multiplied in fp32, as in OLMo 2. `replaced` where fused kernels take its place."""
    if m.recipe.kernels.norm and replaced:
        return _kernel(m, name, x, apart=True)
    dtype = x.dtype
    weight = m.weight(f"{name}.weight", (x.shape[-1],), "norm")
    y = cast(x, "fp32")
    variance = mean(square(y))
    y = mul(y, rsqrt(add_constant(variance)))
    y = cast(mul(weight, y), dtype)
    del variance
    return y


def gemma_rms_norm(m: Modules, name: str, x: Tensor, *, apart: bool = False) -> Tensor:
    """normalised(x) * (1 + weight) in fp32, then cast, as in Gemma. `apart` where the gradient that reaches a norm is needed once more."""
    if m.recipe.kernels.norm:
        return _kernel(m, name, x, apart=apart)
    weight = m.weight(f"{name}.weight", (x.shape[-1],), "norm")
    y = cast(x, "fp32")
    y = mul(y, rsqrt(add_constant(mean(square(y)))))
    y = mul(y, add_constant(cast(weight, "fp32")))
    return cast(y, x.dtype)


def power_rms_norm(m: Modules, name: str, x: Tensor, *, affine: bool = True) -> Tensor:
    """normalised(x) * weight in fp32, then cast, where the reciprocal root is written as a power, as in Gemma 4. Without `affine` there is no
    weight."""
    y = cast(x, "fp32")
    squared = add_constant(mean(square(y)))
    y = mul(y, square(squared))
    del squared
    if affine:
        y = mul(y, cast(m.weight(f"{name}.weight", (x.shape[-1],), "norm"), "fp32"))
    return cast(y, x.dtype)


def layer_norm(m: Modules, name: str, x: Tensor, *, bias: bool = True, affine: bool = True) -> Tensor:
    """nn.LayerNorm: one kernel; under autocast all that it is given is cast to fp32, from the last to the first."""
    weight: Tensor | None = m.weight(f"{name}.weight", (x.shape[-1],), "norm") if affine else None
    offset: Tensor | None = m.weight(f"{name}.bias", (x.shape[-1],), "norm") if affine and bias else None
    if m.recipe.autocast is not None:
        offset = None if offset is None else cast(offset, "fp32")
        weight = None if weight is None else cast(weight, "fp32")
        x = cast(x, "fp32")
    return native_layer_norm(x, weight, offset)


def mean_norm(m: Modules, name: str, x: Tensor, shape: Shape | None = None) -> Tensor:
    """A layer norm without bias written out in fp32, as in Cohere; `shape` of the weight if it is not the last axis."""
    weight = m.weight(f"{name}.weight", shape or (x.shape[-1],), "norm")
    y = cast(x, "fp32")
    average = mean(y)
    variance = mean(square(sub_broadcast(y, average)))
    y = mul(sub_broadcast(y, average), rsqrt(add_constant(variance)))
    y = mul(cast(weight, "fp32"), y)
    y = cast(y, x.dtype)
    del average, variance
    return y


def written_layer_norm(m: Modules, name: str, x: Tensor) -> Tensor:
    """A layer norm written out in fp32, its weight and bias after the cast back, as in DeBERTa's first version."""
    weight = m.weight(f"{name}.weight", (x.shape[-1],), "norm")
    offset = m.weight(f"{name}.bias", (x.shape[-1],), "bias")
    y = cast(x, "fp32")
    average = mean(y)
    variance = mean(square(sub_broadcast(y, average)))
    y = divided(sub_broadcast(y, average), sqrt(add_constant(variance)))
    y = cast(y, x.dtype)
    y = add_broadcast(mul(weight, y), offset)
    del average, variance
    return y


def layer_norm_per_head(m: Modules, name: str, x: Tensor) -> Tensor:
    """A layer norm of its own, without bias, for each head of (batch, heads, length, head_dim)."""
    normed = [layer_norm(m, f"{name}.norms.{i}", head, bias=False) for i, head in enumerate(split_heads(x))]
    return cat(normed, x.shape)


__all__ = [
    "gemma_rms_norm",
    "layer_norm",
    "layer_norm_per_head",
    "mean_norm",
    "power_rms_norm",
    "rms_norm",
    "wide_rms_norm",
    "written_layer_norm",
]
