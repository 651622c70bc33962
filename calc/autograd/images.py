"""Operations on images: patches, and features that take the places of their tokens."""

from __future__ import annotations

from calc.autograd.elementwise import promoted
from calc.autograd.storage import active
from calc.autograd.tensor import Shape, Tensor, empty, record, view


def patches(x: Tensor, weight: Tensor, bias: Tensor | None, shape: Shape) -> Tensor:
    """A convolution that steps by its own width: images (images, channels, height, width) to `shape`, a row for each patch.

    Saves both; images have no gradient.
    """
    dtype, kernel, needs = x.dtype, weight.shape, weight.requires_grad
    inputs = (x, weight) if bias is None else (x, weight, bias)
    number = len(inputs)  # the backward holds none of them
    wide = None if bias is None or not bias.requires_grad else bias.shape

    def backward(g: Tensor) -> tuple[Tensor | None, ...]:
        by_weight = empty(kernel, dtype, "convolution backward") if needs else None
        by_bias = None if wide is None else empty(wide, dtype, "convolution backward")
        return (None, by_weight, by_bias)[:number]

    return record("convolution", shape, dtype, inputs, backward, (x.storage, weight.storage))


def masked_scatter(x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """x with the rows of `source` where the mask is true: saves the mask; x's gradient is masked, the source's gathered.

    Scratch (IndexKernel.cu): the mask at full size, and how many are true before each element.
    """
    shape, rows, dtype = x.shape, source.shape, x.dtype
    needs, needs_source = x.requires_grad, source.requires_grad

    def backward(g: Tensor) -> tuple[Tensor | None, ...]:
        by_x = empty(shape, dtype, "masked_fill") if needs else None
        return by_x, empty(rows, dtype, "masked_scatter backward") if needs_source else None

    result = record("masked_scatter", shape, dtype, (x, source), backward, (mask.storage,))
    if active.ledger.scratch:
        held = [empty(shape, "i64", "places before"), empty(shape, "bool", "mask")]
        del held
    return result


def unbound(x: Tensor) -> Tensor:
    """x as a list of its images: views, whose gradients are stacked."""
    shape, dtype = x.shape, x.dtype
    return record("unbind", shape, dtype, (x,), lambda g: (empty(shape, dtype, "stack"),), result=x.storage)


def joined(x: Tensor) -> Tensor:
    """The images of a list one after another, in memory of their own: gradients are views."""
    shape, dtype = x.shape, x.dtype
    return record("cat", shape, dtype, (x,), lambda g: (view(g, shape),))


def average_pool(x: Tensor, shape: Shape) -> Tensor:
    """avg_pool2d to `shape`: saves x."""
    before, dtype = x.shape, x.dtype
    return record(
        "avg_pool2d", shape, dtype, (x,), lambda g: (empty(before, dtype, "avg_pool2d backward"),), (x.storage,)
    )


def grid_sampled(x: Tensor, grid: Tensor, shape: Shape) -> Tensor:
    """A picture read at points between its pixels: saves both; the backward makes gradients of both, whether or not the points need one."""
    before, points, dtype = x.shape, grid.shape, x.dtype

    def backward(g: Tensor) -> tuple[Tensor]:
        by_x = empty(before, dtype, "grid_sampler_2d backward")
        by_grid = empty(points, grid_dtype, "grid_sampler_2d backward")
        del by_grid
        return (by_x,)

    grid_dtype = grid.dtype
    return record("grid_sampler_2d", shape, dtype, (x,), backward, (x.storage, grid.storage))


def unfolded(x: Tensor, shape: Shape) -> Tensor:
    """Squares of patches as rows (im2col), image by image: the backward folds them back, then joins the images."""
    before, dtype = x.shape, x.dtype

    def split_backward(g: Tensor) -> tuple[Tensor]:
        return (empty(before, dtype, "cat"),)

    images = record("split", before, dtype, (x,), split_backward, result=x.storage)
    return record("im2col", shape, dtype, (images,), lambda g: (empty(before, dtype, "col2im"),))


def reordered(x: Tensor) -> Tensor:
    """Rows in another order: a copy; the backward puts the gradient into zeros."""
    shape, dtype = x.shape, x.dtype
    return record("index", shape, dtype, (x,), lambda g: (empty(shape, dtype, "new_zeros"),))


def stacked_heads(x: Tensor, count: int, shape: Shape) -> Tensor:
    """(rows, count·heads·head_dim) seen as `count` tensors of `shape`, one after another: a gradient is laid out anew."""
    before, dtype = x.shape, x.dtype
    return record("view", (count, *shape), dtype, (x,), lambda g: (empty(before, dtype, "clone"),), result=x.storage)


def placed(x: Tensor, places: Tensor) -> Tensor:
    """x + a weight of as many elements: the weight's gradient is a copy of x's, which goes on."""
    shape, dtype, kind, needs = places.shape, promoted(x.dtype, places.dtype), places.dtype, places.requires_grad

    def backward(g: Tensor) -> tuple[Tensor | None, ...]:
        return g, empty(shape, kind, "clone") if needs else None

    return record("add", x.shape, dtype, (x, places), backward)


def turned(x: Tensor) -> Tensor:
    """x seen in another order, where a gradient ends in x: it is laid out as x is, in a copy."""
    shape, dtype = x.shape, x.dtype
    return record("view", shape, dtype, (x,), lambda g: (empty(shape, dtype, "clone"),), result=x.storage)


def chosen(x: Tensor, mask: Tensor, shape: Shape) -> Tensor:
    """The rows of x where the mask is true: saves the mask; the backward puts the gradient into zeros."""
    whole, dtype, count = x.shape, x.dtype, shape[0]

    def backward(g: Tensor) -> tuple[Tensor]:
        zeros = empty(whole, dtype, "new_zeros")
        places = empty((count, 2), "i64", "nonzero")
        del places
        return (zeros,)

    places = empty((count, 2), "i64", "nonzero")
    result = record("index", shape, dtype, (x,), backward, (mask.storage,))
    del places
    return result


def put(x: Tensor, mask: Tensor, rows: Tensor) -> Tensor:
    """x with `rows` where the mask is true, in x itself: saves the mask; x's gradient gets zeros there, in a copy, and the rows' is taken out."""
    whole, shape, dtype, count = x.shape, rows.shape, x.dtype, rows.shape[0]

    def backward(g: Tensor) -> tuple[Tensor, Tensor]:
        zeros = empty(shape, dtype, "zeros")
        places = empty((count, 2), "i64", "nonzero")
        by_x = empty(whole, dtype, "index_put")
        del zeros, places
        places = empty((count, 2), "i64", "nonzero")
        by_rows = empty(shape, dtype, "index")
        del places
        return by_x, by_rows

    places = empty((count, 2), "i64", "nonzero")
    result = record("index_put_", whole, dtype, (x, rows), backward, (mask.storage,), result=x.storage)
    del places
    return result


def summed(x: Tensor, shape: Shape) -> Tensor:
    """Rows added up in groups: the gradient is broadcast without a copy."""
    before, dtype = x.shape, x.dtype
    return record("sum", shape, dtype, (x,), lambda g: (view(g, before),))
