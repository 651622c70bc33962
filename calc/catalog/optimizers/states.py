"""What an optimizer keeps per parameter: small rules that compose into a row.

A rule looks at one parameter and the optimizer's settings and lists the tensors that the library makes for it. In
symbols, `n` is the parameter's number of elements, `b` the bytes of one, `r` and `c` rows and columns, `k` the rank of
a projection.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Protocol

from calc.catalog.dtypes import DTYPES
from calc.catalog.tensors import Place, Tensor

Value = str | int | float | bool
Settings = Mapping[str, Value]
"""Every argument of the optimizer, defaults filled in."""

BLOCK = 256
"""Elements that share one scale in an 8-bit state (bitsandbytes `blocksize`)."""
SMALLEST_QUANTIZED = 4096
"""Tensors with fewer elements stay 32-bit (bitsandbytes `min_8bit_size`; torchao follows it)."""
SMALLEST_PAGED = 100_000
"""Tensors with fewer elements stay on the device in a paged optimizer (bitsandbytes `get_state_buffer`)."""


class Weight(Protocol):
    """A trainable tensor as a rule sees it; `calc.model.parameters.Parameter` is one."""

    @property
    def name(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> str: ...
    @property
    def role(self) -> str: ...
    @property
    def count(self) -> int: ...
    @property
    def numel(self) -> int: ...


class StateRule(Protocol):
    """Lists the tensors kept for one parameter."""

    def __call__(self, weight: Weight, settings: Settings) -> tuple[Tensor, ...]: ...


@dataclass(frozen=True, slots=True)
class Projected:
    """A parameter's gradient after a low-rank projection: what the inner rules of `LowRank` see."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    role: str
    count: int

    @property
    def numel(self) -> int:
        """Elements of the projected gradient."""
        return prod(self.shape)


# ---------------------------------------------------------------------------------------- whole tensors and scalars


@dataclass(frozen=True, slots=True)
class Same:
    """A tensor of the parameter's shape and dtype."""

    name: str

    def __call__(self, weight: Weight, settings: Settings) -> tuple[Tensor, ...]:
        return (Tensor(self.name, weight.shape, weight.dtype, symbol="n·b"),)


@dataclass(frozen=True, slots=True)
class Full:
    """A tensor of the parameter's shape in one dtype, whatever the parameter's."""

    name: str
    dtype: str = "fp32"

    def __call__(self, weight: Weight, settings: Settings) -> tuple[Tensor, ...]:
        return (Tensor(self.name, weight.shape, self.dtype, symbol=symbol("n", self.dtype)),)


@dataclass(frozen=True, slots=True)
class OnHost:
    """A tensor of the parameter's shape and dtype that lies in host memory between steps."""

    name: str

    def __call__(self, weight: Weight, settings: Settings) -> tuple[Tensor, ...]:
        return (Tensor(self.name, weight.shape, weight.dtype, "host", symbol="n·b"),)


@dataclass(frozen=True, slots=True)
class Scalar:
    """A tensor of one element, such as the count of steps."""

    name: str
    dtype: str = ""
    """Empty: the parameter's."""
    place: Place = "device"
    shape: tuple[int, ...] = ()

    def __call__(self, weight: Weight, settings: Settings) -> tuple[Tensor, ...]:
        dtype = self.dtype or weight.dtype
        return (Tensor(self.name, self.shape, dtype, self.place, symbol=symbol("1", self.dtype)),)


@dataclass(frozen=True, slots=True)
class Step:
    """PyTorch's count of steps: a float32 scalar on the host, on the device when the step is fused."""

    name: str = "step"

    def __call__(self, weight: Weight, settings: Settings) -> tuple[Tensor, ...]:
        return (Tensor(self.name, (), "fp32", "device" if settings.get("fused") else "host", symbol="4"),)


# ---------------------------------------------------------------------------------------- factored second moments


@dataclass(frozen=True, slots=True)
class Factored:
    """Row and column sums instead of a matrix (Adafactor); a vector is kept whole."""

    row: str
    column: str
    whole: str
    dtype: str = "fp32"
    """Empty: the parameter's."""
    keepdim: bool = False
    """PyTorch keeps the reduced axis with length 1."""

    def __call__(self, weight: Weight, settings: Settings) -> tuple[Tensor, ...]:
        shape, dtype = weight.shape, self.dtype or weight.dtype
        if len(shape) < 2:
            return (Tensor(self.whole, shape, dtype, symbol=symbol("n", self.dtype)),)
        one = (1,) if self.keepdim else ()
        rows, columns = (*shape[:-1], *one), (*shape[:-2], *one, *shape[-1:])
        return (
            Tensor(self.row, rows, dtype, symbol=symbol("r", self.dtype)),
            Tensor(self.column, columns, dtype, symbol=symbol("c", self.dtype)),
        )


