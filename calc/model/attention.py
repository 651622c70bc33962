"""Attention as transformers dispatches it: eager, sdpa (flash or, with a mask, memory-efficient), flash-attention 2."""

from __future__ import annotations

from dataclasses import dataclass

from calc.autograd import attention as kernels
from calc.autograd.elementwise import (
    add,
    add_broadcast,
    add_in_place,
    cast,
    dropout,
    from_output,
    safe_softmax,
    scale,
    softmax,
    where_else,
)
from calc.autograd.linear import bmm
from calc.autograd.shapes import contiguous, expand, heads, interleaved, padded_rows, picked, repeat, rows
from calc.autograd.storage import active
from calc.autograd.symbol import fills
from calc.autograd.tensor import Tensor, empty, view
from calc.model.modules import Modules


def split(m: Modules, x: Tensor, num_heads: int, head_dim: int) -> Tensor:
    """(rows, heads·head_dim) as (batch, heads, length, head_dim)."""
    return heads(x, m.batch, m.length, num_heads, head_dim)


def causal_mask(m: Modules, dtype: str, *, windowed: bool = False, chunked: bool = False) -> Tensor | None:
    """The mask that transformers makes once per forward: none where the kernel knows that it is causal."""
    shape = (m.batch, 1, m.length, m.length)
    if m.recipe.attention == "eager":
        if m.recipe.one_mask and not m.recipe.padded:
            return view(empty((1, *shape[1:]), dtype, "mask"), shape)
        return empty(shape, dtype, "mask")
    if m.recipe.attention == "sdpa" and (m.recipe.padded or chunked):
        return empty(shape, "bool", "mask")
    if m.recipe.attention == "sdpa" and windowed:
        return view(empty((1, *shape[1:]), "bool", "mask"), shape)  # alike for every sequence
    return None


@dataclass(frozen=True, slots=True)
class Eager:
    """How a class's own eager attention differs from the usual one."""

    wide_softmax: bool = True
    """The softmax is asked for in fp32."""
    lowered: bool = True
    """Its result is cast back."""
    wide_scores: bool = False
    """Queries and keys are cast to fp32 before their product."""


USUAL = Eager()


def bidirectional_mask(m: Modules, dtype: str) -> Tensor | None:
    """The mask of a model in which every token sees every token: none, unless there is padding."""
    if not m.recipe.padded or m.recipe.attention.startswith("flash"):
        return None
    shape = (m.batch, 1, m.length, m.length)
    return empty(shape, dtype if m.recipe.attention == "eager" else "bool", "mask")


def attention(
    m: Modules,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    *,
    dropout_p: float = 0.0,
    softcap: bool = False,
    eager: Eager = USUAL,
    bias: Tensor | None = None,
    causal: bool = False,
) -> Tensor:
    """q, k, v as (batch, heads, length, head_dim) to (rows, heads·head_dim).

    `bias` (1, heads, length, length of the keys) is added to the scores; with one, `causal` says that later tokens are to be masked in it.
    """
    num_heads = q.shape[1]
    if m.recipe.attention == "eager":
        out = _eager(m, q, k, v, mask, dropout_p, softcap, eager, bias)
    elif m.recipe.attention == "sdpa" and bias is not None:
        out = _biased(m, q, k, v, mask, bias, causal)
    elif m.recipe.attention == "sdpa":
        out = _sdpa(m, q, k, v, mask, dropout_p)
    else:
        out = _flash(m, q, k, v)
    return rows(out, (m.rows, num_heads * v.shape[-1]))


def lowered(m: Modules, x: Tensor) -> Tensor:
    """x as autocast hands it to a product."""
    return x if m.recipe.autocast is None else cast(x, m.recipe.autocast)


def _eager(
    m: Modules,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    dropout_p: float,
    softcap: bool,
    how: Eager,
    bias: Tensor | None,
) -> Tensor:
    """eager_attention_forward."""
    batch, num_heads, length, _ = q.shape
    scores = (batch, num_heads, length, k.shape[2])
    dtype = q.dtype
    if how.wide_scores:
        dtype = v.dtype
        weights = scale(matmul(m, cast(q, "fp32"), cast(k, "fp32"), scores))
    else:
        k = repeat(k, num_heads)
        v = repeat(v, num_heads)
        weights = scale(matmul(m, q, k, scores))
    if softcap:
        weights = scale(weights)
        weights = from_output(weights, "tanh")
        weights = scale(weights)
    if bias is not None:
        weights = add_broadcast(weights, bias) if batch > 1 else add(weights, bias)
    if mask is not None:
        weights = add_broadcast(weights, mask)
    shares = softmax(weights, "fp32" if how.wide_softmax or m.recipe.autocast is not None else None)
    weights = cast(shares, dtype) if how.lowered else shares  # one expression there, so the scores live until its end
    del shares
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
    """a @ b under autocast, which casts from the last argument to the first; both are held until it is done."""
    second = lowered(m, b)
    first = lowered(m, a)
    return bmm(_batched(first), _batched(second), shape)


def broadcast_matmul(m: Modules, a: Tensor, b: Tensor, shape: tuple[int, ...]) -> Tensor:
    """a @ b, where b may have one head for all of a's; with several sequences it is copied to each."""
    b, a = lowered(m, b), lowered(m, a)
    heads = a.shape[1]
    if b.shape[1] != heads:
        few = b.shape
        b = expand(b, (few[0], heads, *few[2:]))
    return bmm(_batched(a), _batched(b), shape)


