"""What a recurrence is made of when it is computed in chunks: running sums, padding behind the last token, contractions of several axes."""

from __future__ import annotations

from calc.autograd.elementwise import masked_fill
from calc.autograd.shapes import expand, reshape
from calc.autograd.tensor import Broad, Shape, Tensor, empty, record


def cumsum(x: Tensor) -> Tensor:
    """Running sum along an axis: saves nothing; the backward turns the gradient round, sums, and turns it back."""
    shape, dtype = x.shape, x.dtype

    def backward(g: Tensor) -> tuple[Tensor]:
        turned = empty(shape, dtype, "flip")
        summed = empty(shape, dtype, "cumsum")
        result = empty(shape, dtype, "flip")
        del turned, summed
        return (result,)

    return record("cumsum", shape, dtype, (x,), backward)


def padded(x: Tensor, shape: Shape) -> Tensor:
    """x with zeros around it, a copy even where there are none: the backward copies the part."""
    before, dtype = x.shape, x.dtype
    return record("constant_pad_nd", shape, dtype, (x,), lambda g: (empty(before, dtype, "constant_pad_nd"),))


def sub_from(small: Tensor, x: Tensor) -> Tensor:
    """A tensor that is broadcast over x, minus x: the small one's gradient is a sum, x's a negated copy."""
    shape, dtype, small_shape = x.shape, x.dtype, small.shape
    return record("sub", shape, dtype, (small, x), lambda g: (Broad(g, small_shape), empty(shape, dtype, "neg")))


def segment_sum(x: Tensor, size: int) -> Tensor:
    """Sums over each stretch of the last axis, (..., size) to (..., size, size), minus infinity where a stretch would end before it begins."""
    wide = (*x.shape, size)
    spread = expand(reshape(x, (*x.shape, 1)), wide)
    below = _lower(size)
    above = empty((size, size), "bool", "bitwise_not")
    filled = masked_fill(spread, above)
    del above, spread, x  # nobody else may hold it
    sums = cumsum(filled)
    below = _lower(size)
    above = empty((size, size), "bool", "bitwise_not")
    sums = masked_fill(sums, above)
    del filled, below
    return sums


def _lower(size: int) -> Tensor:
    """Which places of a square are not above its diagonal."""
    whole = empty((size, size), "bool", "ones")
    lower = empty((size, size), "bool", "tril")
    del whole
    return lower
