"""Mamba's mixer: a projection, a short convolution, and a state that is carried from token to token.

Mirrors transformers 5.24.0 models/mamba/modeling_mamba.py, MambaMixer and mamba_selective_scan, without mamba-ssm, causal-conv1d and mambapy:
a Python loop over the tokens. Shapes: b batch, i width, s tokens, n state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from calc.autograd.elementwise import (
    activation,
    add,
    add_broadcast,
    add_constant,
    cast,
    from_output,
    mean,
    mul,
    neg,
    rsqrt,
    square,
)
from calc.autograd.linear import bmm
from calc.autograd.scan import FIRST_STEPS, LAST_STEPS, outer, products_alike, stacked, steps_alike
from calc.autograd.shapes import part, reordered, reshape
from calc.autograd.shapes import split as split_last
from calc.autograd.tensor import Tensor, empty, record, view
from calc.model.adapters import read_directly
from calc.model.modules import Modules
from calc.model.norms import rms_norm
from calc.model.short_convolution import causal_conv, unpadded


@dataclass(frozen=True)
class SelectiveScan:
    """Sizes of Mamba's mixer."""

    width: int
    state: int
    rank: int
    """Columns that the step sizes are made from."""
    conv: int
    """Tokens that the convolution sees."""
    conv_bias: bool = True
    proj_bias: bool = False
    act: str = "silu"
    normed: Literal["bare", "weighted"] | None = None
    """Step sizes, B and C are normed, by norms without weights or with them."""
    offered: bool = True
    """All is first offered to a kernel that is not there, D and the bias of the step sizes in fp32."""


def mixer(m: Modules, name: str, x: Tensor, s: SelectiveScan) -> Tensor:
    """MambaMixer: (rows, hidden_size) in and out."""
    dtype, out = x.dtype, x.shape[1]
    source = unpadded(m, x)
    projected = _by_columns(m, m.linear(f"{name}.in_proj", source, 2 * s.width, s.proj_bias))
    decay = neg(from_output(cast(m.weight(f"{name}.A_log", (s.width, s.state), "other"), "fp32"), "exp"))
    skip, offset = m.weight(f"{name}.D", (s.width,), "other"), m.weight(f"{name}.dt_proj.bias", (s.width,), "bias")
    offered = [cast(t, "fp32") for t in (skip, offset)] if s.offered else []
    del offered
    x, gate = split_last(projected, (s.width, s.width))
    x = causal_conv(m, f"{name}.conv1d", x, s.conv, s.conv_bias, s.act)
    x = _column_by_column(m, unpadded(m, x))
    widths = (s.rank, s.state, s.state)
    steps, into, out_of = split_last(m.linear(f"{name}.x_proj", x, sum(widths)), widths)
    if s.normed is not None:
        steps = _normed(m, f"{name}.dt_layernorm", steps, s)
        into = _normed(m, f"{name}.b_layernorm", into, s)
        out_of = _normed(m, f"{name}.c_layernorm", out_of, s)
    steps = _turned(m, m.product(steps, read_directly(m, f"{name}.dt_proj", (s.width, s.rank))))
    offset = cast(offset, "fp32")
    scanned = scan(m, x, steps, decay, into, out_of, cast(skip, "fp32"), gate, offset)
    y = _column_by_column(m, cast(scanned, dtype))
    y = m.linear(f"{name}.out_proj", y, out, s.proj_bias)
    del source, projected  # names of the frame, as in the original
    return y


def _normed(m: Modules, name: str, x: Tensor, s: SelectiveScan) -> Tensor:
    if s.normed == "weighted":
        return rms_norm(m, name, x)
    y = cast(x, "fp32")
    return cast(mul(y, rsqrt(add_constant(mean(square(y))))), x.dtype)


def _by_columns(m: Modules, x: Tensor) -> Tensor:
    """Rows seen column by column, as they are used from now on: a view, whose gradient is copied back, unless there is one sequence."""
    return reshape(x, x.shape) if m.batch == 1 else reordered(x, x.shape)


def _column_by_column(m: Modules, x: Tensor) -> Tensor:
    """Rows that lie column by column, so that a product copies them first, unless there is one sequence."""
    shape = x.shape
    return record(
        "view", shape, x.dtype, (x,), lambda g: (view(g, shape, False),), result=x.storage, heads_first=m.batch != 1
    )


def _turned(m: Modules, x: Tensor) -> Tensor:
    shape, dtype, alone = x.shape, x.dtype, m.batch == 1
    return record("clone", shape, dtype, (x,), lambda g: (g if alone else empty(shape, dtype, "clone"),))


def scan(
    m: Modules,
    x: Tensor,
    dt: Tensor,
    decay: Tensor,
    into: Tensor,
    out_of: Tensor,
    skip: Tensor,
    gate: Tensor,
    offset: Tensor,
) -> Tensor:
    """mamba_selective_scan: x and dt (rows, width), B and C (rows, state) to (rows, width) in fp32."""
    b, length, width, n, dtype = m.batch, m.length, x.shape[1], into.shape[1], x.dtype
    x = reshape(x, x.shape)
    dt = add_broadcast(dt, cast(offset, dt.dtype))
    dt = activation(dt if m.recipe.autocast is None else cast(dt, "fp32"), "softplus")
    kept = from_output(outer(decay, reshape(dt, (b, width, length, 1)), (b, width, length, n)), "exp")
    wide = reshape(dt, (b, width, length, 1))
    given = outer(wide, cast(reshape(into, (b, 1, length, n)), "fp32"), (b, width, length, n))
    added = mul(given, cast(reshape(x, (b, width, length, 1)), "fp32"))
    held, outs = carried(kept, added, reshape(out_of, (b, length, n)), dtype)
    y = stacked(outs, x.shape)
    y = add(y, mul(x, skip))
    y = mul(y, activation(gate, "silu"))
    del held, outs, given, added  # names of the frame, as in the original
    return y


def carried(kept: Tensor, added: Tensor, out_of: Tensor, dtype: str) -> tuple[Tensor, list[Tensor]]:
    """The loop over the tokens: the last state, and what is read from each.

    kept, added (b, i, s, n) in fp32; out_of (b, s, n).
    """
    b, width, length, n = kept.shape
    read, shape = (b, width, 1), (b, width, n)
    state = empty(shape, dtype, "zeros")
    outs: list[Tensor] = []

    def step(state: Tensor) -> Tensor:
        state = add(mul(part(kept, shape), state), part(added, shape))
        lowered, column = cast(state, dtype), part(out_of, (b, n, 1))
        y = bmm(lowered, cast(column, dtype), read)
        del lowered, column
        outs.append(part(y, (b, width)))
        return state

    alike = length - FIRST_STEPS - LAST_STEPS
    if alike <= 1:
        while len(outs) < length:
            state = step(state)
        return state, outs
    for _ in range(FIRST_STEPS):
        state = step(state)
    after = steps_alike(state, kept, added, alike)
    outs.append(products_alike(after, out_of, read, dtype, alike))
    state = after
    del after
    for _ in range(LAST_STEPS):
        state = step(state)
    return state, outs
