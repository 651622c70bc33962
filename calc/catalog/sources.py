"""Where a figure comes from: papers, library files read in their own text, recordings of the real code, published readings.

A line of an answer, a catalogue row and a test name a source by its id; this table says what it is, where it lies and when it was read.
"""

from __future__ import annotations

from dataclasses import dataclass

from calc.catalog.table import Table


@dataclass(frozen=True, slots=True)
class Source:
    """One place that a figure can be checked against."""

    id: str
    title: str
    url: str
    detail: str = ""
    """Version, table, line or date: what narrows the place down."""


SOURCES = Table(
    "source",
    Source("oracle", "Recorded from the real frameworks on a fake GPU (tests/oracle)", "https://github.com/pytorch/pytorch",
           "torch 2.13.0, transformers 5.24.0, peft 0.21.2, bitsandbytes 0.50.2; byte-exact allocations"),
    Source("torch-derivatives", "PyTorch derivatives.yaml: what each operation saves for its backward",
           "https://github.com/pytorch/pytorch/blob/main/tools/autograd/derivatives.yaml", "torch 2.13.0"),
    Source("transformers", "transformers modelling code and Trainer", "https://github.com/huggingface/transformers", "5.24.0"),
    Source("peft", "PEFT LoRA layers", "https://github.com/huggingface/peft", "0.21.2"),
    Source("bitsandbytes", "bitsandbytes optimizers and 4-bit storage", "https://github.com/bitsandbytes-foundation/bitsandbytes", "0.50.2"),
)