def _batched(x: Tensor) -> Tensor:
    """(batch, heads, ...) as one axis: a copy where the heads do not lie together."""
    return contiguous(x) if x.shape[0] > 1 else x


FLASH_HEAD_DIM = 256
"""The widest head that the flash kernel takes."""


def _sdpa(m: Modules, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout_p: float) -> Tensor:
    """sdpa_attention_forward: without a mask, 16-bit numbers go to the flash kernel where the card has it, which takes few key heads as they are.

    The memory-efficient kernel takes everything else, but not few key heads: unless they were repeated, PyTorch falls back to its formula.
    """
    same = q.shape[-1] == v.shape[-1] and q.shape[-1] <= FLASH_HEAD_DIM
    if mask is not None or not same or not m.recipe.few_key_heads:
        k = repeat(k, q.shape[1])
        v = repeat(v, q.shape[1])
    q, k, v = lowered(m, q), lowered(m, k), lowered(m, v)
    if mask is None and same and q.dtype != "fp32" and m.recipe.flash:
        return kernels.flash(q, k, v)
    if k.shape[1] != q.shape[1]:
        return _formula(m, q, k, v, dropout_p)
    return kernels.efficient(q, k, v, None if mask is None else additive(m, mask, q.dtype))


def _biased(m: Modules, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, bias: Tensor, causal: bool) -> Tensor:
    """sdpa_attention_forward with a bias of the scores: mask and bias become one tensor, which the memory-efficient kernel takes."""
    scores = (*q.shape[:3], k.shape[2])
    lower = _lower(m) if mask is None and causal else None
    if mask is not None:
        chosen = where_else(mask, bias, scores)
    elif lower is not None:
        chosen = where_else(lower, bias, bias.shape)
    else:
        chosen = bias
    added = contiguous(chosen)
    del chosen, lower
    q, k, v = lowered(m, q), lowered(m, k), lowered(m, v)
    given = lowered(m, added)
    if not fills(scores[-1], 16):
        given = padded_rows(given, -(-scores[-1] // 16) * 16)
    if given.shape != scores:
        given = expand(given, scores)
    out = kernels.efficient(q, k, v, given)
    del added
    return out


def _lower(m: Modules) -> Tensor:
    """Which tokens are not later: (length, length)."""
    rows, columns = empty((m.length,), "i64", "arange"), empty((m.length,), "i64", "arange")
    lower = empty((m.length, m.length), "bool", "ge")
    del rows, columns
    return lower


def _formula(m: Modules, q: Tensor, k: Tensor, v: Tensor, dropout_p: float) -> Tensor:
    """_scaled_dot_product_attention_math: every score, in fp32, with a causal mask of its own."""
    dtype, num_heads = q.dtype, q.shape[1]
    scores_shape = (*q.shape[:3], q.shape[2])
    q, k, v = cast(q, "fp32"), cast(k, "fp32"), cast(v, "fp32")
    q = scale(q)
    mask = _causal(m)
    few_k, few_v = k, v
    k, v = interleaved(k, num_heads), interleaved(v, num_heads)
    scores = bmm(_batched(q), scale(k), scores_shape)
    scores = add_in_place(scores, mask) if active.ledger.scratch else add_broadcast(scores, mask)
    weights = dropout(safe_softmax(scores), dropout_p)
    del scores
    returned = cast(weights, dtype)
    out = cast(bmm(weights, v, (*scores_shape[:3], v.shape[-1])), dtype)
    del few_k, few_v, returned
    return out


def _causal(m: Modules) -> Tensor:
    """An additive mask of the sequence, out of a boolean one."""
    whole = empty((m.length, m.length), "bool", "ones")
    lower = empty((m.length, m.length), "bool", "tril")
    del whole
    mask = empty((m.length, m.length), "fp32", "where")
    del lower
    return mask


def _flash(m: Modules, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """flash_attention_forward: the flash-attn package. fp32 goes down to the products' dtype; of a padded batch only the real tokens are computed, in
    copies, at worst all of them."""
    base = m.recipe.quantized
    if q.dtype == "fp32":
        to = m.recipe.autocast or (base.compute if base is not None else m.recipe.dtype)
        q, k, v = cast(q, to), cast(k, to), cast(v, to)
    if m.model_type in m.recipe.flash_repeats:
        k, v = repeat(k, q.shape[1]), repeat(v, q.shape[1])
    if m.recipe.padded:
        q, k, v = picked(q), picked(k), picked(v)
    out = kernels.flash(q, k, v, words=(2,))
    return picked(out) if m.recipe.padded else out


def additive(m: Modules, mask: Tensor, dtype: str) -> Tensor:
    """PyTorch turns a boolean mask into an additive one at each call, and pads its rows to 16."""
    if mask.dtype == "bool":
        added = empty(mask.shape, dtype, "zeros_like")
        flipped = empty(mask.shape, "bool", "logical_not")
        del flipped
    else:
        added = cast(mask, dtype)
    if not fills(m.length, 16):
        added = empty((*mask.shape[:-1], -(-m.length // 16) * 16), dtype, "pad")
    return added
