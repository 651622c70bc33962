"""What a GPU spends beside the tensors: the CUDA context, cuBLAS workspaces, and what the allocator keeps cached.

None of it follows from the model, so these are readings, published by others and marked as allowances wherever they
are shown. A row is chosen by what it was read on, never by its name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from calc.catalog.gpus import Gpu
from calc.catalog.table import Table
from calc.units import KIB, MIB, Bytes

Stack = Literal["transformers", "megatron"]


@dataclass(frozen=True, slots=True)
class Context:
    """What one process takes on a card before its first tensor: driver structures, kernels, library handles."""

    id: str
    compute_capability: str
    """Of the cards that it was read on; empty for every other card."""
    low: Bytes
    expected: Bytes
    high: Bytes
    source: str
    note: str = ""


# A process that loads more libraries (NCCL, cuDNN, TransformerEngine) takes more; 1.0 GB is the most that reports name.
_MOST = Bytes(954 * MIB)

CONTEXTS: Table[Context] = Table(
    "CUDA context",
    Context(
        "turing",
        "7.5",
        Bytes(144_256 * KIB),
        Bytes(144_256 * KIB),
        _MOST,
        "fitcheck",
        "140.875 MiB in all 61 runs on a T4",
    ),
    Context(
        "volta",
        "7.0",
        Bytes(286 * MIB),
        Bytes(1343 * MIB),
        Bytes(1343 * MIB),
        "transformers-memory-anatomy",
        "kernels loaded at start, as CUDA did before 11.7; lazily loaded ones take less",
    ),
    Context(
        "ampere",
        "8.0",
        Bytes(501 * MIB),
        Bytes(501 * MIB),
        _MOST,
        "oom-messages",
        "https://github.com/TianheWu/CoSeR/issues/10",
    ),
    Context(
        "ada",
        "8.9",
        Bytes(430 * MIB),
        Bytes(502 * MIB),
        _MOST,
        "oom-messages",
        "five cards, among them https://github.com/3DTopia/Phidias-Diffusion/issues/8",
    ),
    Context("hopper", "9.0", Bytes(522 * MIB), Bytes(666 * MIB), _MOST, "oom-messages", "an H100 and two H200"),
    Context("blackwell", "10.0", Bytes(717 * MIB), Bytes(717 * MIB), _MOST, "oom-messages", "a B200"),
    Context(
        "blackwell-workstation",
        "12.0",
        Bytes(594 * MIB),
        Bytes(614 * MIB),
        _MOST,
        "oom-messages",
        "https://github.com/TrajectoryCrafter/TrajectoryCrafter/issues/20",
    ),
    Context(
        "other", "", Bytes(286 * MIB), Bytes(512 * MIB), _MOST, "oom-messages", "0.3 to 1.0 GB per process in reports"
    ),
)


def context(gpu: Gpu) -> Context:
    """The context of a process on this card: the row of its compute capability, else the widest one."""
    rows = {row.compute_capability: row for row in CONTEXTS.values()}
    return rows.get(gpu.compute_capability) or rows[""]


@dataclass(frozen=True, slots=True)
class Workspace:
    """The scratch memory that PyTorch gives a cuBLAS (hipBLAS) handle. It is a tensor, so `allocated` counts it."""

    id: str
    capabilities: tuple[str, ...]
    """What the compute capability (AMD: the architecture) begins with; empty for every other card."""
    size: Bytes
    source: str = "torch-cublas-workspace"


WORKSPACES: Table[Workspace] = Table(
    "cuBLAS workspace",
    Workspace("cuda", ("",), Bytes(2 * 4096 * KIB) + Bytes(8 * 16 * KIB)),
    Workspace("cuda-32mib", ("9.", "10.", "12."), Bytes(32 * MIB)),
    Workspace("rocm", ("gfx",), Bytes(32 * MIB)),
    Workspace("rocm-128mib", ("gfx94", "gfx95"), Bytes(128 * MIB)),
)


def workspace(gpu: Gpu) -> Workspace:
    """The workspace of a matrix-library handle on this card: the row that says most about it."""
    fitting = {
        prefix: row
        for row in WORKSPACES.values()
        for prefix in row.capabilities
        if gpu.compute_capability.startswith(prefix)
    }
    return fitting[max(fitting, key=len)]


@dataclass(frozen=True, slots=True)
class Caching:
    """How much the caching allocator holds at the peak for each byte that is allocated, as published runs had it."""

    id: str
    stack: Stack
    several_gpus: bool | None
    """Run on more than one GPU; None where it makes no difference that anyone has read."""
    whole_logits: bool | None
    """The loss materialises the logits, whose blocks are too large and too rare to be used again; None likewise."""
    low: float
    expected: float
    """The median."""
    high: float
    readings: int
    source: str
    note: str = ""


_SMI = "nvidia-smi's peak less a context of 501 MiB, over torch's peak"

# Rows whose reserved memory was read itself stand before those that infer it: the first that fits says what to expect.
CACHINGS: Table[Caching] = Table(
    "allocator",
    Caching("t4", "transformers", False, True, 1.04, 1.12, 1.49, 61, "fitcheck"),
    Caching("a100", "transformers", False, True, 1.006, 1.204, 1.613, 29, "fms-acceleration", _SMI),
    Caching("a100-fused-loss", "transformers", False, False, 1.005, 1.099, 1.12, 20, "fms-acceleration", _SMI),
    Caching("a100-fsdp", "transformers", True, True, 1.052, 1.350, 1.825, 46, "fms-acceleration", _SMI),
    Caching("a100-40gb-fsdp", "transformers", True, True, 1.26, 1.27, 1.355, 3, "llama-recipes-41"),
    Caching("a100-fsdp-fused-loss", "transformers", True, False, 1.048, 1.243, 1.502, 28, "fms-acceleration", _SMI),
    Caching("b200-megatron", "megatron", None, None, 1.029, 1.061, 1.079, 8, "simumax"),
)


def cachings(*, stack: Stack, several_gpus: bool, whole_logits: bool) -> tuple[Caching, ...]:
    """The published readings of such a run; the first says what to expect, all together how far it ranges."""
    return tuple(
        row
        for row in CACHINGS.values()
        if row.stack == stack and row.several_gpus in (several_gpus, None) and row.whole_logits in (whole_logits, None)
    )


@dataclass(frozen=True, slots=True)
class Fragmentation:
    """What the allocator held and could neither use nor give back when an allocation failed, for each byte allocated."""

    id: str
    expected: float
    """The median."""
    high: float
    readings: int
    source: str
    note: str = ""


FRAGMENTATIONS: Table[Fragmentation] = Table(
    "fragmentation",
    Fragmentation(
        "oom",
        1.014,
        1.263,
        13,
        "oom-messages",
        "reserved over allocated in 13 out-of-memory messages; the allocator frees its cache before it fails, "
        "so what is left is what it could not give back. The widest is a T4 with eager attention; the next 1.094",
    ),
)


def fragmentation() -> Fragmentation:
    """The readings of what a full card loses to fragments."""
    return FRAGMENTATIONS["oom"]
