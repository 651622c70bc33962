"""What the real lengths of a data set mean for memory: the longest batch sets the peak, padding is paid for, packing saves it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from calc.schedule.packing import packed_rows

MOST = 2_000_000
"""Lengths that are read."""
LARGEST = 16_777_216


class BadLengths(ValueError):
    """A list of lengths that cannot be read, in one sentence."""


@dataclass(frozen=True, slots=True)
class Padding:
    """A data set in batches as a collator makes them: each padded to its longest sample."""

    samples: int
    tokens: int
    """Real ones, after cutting at `seq_len`."""
    shortest: int
    median: int
    longest: int
    """Longest sample, before cutting."""
    cut: int
    """Samples longer than `seq_len`."""
    padded: int
    """Tokens with padding, batches in the order given."""
    grouped: int
    """Tokens with padding, longest samples first (`group_by_length`)."""
    longest_batch: int
    """Tokens per sequence of the longest batch: the length that sets the peak."""
    packed_rows: int
    packed: int
    """Tokens of the packed rows, `seq_len` each."""

    @property
    def share(self) -> float:
        """Share of padding among the tokens that are computed."""
        return 1 - self.tokens / self.padded

    @property
    def grouped_share(self) -> float:
        """The same with samples of like length together."""
        return 1 - self.tokens / self.grouped

    @property
    def packed_share(self) -> float:
        """The same when packed."""
        return 1 - self.tokens / self.packed


def lengths(text: str) -> tuple[int, ...]:
    """Token counts from text: numbers apart by anything, a JSON list, or JSON Lines with `length` or `input_ids`.

    Raises `BadLengths` with the first thing that is none.

    >>> lengths("12 7\\n30"), lengths("[3, 4]"), lengths('{"length": 5}')
    ((12, 7, 30), (3, 4), (5,))
    """
    text = text.strip()
    if text.startswith("{"):
        found = [_counted(line, place) for place, line in enumerate(text.splitlines(), 1) if line.strip()]
    else:
        words = text.strip("[]").replace(",", " ").replace(";", " ").split()
        # A sheet's column brings its heading along.
        found = [_number(word) for word in (words[1:] if words and words[0].isidentifier() else words)]
    if not found:
        raise BadLengths("no length in it: paste whole numbers, one for each sample")
    if len(found) > MOST:
        raise BadLengths(f"{len(found):,} lengths; at most {MOST:,} are read")
    return tuple(found)


def padding(sizes: Sequence[int], *, micro_batch_size: int, seq_len: int) -> Padding:
    """What samples of these lengths come to in batches of `micro_batch_size`, cut at `seq_len` tokens, and packed to it."""
    kept = [min(size, seq_len) for size in sizes]
    rows = packed_rows(sizes, seq_len=seq_len)
    return Padding(
        samples=len(kept),
        tokens=sum(kept),
        shortest=min(sizes),
        median=sorted(sizes)[len(sizes) // 2],
        longest=max(sizes),
        cut=sum(size > seq_len for size in sizes),
        padded=_padded(kept, micro_batch_size),
        grouped=_padded(sorted(kept, reverse=True), micro_batch_size),
        longest_batch=max(kept),
        packed_rows=rows,
        packed=rows * seq_len,
    )


def _padded(kept: Sequence[int], micro_batch_size: int) -> int:
    batches = (kept[start : start + micro_batch_size] for start in range(0, len(kept), micro_batch_size))
    return sum(max(batch) * len(batch) for batch in batches)


def _number(word: str) -> int:
    try:
        value = int(word)
    except ValueError:
        raise BadLengths(f"'{word[:40]}' is no whole number") from None
    if not 1 <= value <= LARGEST:
        raise BadLengths(f"{word[:40]} is no length: from 1 to {LARGEST:,} tokens")
    return value


def _counted(line: str, place: int) -> int:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        raise BadLengths(f"line {place} is not JSON") from None
    found = row.get("length", row.get("input_ids")) if isinstance(row, dict) else None
    if isinstance(found, list):
        found = len(found)
    if isinstance(found, bool) or not isinstance(found, int):
        raise BadLengths(f"line {place} has neither 'length' nor 'input_ids'")
    return _number(str(found))
