"""Attention as transformers dispatches it: eager, sdpa (flash or, with a mask, memory-efficient), flash-attention 2."""

from __future__ import annotations

from calc.autograd import attention as kernels
from calc.autograd.elementwise import add_broadcast, cast, dropout, from_output, scale, softmax
from calc.autograd.linear import bmm
from calc.autograd.shapes import contiguous, heads, picked, repeat, rows
from calc.autograd.tensor import Tensor, empty, view
from calc.model.modules import Modules


def split(m: Modules, x: Tensor, num_heads: int, head_dim: int) -> Tensor:
    """(rows, heads·head_dim) as (batch, heads, length, head_dim)."""
    return heads(x, m.batch, m.length, num_heads, head_dim)


def causal_mask(m: Modules, dtype: str, *, windowed: bool = False) -> Tensor | None:
    """The mask that transformers makes once per forward: none where the kernel knows that it is causal."""
    shape = (m.batch, 1, m.length, m.length)
    if m.recipe.attention == "eager":
        return empty(shape, dtype, "mask")
    if m.recipe.attention == "sdpa" and m.recipe.padded:
        return empty(shape, "bool", "mask")
    if m.recipe.attention == "sdpa" and windowed:
        return view(empty((1, *shape[1:]), "bool", "mask"), shape)  # alike for every sequence
    return None


def attention(m: Modules, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, *, dropout_p: float = 0.0, softcap: bool = False) -> Tensor:
    """q, k, v as (batch, heads, length, head_dim) to (rows, heads·head_dim)."""
    num_heads = q.shape[1]
    if m.recipe.attention == "eager":
        out = _eager(m, q, k, v, mask, dropout_p, softcap)
    elif m.recipe.attention == "sdpa":
        out = _sdpa(m, q, k, v, mask)
    else:
        out = _flash(m, q, k, v)
    return rows(out, (m.rows, num_heads * v.shape[-1]))


def _lowered(m: Modules, x: Tensor) -> Tensor:
    return x if m.recipe.autocast is None else cast(x, m.recipe.autocast)


def _eager(m: Modules, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout_p: float, softcap: bool) -> Tensor:
    """eager_attention_forward."""
    batch, num_heads, length, _ = q.shape
    scores = (batch, num_heads, length, length)
    dtype = q.dtype
    k = repeat(k, num_heads)
    v = repeat(v, num_heads)
    weights = scale(matmul(m, q, k, scores))
    if softcap:
        weights = scale(weights)
        weights = from_output(weights, "tanh")
        weights = scale(weights)
    if mask is not None:
        weights = add_broadcast(weights, mask)
    weights = cast(softmax(cast(weights, "fp32")), dtype)
    weights = dropout(weights, dropout_p)
    out = matmul(m, weights, v, (batch, num_heads, length, v.shape[-1]))
    m.held.append(weights)  # returned beside the result, and kept under a name that nobody reads
    return contiguous_rows(out)


def contiguous_rows(out: Tensor) -> Tensor:
    """transpose(1, 2).contiguous()."""
    from calc.autograd.tensor import record, view

    shape, dtype = out.shape, out.dtype
    return record("clone", shape, dtype, (out,), lambda g: (view(g, shape, False),), heads_first=False)


def matmul(m: Modules, a: Tensor, b: Tensor, shape: tuple[int, ...]) -> Tensor:
    a, b = _lowered(m, a), _lowered(m, b)
    return bmm(_batched(a), _batched(b), shape)


def _batched(x: Tensor) -> Tensor:
    """(batch, heads, ...) as one axis: a copy where the heads do not lie together."""
    return contiguous(x) if x.shape[0] > 1 else x


FLASH_HEAD_DIM = 256
"""The widest head that the flash kernel takes."""


def _sdpa(m: Modules, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    """sdpa_attention_forward: without a mask, 16-bit numbers go to the flash kernel where the card has it, which takes few key heads as they are.

    The memory-efficient kernel takes everything else, but not few key heads: those are repeated first, or PyTorch falls back to its own formula.
    """
    q, k, v = _lowered(m, q), _lowered(m, k), _lowered(m, v)
    bare = mask is None and q.shape[-1] <= FLASH_HEAD_DIM
    if not (bare and m.recipe.few_key_heads):
        k = repeat(k, q.shape[1])
        v = repeat(v, q.shape[1])
    if bare and q.dtype != "fp32" and m.recipe.flash and q.shape[-1] == v.shape[-1]:
        return kernels.flash(q, k, v, scratch=m.recipe.scratch)
    return kernels.efficient(q, k, v, None if mask is None else _additive(m, mask, q.dtype))


def _flash(m: Modules, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """flash_attention_forward: the flash-attn package. fp32 goes down to the products' dtype; of a padded batch only the real tokens are computed, in
    copies, at worst all of them."""
    base = m.recipe.quantized
    if q.dtype == "fp32":
        to = m.recipe.autocast or (base.compute if base is not None else m.recipe.dtype)
        q, k, v = cast(q, to), cast(k, to), cast(v, to)
    if m.recipe.padded:
        q, k, v = picked(q), picked(k), picked(v)
    out = kernels.flash(q, k, v, words=(2,), scratch=m.recipe.scratch)
    return picked(out) if m.recipe.padded else out


def _additive(m: Modules, mask: Tensor, dtype: str) -> Tensor:
    """PyTorch turns a boolean mask into an additive one at each call, and pads its rows to 16."""
    added = empty(mask.shape, dtype, "zeros_like")
    flipped = empty(mask.shape, "bool", "logical_not")
    del flipped
    if m.length % 16:
        added = empty((*mask.shape[:-1], -(-m.length // 16) * 16), dtype, "pad")
    return added
