"""Matrix products: what they save and what their backward allocates."""

from __future__ import annotations

from calc.autograd.tensor import Broad, Shape, Tensor, empty, empty_view, record


def mm(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, *, transposed: bool = False, alone: bool = False
) -> Tensor:
    """rows x in times a weight (out, in), or (in, out) when `transposed` as in GPT-2's Conv1D; with a bias it is addmm.

    Saves x if the weight is trained and the weight if x needs a gradient. The backward makes the weight's gradient first; x's gradient is
    a view, unless x is a matrix in the modelling code too (`alone`).
    """
    rows, columns = x.shape
    out = weight.shape[1] if transposed else weight.shape[0]
    dtype, weight_shape, needs_x, needs_weight = x.dtype, weight.shape, x.requires_grad, weight.requires_grad
    saved = [x.storage] if needs_weight else []
    if needs_x:
        saved.insert(len(saved) if bias is not None else 0, weight.storage)
    made = empty if alone else empty_view
    if bias is None:

        def backward(g: Tensor) -> tuple[Tensor | None, ...]:
            gw = empty_view(weight_shape, dtype, "mm weight gradient") if needs_weight else None
            return made((rows, columns), dtype, "mm input gradient") if needs_x else None, gw

        return record("mm", (rows, out), dtype, (x, weight), backward, saved)
    needs_bias, bias_shape = bias.requires_grad, bias.shape

    def backward_with_bias(g: Tensor) -> tuple[Tensor | Broad | None, ...]:
        gw = empty_view(weight_shape, dtype, "mm weight gradient") if needs_weight else None
        gx = made((rows, columns), dtype, "mm input gradient") if needs_x else None
        return Broad(g, bias_shape) if needs_bias else None, gx, gw

    return record("addmm", (rows, out), dtype, (bias, x, weight), backward_with_bias, saved)


def bmm(a: Tensor, b: Tensor, shape: Shape) -> Tensor:
    """Batched product of two activations; saves both."""
    dtype, a_shape, b_shape, needs_a, needs_b = a.dtype, a.shape, b.shape, a.requires_grad, b.requires_grad
    saved = [a.storage] if needs_b else []
    if needs_a:
        saved.append(b.storage)

    def backward(g: Tensor) -> tuple[Tensor | None, ...]:
        gb = empty_view(b_shape, dtype, "bmm gradient", True) if needs_b else None
        return empty_view(a_shape, dtype, "bmm gradient", True) if needs_a else None, gb

    return record("bmm", shape, dtype, (a, b), backward, saved, heads_first=True)


def baddbmm(offset: Tensor, a: Tensor, b: Tensor, shape: Shape) -> Tensor:
    """offset + number * (a times b), where the offset has no gradient: saves both factors, and scales a copy of each gradient."""
    dtype, a_shape, b_shape, needs_a, needs_b = a.dtype, a.shape, b.shape, a.requires_grad, b.requires_grad
    saved = [b.storage] if needs_a else []
    if needs_b:
        saved.append(a.storage)

    def scaled(shape: Shape) -> Tensor:
        product = empty(shape, dtype, "bmm gradient", True)
        result = empty(shape, dtype, "mul", True)
        del product
        return result

    def backward(g: Tensor) -> tuple[Tensor | None, ...]:
        ga = scaled(a_shape) if needs_a else None
        return None, ga, scaled(b_shape) if needs_b else None

    return record("baddbmm", shape, dtype, (offset, a, b), backward, saved, heads_first=True)
