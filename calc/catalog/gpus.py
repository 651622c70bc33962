"""GPUs and what each can hold: the rows of gpus.tsv, one card a line with its source.

A card's capacity is what CUDA can hand out, which is less than the name says: an "80 GB" A100 hands out 79.1 GiB.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from importlib.resources import files
from typing import Literal, cast

from calc.catalog.table import Table
from calc.units import GIB, MIB, Bytes

DriverStatus = Literal["verified", "commonly reported", "none"]
CapacityStatus = Literal["measured", "driver-reported", "not looked up"]

# What the driver keeps of the memory that it lists. The widest gap seen between a card's listed MiB and the total in its
# out-of-memory messages is 0.86 GiB (A100 80 GB: 80.00 and 79.14), so a card whose message nobody has read is not overrated.
DRIVER_RESERVE = Bytes(880 * MIB)

# Part of a machine's shared memory that its GPU may take; the operating system keeps the rest.
UNIFIED_SHARE = 2 / 3


@dataclass(frozen=True, slots=True)
class Gpu:
    """One card as a training process sees it (an MI250X is two devices, so its row is one of them)."""

    id: str
    name: str
    vendor: str
    marketing_gb: float
    """Memory in the name or the datasheet, in the vendor's GB."""
    unified: bool
    """Memory is shared with the processor."""
    driver_mib: int | None
    """Total that nvidia-smi lists, in MiB."""
    driver_mib_status: DriverStatus
    oom_total_gib: float | None
    """Lowest total seen in the card's out-of-memory messages, in GiB."""
    bandwidth_gbs: float
    """Memory bandwidth, in 10**9 bytes per second."""
    bf16_dense_tflops: float | None
    """Matrix throughput in bf16 without sparsity and with fp32 accumulation, in 10**12 FLOP/s; None where there is no bf16 unit."""
    fp16_dense_tflops: float | None
    compute_capability: str
    """CUDA compute capability or AMD's architecture name; empty for other vendors."""
    bf16: bool | None
    """Whether bf16 arithmetic is native; None where nobody has looked."""
    fp8: bool
    source: str
    notes: str

    @property
    def capacity(self) -> Bytes:
        """What a process can be handed, in bytes: the total of out-of-memory messages where one was read, else what the driver lists
        less its reserve, else what the vendor's decimal GB is at least."""
        if self.oom_total_gib is not None:
            return Bytes(int(self.oom_total_gib * GIB))
        if self.driver_mib is not None:
            return Bytes(self.driver_mib * MIB) - DRIVER_RESERVE
        sold = int(self.marketing_gb * 10**9)
        return Bytes(int(sold * UNIFIED_SHARE)) if self.unified else Bytes(sold) - DRIVER_RESERVE

    @property
    def capacity_status(self) -> CapacityStatus:
        """How the capacity is known; a page marks what was not looked up."""
        if self.oom_total_gib is not None:
            return "measured"
        return "driver-reported" if self.driver_mib_status == "verified" else "not looked up"


def _gpu(row: dict[str, str]) -> Gpu:
    def number(column: str) -> float | None:
        return float(row[column]) if row[column] else None

    flag: dict[str, bool | None] = {"y": True, "n": False, "": None}
    return Gpu(
        id=row["id"],
        name=row["name"],
        vendor=row["vendor"],
        marketing_gb=float(row["marketing_gb"]),
        unified=bool(flag[row["unified"]]),
        driver_mib=int(row["driver_mib"]) if row["driver_mib"] else None,
        driver_mib_status=cast(DriverStatus, row["driver_mib_status"] or "none"),
        oom_total_gib=number("oom_total_gib"),
        bandwidth_gbs=float(row["bandwidth_gbs"]),
        bf16_dense_tflops=number("bf16_dense_tflops"),
        fp16_dense_tflops=number("fp16_dense_tflops"),
        compute_capability=row["compute_capability"],
        bf16=flag[row["bf16"]],
        fp8=bool(flag[row["fp8"]]),
        source=row["source"],
        notes=row["notes"],
    )


def _rows() -> list[Gpu]:
    text = files("calc.catalog").joinpath("gpus.tsv").read_text(encoding="utf-8")
    return [_gpu(row) for row in csv.DictReader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE)]


GPUS: Table[Gpu] = Table("GPU", *_rows())
