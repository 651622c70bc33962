"""Convolutions along the sequence. Each channel has a kernel of its own, so the weight is (channels, 1, width)."""

from __future__ import annotations

from calc.autograd.tensor import Shape, Tensor, empty, record


def conv1d(x: Tensor, weight: Tensor, bias: Tensor | None, shape: Shape) -> Tensor:
    """x, as many channels, to (batch, channels, padded length): saves x and the weight; the backward makes all gradients at once."""
    before, kernel, dtype, needs_x, needs_weight = x.shape, weight.shape, x.dtype, x.requires_grad, weight.requires_grad
    inputs = (x, weight) if bias is None else (x, weight, bias)
    number = len(inputs)  # the backward holds none of them
    wide = None if bias is None or not bias.requires_grad else bias.shape

    def backward(g: Tensor) -> tuple[Tensor | None, ...]:
        by_x = empty(before, dtype, "convolution backward") if needs_x else None
        by_weight = empty(kernel, dtype, "convolution backward") if needs_weight else None
        by_bias = None if wide is None else empty(wide, dtype, "convolution backward")
        return (by_x, by_weight, by_bias)[:number]

    return record("convolution", shape, dtype, inputs, backward, (x.storage, weight.storage))
