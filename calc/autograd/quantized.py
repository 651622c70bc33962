"""Products with a weight that is stored in 4 or 8 bits and unpacked when it is used, as bitsandbytes does them."""

from __future__ import annotations

from calc.autograd.tensor import Shape, Tensor, empty, record

BLOCK = 64
"""Weights that share a scale."""


def packed4_mm(x: Tensor, shape: Shape, *, nested: bool, bias: Tensor | None = None) -> Tensor:
    """x (rows, in) times a 4-bit weight (out, in): MatMul4Bit.

    Keeps no input. In both directions the whole weight is unpacked in x's dtype for as long as the product takes; with quantised
    scales they are unpacked first, in fp32 and once more with their offset.
    """
    rows, columns = x.shape
    dtype = x.dtype
    blocks = (-(-(shape[0] * shape[1]) // BLOCK),)

    def backward(g: Tensor) -> tuple[Tensor | None, ...]:
        if nested:
            _scales = empty(blocks, "fp32", "dequantised scales")
        weight = empty(shape, dtype, "dequantised weight")
        gx = empty((rows, columns), dtype, "mm input gradient")
        del weight
        return (gx, None) if bias is not None else (gx,)

    inputs = (x,) if bias is None else (x, bias)
    held = [empty(blocks, "fp32", "dequantised scales") for _ in range(2 if nested else 0)]
    weight = empty(shape, dtype, "dequantised weight")
    y = record("gemm_4bit", (rows, shape[0]), dtype, inputs, backward)
    del weight, held
    return y


def int8_mm(x: Tensor, shape: Shape, *, bias: Tensor | None = None) -> Tensor:
    """x (rows, in) times an int8 weight (out, in): MatMul8bitLt with its outlier threshold.

    Keeps its input on the function itself, out of reach of gradient checkpointing. The product is an int32 of the output's shape; the
    backward unpacks the whole weight.
    """
    rows, columns = x.shape
    dtype = x.dtype

    def backward(g: Tensor) -> tuple[Tensor | None, ...]:
        weight = empty(shape, dtype, "dequantised weight")
        by_row = empty(shape[:1], "fp32", "mul")
        del by_row
        gx = empty((rows, columns), dtype, "mm input gradient")
        del weight
        return (gx, None) if bias is not None else (gx,)

    inputs = (x,) if bias is None else (x, bias)
    half = empty((rows, columns), "fp16", "int8 cast") if dtype != "fp16" else None
    scale = empty((rows,), "fp32", "int8 input scales")
    packed = empty((rows, columns), "u8", "int8 input")
    sizes = empty((rows, columns), "fp16", "abs")
    outliers = empty((rows, columns), "bool", "ge")
    del sizes
    some = empty((1,), "bool", "any")
    del some, outliers, half
    product = empty((rows, shape[0]), "i32", "int8 product")
    scaled = empty((rows, shape[0]), "fp16", "int8_scaled_mm") if dtype != "fp16" else None
    y = record("int8_scaled_mm", (rows, shape[0]), dtype, inputs, backward, pinned=(x.storage,))
    del product, scaled, packed, scale
    return y
