"""Rows after packing: how TRL lays samples of known lengths into rows of one length.

It packs blocks of 1,000 samples at a time (`dataset.map(batched=True)`), so a little is lost at every block's end.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from typing import Literal

from calc.schedule.phases import ScheduleError

Strategy = Literal["bfd", "bfd_split", "wrapped"]
BLOCK = 1000


def packed_rows(lengths: Sequence[int], *, seq_len: int, strategy: Strategy = "bfd") -> int:
    """Rows of `seq_len` tokens that samples of these lengths fill (TRL: `packing_strategy`, `max_length`).

    bfd cuts longer samples off and packs by best fit, longest first; bfd_split packs the pieces too; wrapped lets
    samples run over from row to row. Source: TRL 1.16, run.
    """
    if seq_len < 1 or any(length < 1 for length in lengths):
        raise ScheduleError("lengths", "lengths are whole numbers from 1", "lengths")
    blocks = (lengths[start : start + BLOCK] for start in range(0, len(lengths), BLOCK))
    if strategy == "wrapped":
        return sum(-(-sum(block) // seq_len) for block in blocks)
    cut = _split if strategy == "bfd_split" else _truncated
    return sum(_best_fit(cut(block, seq_len), seq_len) for block in blocks)


def _truncated(lengths: Iterable[int], seq_len: int) -> list[int]:
    return [min(length, seq_len) for length in lengths]


def _split(lengths: Iterable[int], seq_len: int) -> list[int]:
    pieces: list[int] = []
    for length in lengths:
        pieces += [seq_len] * (length // seq_len) + ([length % seq_len] if length % seq_len else [])
    return pieces


def _best_fit(lengths: Iterable[int], seq_len: int) -> int:
    """Bins that best fit, longest first, opens: each sample goes where least room is left over."""
    room: list[int] = []
    bins = 0
    for length in sorted(lengths, reverse=True):
        place = bisect_left(room, length)
        if place == len(room):
            bins += 1
            left = seq_len - length
        else:
            left = room.pop(place) - length
        if left:
            insort(room, left)
    return bins
