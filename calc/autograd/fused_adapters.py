"""Adapters beside 4-bit layers as one function each, as fms-acceleration-foak carries them from Unsloth (fused_ops/unsloth_lora/bnb/fast_lora.py).

The base weight is unpacked for each product; the layer's input and, with dropout, each adapter's own dropped copy are kept, though the backward
writes the gradient of the input over the input itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from calc.autograd.quantized import BLOCK
from calc.autograd.storage import Storage
from calc.autograd.tensor import Tensor, empty, record


@dataclass(frozen=True, slots=True)
class Pair:
    """The two matrices of one adapter: (rank, in) and (out, rank)."""

    first: Tensor
    second: Tensor


def _unpacked(out: int, columns: int, dtype: str) -> Tensor:
    """The base weight in 16 bits; its scales are unpacked in fp32 and let go."""
    weight = empty((out, columns), dtype, "dequantised weight")
    scales = empty((-(-(out * columns) // BLOCK),), "fp32", "dequantised scales")
    del scales
    return weight


def _forward(x: Tensor, pair: Pair, dropout: bool) -> tuple[Tensor, Tensor]:
    """matmul_lora: the layer's result with the adapter's added in place, and the adapter's own input."""
    rows, columns = x.shape
    rank, out, dtype = pair.first.shape[0], pair.second.shape[0], x.dtype
    weight = _unpacked(out, columns, dtype)
    y = empty((rows, out), dtype, "mm")
    del weight
    dropped = x
    if dropout:
        dropped = empty((rows, columns), dtype, "native_dropout")
        mask = empty((rows, columns), "bool", "dropout mask")
        del mask
    first = empty((rank, columns), dtype, "cast")
    narrow = empty((rows, rank), dtype, "mm")
    second = empty((out, rank), dtype, "cast")
    scaled = empty((out, rank), dtype, "mul")
    wide = empty((rows, out), dtype, "mm")
    del first, narrow, second, scaled, wide
    return y, dropped


def _adapter_gradients(rows: int, pair: Pair, dtype: str) -> tuple[Tensor, Tensor]:
    """Of both matrices, in 16 bits; autograd casts them."""
    rank, columns = pair.first.shape
    out = pair.second.shape[0]
    narrow = empty((rows, rank), dtype, "mm")
    first = empty((columns, rank), dtype, "mm adapter gradient")
    del narrow
    narrow = empty((rank, rows), dtype, "mm")
    second = empty((rank, out), dtype, "mm adapter gradient")
    del narrow
    return first, second


def _masked(rows: int, pair: Pair, dtype: str) -> None:
    """What the adapter adds to the input's gradient: where its input was not dropped, the product of its two matrices with the gradient."""
    rank, columns = pair.first.shape
    kept = empty((rows, columns), "bool", "ne")
    narrow = empty((rows, rank), dtype, "mm")
    wide = empty((rows, columns), dtype, "mm")
    del narrow
    masked = empty((rows, columns), dtype, "mul")
    del kept, wide, masked


def adapted_together(x: Tensor, pairs: Sequence[Pair], *, dropout: bool, in_place: bool = True) -> tuple[Tensor, ...]:
    """LoRA_QKV, or LoRA_W for one layer: layers that share the input x (rows, in), each with its adapter; the results in order.

    With `in_place` the gradient of x is written over x.
    """
    (rows, columns), dtype = x.shape, x.dtype
    results: list[Tensor] = []
    inputs: list[Tensor] = []
    for pair in pairs:
        y, dropped = _forward(x, pair, dropout)
        results.append(y)
        inputs.append(dropped)

    def backward(saved: tuple[Storage, ...], *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        made: list[Tensor | None] = []
        for pair in pairs:
            made.extend(_adapter_gradients(rows, pair, dtype))
        gx = Tensor((rows, columns), dtype, saved[0]) if in_place else None
        for pair in pairs:
            weight = _unpacked(pair.second.shape[0], columns, dtype)
            part = None
            if gx is None:
                gx = empty((rows, columns), dtype, "mm input gradient")
            elif made and pair is not pairs[0]:
                part = empty((rows, columns), dtype, "mm input gradient")
            del weight, part
            _masked(rows, pair, dtype)
        return (gx, *made)

    matrices = [matrix for pair in pairs for matrix in (pair.first, pair.second)]
    kept = [x.storage, *[t.storage for t in inputs]]
    first = record(
        "fused adapters",
        results[0].shape,
        dtype,
        (x, *matrices),
        backward,
        kept,
        result=results[0].storage,
        takes_saved=True,
    )
    others = results[1:]
    if first.requires_grad:
        if first.node is not None:
            first.node.grads = [None] * len(results)
        for slot, y in enumerate(others, 1):
            y.node, y.slot, y.requires_grad = first.node, slot, True
    return (first, *others)
