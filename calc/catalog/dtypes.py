"""Number formats: the only road from elements to bytes."""

from __future__ import annotations

from dataclasses import dataclass

from calc.catalog.table import Table
from calc.units import Bytes


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
