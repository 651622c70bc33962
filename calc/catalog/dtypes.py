"""Number formats: the only road from elements to bytes, and what each can tell apart."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from calc.catalog.table import Table
from calc.units import Bytes


@dataclass(frozen=True, slots=True)
class FloatFormat:
    """A floating-point format, by its bits: everything else follows from them.

    >>> fp16 = FLOAT_FORMATS["fp16"]
    >>> fp16.largest, fp16.smallest_normal, fp16.epsilon
    (65504.0, 6.103515625e-05, 0.0009765625)
    """

    id: str
    label: str
    bits: int
    """Bits that a stored element takes; tf32 is held in 32 and read with 19."""
    exponent_bits: int
    mantissa_bits: int
    bias: int
    top: Literal["infinity", "nan only", "no negative zero"]
    """What the highest codes are kept for: infinities and NaN (IEEE), one NaN (fn), or nothing (fnuz)."""
    source: str
    note: str = ""

    @property
    def largest(self) -> float:
        """The largest finite value."""
        exponent = 2**self.exponent_bits - 1 - self.bias - (self.top == "infinity")
        # Where NaN is the only special code, it takes the highest mantissa of the highest exponent.
        lost = 2 if self.top == "nan only" else 1
        return math.ldexp(2 - lost * self.epsilon, exponent)

    @property
    def smallest_normal(self) -> float:
        """The smallest value that keeps its full precision."""
        return math.ldexp(1.0, 1 - self.bias)

    @property
    def smallest(self) -> float:
        """The smallest value above 0: below half of it, everything rounds to 0."""
        return math.ldexp(1.0, 1 - self.bias - self.mantissa_bits)

    @property
    def epsilon(self) -> float:
        """Distance from 1 to the next larger value."""
        return math.ldexp(1.0, -self.mantissa_bits)

    @property
    def overflow(self) -> float:
        """From here on a value rounds to infinity or NaN: halfway past the largest."""
        return self.largest + math.ldexp(1.0, math.frexp(self.largest)[1] - 2 - self.mantissa_bits)


FLOAT_FORMATS = Table(
    "float format",
    FloatFormat("fp32", "float32", 32, 8, 23, 127, "infinity", "torch-finfo"),
    FloatFormat(
        "tf32",
        "TensorFloat-32",
        32,
        8,
        10,
        127,
        "infinity",
        "nvidia-tf32",
        "Read by tensor cores only: fp32's range, fp16's precision.",
    ),
    FloatFormat(
        "bf16", "bfloat16", 16, 8, 7, 127, "infinity", "torch-finfo", "fp32's range, so no loss scaling; few digits."
    ),
    FloatFormat(
        "fp16",
        "float16",
        16,
        5,
        10,
        15,
        "infinity",
        "torch-finfo",
        "Eight times finer than bf16, but overflows: needs loss scaling.",
    ),
    FloatFormat(
        "fp8-e4m3", "float8 e4m3fn", 8, 4, 3, 7, "nan only", "torch-finfo", "Weights and activations; no infinity."
    ),
    FloatFormat("fp8-e5m2", "float8 e5m2", 8, 5, 2, 15, "infinity", "torch-finfo", "Gradients."),
    FloatFormat(
        "fp8-e4m3fnuz",
        "float8 e4m3fnuz",
        8,
        4,
        3,
        8,
        "no negative zero",
        "torch-finfo",
        "AMD MI300's own; half the range.",
    ),
)


@dataclass(frozen=True, slots=True)
class IntegerFormat:
    """A quantised format: levels times the largest magnitude of a block."""

    id: str
    label: str
    bits: int
    levels: tuple[float, ...]
    """The values it can hold, as shares of the block's largest magnitude."""
    block: str
    """What shares one scale."""
    source: str


# The quantiles of a normal distribution that nf4 keeps, as bitsandbytes 0.50.2 returns them.
NF4_LEVELS = (
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
    -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
    0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
)  # fmt: skip
INTEGER_FORMATS = Table(
    "quantised format",
    IntegerFormat("int8", "int8", 8, tuple(level / 127 for level in range(-127, 128)), "a row", "bitsandbytes"),
    IntegerFormat("nf4", "NormalFloat4", 4, NF4_LEVELS, "64 weights", "bitsandbytes"),
)


@dataclass(frozen=True, slots=True)
class DType:
    """A number format that a tensor's elements are held in."""

    id: str
    label: str
    size: Bytes
    """Bytes per element."""


DTYPES = Table(
    "dtype",
    DType("fp32", "float32", Bytes(4)),
    DType("bf16", "bfloat16", Bytes(2)),
    DType("fp16", "float16", Bytes(2)),
    DType("fp8", "float8", Bytes(1)),
    DType("i64", "int64", Bytes(8)),
    DType("i32", "int32", Bytes(4)),
    DType("u8", "uint8", Bytes(1)),
    DType("i8", "int8", Bytes(1)),
    DType("bool", "bool", Bytes(1)),
)