@dataclass(frozen=True, slots=True)
class Preconditioners:
    """A square statistic and its eigenbasis for each axis that is not too long (SOAP)."""

    statistic: str = "GG"
    basis: str = "Q"

    def __call__(self, weight: Weight, settings: Settings) -> tuple[Tensor, ...]:
        longest = int(settings["max_precondition_dim"])
        axes = [(i, d) for i, d in enumerate(weight.shape) if d <= longest] if len(weight.shape) > 1 else []
        return tuple(
            Tensor(f"{name}[{i}]", (d, d), weight.dtype, symbol=f"{'rc'[i]}²·b" if i < 2 else "d²·b")
            for name in (self.statistic, self.basis)
            for i, d in axes
        )


# ---------------------------------------------------------------------------------------- quantised states


@dataclass(frozen=True, slots=True)
class Wide:
    """A 32-bit state of bitsandbytes, whatever the parameter's dtype."""

    index: int
    copies: int = 1
    """AdEMAMix keeps its fast and slow averages in one tensor."""
    paged: bool = False

    def __call__(self, weight: Weight, settings: Settings) -> tuple[Tensor, ...]:
        place: Place = "unified" if self.paged and weight.numel >= SMALLEST_PAGED else "device"
        shape = weight.shape if self.copies == 1 else (self.copies, *weight.shape)
        return (Tensor(f"state{self.index}", shape, "fp32", place, symbol=f"{4 * self.copies}·n"),)


