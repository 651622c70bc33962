"""Whether a plan fits, with room left over: the one meaning of "fits" for levers, solvers and the command line.

What the allocator has cached it gives back before it fails, so room that must stay free is room beside what the peak
needs at least, not beside what nvidia-smi usually shows.
"""

from __future__ import annotations

from calc.memory.breakdown import Breakdown, Span, Verdict
from calc.units import Bytes

FITTING: tuple[Verdict, ...] = ("fits", "tight")
"""Verdicts of a plan that runs."""


def need(reserved: Span, device: Span) -> Bytes:
    """What the peak needs on the card: its blocks with nothing cached beside them, and the CUDA context."""
    return reserved.low + (device.expected - reserved.expected)


def within(verdict: Verdict, reserved: Span, device: Span, capacity: Bytes, margin: float) -> bool:
    """Whether a plan runs and leaves that share of the card free."""
    return verdict in FITTING and int(need(reserved, device)) <= int(capacity) * (1 - margin)


def fits(answer: Breakdown, *, margin: float = 0.0) -> bool:
    """Whether an answer's plan runs and leaves that share of the card free."""
    return within(answer.verdict, answer.peak.reserved, answer.peak.device, answer.capacity, margin)
