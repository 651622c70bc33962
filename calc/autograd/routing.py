"""What a mixture of experts does: choose experts for each token, gather its copies, multiply each group by its expert, and add up.

Shapes: N tokens, E experts, k experts per token; a copy is one token on its way to one expert, so there are N·k copies.
"""

from __future__ import annotations

from calc.autograd.elementwise import mul, promoted
from calc.autograd.shapes import expand
from calc.autograd.tensor import Broad, Shape, Tensor, empty, record, view


def topk(x: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest of each row and their places: saves the places; the backward scatters into zeros."""
    shape, dtype = x.shape, x.dtype
    rows = (*shape[:-1], k)
    places = empty(rows, "i64", "topk")

    return record("topk", rows, dtype, (x,), lambda g: (empty(shape, dtype, "new_zeros"),), (places.storage,)), places


def maximum(x: Tensor) -> Tensor:
    """The largest of each row, kept as an axis of one: saves its place."""
    shape, dtype = x.shape, x.dtype
    rows = (*shape[:-1], 1)

    return record(
        "max",
        rows,
        dtype,
        (x,),
        lambda g: (empty(shape, dtype, "new_zeros"),),
        extra=((rows, "i64", "max"),),
        heads_first=x.heads_first,
    )


def gather(x: Tensor, shape: Shape, places: Tensor) -> Tensor:
    """x[places] or x.gather(places): saves the places; the backward adds into zeros."""
    whole, dtype = x.shape, x.dtype

    return record("index", shape, dtype, (x,), lambda g: (empty(whole, dtype, "new_zeros"),), (places.storage,))


def gathered(x: Tensor, shape: Shape, places: Tensor) -> Tensor:
    """x.gather(-1, places): saves x for its size, and the places; the backward adds into zeros."""
    whole, dtype = x.shape, x.dtype

    return record(
        "gather",
        shape,
        dtype,
        (x,),
        lambda g: (empty(whole, dtype, "new_zeros", True),),
        (x.storage, places.storage),
        heads_first=True,
    )


def masked_fill(x: Tensor, mask: Tensor) -> Tensor:
    """A number where the mask is set: saves the mask."""
    shape, dtype = x.shape, x.dtype
    return record("masked_fill", shape, dtype, (x,), lambda g: (empty(shape, dtype, "masked_fill"),), (mask.storage,))


def total(x: Tensor, dtype: str | None = None) -> Tensor:
    """The sum of each row in a dtype, kept as an axis of one: its backward is a view."""
    shape = x.shape
    return record("sum", (*shape[:-1], 1), dtype or x.dtype, (x,), lambda g: (view(g, shape),))


def divided_in_place(x: Tensor, divisor: Tensor) -> Tensor:
    """x /= divisor (rows, 1): autograd keeps the values as they were, and the divisor."""
    shape, rows, dtype = x.shape, divisor.shape, x.dtype
    kept = (empty(shape, dtype, "clone").storage, divisor.storage) if x.requires_grad else ()

    def backward(g: Tensor) -> tuple[Tensor, Tensor]:
        first = empty(shape, dtype, "div")
        second = empty(shape, dtype, "div")
        third = empty(shape, dtype, "neg")
        by_divisor = empty(shape, dtype, "mul")
        del first, second, third
        by_x = empty(shape, dtype, "div")
        reduced = empty(rows, dtype, "sum")
        del by_divisor
        return by_x, reduced

    return record("div_", shape, dtype, (x, divisor), backward, kept, result=x.storage)


def divided(x: Tensor, divisor: Tensor) -> Tensor:
    """x / divisor (rows, 1), in the wider dtype of both: saves both."""
    shape, rows, dtype = x.shape, divisor.shape, promoted(x.dtype, divisor.dtype)

    def backward(g: Tensor) -> tuple[Tensor, Broad]:
        first = empty(shape, dtype, "div")
        second = empty(shape, dtype, "div")
        third = empty(shape, dtype, "neg")
        by_divisor = empty(shape, dtype, "mul")
        del first, second, third
        return empty(shape, dtype, "div"), Broad(by_divisor, rows)

    return record("div", shape, dtype, (x, divisor), backward, (x.storage, divisor.storage))


def vector_norm(x: Tensor, dtype: str) -> Tensor:
    """The sum of each row's magnitudes in a dtype, kept as an axis of one (norm with p=1): saves x and its result; the backward needs x's
    signs."""
    shape, source = x.shape, x.dtype

    def backward(g: Tensor) -> tuple[Tensor]:
        signs = empty(shape, source, "sgn")
        result = empty(shape, dtype, "mul")
        del signs
        return (result,)

    return record("linalg_vector_norm", (*shape[:-1], 1), dtype, (x,), backward, (x.storage,), saves_output=True)


def normalized_in_place(x: Tensor) -> Tensor:
    """x /= x.sum(-1, keepdim=True)."""
    return divided_in_place(x, total(x))


def weighted(x: Tensor, weights: Tensor) -> Tensor:
    """Rows of x, each times its own weight (rows, 1): saves both where the other needs a gradient."""
    return mul(x, expand(weights, x.shape))


def grouped_mm(x: Tensor, weight: Tensor, offsets: Tensor, *, transposed: bool = False) -> Tensor:
    """Copies (N·k, in), sorted by expert, each group times its expert of a weight (E, out, in), or (E, in, out) when `transposed`."""
    copies, columns = x.shape
    out = weight.shape[2] if transposed else weight.shape[1]
    dtype, weight_shape, needs_x, needs_weight = x.dtype, weight.shape, x.requires_grad, weight.requires_grad
    saved = [weight.storage, offsets.storage] if needs_x else [offsets.storage]
    if needs_weight:
        saved.append(x.storage)

    def backward(g: Tensor) -> tuple[Tensor | None, Tensor | None]:
        by_weight = empty(weight_shape, dtype, "grouped_mm weight gradient") if needs_weight else None
        return empty((copies, columns), dtype, "grouped_mm input gradient") if needs_x else None, by_weight

    return record("grouped_mm", (copies, out), dtype, (x, weight), backward, saved)


def copied(x: Tensor, shape: Shape) -> Tensor:
    """x.repeat(n, 1): n copies one after the other; the backward adds them up."""
    before, dtype = x.shape, x.dtype
    return record("repeat", shape, dtype, (x,), lambda g: (empty(before, dtype, "sum"),))


def summed_groups(x: Tensor, shape: Shape, dtype: str) -> Tensor:
    """x.sum(dim=0, dtype=dtype): the backward lays the gradient out for each group."""
    before, source = x.shape, x.dtype
    return record("sum", shape, dtype, (x,), lambda g: (empty(before, source, "clone"),))


def scatter_into(whole: Tensor, places: Tensor, values: Tensor) -> Tensor:
    """whole.scatter_(1, places, values) into a tensor without a gradient: saves the places; the backward gathers."""
    shape, dtype = values.shape, values.dtype
    return record(
        "scatter_",
        whole.shape,
        dtype,
        (values,),
        lambda g: (empty(shape, dtype, "gather"),),
        (places.storage,),
        result=whole.storage,
    )


def summed_copies(x: Tensor, tokens: int, dtype: str) -> Tensor:
    """Copies (N·k, width) added to tokens (N, width) in a dtype: the backward lays the gradient out for each copy."""
    shape, source = x.shape, x.dtype
    return record("sum", (tokens, shape[1]), dtype, (x,), lambda g: (empty(shape, source, "clone"),))


def add_to_rows(x: Tensor, part: Tensor, places: Tensor) -> Tensor:
    """x.index_add_(0, places, part): into x's own memory; saves the places, and the part for its size; the part's gradient is picked out
    of x's."""
    shape, dtype, needs = part.shape, part.dtype, part.requires_grad

    def backward(g: Tensor) -> tuple[Tensor | None, ...]:
        return g, empty(shape, dtype, "index_select") if needs else None

    saved = (places.storage, part.storage) if needs else ()
    return record("index_add_", x.shape, x.dtype, (x, part), backward, saved, result=x.storage)


def add_to_zeros(zeros: Tensor, part: Tensor, places: Tensor) -> Tensor:
    """zeros.index_add(0, places, part), where the zeros have no gradient: into new memory; saves the places, and the part for its size."""
    shape, dtype = part.shape, part.dtype
    saved = (places.storage, part.storage)
    return record(
        "index_add", zeros.shape, zeros.dtype, (part,), lambda g: (empty(shape, dtype, "index_select"),), saved
    )
