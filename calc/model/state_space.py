"""Mamba 2's mixer: a projection, a short convolution, and a state space that is computed chunk by chunk.

Mirrors transformers 5.24.0 models/mamba2/modeling_mamba2.py, mamba2_chunk_scan and Mamba2Mixer, which other classes repeat word for word; the
packages mamba-ssm and causal-conv1d are taken to be absent. Shapes: b batch, c chunks, l tokens of a chunk, h heads, p head_dim, n state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from calc.autograd.elementwise import (
    activation,
    add,
    add_broadcast,
    add_constant,
    cast,
    clamp,
    clone,
    from_output,
    mean,
    mul,
    neg,
    rsqrt,
    square,
)
from calc.autograd.linear import bmm
from calc.autograd.scan import cumsum, padded, segment_sum, sub_from
from calc.autograd.shapes import cat, expand, part, reordered, reshape
from calc.autograd.shapes import split as split_last
from calc.autograd.symbol import fills
from calc.autograd.tensor import Shape, Tensor, empty, view
from calc.model.config import Config, ConfigError
from calc.model.modules import Modules
from calc.model.short_convolution import causal_conv, unpadded


@dataclass(frozen=True)
class StateSpace:
    """Sizes of Mamba 2's mixer."""

    heads: int
    head_dim: int
    state: int
    groups: int
    """Groups of heads that share what goes into the state and out of it."""
    conv: int
    """Tokens that the convolution sees."""
    chunk: int
    conv_bias: bool = True
    proj_bias: bool = False
    out_bias: bool | None = None
    """Bias of the last projection, where it is not that of the first."""
    act: str = "silu"

    @property
    def width(self) -> int:
        """Of all heads together."""
        return self.heads * self.head_dim

    @property
    def conv_width(self) -> int:
        """Columns that are convolved: the heads', and those that become B and C."""
        return self.width + 2 * self.groups * self.state


def groups(config: Config, name: str, default: int, heads: int) -> int:
    """Groups of heads, as many in each."""
    count = config.integer(name, default=default, high=10**6)
    if heads // count * count != heads:
        raise ConfigError(name, f"should divide the number of heads ({heads}), not {count}")
    return count


def mixer(m: Modules, name: str, x: Tensor, s: StateSpace) -> Tensor:
    """Mamba2Mixer: (rows, hidden_size) in and out."""
    dtype, out = x.dtype, x.shape[1]
    x = unpadded(m, x)
    projected = m.linear(f"{name}.in_proj", x, s.width + s.conv_width + s.heads, s.proj_bias)
    fading = decay(m, name, s)
    gate, convolved, dt = split_last(projected, (s.width, s.conv_width, s.heads))
    convolved = causal_conv(m, f"{name}.conv1d", convolved, s.conv, s.conv_bias, s.act)
    convolved = unpadded(m, convolved)
    shared = s.groups * s.state
    x, into, out_of = split_last(convolved, (s.width, shared, shared))
    scanned = chunk_scan(m, name, x, dt, fading, into, out_of, s)
    normed = gated_norm(m, f"{name}.norm", scanned, gate, s.groups)
    return m.linear(f"{name}.out_proj", cast(normed, dtype), out, s.proj_bias)


def decay(m: Modules, name: str, s: StateSpace) -> Tensor:
    """-exp(A_log), for each head."""
    return neg(from_output(cast(m.weight(f"{name}.A_log", (s.heads,), "other"), "fp32"), "exp"))


