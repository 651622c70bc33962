"""Adapters beside a linear layer, as PEFT's LoRA layers compute them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calc.autograd.elementwise import add, add_constant, cast, clone, dropout, mul, scale
from calc.autograd.linear import mm
from calc.autograd.tensor import Tensor, empty

if TYPE_CHECKING:
    from calc.model.modules import Modules
    from calc.model.recipe import Adapters


def targeted(name: str, targets: tuple[str, ...] | str) -> bool:
    """Whether PEFT's `target_modules` mean this layer."""
    if targets == "all-linear":
        return True
    if targets == "attention":
        return "attn" in name.split(".")[0] or "attention" in name
    return any(name == target or name.endswith("." + target) for target in targets)


def adapted(m: Modules, adapters: Adapters, name: str, x: Tensor, out: int, bias: bool, transposed: bool) -> Tensor:
    """The layer's result plus the adapter's."""
    first = m.weight(f"{name}.lora_A.weight", (adapters.rank, x.shape[-1]), "adapter", dtype=adapters.dtype, trainable=True)
    second = m.weight(f"{name}.lora_B.weight", (out, adapters.rank), "adapter", dtype=adapters.dtype, trainable=True)
    result = m.base_linear(name, x, out, bias, transposed)
    if m.recipe.quantized is not None:
        return _beside_quantized(m, adapters, name, x, result, first, second)
    dtype = result.dtype
    x = cast(x, adapters.dtype)
    if adapters.dora:
        result = add(result, _dora(m, adapters, name, x, result, first, second))
    else:
        result = add(result, scale(m.product(m.product(dropout(x, adapters.dropout), first), second)))
    return cast(result, dtype)


def _beside_quantized(
    m: Modules, adapters: Adapters, name: str, x: Tensor, result: Tensor, first: Tensor, second: Tensor
) -> Tensor:
    """lora.bnb.Linear4bit and Linear8bitLt: the 4-bit one copies the result first; dtypes are converted unless under autocast."""
    assert m.recipe.quantized is not None
    if m.recipe.quantized.format != "int8":
        result = clone(result)
    expected, converts = result.dtype, m.recipe.autocast is None
    if converts:
        x = cast(x, adapters.dtype)
    if adapters.dora:
        result = add(result, _dora(m, adapters, name, x, result, first, second))
        return cast(result, expected) if converts else result
    output = scale(m.product(m.product(dropout(x, adapters.dropout), first), second))
    if converts:
        output = cast(output, expected)
    return add(result, output)


def _dora(m: Modules, adapters: Adapters, name: str, x: Tensor, result: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """DoraLinearLayer.forward: the adapter's whole matrix by way of an identity, the norm of base plus adapter, and the rescaled sum."""
    columns, (out, rank) = x.shape[-1], second.shape
    magnitude = m.weight(f"{name}.lora_magnitude_vector.weight", (out,), "adapter", dtype=adapters.dtype, trainable=True)
    base = m.weights[(m.block, f"{name}.base_layer.weight")]
    base_result: Tensor | None = result
    if adapters.dropout > 0:
        x = dropout(x, adapters.dropout)
        base_result = None
    identity = empty((columns, columns), adapters.dtype, "eye")
    matrix = m.product(m.product(identity, first), second)
    del identity
    matrix = cast(matrix, x.dtype)
    weight = base
    if m.recipe.quantized is not None:
        weight = empty((out, columns), m.recipe.quantized.compute, "dequantised weight")
    weight = cast(weight, x.dtype)
    scaled = empty((out, columns), x.dtype, "mul")
    total = empty((out, columns), x.dtype, "add")
    norm = empty((out,), x.dtype, "norm")
    del scaled, total
    magnified = mul(magnitude, norm)
    del norm
    lora_result = m.product(m.product(x, first), second)
    if base_result is None:
        base_result = mm(x, weight) if m.recipe.autocast is None else m.product(x, weight)
    return add(mul(add_constant(magnified), base_result), scale(mul(magnified, lora_result)))
