"""Rotary position embedding as the modelling code writes it."""

from __future__ import annotations

from typing import NamedTuple

from calc.autograd import fused
from calc.autograd.elementwise import add, cast, clone, mul, neg, scale
from calc.autograd.shapes import cat, part
from calc.autograd.tensor import Tensor, empty
from calc.model.modules import Modules


class Rotation(NamedTuple):
    """cos and sin for each position, (length, head_dim), in the dtype of the hidden states; and the positions themselves, which blocks
    get too and a checkpointed block keeps."""

    cos: Tensor
    sin: Tensor
    position_ids: Tensor | None
    in_place: bool = False
    """Turned by a kernel that writes over its input."""


def position_ids(m: Modules) -> Tensor:
    """0, 1, 2, ... for each token of a sequence."""
    counted = empty((m.length,), "i64", "arange")
    shifted = empty((m.length,), "i64", "add")
    del counted
    return shifted


def rotation(m: Modules, dtype: str, head_dim: int, ids: Tensor | None = None, *, doubled: bool = True) -> Rotation:
    """The rotation of each position of the sequence; `doubled` if each frequency stands in it twice."""
    ids = position_ids(m) if ids is None else ids
    positions = cast(ids, "fp32")
    frequencies = empty((m.length, head_dim // 2), "fp32", "mul")
    del positions
    table = empty((m.length, head_dim), "fp32", "cat") if doubled else frequencies
    cos = scale(empty(table.shape, "fp32", "cos"))
    sin = scale(empty(table.shape, "fp32", "sin"))
    return Rotation(cast(cos, dtype), cast(sin, dtype), ids, m.recipe.kernels.rotary)


def rotate_half(x: Tensor) -> Tensor:
    """The second half of the head, negated, before the first."""
    half = (*x.shape[:-1], x.shape[-1] // 2)
    x1 = part(x, half)
    x2 = part(x, half)
    return cat((neg(x2), x1), x.shape)


def rotated(x: Tensor, rotation: Rotation) -> Tensor:
    """x·cos + rotate_half(x)·sin."""
    cos, sin = rotation.cos, rotation.sin
    if rotation.in_place:
        return fused.rotary(x, cos, sin)
    return add(mul(x, cos), mul(rotate_half(x), sin))


def partly_rotated(x: Tensor, positions: Rotation) -> Tensor:
    """The first components of each head rotated, as many as the positions have; the others as they are."""
    if positions.in_place:  # a slice of a wider product, of which the kernel gets a copy
        return fused.rotary(clone(x), positions.cos, positions.sin)
    dim, rest = positions.cos.shape[-1], x.shape[-1] - positions.cos.shape[-1]
    turned = part(x, (*x.shape[:-1], dim))
    passed = part(x, (*x.shape[:-1], rest))
    return cat((rotated(turned, positions), passed), x.shape)
