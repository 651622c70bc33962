"""Storages: the memory behind tensors, counted when made and freed by Python's own reference counts.

A `Ledger` holds what is alive now, by kind, and the highest it was in each segment of the step (the forward of one block, the loss, the
backward of one block, ...). One run at a time uses the ledger: the interpreter runs one thread at a time anyway, and a lock keeps two
visitors' runs apart.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from calc.catalog.dtypes import DTYPES

SIZE = {row.id: int(row.size) for row in DTYPES.values()}
"""Bytes per element."""

Dimension = int
"""A size along one axis: an int, or a `Dim` that behaves as one and remembers its formula."""

KINDS = ("activations", "logits", "temporaries", "gradients", "casts", "inputs", "gathered", "exchanged")
ACTIVATIONS, LOGITS, TEMPORARIES, GRADIENTS, CASTS, INPUTS, GATHERED, EXCHANGED = range(8)
STANDING = -1
"""Weights and buffers: alive all the time, counted by the plan and not by the ledger."""


Event = tuple[int, tuple[int, ...]]
"""What was alive at an allocation: in total and by kind."""


class Segment(NamedTuple):
    """A stretch of the step: its highest moment and how it ended. Amounts in bytes above the standing ones."""

    name: str
    block: int | None
    peak: int
    peak_kinds: tuple[int, ...]
    peak_at: str
    end: int
    end_kinds: tuple[int, ...]
    events: tuple[Event, ...] = ()


@dataclass(slots=True, weakref_slot=False)
class Ledger:
    """What is alive now, and the peak of each segment so far."""

    granularity: int = 1
    scratch: bool = False
    """Count what kernels allocate for their own length, which a recording of operations does not see."""
    total: int = 0
    live: list[int] = None  # type: ignore[assignment]
    peak: int = 0
    peak_kinds: tuple[int, ...] = ()
    peak_op: str = ""
    peak_scope: str = ""
    at_peak: bool = False
    """Nothing was freed since the peak: its kinds are those alive now."""
    kind: int = ACTIVATIONS
    scope: str = ""
    block: int | None = None
    name: str = "start"
    segments: list[Segment] = None  # type: ignore[assignment]
    events: list[Event] | None = None
    """Each allocation of the segment, noted instead of the peak where which one is highest depends on sizes still open."""

    def __post_init__(self) -> None:
        self.live = [0] * len(KINDS)
        self.segments = []
        self.peak_kinds = tuple(self.live)

    def note_peak(self) -> None:
        """Keep the kinds of the peak, before something is freed."""
        self.peak_kinds, self.at_peak = tuple(self.live), False

    def begin(self, name: str, block: int | None = None) -> None:
        """Close the segment that runs and begin another."""
        if self.at_peak:
            self.note_peak()
        self.segments.append(
            Segment(
                self.name,
                self.block,
                self.peak,
                self.peak_kinds,
                f"{self.peak_op} {self.peak_scope}",
                self.total,
                tuple(self.live),
                tuple(self.events or ()),
            )
        )
        if self.events is not None:
            self.events = [(self.total, tuple(self.live))]
        self.name, self.block = name, block
        self.peak, self.peak_kinds, self.peak_op, self.peak_scope = self.total, tuple(self.live), "", ""


class _Active:
    ledger: Ledger = Ledger()


active = _Active()
_lock = threading.RLock()


@contextmanager
def recording(ledger: Ledger) -> Iterator[Ledger]:
    """Count into `ledger` within this block."""
    with _lock:
        before, active.ledger = active.ledger, ledger
        try:
            yield ledger
        finally:
            active.ledger = before


class Storage:
    """A piece of memory, with what a reader wants to know of it: shape, dtype, the operation and module that made it.

    With `pieces` it is as many, alike, that are made one after another and let go together.
    """

    __slots__ = ("dtype", "kind", "ledger", "op", "scope", "shape", "size")

    def __init__(self, shape: tuple[int, ...], dtype: str, op: str, pieces: int = 0) -> None:
        self.ledger = ledger = active.ledger
        size = SIZE[dtype]
        for d in shape:
            size *= d
        if ledger.granularity > 1:
            size = -(-size // ledger.granularity) * ledger.granularity
        if pieces:
            shape, size = (pieces, *shape), size * pieces
        self.kind = kind = ledger.kind
        self.shape = shape
        self.dtype = dtype
        self.op = op
        self.scope = ledger.scope
        self.size = size
        ledger.live[kind] += size
        ledger.total = total = ledger.total + size
        if ledger.events is not None:  # no comparison then: it would be a decision
            ledger.events.append((total, tuple(ledger.live)))
        elif total > ledger.peak:
            ledger.peak = total
            ledger.at_peak = True
            ledger.peak_op = op
            ledger.peak_scope = ledger.scope

    def __del__(self) -> None:
        kind = self.kind
        if kind >= 0:
            ledger = self.ledger
            if ledger.at_peak:
                ledger.peak_kinds, ledger.at_peak = tuple(ledger.live), False
            ledger.live[kind] -= self.size
            ledger.total -= self.size

    def become(self, kind: int) -> None:
        """Count this memory as another kind from now on."""
        ledger = self.ledger
        if ledger.at_peak:
            ledger.note_peak()
        ledger.live[self.kind] -= self.size
        ledger.live[kind] += self.size
        self.kind = kind


class Standing(Storage):
    """A weight or buffer: alive before the step and after it."""

    __slots__ = ()

    def __init__(self, shape: tuple[int, ...], dtype: str, op: str) -> None:
        self.shape, self.dtype, self.op, self.scope, self.size, self.kind = shape, dtype, op, "", 0, STANDING

    def __del__(self) -> None:
        return
