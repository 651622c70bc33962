"""Scaled-dot-product attention as PyTorch's kernels do it. q, k, v: (batch, heads, length, head_dim)."""

from __future__ import annotations

from calc.autograd.storage import active
from calc.autograd.tensor import Broad, Tensor, empty, kept, record, view


def flash(q: Tensor, k: Tensor, v: Tensor, *, words: tuple[int, ...] = (2, 1)) -> Tensor:
    """The flash kernel: saves q, k, v, its result, a log-sum-exp in fp32 per head and token, and a seed and offset in tensors of that many `words`.

    Its result lies in memory as q does. Scratch of the backward (flash_api.cpp, mha_bwd): q's gradient
    in fp32 with tokens padded to 128, a row sum, and the gradients of grouped keys and values for every query head.
    """
    batch, heads, length, width = q.shape
    layouts, dtype = [(t.shape, t.heads_first) for t in (q, k, v)], q.dtype
    needs = (q.requires_grad, k.requires_grad, v.requires_grad)
    grouped = k.shape[1] != heads

    def backward(g: Tensor) -> tuple[Tensor | None, ...]:
        made = [empty(s, dtype, "flash attention backward", first) for s, first in layouts]
        if active.ledger.scratch:
            padded = -(-length // 128) * 128
            held = [
                empty((batch, heads, padded), "fp32", "flash row sums"),
                empty((batch, heads, padded, -(-width // 32) * 32), "fp32", "flash gradient of q"),
            ]
            if grouped:
                held += [empty((batch, heads, length, width), dtype, "flash gradients of every head") for _ in "kv"]
            del held
        return tuple(m if n else None for m, n in zip(made, needs, strict=True))

    return record(
        "flash attention", (batch, heads, length, v.shape[-1]), dtype, (q, k, v), backward, (kept(k), kept(q), kept(v)), saves_output=True,
        heads_first=q.heads_first, extra=(((batch, heads, length), "fp32", "log-sum-exp"), *[((n,), "i64", "seed and offset") for n in words]),
    )  # fmt: skip


def efficient(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, *, calls: int = 1) -> Tensor:
    """The memory-efficient kernel, which takes a mask: also saves the mask, and a log-sum-exp padded to 32 tokens. `calls` that are alike
    are counted as one.

    Fewer heads of keys and values are broadcast; their gradients are made for every head and summed. A mask that is trained
    (batch, heads, length, length of the keys) gets a gradient whose rows are padded to 16.
    """
    batch, heads, length, _ = q.shape
    shapes, dtype = (q.shape, k.shape, v.shape), q.dtype
    needs = (q.requires_grad, k.requires_grad, v.requires_grad)
    saved = [kept(t) for t in (mask, k, q, v) if t is not None]
    trained = mask is not None and mask.requires_grad
    scores = (batch, heads, length, k.shape[2])

    def backward(g: Tensor) -> tuple[Tensor | Broad | None, ...]:
        made = [empty((batch, heads, *s[2:]), dtype, "efficient attention backward") for s in shapes]
        by_mask = None
        if trained:
            columns = -(-scores[-1] // 16) * 16
            by_mask = view(empty((*scores[:-1], columns), dtype, "efficient attention backward"), scores)
        first = tuple(
            (m if s[1] == heads else Broad(m, s)) if n else None for m, s, n in zip(made, shapes, needs, strict=True)
        )
        return (*first, by_mask) if trained else first

    padded = -(-length // 32) * 32
    inputs = (q, k, v, mask) if mask is not None and trained else (q, k, v)
    return record(
        "efficient attention", (batch, heads, length, v.shape[-1]), dtype, inputs, backward, saved, saves_output=True,
        extra=(((batch, heads, padded), "fp32", "log-sum-exp"), ((calls,), "i64", "seed"), ((calls,), "i64", "offset")),
    )  # fmt: skip
