"""Scaled-dot-product attention as PyTorch's kernels do it. q, k, v: (batch, heads, length, head_dim)."""

from __future__ import annotations

from calc.autograd.tensor import Tensor, empty, record


def flash(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The flash kernel: saves q, k, v, its result, a log-sum-exp in fp32 per head and token, and a seed and offset of 24 bytes.

    Its result lies in memory as q does.
    """
    batch, heads, length, _ = q.shape
    layouts, dtype = [(t.shape, t.heads_first) for t in (q, k, v)], q.dtype
    needs = (q.requires_grad, k.requires_grad, v.requires_grad)

    def backward(g: Tensor) -> tuple[Tensor | None, ...]:
        made = [empty(s, dtype, "flash attention backward", first) for s, first in layouts]
        return tuple(m if n else None for m, n in zip(made, needs, strict=True))

    return record(
        "flash attention", (batch, heads, length, v.shape[-1]), dtype, (q, k, v), backward, (q.storage, k.storage, v.storage), saves_output=True,
        heads_first=q.heads_first,
        extra=(((batch, heads, length), "fp32", "log-sum-exp"), ((2,), "i64", "seed"), ((1,), "i64", "offset")),
    )  # fmt: skip


def efficient(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    """The memory-efficient kernel, which takes a mask: also saves the mask, and a log-sum-exp padded to 32 tokens."""
    batch, heads, length, _ = q.shape
    shapes, dtype = (q.shape, k.shape, v.shape), q.dtype
    needs = (q.requires_grad, k.requires_grad, v.requires_grad)
    saved = [q.storage, k.storage, v.storage]
    if mask is not None:
        saved.append(mask.storage)

    def backward(g: Tensor) -> tuple[Tensor | None, ...]:
        made = [empty(s, dtype, "efficient attention backward") for s in shapes]
        return tuple(m if n else None for m, n in zip(made, needs, strict=True))

    padded = -(-length // 32) * 32
    return record(
        "efficient attention", (batch, heads, length, v.shape[-1]), dtype, (q, k, v), backward, saved, saves_output=True,
        extra=(((batch, heads, padded), "fp32", "log-sum-exp"), ((1,), "i64", "seed"), ((1,), "i64", "offset")),
    )  # fmt: skip
