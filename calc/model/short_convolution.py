"""What recurrent layers put around their recurrence: a short causal convolution along the sequence, and zeros where there is padding.

Mirrors transformers 5.24.0 without the package causal-conv1d: torch's own convolution runs, over a sequence with padding behind it that is cut off.
"""

from __future__ import annotations

from calc.autograd.convolution import conv1d
from calc.autograd.elementwise import cast, mul
from calc.autograd.shapes import part, reshape
from calc.autograd.tensor import Tensor, view
from calc.model.activations import activated
from calc.model.modules import Modules


def unpadded(m: Modules, x: Tensor) -> Tensor:
    """apply_mask_to_padding_states: rows of tokens that are padding become zeros; the mask itself is kept for the backward."""
    return x if m.padding is None else cast(mul(x, m.padding), x.dtype)


def causal_conv(m: Modules, name: str, x: Tensor, width: int, bias: bool, act: str | None = None) -> Tensor:
    """causal_conv1d_fn: each column of x (rows, channels) convolved along the sequence with its own `width` weights, then activated."""
    channels, dtype = x.shape[1], x.dtype
    weight = m.weight(f"{name}.weight", (channels, 1, width), "other")
    offset = m.weight(f"{name}.bias", (channels,), "bias") if bias else None
    given = cast(x, weight.dtype)
    out = _convolved(m, given, view(weight, weight.shape), offset, (m.batch, channels, m.length + width - 1))
    del given
    out = reshape(part(out, (m.batch, channels, m.length)), x.shape)
    if act is not None:
        out = activated(m, out, act)
    return cast(out, dtype)


def _convolved(m: Modules, x: Tensor, weight: Tensor, bias: Tensor | None, shape: tuple[int, ...]) -> Tensor:
    """The convolution, as autocast runs it: the weight is a view, which it casts each time."""
    to = m.recipe.autocast
    if to is not None:  # from the last to the first
        bias = None if bias is None else m.lowered(bias)
        weight = cast(weight, to)
        x = cast(x, to)
    return conv1d(x, weight, bias, shape)
