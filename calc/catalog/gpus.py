"""GPUs and what each can hold: the rows of gpus.tsv, one card a line with its sources.

A card's capacity is what CUDA can hand out, which is less than the name says: an "80 GB" A100 hands out 79.1 GiB.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from calc.catalog.table import Table
from calc.units import GIB, MIB, Bytes

DriverStatus = Literal["verified", "commonly reported", "none"]
CapacityStatus = Literal["measured", "driver-reported", "not looked up"]


def driver_reserve(listed: Bytes) -> Bytes:
    """What the driver keeps of the memory that it lists: half a GiB and a 160th part.

    It covers every card in the table whose usable memory was read; the widest gap is 1.08 GiB, on a GH200 96GB.
    """
    return Bytes(GIB // 2) + Bytes(int(listed) // 160)


# Part of shared memory that the GPU may take where nobody has looked: Apple's limit is two thirds to three quarters.
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
    usable_gib: float | None
    """Lowest total seen in the card's out-of-memory messages, in GiB."""
    bandwidth_gbs: float
    """Memory bandwidth, in 10**9 bytes per second."""
    bf16_dense_tflops: float | None
    """Matrix throughput in bf16, dense, with fp32 accumulation, in 10**12 FLOP/s; None where there is no bf16 unit."""
    fp16_dense_tflops: float | None
    compute_capability: str
    """CUDA compute capability or AMD's architecture name; empty for other vendors."""
    bf16: bool | None
    """Whether bf16 arithmetic is native; None where nobody has looked."""
    fp8: bool
    source: str
    """Of the throughput, the bandwidth and the listed memory."""
    usable_source: str
    notes: str

    @property
    def capacity(self) -> Bytes:
        """What a process can be handed, in bytes.

        The total of out-of-memory messages where one was read, else what the driver lists less its reserve, else the
        vendor's GB, read as the 10**9 bytes that it is at least, less the same reserve.
        """
        if self.usable_gib is not None:
            return Bytes(int(self.usable_gib * GIB))
        if self.driver_mib is not None:
            listed = Bytes(self.driver_mib * MIB)
        else:
            listed = Bytes(int(self.marketing_gb * 10**9 * (UNIFIED_SHARE if self.unified else 1)))
        return listed - driver_reserve(listed)

    @property
    def capacity_status(self) -> CapacityStatus:
        """How the capacity is known; a page marks what was not looked up."""
        if self.usable_gib is not None:
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
        usable_gib=number("usable_gib"),
        bandwidth_gbs=float(row["bandwidth_gbs"]),
        bf16_dense_tflops=number("bf16_dense_tflops"),
        fp16_dense_tflops=number("fp16_dense_tflops"),
        compute_capability=row["compute_capability"],
        bf16=flag[row["bf16"]],
        fp8=bool(flag[row["fp8"]]),
        source=row["source"],
        usable_source=row["usable_source"],
        notes=row["notes"],
    )


def _rows() -> list[Gpu]:
    text = Path(__file__).with_name("gpus.tsv").read_text(encoding="utf-8")
    return [_gpu(row) for row in csv.DictReader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE)]


GPUS: Table[Gpu] = Table("GPU", *_rows())
