"""How much of a card's peak training reaches, as published, and what an hour of a card costs, with dates.

A utilisation belongs to the FLOPs that it was counted with: here 6 per parameter and token for full fine-tuning, 4 for
adapters, recomputation left out. Wall-clock time from it is always a range.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from calc.catalog.gpus import Gpu
from calc.catalog.table import Table

Family = Literal["full", "lora", "qlora"]


@dataclass(frozen=True, slots=True)
class Throughput:
    """One published measurement and the utilisation that it means."""

    id: str
    gpus: str
    family: Family
    setup: str
    tokens_per_second: float
    """Per card."""
    utilisation: float
    """Share of the dense bf16 peak."""
    source: str


PUBLISHED = Table(
    "throughput",
    Throughput("mpt-7b-a100", "8x A100 80 GB", "full", "MPT-7B, 2,048 tokens", 4641, 0.64, "llm-foundry"),
    Throughput(
        "mpt-13b-a100", "8x A100 80 GB", "full", "MPT-13B, 4,096 tokens, checkpointed", 2060, 0.58, "llm-foundry"
    ),
    Throughput(
        "mpt-7b-a100-40", "8x A100 40 GB", "full", "MPT-7B, pure bf16, 2,048, checkpointed", 3679, 0.51, "llm-foundry"
    ),
    Throughput("mpt-7b-h100", "8x H100", "full", "MPT-7B, 2,048 tokens", 10643, 0.46, "llm-foundry"),
    Throughput("mpt-70b-h100", "128x H100", "full", "MPT-70B, checkpointed", 1058, 0.43, "llm-foundry"),
    Throughput("llama-8b-titan", "8x H100", "full", "Llama 3.1 8B, FSDP", 5762, 0.33, "torchtitan-performance"),
    Throughput(
        "llama-8b-titan-compile",
        "8x H100",
        "full",
        "Llama 3.1 8B, FSDP, compiled",
        6667,
        0.39,
        "torchtitan-performance",
    ),
    Throughput("llama-3b-packed", "A100", "full", "Llama 3.2 3B, 4,096 packed", 7075, 0.44, "torchtune-readme"),
    Throughput("llama-3b-compile", "A100", "full", "Llama 3.2 3B, packed, compiled", 8998, 0.56, "torchtune-readme"),
    Throughput(
        "llama-3b-lora", "A100", "lora", "Llama 3.2 3B, packed, compiled, checkpointed", 8210, 0.34, "torchtune-readme"
    ),
    Throughput(
        "llama-8b-4090", "RTX 4090", "full", "Llama 3.1 8B, 2,048 packed, compiled", 1650, 0.45, "torchtune-readme"
    ),
    Throughput(
        "llama-8b-4090-lora", "RTX 4090", "lora", "Llama 3.1 8B, 2,048 packed, compiled", 3083, 0.56, "torchtune-readme"
    ),
    Throughput(
        "llama-8b-4090-qlora",
        "RTX 4090",
        "qlora",
        "Llama 3.1 8B, 2,048 packed, compiled",
        2413,
        0.44,
        "torchtune-readme",
    ),
    Throughput("qwen-7b-lora", "A100 80 GB", "lora", "Qwen-7B, 2,048 tokens", 3150, 0.29, "qwen-readme"),
    Throughput("qwen-7b-qlora", "A100 80 GB", "qlora", "Qwen-7B, 2,048 tokens", 2340, 0.21, "qwen-readme"),
    Throughput("qwen-14b-lora", "A100 80 GB", "lora", "Qwen-14B, 2,048 tokens", 1950, 0.34, "qwen-readme"),
    Throughput("qwen-14b-qlora", "A100 80 GB", "qlora", "Qwen-14B, 2,048 tokens", 1388, 0.24, "qwen-readme"),
    Throughput("qwen-72b-qlora", "A100 80 GB", "qlora", "Qwen-72B, 2,048 tokens", 275, 0.25, "qwen-readme"),
    Throughput(
        "qwen3-4b-stock", "A100 40 GB", "full", "Qwen3 4B, stock transformers, 4,096 packed", 1540, 0.12, "neural-nova"
    ),
    Throughput("qwen3-4b-tuned", "A100 40 GB", "full", "Qwen3 4B, tuned, 4,096 packed", 2409, 0.19, "neural-nova"),
)


@dataclass(frozen=True, slots=True)
class Utilisation:
    """What to plan with, drawn from the published rows beside it."""

    id: str
    compute_capability: str
    """Empty for every other card."""
    family: Family
    low: float
    expected: float
    high: float
    rows: tuple[str, ...]
    """Ids in `PUBLISHED` that it was drawn from; none where nothing was published for the card."""


UTILISATIONS = Table(
    "utilisation",
    Utilisation(
        "a100-full",
        "8.0",
        "full",
        0.20,
        0.45,
        0.60,
        ("mpt-7b-a100", "mpt-13b-a100", "llama-3b-packed", "qwen3-4b-tuned"),
    ),
    Utilisation("a100-lora", "8.0", "lora", 0.15, 0.30, 0.35, ("qwen-7b-lora", "qwen-14b-lora", "llama-3b-lora")),
    Utilisation("a100-qlora", "8.0", "qlora", 0.12, 0.22, 0.27, ("qwen-7b-qlora", "qwen-14b-qlora", "qwen-72b-qlora")),
    Utilisation(
        "h100-full",
        "9.0",
        "full",
        0.20,
        0.38,
        0.46,
        ("mpt-7b-h100", "mpt-70b-h100", "llama-8b-titan", "llama-8b-titan-compile"),
    ),
    Utilisation("ada-full", "8.9", "full", 0.20, 0.45, 0.50, ("llama-8b-4090",)),
    Utilisation("ada-lora", "8.9", "lora", 0.20, 0.45, 0.56, ("llama-8b-4090-lora",)),
    Utilisation("ada-qlora", "8.9", "qlora", 0.15, 0.40, 0.44, ("llama-8b-4090-qlora",)),
    Utilisation("other-full", "", "full", 0.10, 0.35, 0.60, ()),
    Utilisation("other-lora", "", "lora", 0.10, 0.25, 0.50, ()),
    Utilisation("other-qlora", "", "qlora", 0.08, 0.20, 0.45, ()),
)


def utilisation(gpu: Gpu, family: Family) -> Utilisation:
    """The row for a card and a method; a card without published figures gets the widest range."""
    rows = [row for row in UTILISATIONS.values() if row.family == family]
    return next((row for row in rows if row.compute_capability == gpu.compute_capability), rows[-1])


@dataclass(frozen=True, slots=True)
class Price:
    """What an hour of a card costs on demand: a range seen on a day, in dollars."""

    id: str
    gpus: tuple[str, ...]
    """Ids in the GPU table."""
    low: float
    high: float
    date: str
    source: str


PRICES = Table(
    "price",
    Price("a100-80gb", ("a100-sxm-80gb", "a100-pcie-80gb"), 0.80, 3.00, "2026-05", "mercatus"),
    Price("h100-sxm", ("h100-sxm",), 1.99, 5.00, "2026-05", "mercatus"),
    Price("h200-sxm", ("h200-sxm",), 2.50, 7.00, "2026-05", "mercatus"),
    Price("rtx-3090", ("rtx-3090",), 0.22, 0.22, "2026-03-10", "deploybase"),
    Price("rtx-4090", ("rtx-4090",), 0.34, 0.34, "2026-03-10", "deploybase"),
    Price("l4", ("l4",), 0.44, 0.44, "2026-03-10", "deploybase"),
    Price("rtx-5090", ("rtx-5090",), 0.69, 0.69, "2026-03-10", "deploybase"),
    Price("l40s", ("l40s",), 0.79, 0.79, "2026-03-10", "deploybase"),
    Price("b200", ("b200-sxm",), 5.98, 5.98, "2026-03-10", "deploybase"),
)


def prices(gpu: Gpu) -> tuple[Price, ...]:
    """The dated prices known for a card; none for most."""
    return tuple(row for row in PRICES.values() if gpu.id in row.gpus)
