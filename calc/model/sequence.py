"""What models with an encoder and a decoder have in common: two stacks of layers, and a target that is its labels moved by one.

Source and target are taken to be `seq_len` tokens each, which is what a step holds at most when both are cut or padded to that length.
"""

from __future__ import annotations

from calc.autograd.tensor import Tensor, empty
from calc.model.attention import causal_mask
from calc.model.modules import Modules


def stack_kinds(encoder: int, decoder: int) -> tuple[str, ...]:
    """The kind of each layer, encoder first."""
    return (*sharing_kinds("encoder", encoder), *sharing_kinds("decoder", decoder))


def sharing_kinds(name: str, layers: int) -> tuple[str, ...]:
    """The kinds of layers that share something.

    It is made by the first of them and last let go of by the first or second, and in the backward pass the last makes its gradient.
    """
    ends = ["first", "second", "last"] if layers > 2 else ["first", "last"][:layers]
    named = [f"{name} {end}" for end in ends]
    return (*named[:-1], *[name] * (layers - len(named)), named[-1])


def shifted_right(m: Modules) -> Tensor:
    """The decoder's token ids: the labels moved one place on, with a start token in front."""
    moved = empty((m.rows,), "i64", "new_zeros")
    kept = empty((m.batch * (m.length - 1),), "i64", "clone")
    del kept
    ignored = empty((m.rows,), "bool", "eq")
    del ignored
    return moved


def own_mask(m: Modules, dtype: str) -> Tensor | None:
    """The mask of the decoder's own tokens, none of which is padding: the batch tells only of the source's."""
    return causal_mask(m, dtype) if m.recipe.attention == "eager" else None
