"""Quantised weights as bitsandbytes stores them: codes, scales, and the tables that turn one into the other.

Four bits: two weights in a byte, an fp32 scale per 64 weights counted through the whole matrix, a table of 16 values
per layer; with double quantisation the scales are bytes themselves, with an fp32 scale per 256 of them. Eight bits: a
byte per weight and an fp32 scale per row. transformers replaces linear layers except the head (and what the user
excludes); embeddings, norms and biases stay as they are, and so do experts that are one three-dimensional parameter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from calc.catalog.table import Table
from calc.catalog.tensors import Tensor
from calc.units import Bytes

BLOCK = 64
"""Weights per scale (`blocksize` of Params4bit)."""
NESTED_BLOCK = 256
"""Scales per scale of scales (`nested_blocksize`)."""


def four_bit(rows: int, columns: int, double_quant: bool) -> tuple[Tensor, ...]:
    """What a Linear4bit keeps of its weight."""
    n = rows * columns
    blocks = -(-n // BLOCK)
    weight = Tensor("weight", (-(-n // 2), 1), "u8", symbol="⌈n/2⌉")
    code = Tensor("code", (16,), "fp32", symbol="64")
    if not double_quant:
        return weight, Tensor("absmax", (blocks,), "fp32", symbol="4·⌈n/64⌉"), code
    return (
        weight,
        Tensor("absmax", (blocks,), "u8", symbol="⌈n/64⌉"),
        code,
        Tensor("nested_absmax", (-(-blocks // NESTED_BLOCK),), "fp32", symbol="4·⌈⌈n/64⌉/256⌉"),
        Tensor("nested_code", (256,), "fp32", symbol="1024"),
        Tensor("offset", (), "fp32", symbol="4"),
    )


def eight_bit(rows: int, columns: int, double_quant: bool) -> tuple[Tensor, ...]:
    """What a Linear8bitLt keeps of its weight: CB is the parameter itself, SCB the largest magnitude of each row."""
    return Tensor("CB", (rows, columns), "i8", symbol="n"), Tensor("SCB", (rows,), "fp32", symbol="4·r")


@dataclass(frozen=True, slots=True)
class QuantizedFormat:
    """A format that frozen weights of linear layers are stored in."""

    id: str
    label: str
    stored: Callable[[int, int, bool], tuple[Tensor, ...]]
    """Tensors kept for a weight of so many rows (outputs) and columns (inputs), with or without double quantisation, its codes first."""
    double_quant: bool
    """Whether double quantisation means anything for it."""
    source: str
    paper: str

    def tensors(self, rows: int, columns: int, *, double_quant: bool = False) -> tuple[Tensor, ...]:
        """Every tensor that one layer keeps of its weight."""
        return self.stored(rows, columns, double_quant)

    def bytes(self, rows: int, columns: int, *, double_quant: bool = False, codes: bool = True) -> Bytes:
        """Bytes of one layer's weight; without its codes those of scales and tables."""
        return _bytes(self.stored, rows, columns, double_quant, codes)

    def formula(self, *, double_quant: bool = False, codes: bool = True) -> str:
        """Bytes of a layer of n weights in r rows, in the field's symbols."""
        return " + ".join(
            tensor.symbol for tensor in self.tensors(64, 64, double_quant=double_quant)[0 if codes else 1 :]
        )


@lru_cache(maxsize=1024)
def _bytes(
    stored: Callable[[int, int, bool], tuple[Tensor, ...]], rows: int, columns: int, double_quant: bool, codes: bool
) -> Bytes:
    return Bytes(sum(int(tensor.bytes) for tensor in stored(rows, columns, double_quant)[0 if codes else 1 :]))


QUANTIZED_FORMATS = Table(
    "quantised format",
    QuantizedFormat("nf4", "NF4, 4 bits", four_bit, True, "oracle", "paper-qlora"),
    QuantizedFormat("fp4", "FP4, 4 bits", four_bit, True, "oracle", "paper-qlora"),
    QuantizedFormat("int8", "LLM.int8(), 8 bits", eight_bit, False, "bitsandbytes", "paper-llm-int8"),
)
