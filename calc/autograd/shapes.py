"""Operations that only move: splitting heads, slicing, joining, repeating. Views cost nothing until a gradient has to be laid out anew."""

from __future__ import annotations

from collections.abc import Sequence

from calc.autograd.elementwise import promoted
from calc.autograd.tensor import Node, Shape, Tensor, empty, record, recording_mode, view


def heads(x: Tensor, batch: int, length: int, num_heads: int, head_dim: int) -> Tensor:
    """(rows, heads·head_dim) as (batch, heads, length, head_dim): a view; a gradient that lies head by head is copied back."""
    rows, dtype = x.shape, x.dtype
    shape = (batch, num_heads, length, head_dim)

    def backward(g: Tensor) -> tuple[Tensor]:
        return (empty(rows, dtype, "clone") if g.heads_first else view(g, rows, False),)

    return record("view", shape, dtype, (x,), backward, result=x.storage, heads_first=False)


def rows(x: Tensor, shape: Shape) -> Tensor:
    """(batch, heads, length, head_dim) folded back to rows: a copy if it lies head by head."""
    dtype, full, first = x.dtype, x.shape, x.heads_first
    if not first:
        return record("view", shape, dtype, (x,), lambda g: (view(g, full, False),), result=x.storage)
    return record("clone", shape, dtype, (x,), lambda g: (view(g, full, False),))


def reshape(x: Tensor, shape: Shape) -> Tensor:
    """A view without cost in either direction."""
    before, first = x.shape, x.heads_first
    return record(
        "view", shape, x.dtype, (x,), lambda g: (view(g, before, first),), result=x.storage, heads_first=first
    )


def permuted(x: Tensor, shape: Shape) -> Tensor:
    """The same memory with its axes in another order, neither row by row nor head by head; a view in both directions."""
    before = x.shape
    return record("permute", shape, x.dtype, (x,), lambda g: (view(g, before, False),), result=x.storage)


def reordered(x: Tensor, shape: Shape) -> Tensor:
    """A matrix seen in another order of its axes: a view, whose gradient is copied back into plain order."""
    before, dtype = x.shape, x.dtype
    return record("view", shape, dtype, (x,), lambda g: (empty(before, dtype, "clone"),), result=x.storage)


def laid_out(x: Tensor, shape: Shape) -> Tensor:
    """A copy of a transposed tensor in another shape: the backward is a view."""
    before, dtype = x.shape, x.dtype
    return record("clone", shape, dtype, (x,), lambda g: (view(g, before),))


def contiguous(x: Tensor) -> Tensor:
    """A copy in plain order if it does not lie so already."""
    if len(x.shape) == 4 and not x.heads_first:
        return record("clone", x.shape, x.dtype, (x,), lambda g: (g,), heads_first=True)
    return x


def row_by_row(x: Tensor) -> Tensor:
    """A matrix as a product takes it: copied, if it lies otherwise (`heads_first`)."""
    return record("clone", x.shape, x.dtype, (x,), lambda g: (g,)) if x.heads_first else x


def part(x: Tensor, shape: Shape) -> Tensor:
    """A slice: a view whose backward fills a whole tensor of zeros."""
    whole, dtype = x.shape, x.dtype
    return record(
        "slice", shape, dtype, (x,), lambda g: (empty(whole, dtype, "slice backward", len(whole) == 4),),
        result=x.storage, heads_first=x.heads_first,
    )  # fmt: skip


def padded_rows(x: Tensor, columns: int) -> Tensor:
    """Rows with zeros behind them up to `columns`, and a view of what was there: the backward fills padded zeros, then takes the part again."""
    shape, dtype = x.shape, x.dtype
    wide = (*shape[:-1], columns)
    y = record("constant_pad_nd", wide, dtype, (x,), lambda g: (empty(shape, dtype, "constant_pad_nd"),))
    return record("slice", shape, dtype, (y,), lambda g: (empty(wide, dtype, "slice backward"),), result=y.storage)


def expand(x: Tensor, shape: Shape) -> Tensor:
    """Broadcast without a copy: the backward sums."""
    before, dtype = x.shape, x.dtype
    return record("expand", shape, dtype, (x,), lambda g: (empty(before, dtype, "sum"),), result=x.storage)


def copy_into(whole: Tensor, piece: Tensor) -> Tensor:
    """whole[..., a:b].copy_(piece): the backward copies the whole gradient and the piece's."""
    shape, piece_shape, dtype, needs, needs_piece = (
        whole.shape,
        piece.shape,
        whole.dtype,
        whole.requires_grad,
        piece.requires_grad,
    )

    def backward(g: Tensor) -> tuple[Tensor | None, Tensor | None]:
        rest = empty(shape, dtype, "new_empty_strided", True)
        taken = empty(piece_shape, dtype, "clone", True)
        zeros = empty(piece_shape, dtype, "zeros_like") if needs else None
        del zeros
        return rest if needs else None, taken if needs_piece else None

    return record("copy_", shape, dtype, (whole, piece), backward, result=whole.storage, heads_first=whole.heads_first)


