"""Adapters beside a linear layer, as PEFT's LoRA layers compute them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calc.autograd.elementwise import add, add_constant, cast, clone, dropout, mul, scale
from calc.autograd.fused_adapters import Pair, adapted_together
from calc.autograd.linear import mm
from calc.autograd.tensor import Shape, Tensor, empty
from calc.model.parameters import Parameter, Role

if TYPE_CHECKING:
    from calc.model.modules import Modules
    from calc.model.recipe import Adapters


WITHOUT_ADAPTER = frozenset(("falcon_h1", "falcon_mamba", "mamba", "mamba2", "nemotron_h"))
"""Model types whose layer `out_proj` (and the convolution `conv1d`) PEFT refuses to put an adapter on: Mamba's kernels read the matrix and
pass the adapter by. PEFT 0.21.2, tuners_utils.py."""


def targeted(name: str, targets: tuple[str, ...] | str) -> bool:
    """Whether PEFT's `target_modules` mean this layer."""
    if targets == "all-linear":
        return True
    if targets == "attention":
        return "attn" in name.split(".")[0] or "attention" in name.lower()
    return any(name == target or name.endswith("." + target) for target in targets)


def layer_of(p: Parameter) -> str | None:
    """The path within its block of the linear layer whose matrix this is: self_attn.q_proj. None for what is no such matrix.

    PEFT and bitsandbytes replace linear layers; stacked experts are bare parameters.
    """
    if p.role not in ("linear", "expert") or len(p.shape) != 2 or not p.name.endswith(".weight"):
        return None
    return p.name.removesuffix(".weight").rpartition(".*.")[2]


def read_directly(m: Modules, name: str, shape: Shape, role: Role = "linear") -> Tensor:
    """The matrix (out, in) of a linear layer that the class reads itself: an adapter beside the layer stands by, and gets no gradient."""
    adapters = m.recipe.adapters
    if adapters is not None and targeted(name, adapters.targets):
        before, m.apart = m.apart, True
        for factor, size in (("lora_A", (adapters.rank, shape[1])), ("lora_B", (shape[0], adapters.rank))):
            m.weight(f"{name}.{factor}.weight", size, "adapter", dtype=adapters.dtype, trainable=True)
        m.apart = before
    return m.weight(f"{name}.weight", shape, role)


def adapted(m: Modules, adapters: Adapters, name: str, x: Tensor, out: int, bias: bool, transposed: bool) -> Tensor:
    """The layer's result plus the adapter's."""
    first = m.weight(
        f"{name}.lora_A.weight", (adapters.rank, x.shape[-1]), "adapter", dtype=adapters.dtype, trainable=True
    )
    second = m.weight(f"{name}.lora_B.weight", (out, adapters.rank), "adapter", dtype=adapters.dtype, trainable=True)
    if m.recipe.quantized is not None:
        return _beside_quantized(m, adapters, name, x, m.base_linear(name, x, out, bias, transposed), first, second)
    result = m.base_linear(name, x, out, bias, transposed)
    dtype = result.dtype
    x = cast(x, adapters.dtype)
    if adapters.dora:
        result = add(result, _dora(m, adapters, name, x, result, first, second))
    else:
        result = add(result, scale(m.product(m.product(dropout(x, adapters.dropout), first), second)))
    return cast(result, dtype)


QUERY, KEY, VALUE, OUTPUT = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj")


def fused(m: Modules, adapters: Adapters, name: str, x: Tensor, out: int, bias: bool) -> Tensor | None:
    """The layer where kernels do adapters of a 4-bit base in one function, or None where they leave it alone.

    Those of q, k and v are computed together when q is asked for, if all three have one; the output projection's is one of its own.
    """
    if not m.recipe.kernels.adapters or m.recipe.quantized is None or m.recipe.quantized.format == "int8":
        return None
    if name in m.waiting:
        return m.waiting.pop(name)
    if name == OUTPUT:
        return adapted_together(
            x, [_pair(m, adapters, name, x, out, bias)], dropout=adapters.dropout > 0, in_place=False
        )[0]
    if name != QUERY or not all(targeted(other, adapters.targets) for other in (KEY, VALUE)):
        return None
    narrow = m.c.num_key_value_heads * m.c.head_dim
    pairs = [_pair(m, adapters, n, x, width, bias) for n, width in ((QUERY, out), (KEY, narrow), (VALUE, narrow))]
    q, k, v = adapted_together(x, pairs, dropout=adapters.dropout > 0)
    m.waiting.update({KEY: k, VALUE: v})
    return q


def _pair(m: Modules, adapters: Adapters, name: str, x: Tensor, out: int, bias: bool) -> Pair:
    """The adapter of a layer, and the layer's own weights noted."""
    assert m.recipe.quantized is not None
    columns = x.shape[-1]
    m.weight(f"{name}.base_layer.weight", (out, columns), "linear", dtype=m.recipe.quantized.dtype, trainable=False)
    if bias:
        m.weight(f"{name}.base_layer.bias", (out,), "bias")
    return Pair(
        m.weight(f"{name}.lora_A.weight", (adapters.rank, columns), "adapter", dtype=adapters.dtype, trainable=True),
        m.weight(f"{name}.lora_B.weight", (out, adapters.rank), "adapter", dtype=adapters.dtype, trainable=True),
    )


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


def _dora(
    m: Modules, adapters: Adapters, name: str, x: Tensor, result: Tensor, first: Tensor, second: Tensor
) -> Tensor:
    """DoraLinearLayer.forward: the adapter's whole matrix by way of an identity, the norm of base plus adapter, and the rescaled sum."""
    columns, (out, rank) = x.shape[-1], second.shape
    magnitude = m.weight(
        f"{name}.lora_magnitude_vector.weight", (out,), "adapter", dtype=adapters.dtype, trainable=True
    )
    base = m.weights[(m.block, f"{name}.base_layer.weight")]
    base_result: Tensor | None = result
    if adapters.dropout > 0:
        x = dropout(x, adapters.dropout)
        base_result = None
    identity = empty((columns, columns), adapters.dtype, "eye")
    matrix = m.product(m.product(identity, first), second)
    del identity
    matrix = cast(matrix, x.dtype)
    weight: Tensor = base
    if m.recipe.quantized is not None:
        weight = empty((out, columns), m.recipe.quantized.compute, "dequantised weight")
    weight = cast(weight, x.dtype)
    scaled = empty((out, columns), x.dtype, "mul")
    total = empty((out, columns), x.dtype, "add")
    del scaled
    norm = empty((out,), x.dtype, "norm")
    del total
    magnified = mul(magnitude, norm)
    del norm
    lora_result = m.product(m.product(x, first), second)
    if base_result is None:
        base_result = mm(x, weight) if m.recipe.autocast is None else m.product(x, weight)
    return add(mul(add_constant(magnified), base_result), scale(mul(magnified, lora_result)))
