"""Fused kernels: several operations in one autograd function, with gradients written over what is no longer needed.

Sources: liger-kernel 0.8.5 (ops/rms_norm.py, rope.py, swiglu.py, cross_entropy.py, fused_linear_cross_entropy.py), fms-acceleration-foak
(kernels/unsloth, fused_ops/liger_ce), TRL 1.16 (kernels/chunked_logprob.py).
"""

from __future__ import annotations

from collections.abc import Callable

from calc.autograd.storage import GRADIENTS, Storage, active
from calc.autograd.tensor import Shape, Tensor, empty, record


def rms_norm(x: Tensor, weight: Tensor, *, apart: bool) -> Tensor:
    """RMSNorm as one kernel: saves x and the reciprocal root of each row in fp32.

    The gradient of x is written over the incoming one, or to memory of its own if it goes `apart`. The weight's is first summed in fp32 by each
    multiprocessor on its own (left out: under 3 MB).
    """
    shape, dtype, weight_shape, weight_dtype = x.shape, x.dtype, weight.shape, weight.dtype
    trained = weight.requires_grad

    def backward(g: Tensor) -> tuple[Tensor | None, ...]:
        gx = empty(shape, dtype, "rms_norm backward", g.heads_first) if apart else g
        return gx, empty(weight_shape, weight_dtype, "rms_norm weight gradient") if trained else None

    rows = (*shape[:-1], 1)
    return record(
        "rms_norm", shape, dtype, (x, weight), backward, (x.storage, weight.storage),
        heads_first=x.heads_first, extra=((rows, "fp32", "rms_norm rstd"),),
    )  # fmt: skip


