"""Quantised weights against what bitsandbytes really stored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calc.catalog.quantization import QUANTIZED_FORMATS, QuantizedFormat
from calc.catalog.sources import SOURCES

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "oracle_quant.json").read_text())
sides = st.integers(1, 20_000)
formats = st.sampled_from(list(QUANTIZED_FORMATS.values()))


@pytest.mark.parametrize("row", GOLDEN["rows"], ids=lambda row: f"{row['format']}-{row['shape']}-{row['double_quant']}")
def test_four_bit_layers_store_the_recorded_tensors(row: dict[str, Any]) -> None:
    """Every tensor by name, dtype and shape, and their sum, to the byte."""
    ours = QUANTIZED_FORMATS[row["format"]]
    tensors = ours.tensors(*row["shape"], double_quant=row["double_quant"])
    assert row["tensors"] == {t.name: [t.dtype, list(t.shape)] for t in tensors}
    assert row["total"] == ours.bytes(*row["shape"], double_quant=row["double_quant"])


def test_eight_bits_hold_a_byte_per_weight_and_a_scale_per_row() -> None:
    """bitsandbytes' Int8Params: CB int8 as large as the weight, SCB one fp32 per output."""
    assert 11_008 * 4096 + 4 * 11_008 == QUANTIZED_FORMATS["int8"].bytes(11_008, 4096)


def test_an_odd_weight_takes_a_byte_of_its_own() -> None:
    """Nine weights: five bytes of codes, one scale, the table."""
    assert 5 + 4 + 64 == QUANTIZED_FORMATS["nf4"].bytes(3, 3)


def test_bits_per_weight_of_a_square_layer() -> None:
    """4.5 bits, and 4.127 with the scales quantised too."""
    nf4, n = QUANTIZED_FORMATS["nf4"], 4096 * 4096
    assert "4.500" == f"{8 * nf4.bytes(4096, 4096) / n:.3f}"
    assert "4.127" == f"{8 * nf4.bytes(4096, 4096, double_quant=True) / n:.3f}"


def test_formulas_in_the_fields_symbols() -> None:
    """What the page shows."""
    nf4 = QUANTIZED_FORMATS["nf4"]
    assert "⌈n/2⌉ + 4·⌈n/64⌉ + 64" == nf4.formula()
    assert "⌈n/2⌉ + ⌈n/64⌉ + 64 + 4·⌈⌈n/64⌉/256⌉ + 1024 + 4" == nf4.formula(double_quant=True)
    assert "n + 4·r" == QUANTIZED_FORMATS["int8"].formula()


@given(row=formats, r=sides, c=sides, double_quant=st.booleans())
def test_a_row_more_never_stores_less(row: QuantizedFormat, r: int, c: int, double_quant: bool) -> None:
    """Monotone in both sides, and never under the bits of the codes."""
    stored = row.bytes(r, c, double_quant=double_quant)
    assert stored <= row.bytes(r + 1, c, double_quant=double_quant)
    assert stored <= row.bytes(r, c + 1, double_quant=double_quant)
    assert r * c / 2 <= stored


def test_every_format_has_sources() -> None:
    """They can be opened."""
    assert all({row.source, row.paper} <= set(SOURCES) for row in QUANTIZED_FORMATS.values())
