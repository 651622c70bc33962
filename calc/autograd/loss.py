"""Cross-entropy over logits."""

from __future__ import annotations

from calc.autograd.elementwise import cast
from calc.autograd.storage import Storage
from calc.autograd.tensor import Tensor, empty, record, recording_mode, view


def log_softmax(x: Tensor) -> Tensor:
    """Saves its result."""
    shape, dtype = x.shape, x.dtype
    return record(
        "_log_softmax", shape, dtype, (x,), lambda g: (empty(shape, dtype, "log_softmax backward"),), saves_output=True
    )


def nll_loss(log_probabilities: Tensor, labels: Tensor) -> Tensor:
    """Mean of the labels' negative log-probabilities: saves them, the labels and the total weight; the backward fills a whole tensor."""
    shape, dtype = log_probabilities.shape, log_probabilities.dtype
    kept = labels.storage
    if recording_mode.offload is not None and labels.shape != (shape[0],):  # a part of the padded ones goes as a copy
        kept = Storage((shape[0],), labels.dtype, "clone")
    return record(
        "nll_loss", (1,), dtype, (log_probabilities,), lambda g: (empty(shape, dtype, "nll_loss backward"),),
        (log_probabilities.storage, kept), extra=(((1,), dtype, "nll_loss total weight"),),
    )  # fmt: skip


def cross_entropy(logits: Tensor, labels: Tensor, autocast: bool = False) -> Tensor:
    """log_softmax, then nll_loss, which autocast does in fp32."""
    probabilities = log_softmax(logits)
    return nll_loss(cast(probabilities, "fp32") if autocast else probabilities, labels)


def total(x: Tensor) -> Tensor:
    """The sum of all elements; its gradient is a view of one number."""
    shape, dtype = x.shape, x.dtype
    return record("sum", (1,), dtype, (x,), lambda g: (view(g, shape),))