@dataclass(frozen=True, slots=True)
class Blockwise:
    """An 8-bit state of bitsandbytes: a byte per element, an fp32 scale per block of 256, one code table for all.

    Tensors under 4,096 elements stay 32-bit. So does every `nn.Embedding` when the Trainer makes the optimizer, because
    it registers an override; a tied head is the same tensor and follows.
    """

    index: int
    copies: int = 1
    paged: bool = False
    embeddings_stay_wide: bool = True

    def __call__(self, weight: Weight, settings: Settings) -> tuple[Tensor, ...]:
        n = weight.numel
        if n < SMALLEST_QUANTIZED or (self.embeddings_stay_wide and weight.role == "embedding"):
            return Wide(self.index, self.copies, self.paged)(weight, settings)
        i, blocks = self.index, -(-n // BLOCK)
        place: Place = "unified" if self.paged and n >= SMALLEST_PAGED else "device"
        copies = () if self.copies == 1 else (self.copies,)
        codes = "n" if self.copies == 1 else f"{self.copies}·n"
        return (
            Tensor(f"state{i}", (*copies, *weight.shape), "u8", place, symbol=codes),
            Tensor(f"absmax{i}", (*copies, blocks), "fp32", symbol=f"{4 * self.copies}·⌈n/256⌉"),
            Tensor(f"qmap{i}", (256,), "fp32", shared=True, symbol="1024 once"),
        )


@dataclass(frozen=True, slots=True)
class Coded:
    """A quantised state of torchao: codes, an fp32 scale per block of 256, and a code table of its own.

    Quantised only if the tensor has at least 4,096 elements and a multiple of the block; else a tensor of the
    parameter's dtype. Embeddings are quantised like the rest.
    """

    name: str
    bits: int
    code_table: int
    """Entries of the fp32 code table that every state tensor carries; 0 for fp8, which needs none."""

    def __call__(self, weight: Weight, settings: Settings) -> tuple[Tensor, ...]:
        n, block = weight.numel, int(settings["block_size"])
        if n < SMALLEST_QUANTIZED or n % block:
            return (Tensor(self.name, weight.shape, weight.dtype, symbol="n·b"),)
        codes = (
            Tensor(f"{self.name}.codes", (n // 2,), "u8", symbol="n/2")
            if self.bits == 4
            else Tensor(f"{self.name}.codes", weight.shape, "u8" if self.code_table else "fp8", symbol="n")
        )
        scale = Tensor(f"{self.name}.scale", (n // block,), "fp32", symbol=f"4·n/{block}")
        if not self.code_table:
            return codes, scale
        table = Tensor(f"{self.name}.qmap", (self.code_table,), "fp32", symbol=f"{4 * self.code_table}")
        return codes, scale, table


# ---------------------------------------------------------------------------------------- composition


class Test(Protocol):
    """A question about a parameter and the settings."""

    def __call__(self, weight: Weight, settings: Settings) -> bool: ...


@dataclass(frozen=True, slots=True)
class When:
    """Rules that hold where a test does."""

    test: Test
    then: tuple[StateRule, ...]
    otherwise: tuple[StateRule, ...] = ()

    def __call__(self, weight: Weight, settings: Settings) -> tuple[Tensor, ...]:
        return kept(self.then if self.test(weight, settings) else self.otherwise, weight, settings)


@dataclass(frozen=True, slots=True)
class Option:
    """True where an argument of the optimizer is set to something other than zero."""

    name: str

    def __call__(self, weight: Weight, settings: Settings) -> bool:
        return bool(settings[self.name])


def option(name: str, *rules: StateRule) -> When:
    """Rules that hold where an argument is on."""
    return When(Option(name), rules)


def half_precision(weight: Weight, settings: Settings) -> bool:
    """A parameter in a 16-bit format."""
    return weight.dtype in ("bf16", "fp16")


def orthogonalized(weight: Weight, settings: Settings) -> bool:
    """A parameter that Muon takes: a matrix, and of the hidden layers unless asked otherwise."""
    return len(weight.shape) == 2 and (bool(settings["all_matrices"]) or weight.role not in ("embedding", "head"))


@dataclass(frozen=True, slots=True)
class LowRank:
    """A projection matrix and states of the projected gradient for targeted matrices; whole states for the rest."""

    inner: tuple[StateRule, ...]
    basis: str = "projector.ortho_matrix"
    svd: bool = True
    """The basis is a slice of a singular factor in fp32. For fp32 it stays a view and keeps the whole factor alive."""
    computes_in: str = ""
    """Dtype that gradients are turned to first; empty: the parameter's."""
    extra: tuple[StateRule, ...] = ()
    """Further tensors of a targeted parameter only."""

    def __call__(self, weight: Weight, settings: Settings) -> tuple[Tensor, ...]:
        if not targeted(weight, settings):
            return kept(self.inner, weight, settings)
        dtype = self.computes_in or weight.dtype
        svd = self.svd or settings.get("proj") == "svd"
        basis, low = projection(weight.shape, settings, svd=svd)
        rows, columns = weight.shape
        # torch.linalg.svd gives whole factors; slicing one is a view, and only a change of dtype copies it out.
        view_of = min(rows, columns) * max(basis) if svd and dtype == "fp32" else 0
        kept_axis, low_axis = ("c", "r") if basis[1] == columns and low[0] == rows else ("r", "c")
        projected = Projected(weight.name, low, weight.dtype, weight.role, weight.count)
        inner = (
            Tensor(t.name, t.shape, t.dtype, t.place, t.view_of, t.shared, _projected(t.symbol, low_axis))
            for t in kept(self.inner, projected, settings)
        )
        return (
            Tensor(self.basis, basis, dtype, view_of=view_of, symbol=symbol(f"k·{kept_axis}", self.computes_in)),
            *inner,
            *kept(self.extra, weight, settings),
        )


@lru_cache(maxsize=256)
def _projected(text: str, axis: str) -> str:
    return re.sub(r"\bn\b", f"k·{axis}", text)


def projection(shape: tuple[int, ...], settings: Settings, *, svd: bool) -> tuple[tuple[int, int], tuple[int, int]]:
    """Shapes of the projection matrix and of the projected gradient for a matrix of `shape`."""
    rows, columns = shape
    kind, rank = str(settings["proj_type"]), int(settings["rank"])
    if svd:
        rank = min(rank, rows, columns)
    right = {"std": rows >= columns, "reverse_std": rows < columns, "right": True, "left": False}[kind]
    return ((rank, columns), (rows, rank)) if right else ((rows, rank), (rank, columns))


LINEAR_ROLES = frozenset({"linear", "head", "router", "adapter"})
"""Roles of a weight that sits in an `nn.Linear`; experts are three-dimensional parameters and do not."""


def targeted(weight: Weight, settings: Settings) -> bool:
    """Whether a low-rank optimizer projects this parameter: an `nn.Linear` weight that `target_modules` names."""
    if len(weight.shape) != 2 or weight.role not in LINEAR_ROLES:
        return False
    return _named(weight.name, str(settings["target_modules"]))


@lru_cache(maxsize=4096)
def _named(name: str, patterns: str) -> bool:
    if patterns.replace("_", "-") == "all-linear":
        return True
    module = name.removesuffix(".weight").replace("*", "0")
    return any(_matches(pattern, module) for pattern in re.split(r"[\s,]+", patterns) if pattern)


def _matches(pattern: str, module: str) -> bool:
    """A part of the name, or a pattern of the whole name in which `.*` stands for anything, as recipes write it."""
    first, *rest = pattern.replace("\\.", ".").split(".*")
    if not rest:
        return first in module
    if not module.startswith(first) or not module.endswith(rest[-1]):
        return False
    at = len(first)
    for piece in rest[:-1]:
        at = module.find(piece, at)
        if at < 0:
            return False
        at += len(piece)
    return at + len(rest[-1]) <= len(module)


def symbol(elements: str, dtype: str) -> str:
    """Elements times bytes in the field's symbols; an empty dtype is the parameter's."""
    size = str(int(DTYPES[dtype].size)) if dtype else "b"
    return size if elements == "1" else elements if size == "1" else f"{size}·{elements}" if dtype else f"{elements}·b"


def kept(rules: tuple[StateRule, ...], weight: Weight, settings: Settings) -> tuple[Tensor, ...]:
    """The tensors of several rules."""
    return tuple(tensor for rule in rules for tensor in rule(weight, settings))