def rotary(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """x turned in place; keeps the tables, and turns the gradient back in place, once it lies token by token."""
    shape, dtype = x.shape, x.dtype

    def backward(g: Tensor) -> tuple[Tensor]:
        return (empty(shape, dtype, "reshape") if g.heads_first else g,)

    return record(
        "rope", shape, dtype, (x,), backward, (cos.storage, sin.storage), result=x.storage, heads_first=x.heads_first
    )


def gated(gate: Tensor, up: Tensor, name: str) -> Tensor:
    """activation(gate)·up as one kernel: saves both and writes their gradients over them."""
    shape, dtype = gate.shape, gate.dtype

    def backward(saved: tuple[Storage, ...], g: Tensor) -> tuple[Tensor, ...]:
        return tuple(Tensor(shape, dtype, storage) for storage in saved)

    return record(f"{name} product", shape, dtype, (gate, up), backward, (gate.storage, up.storage), takes_saved=True)


def cross_entropy_over_logits(logits: Tensor, labels: Tensor) -> Tensor:
    """Liger's cross-entropy: the gradient is written over the logits in the forward pass and is all that is kept."""
    shape, dtype = logits.shape, logits.dtype

    def backward(saved: tuple[Storage, ...], g: Tensor) -> tuple[Tensor]:
        return (Tensor(shape, dtype, saved[0]),)

    losses = empty((shape[0],), dtype, "losses")
    ignored = empty((shape[0],), "bool", "target mask")
    largest = [empty((shape[0],), "i64", "masked labels"), empty((1,), "i64", "largest label")]
    del largest
    loss = record("liger_cross_entropy", (1,), dtype, (logits,), backward, (logits.storage,), takes_saved=True)
    del losses, ignored
    return loss


VOCABULARY_PIECE = 65536
"""Columns that one program of Unsloth's cross-entropy takes; larger vocabularies are done in pieces."""


def cross_entropy_over_logits_in_backward(logits: Tensor, labels: Tensor) -> Tensor:
    """Unsloth's cross-entropy, as foak has it: keeps the logits, and writes the gradient over them in the backward pass."""
    shape, dtype = logits.shape, logits.dtype
    rows, pieces = shape[0], -(-shape[1] // VOCABULARY_PIECE)

    def backward(saved: tuple[Storage, ...], g: Tensor) -> tuple[Tensor]:
        return (Tensor(shape, dtype, saved[0]),)

    losses = empty((rows,), "fp32", "losses")
    partial = empty((rows, pieces), "fp32", "log-sum-exp") if pieces > 1 else None
    loss = record(
        "fast_cross_entropy", (1,), "fp32", (logits,), backward, (logits.storage, labels.storage),
        extra=(((rows,), "fp32", "log-sum-exp"),), takes_saved=True,
    )  # fmt: skip
    del losses, partial
    return loss


def power_of_two(least: int) -> int:
    """The first power of two that is no smaller."""
    size = 1
    while size < least:
        size *= 2
    return size


def chunk_of(rows: int, vocab_size: int, hidden_size: int) -> int:
    """Tokens that the fused head takes at once, so that their logits are about as large as the hidden states of all."""
    chunk = power_of_two(-(-rows // -(-vocab_size // hidden_size)))
    return chunk if chunk < rows else rows


def _finished(x: Tensor, weight: Tensor, grad_x: Tensor, grad_weight: Tensor | None) -> Tensor:
    """The loss of a fused head, which made the gradients in its forward pass and hands them out in the backward."""

    def backward(g: Tensor) -> tuple[Tensor | None, ...]:
        grad_x.storage.become(active.ledger.kind)
        return grad_x, grad_weight

    kept = (grad_x.storage,) if grad_weight is None else (grad_x.storage, grad_weight.storage)
    return record("fused_linear_cross_entropy", (1,), "fp32", (x, weight), backward, kept)


def _gradients(x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor | None]:
    grad_x = empty(x.shape, x.dtype, "fused head input gradient")
    if not weight.requires_grad:
        return grad_x, None
    grad_weight = empty(weight.shape, weight.dtype, "fused head weight gradient")
    grad_weight.storage.become(GRADIENTS)
    return grad_x, grad_weight


def fused_head_liger(x: Tensor, weight: Tensor, autocast: str | None, lower: Callable[[Tensor], Tensor]) -> Tensor:
    """Liger's fused head and cross-entropy: logits of a few tokens at a time, gradients made at once.

    x: (rows, hidden_size). The logits have one buffer, unless autocast casts what is multiplied: then each chunk has its own, the transposed
    weight is cast for each, and the weight as it is through `lower`, which remembers it if it is trained.
    """
    rows, hidden = x.shape
    vocab = weight.shape[0]
    chunk = chunk_of(rows, vocab, hidden)
    grad_x, grad_weight = _gradients(x, weight)
    losses, ignored = empty((rows,), "fp32", "losses"), empty((rows,), "bool", "target mask")
    if autocast is None or x.dtype == weight.dtype == autocast:
        logits = empty((chunk, vocab), x.dtype, "logits of a chunk")
        del logits
    else:
        for _ in range(2 if chunk < rows else 1):
            logits = _product(x, weight, chunk, autocast)
            lowered = lower(weight)
            part = empty((chunk, hidden), autocast, "mm input gradient")
            del part, lowered
            again = empty((chunk, hidden), autocast, "cast") if grad_weight is not None else None
            del again, logits
    del losses, ignored
    return _finished(x, weight, grad_x, grad_weight)


def _product(x: Tensor, weight: Tensor, chunk: int, dtype: str) -> Tensor:
    """A chunk's logits, with what autocast casts for them."""
    part = empty((chunk, x.shape[1]), dtype, "cast") if x.dtype != dtype else None
    turned = empty(weight.shape, dtype, "cast") if weight.dtype != dtype else None
    logits = empty((chunk, weight.shape[0]), dtype, "logits of a chunk")
    del part, turned
    return logits


def fused_head_foak(x: Tensor, weight: Tensor, autocast: str | None, lower: Callable[[Tensor], Tensor]) -> Tensor:
    """The older fused head that foak carries: each chunk's logits in 16 bits, in fp32, in 16 bits again and once more scaled.

    The last two outlive their chunk, so from the second chunk on they meet the next one's.
    """
    rows, hidden = x.shape
    vocab, dtype = weight.shape[0], autocast or x.dtype
    chunk = chunk_of(rows, vocab, hidden)
    grad_x, grad_weight = _gradients(x, weight)
    losses = empty((rows,), "fp32", "losses")
    scaled = logits = None
    for _ in range(2 if chunk < rows else 1):
        logits = _product(x, weight, chunk, dtype)
        logits = empty((chunk, vocab), "fp32", "logits of a chunk")
        logits = empty((chunk, vocab), dtype, "gradient of a chunk")
        scaled = empty((chunk, vocab), dtype, "gradient of a chunk, scaled")
        lowered = lower(weight)
        part = empty((chunk, hidden), dtype, "mm input gradient")
        del part, lowered
    del scaled, logits, losses
    return _finished(x, weight, grad_x, grad_weight)


CUT_ROWS = 128
"""Tokens that share a lock in cut cross-entropy's forward kernel."""
CUT_COLUMNS = 64
"""Columns that share one in its backward kernel."""


def cut_cross_entropy(x: Tensor, weight: Tensor, rows: int, *, capped: bool) -> Tensor:
    """Apple's cut cross-entropy, as Unsloth has it: logits live in the kernels' own memory; of each token the log-sum-exp is kept, of each vocabulary
    entry the mean logit, by which the backward pass sorts to leave out blocks without a gradient.

    x: (rows, hidden_size) with the last token of each sequence, which has no label; `rows` have one. A cap on the logits makes one more number for each.
    """
    shape, dtype, weight_shape, weight_dtype = x.shape, x.dtype, weight.shape, weight.dtype
    trains, needs = weight.requires_grad, x.requires_grad
    vocab, hidden = weight_shape
    locks = -(-hidden // CUT_COLUMNS)

    def backward(g: Tensor) -> tuple[Tensor | None, ...]:
        values, places = empty((vocab,), "fp32", "sort"), empty((vocab,), "i64", "sort")
        del values
        order = empty((vocab,), "i32", "order of the vocabulary")
        del places
        gx = empty(shape, dtype, "gradient of the hidden states")
        gw = empty(weight_shape, dtype, "gradient of the head") if trains else None
        held = [empty((-(-n // locks), locks), "i32", "locks") for n in (rows, vocab)]
        if gw is not None and weight_dtype != dtype:
            gw = empty(weight_shape, weight_dtype, "gradient cast")
        del order, held
        return gx if needs else None, gw

    mask = empty((rows,), "bool", "has a label")
    wide = empty((rows, 2), "i64", "nonzero")
    del mask
    narrow = empty((rows, 2), "i32", "nonzero")
    del wide
    places = empty((rows,), "i64", "places with a label")
    del narrow
    largest = empty((rows,), "fp32", "log-sum-exp")
    held = [empty((-(-rows // CUT_ROWS),), "i32", "locks")]
    means = empty((vocab,), "fp32", "mean logits")
    held.clear()
    chosen = empty((rows,), "fp32", "logits of the labels")
    if capped:
        chosen = empty((rows,), "fp32", "capped logits")
    loss = record(
        "cut_cross_entropy", (1,), "fp32", (x, weight), backward,
        (x.storage, weight.storage, largest.storage, means.storage), pinned=(places.storage,),
    )  # fmt: skip
    del chosen
    return loss


TILE_TOKENS = 4096
"""Tokens of one tile of TRL's chunked loss."""
TILE_COLUMNS = 32768
"""Vocabulary entries of one tile."""


def tiled_log_probabilities(x: Tensor, weight: Tensor, product_dtype: str) -> Tensor:
    """TRL's ChunkedLogProbFunction: logits in tiles of tokens and vocabulary, made once more in the backward pass, gradients summed in fp32.

    x: (rows, hidden_size). Saves x, and for each row its label, log-partition and entropy. The result is one number per row.
    """
    rows, shape, dtype = x.shape[0], x.shape, x.dtype
    weight_shape, weight_dtype = weight.shape, weight.dtype
    trains, needs = weight.requires_grad, x.requires_grad
    tile: Shape = (rows if rows < TILE_TOKENS else TILE_TOKENS, TILE_COLUMNS)
    columns: Shape = (weight_shape[0] if weight_shape[0] < TILE_COLUMNS else TILE_COLUMNS, shape[1])

    def products() -> Tensor:
        buffer = empty(tile, product_dtype, "tile of logits")
        rest = [
            empty((tile[0], shape[1]), product_dtype, "cast") if dtype != product_dtype else None,
            empty(columns, product_dtype, "cast") if weight_dtype != product_dtype else None,
        ]
        del rest
        return buffer

    def backward(g: Tensor) -> tuple[Tensor | None, ...]:
        each = empty((rows,), "fp32", "masked_scatter backward")
        wide_x = empty(shape, "fp32", "gradient in fp32") if needs else None
        wide_weight = empty(weight_shape, "fp32", "gradient in fp32") if trains else None
        buffer = products()
        gx = empty(shape, dtype, "gradient cast") if wide_x is not None and dtype != "fp32" else wide_x
        gw = (
            empty(weight_shape, weight_dtype, "gradient cast")
            if wide_weight is not None and weight_dtype != "fp32"
            else wide_weight
        )
        del buffer, each
        return gx, gw

    labels = [empty((rows,), "bool", "label mask"), empty((rows,), "i64", "labels")]
    statistics = [empty((rows,), "fp32", "running statistics") for _ in range(7)]
    buffer = products()
    statistics += [empty((rows,), "fp32", "log-partition, log-probabilities, entropy") for _ in range(4)]
    del buffer, labels
    y = record(
        "chunked_log_probabilities", (rows,), "fp32", (x, weight), backward, (x.storage, weight.storage),
        extra=(
            ((rows,), "bool", "label mask"), ((rows,), "i64", "labels"),
            ((rows,), "fp32", "log-partition"), ((rows,), "fp32", "entropy"),
        ),
    )  # fmt: skip
    del statistics
    return y
