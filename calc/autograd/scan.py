"""What a recurrence is made of when it is computed in chunks: running sums, padding behind the last token, contractions of several axes."""

from __future__ import annotations

from collections.abc import Sequence

from calc.autograd.elementwise import masked_fill, promoted
from calc.autograd.shapes import expand, reshape
from calc.autograd.storage import Storage
from calc.autograd.tensor import Broad, Shape, Tensor, empty, record, recording_mode, view


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


def outer(a: Tensor, b: Tensor, shape: Shape) -> Tensor:
    """a * b where each is broadcast over the other: both gradients are made at full size and summed."""
    a_shape, b_shape = a.shape, b.shape
    dtype = promoted(a.dtype, b.dtype)
    needs_a, needs_b = a.requires_grad, b.requires_grad
    saved = [a.storage] if needs_b else []
    if needs_a:
        saved.append(b.storage)

    def backward(g: Tensor) -> tuple[Broad | None, ...]:
        gb = empty(shape, dtype, "mul backward") if needs_b else None
        ga = empty(shape, dtype, "mul backward") if needs_a else None
        return None if ga is None else Broad(ga, a_shape), None if gb is None else Broad(gb, b_shape)

    return record("mul", shape, dtype, (a, b), backward, saved)


FIRST_STEPS, LAST_STEPS = 1, 3
"""Steps of a loop along the sequence that are run one by one: the first has no state before it, and the backward, which begins with the last,
is highest before the third of them is over. In a step before those it holds less and makes the same."""


def steps_alike(state: Tensor, kept: Tensor, added: Tensor, count: int) -> Tensor:
    """`count` times state = kept[t] * state + added[t]: each mul saves the state that it is given, and its part of `kept` as a view.

    The gradients of `kept` and `added` are there when these steps go backwards: the steps behind them made them.
    """
    inputs = (state, kept, added)
    places, between = _saved_by_each(inputs, ((state.shape, state.dtype, "add", count - 1),))
    saved = [kept.storage, *[state.storage] * (1 + places)]
    return record("steps", state.shape, state.dtype, inputs, lambda g: (g, None, None), saved, extra=between)


def products_alike(state: Tensor, columns: Tensor, shape: Shape, dtype: str, count: int) -> Tensor:
    """What is read from each of those states by a batched product with its column, both in `dtype`: as many results, and the factors saved."""
    inputs = (state, columns)
    b, n = columns.shape[0], columns.shape[-1]
    factors = ((state.shape, state.dtype), ((b, n, 1), columns.dtype))
    lowered = tuple([(one, dtype, "_to_copy", count) for one, given in factors if given != dtype])
    places, lowered = _saved_by_each(inputs, lowered)
    saved = [columns.storage if columns.dtype == dtype else state.storage, *[state.storage] * (1 + places)]
    return record(
        "products", (count, *shape), dtype, inputs, lambda g: (None, None), saved, extra=lowered,
        result=Storage(shape, dtype, "bmm", count),
    )  # fmt: skip


Pieces = tuple[tuple[Shape, str, str, int], ...]


def _saved_by_each(inputs: Sequence[Tensor], made: Pieces) -> tuple[int, Pieces]:
    """What each step makes and saves, where it is kept now; where a checkpoint throws it away, only how many places it takes."""
    mode = recording_mode
    if not mode.enabled or not any(t.requires_grad for t in inputs):
        return 0, ()
    if mode.checkpoint is not None and mode.recompute is None:
        return len(made), ()
    return 0, made


def stacked(parts: Sequence[Tensor], shape: Shape) -> Tensor:
    """Results of single steps, and of several alike, joined: a copy, whose gradient is handed back in views."""
    shapes = [t.shape for t in parts]
    return record("stack", shape, parts[0].dtype, parts, lambda g: tuple([view(g, s) for s in shapes]))
