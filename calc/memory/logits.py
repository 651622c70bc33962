"""Head and loss: what hidden states become before the loss is one number, by loss kernel, library and framework version.

Counts      logits, their copies and casts, gradients that a fused loss makes at once.
Sources     transformers' loss_utils.py and modelling files of each version; Liger, foak and TRL, in their own text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from calc.autograd import fused
from calc.autograd.elementwise import cast, clone
from calc.autograd.loss import cross_entropy, total
from calc.autograd.shapes import part, picked
from calc.autograd.storage import LOGITS, active
from calc.autograd.tensor import Tensor, empty
from calc.model.family import Architecture
from calc.model.modules import Modules

Loss = tuple[Tensor, Tensor | None]
"""The loss, and the logits that the model hands back where there are any."""


def _padded_labels(m: Modules) -> tuple[Tensor, Tensor]:
    """Labels with one more at the end of each sequence, and those moved one token ahead: a copy, unless there is one sequence."""
    labels = empty((m.batch, m.length + 1), "i64", "padded labels")
    return labels, labels if m.batch == 1 else empty((m.rows,), "i64", "shifted labels")


def _all_but_last(m: Modules, x: Tensor) -> Tensor:
    """Every sequence but its last token: a copy, unless there is one sequence."""
    y = part(x, (m.batch * (m.length - 1), x.shape[-1]))
    return y if m.batch == 1 else clone(y)


def _later_labels(m: Modules) -> Tensor:
    """The labels of those tokens."""
    return empty((m.batch * (m.length - 1),), "i64", "shifted labels")


def returned(m: Modules, logits: Tensor | None) -> None:
    """What becomes of the logits that the model hands back: held by a loop that names them, else let go; under a trainer's mixed precision they
    are upcast once more on the way (accelerate's convert_outputs_to_fp32), after autocast let go of its weights."""
    if logits is None:
        return
    if m.recipe.keeps_outputs:
        m.outputs.append(logits)
    elif m.recipe.autocast is not None:
        m.casts.clear()
        active.ledger.begin("autocast over")
        upcast = [cast(one, "fp32") for one in (logits, *m.seen)]
        del upcast


def _eager(m: Modules, architecture: Architecture, x: Tensor) -> Loss:
    """Logits whole and in fp32."""
    return _whole(m, architecture, x, partial(cross_entropy, autocast=m.recipe.autocast is not None))


def _in_place(m: Modules, architecture: Architecture, x: Tensor) -> Loss:
    """Logits whole and in fp32, with the gradient written over them."""
    if m.recipe.kernels.cross_entropy == "foak":
        return _whole(m, architecture, x, fused.cross_entropy_over_logits_in_backward, shifts=True)
    return _whole(m, architecture, x, fused.cross_entropy_over_logits)


def _whole(
    m: Modules,
    architecture: Architecture,
    x: Tensor,
    reduced: Callable[[Tensor, Tensor], Tensor],
    *,
    shifts: bool = False,
) -> Loss:
    """ForCausalLMLoss with the cross-entropy that is in use; `shifts` for a replaced one that copies the logits in every version."""
    active.ledger.kind = LOGITS
    how = m.recipe.logits
    if m.model_type in m.recipe.narrow_logits:
        upcast = logits = architecture.family.head(m, x)
    elif how == "upcast by the model":
        upcast = logits = cast(architecture.family.head(m, x), "fp32")
    else:
        logits = architecture.family.head(m, x)
        upcast = cast(logits, "fp32")
    if how == "padded labels" and not shifts:
        padded, labels = _padded_labels(m)
        result = reduced(upcast, labels)
        del padded
    else:
        shifted = _all_but_last(m, upcast)
        labels = _later_labels(m)
        result = reduced(shifted, labels)
        del shifted
    return result, logits


def _head(m: Modules) -> Tensor:
    """The weight that a fused head works on."""
    c = m.c
    if c.tie_word_embeddings:
        return m.tied()
    return m.weight("lm_head.weight", (c.vocab_size, c.hidden_size), "head")


def _fused(m: Modules, architecture: Architecture, x: Tensor) -> Loss:
    """Head and loss in one: logits of a few tokens at a time."""
    active.ledger.kind = LOGITS
    weight = _head(m)
    if m.recipe.kernels.fused_head == "foak":
        x = _all_but_last(m, x)
        labels = _later_labels(m)
        result = fused.fused_head_foak(x, weight, m.recipe.autocast, m.lowered)
    else:
        padded, labels = _padded_labels(m)
        result = fused.fused_head_liger(x, weight, m.recipe.autocast, m.lowered)
        del padded
    del labels
    return result, None


def _tiled(m: Modules, architecture: Architecture, x: Tensor) -> Loss:
    """TRL's loss: the tokens that have a label, at worst all but the last of each sequence; log-probabilities in tiles; their sum."""
    active.ledger.kind = LOGITS
    rows = part(x, (m.batch * (m.length - 1), x.shape[-1]))
    return total(fused.tiled_log_probabilities(picked(rows), _head(m), m.recipe.autocast or x.dtype)), None


def _cut(m: Modules, architecture: Architecture, x: Tensor) -> Loss:
    """Cut cross-entropy: no logits at all outside its kernels."""
    active.ledger.kind = LOGITS
    rows = m.batch * (m.length - 1)
    return fused.cut_cross_entropy(x, _head(m), rows, capped=getattr(m.c, "final_logit_softcapping", False)), None


LOSSES: Mapping[str, Callable[[Modules, Architecture, Tensor], Loss]] = {
    "eager": _eager,
    "triton": _in_place,
    "liger": _fused,
    "chunked": _tiled,
    "cce": _cut,
}
"""Hidden states (rows, hidden_size) to the loss and the logits that the model hands back, by `plan.loss`."""