def scaled_view(x: Tensor) -> Tensor:
    """A view of x, times a number, in place: the backward works on a copy of x's whole gradient, in which the view's is replaced."""
    shape, dtype = x.shape, x.dtype

    def backward(g: Tensor) -> tuple[Tensor]:
        whole = empty(shape, dtype, "new_empty_strided")
        taken = empty(shape, dtype, "clone")
        scaled = empty(shape, dtype, "div")
        del taken, scaled
        return (whole,)

    return record("div_", shape, dtype, (x,), backward, result=x.storage)


def indexed(x: Tensor, shape: Shape) -> Tensor:
    """x[..., [i], :]: a copy, and the index; the backward puts the gradient into zeros."""
    whole, dtype = x.shape, x.dtype
    return record(
        "index", shape, dtype, (x,), lambda g: (empty(whole, dtype, "new_zeros"),), extra=(((1,), "i64", "index"),)
    )


def split(x: Tensor, widths: Sequence[int]) -> tuple[Tensor, ...]:
    """chunk and split along the last axis: views; the backward joins the gradients of all, zeros where a piece was not used."""
    return _pieces(x, [(*x.shape[:-1], width) for width in widths])


def unbound(x: Tensor, count: int, shape: Shape) -> tuple[Tensor, ...]:
    """(rows, count·heads·head_dim) as that many views (batch, heads, length, head_dim): the backward stacks the gradients of all."""
    before, dtype = x.shape, x.dtype
    first, *rest = _pieces(x, [shape] * count)
    if first.node is not None:
        first.node.backward = lambda *gradients: (empty(before, dtype, "stack"),)
    return first, *rest


def split_heads(x: Tensor) -> tuple[Tensor, ...]:
    """(batch, heads, length, head_dim) head by head: views, like `split`."""
    batch, num_heads, length, head_dim = x.shape
    return _pieces(x, [(batch, 1, length, head_dim) for _ in range(num_heads)])


def split_as(x: Tensor, shapes: Sequence[Shape]) -> tuple[Tensor, ...]:
    """Views of those shapes, side by side in x."""
    return _pieces(x, shapes)


def _pieces(x: Tensor, shapes: Sequence[Shape]) -> tuple[Tensor, ...]:
    shape, dtype = x.shape, x.dtype
    pieces = tuple([Tensor(s, dtype, x.storage, x.heads_first) for s in shapes])
    if recording_mode.enabled and x.requires_grad:

        def backward(*gradients: Tensor | None) -> tuple[Tensor]:
            filled = [empty(s, dtype, "zeros") if g is None else g for g, s in zip(gradients, shapes, strict=True)]
            joined = empty(shape, dtype, "cat", len(shape) == 4)
            del filled
            return (joined,)

        node = None if recording_mode.recompute is not None else Node("split", (x,), backward, len(pieces))
        for slot, piece in enumerate(pieces):
            piece.requires_grad, piece.node, piece.slot = True, node, slot
    return pieces


def cat(parts: Sequence[Tensor], shape: Shape) -> Tensor:
    """Joined along the last axis, in the widest dtype of all: its backward gives views of the gradient."""
    shapes = [t.shape for t in parts]
    dtype = parts[0].dtype
    for t in parts:
        dtype = promoted(dtype, t.dtype)

    def backward(g: Tensor) -> tuple[Tensor, ...]:
        return tuple(view(g, s) for s in shapes)

    return record("cat", shape, dtype, parts, backward, heads_first=len(shape) == 4)


def repeat(x: Tensor, num_heads: int) -> Tensor:
    """Each head `n` times (repeat_kv): a copy at full size, or a view if there is one head; the backward sums over the copies."""
    batch, few, length, head_dim = x.shape
    if few == 1 != num_heads:
        return expand(x, (batch, num_heads, length, head_dim))
    return interleaved(x, num_heads)


def interleaved(x: Tensor, num_heads: int) -> Tensor:
    """Each head `n` times (repeat_interleave): as `repeat`, but a copy of a single head too."""
    batch, few, length, head_dim = x.shape
    if few == num_heads:
        return x
    dtype, before = x.dtype, x.shape
    return record(
        "clone",
        (batch, num_heads, length, head_dim),
        dtype,
        (x,),
        lambda g: (empty(before, dtype, "sum", True),),
        heads_first=True,
    )


def repeated(x: Tensor, shape: Shape) -> Tensor:
    """The heads of one sequence (1, heads, length, head_dim) once more for each: a copy; the backward sums."""
    before, dtype = x.shape, x.dtype
    return record("repeat", shape, dtype, (x,), lambda g: (empty(before, dtype, "sum", True),), heads_first=True)


def folded(x: Tensor, shape: Shape) -> Tensor:
    """(batch, heads, length, head_dim), which lies head by head, copied to rows; its gradient is copied back head by head."""
    before, dtype = x.shape, x.dtype
    return record("clone", shape, dtype, (x,), lambda g: (empty(before, dtype, "clone", True),))


def picked(x: Tensor, rows: int | None = None) -> Tensor:
    """Some rows of x, at worst all: a copy; the backward fills a whole tensor of zeros."""
    whole, dtype = x.shape, x.dtype
    shape = whole if rows is None else (rows, *whole[1:])
    return record("index", shape, dtype, (x,), lambda g: (empty(whole, dtype, "index backward"),))