def gated_norm(m: Modules, name: str, x: Tensor, gate: Tensor, groups: int) -> Tensor:
    """RMSNormGated: weight * normalised(x * silu(gate)), each group of columns by itself."""
    dtype, shape = x.dtype, x.shape
    weight = m.weight(f"{name}.weight", shape[1:], "norm")
    y = cast(x, "fp32")
    y = mul(y, activation(cast(gate, "fp32"), "silu"))
    grouped = reshape(y, (shape[0], groups, shape[1] // groups))
    variance = mean(square(grouped))
    grouped = mul(grouped, rsqrt(add_constant(variance)))
    y = reshape(grouped, shape)
    y = mul(weight, cast(y, dtype))
    del grouped, variance
    return y


def chunk_scan(
    m: Modules, name: str, x: Tensor, dt: Tensor, decay: Tensor, into: Tensor, out_of: Tensor, s: StateSpace
) -> Tensor:
    """mamba2_chunk_scan: x (rows, heads·head_dim), dt (rows, heads), B and C (rows, groups·state) to (rows, heads·head_dim) in fp32.

    B and C lie token by token, x still as the convolution laid it, head by head; a matrix product wants b, c and h joined in this order.
    What does not lie so is copied, unless there is only one chunk, or one sequence.
    """
    b, length, heads, p, n, size = m.batch, m.length, s.heads, s.head_dim, s.state, s.chunk
    chunks = -(-length // size)
    whole = chunks * size
    one = chunks == 1
    alone = one and b == 1

    dt = reshape(dt, (b, length, heads))
    dt_bias = cast(m.weight(f"{name}.dt_bias", (heads,), "bias"), dt.dtype)
    dt = add_broadcast(dt, dt_bias)
    del dt_bias
    dt = activation(dt if m.recipe.autocast is None else cast(dt, "fp32"), "softplus")
    dt = clamp(dt, 2)

    x = cast(reshape(x, (b, length, heads, p)), "fp32")
    into = _for_each_head(cast(reshape(into, (b, length, s.groups, n)), "fp32"), heads)
    out_of = _for_each_head(cast(reshape(out_of, (b, length, s.groups, n)), "fp32"), heads)
    skip = mul(view(m.weight(f"{name}.D", (heads,), "other"), (heads, 1)), padded(x, (b, whole, heads, p)))

    x = mul(x, cast(reshape(dt, (b, length, heads, 1)), "fp32"))
    decay = mul(decay, cast(dt, "fp32"))
    x, decay, into, out_of = [
        _chunked(t, chunks, size, turned)
        for t, turned in ((x, not one), (decay, False), (into, not one), (out_of, not one))
    ]
    decay = reshape(decay, (b, heads, chunks, size))
    sums = cumsum(decay)

    # within each chunk
    weights = from_output(segment_sum(decay, size), "exp")
    scores = contraction(m, (out_of, into), (b, chunks, heads, size, size), copies=(not alone, not alone), turned=False)
    masked = mul(scores, reshape(weights, scores.shape))
    diagonal = contraction(m, (masked, x), (b, chunks, heads, size, p), copies=(False, not one), turned=not alone)

    # what each chunk adds to the state
    left = from_output(sub_from(part(sums, (*sums.shape[:-1], 1)), sums), "exp")
    decayed = mul(into, reshape(left, (*into.shape[:-1], 1)))
    states = contraction(
        m, (decayed, x), (b, chunks, heads, p, n), copies=(not alone, not one), turned=not one, swapped=True
    )

    # from chunk to chunk
    before = empty((b, 1, heads, p, n), states.dtype, "zeros_like")
    states = cat((before, states), (b, chunks + 1, heads, p, n))
    ends = part(sums, (b, heads, chunks))
    between = from_output(segment_sum(padded(ends, (b, heads, chunks + 1)), chunks + 1), "exp")
    new = contraction(m, (between, states), (b, heads, chunks + 1, p, n), copies=(False, b != 1), turned=b != 1)
    states = part(new, (b, chunks, heads, p, n))

    # out of the states
    grown = from_output(sums, "exp")
    read = contraction(m, (out_of, states), (b, chunks, heads, size, p), copies=(not alone, not one), turned=not alone)
    across = mul(read, reshape(grown, (*read.shape[:-1], 1)))
    y = clone(add(diagonal, across))
    y = add(y, skip)
    y = reshape(y, (b, whole, heads, p))
    if not fills(length, size):
        y = part(y, (b, length, heads, p))
    del dt, x, decay, into, out_of, skip, sums, weights, scores, masked, diagonal, left, decayed, states, before
    del ends, between, new, grown, read, across
    return reshape(y, (m.rows, s.width))


def _for_each_head(x: Tensor, heads: int) -> Tensor:
    """(b, length, groups, n), each group as often as it has heads: a copy, whose gradient is summed."""
    b, length, groups, n = x.shape
    times = heads // groups
    if times != 1:
        x = expand(reshape(x, (b, length, groups, 1, n)), (b, length, groups, times, n))
    return reshape(clone(x), (b, length, heads, n))


def _chunked(x: Tensor, chunks: int, size: int, turned: bool) -> Tensor:
    """Tokens padded to whole chunks, and seen chunk by chunk; `turned` says that the gradient comes head by head and is laid out anew."""
    b, _, *each = x.shape
    x = padded(x, (b, chunks * size, *each))
    shape = (b, chunks, size, *each)
    return reordered(x, shape) if turned else reshape(x, shape)


def contraction(
    m: Modules,
    operands: Sequence[Tensor],
    shape: Shape,
    *,
    copies: Sequence[bool],
    turned: bool,
    swapped: bool = False,
) -> Tensor:
    """torch.einsum of two operands as the batched product that it becomes.

    copies: which operands are copied for it; swapped: the second stands first in the product; turned: the gradient of the result is copied.
    """
    to = m.recipe.autocast
    given = [t if to is None else cast(t, to) for t in operands]
    order = (1, 0) if swapped else (0, 1)
    first, second = [clone(given[i]) if copies[i] else given[i] for i in order]
    y = bmm(first, second, shape)
    return reordered(y, shape) if turned else y
