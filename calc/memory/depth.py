"""From the few blocks that were run to all blocks of the model.

Every block of a kind adds the same bytes to each event, so the run is carried to full depth exactly: in the forward pass the blocks before
one add what they keep; in the backward pass the blocks that still wait add what they saved, those that are done their gradients.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from calc.autograd.storage import ACTIVATIONS, GRADIENTS, KINDS, Segment
from calc.autograd.symbol import Dim

Vector = tuple[int, ...]
"""Bytes by kind, in the order of `KINDS`."""
ZERO: Vector = (0,) * len(KINDS)


def representatives(
    kinds: Sequence[str], *, last: bool = False, lead: int = 0, first: int = 1
) -> tuple[list[int], list[int]]:
    """Which blocks to run, and for each block of the model the place in that list of the one that stands for it.

    The first block of each kind runs, which is the first to use what its kind shares, and the second, which stands for the rest; or the next
    one after as many as are `first`. With `last` the last one runs too and stands for itself, where a block's backward depends on those before
    and after it. The first `lead` blocks all run and stand for themselves, where a block leaves another thing alive as long as few came before it.
    """
    ends = {kind: index for index, kind in enumerate(kinds)} if last else {}
    chosen: list[int] = []
    stands: list[int] = []
    seen: dict[str, list[int]] = {}
    for index, kind in enumerate(kinds):
        places = seen.setdefault(kind, [])
        if index == lead and lead:
            seen = {kind: places[:1] for kind, places in seen.items()}
            places = seen[kind]
        if index < lead or len(places) <= first or index == ends.get(kind):
            places.append(len(chosen))
            chosen.append(index)
        stands.append(places[-1])
    return chosen, stands


def plus(a: Vector, b: Vector, times: int = 1) -> Vector:
    """a + times·b, kind by kind."""
    return tuple([x + times * y for x, y in zip(a, b, strict=True)])


def minus(a: Vector, b: Vector) -> Vector:
    """a - b, kind by kind."""
    return tuple([x - y for x, y in zip(a, b, strict=True)])


@dataclass(frozen=True)
class Depth:
    """What each block that was run leaves, and how often it stands for others."""

    stands: Sequence[int]
    keeps: Sequence[Vector]
    """What a block leaves alive in the forward pass."""
    saves: Sequence[Vector]
    """What its saved tensors hold when the backward begins."""
    gradients: Sequence[Vector]
    """What its backward makes and leaves."""
    leaves: Sequence[Vector]
    """What is there after its backward: gradients, and what its functions hold until the graph is let go."""
    symbols: Sequence[Dim] | None = None
    """How many blocks each kind has, with a formula, when the run is symbolic."""
    drops: Sequence[Vector] = ()
    """What it kept until all blocks were done, negative."""

    @classmethod
    def of(
        cls, segments: Sequence[Segment], stands: Sequence[int], symbols: Sequence[Dim] | None, pinned: Sequence[int]
    ) -> Depth:
        """Read off the segments of a run; `pinned` are the bytes that each block's functions hold until the graph is let go."""
        count = max(stands, default=-1) + 1
        keeps, saves, gradients = [ZERO] * count, [ZERO] * count, [ZERO] * count
        holds = [tuple([size if k == ACTIVATIONS else 0 for k in range(len(KINDS))]) for size in pinned]
        drops = [ZERO] * count
        before = ZERO
        for segment in segments:
            if segment.block is not None:
                change = minus(segment.end_kinds, before)
                if segment.name == "forward":
                    keeps[segment.block] = change
                elif segment.name == "let go":
                    drops[segment.block] = change
                else:
                    gradients[segment.block] = tuple([v if k == GRADIENTS else 0 for k, v in enumerate(change)])
                    freed = tuple([0 if k == GRADIENTS else -v for k, v in enumerate(change)])
                    saves[segment.block] = plus(freed, holds[segment.block])
            before = segment.end_kinds
        return cls(stands, keeps, saves, gradients, list(map(plus, gradients, holds)), symbols, drops)

    def _times(self, place: int, times: int) -> int:
        """A number of blocks, with its formula when the run is symbolic."""
        return times if self.symbols is None else self.symbols[place] + (times - self.symbols[place].value)

    def _sum(self, vectors: Sequence[Vector], counts: Sequence[int]) -> Vector:
        total = ZERO
        for place, times in enumerate(counts):
            if times:
                total = plus(total, vectors[place], self._times(place, times))
        return total

    def _missing(self, blocks: Sequence[int], ran: range) -> list[int]:
        """How many of `blocks` (of the model) each block that was run stands for, less those of `ran` that the run had."""
        counts = [0] * len(self.keeps)
        for place in blocks:
            counts[place] += 1
        for place in ran:
            counts[place] -= 1
        return counts

    def everywhere(self, vectors: Sequence[Vector]) -> Vector:
        """What all blocks that were not run add."""
        return self._sum(vectors, self._missing(self.stands, range(len(self.keeps))))

    def in_forward(self, place: int) -> Vector:
        """What the blocks before the last one that `place` stands for add to its forward."""
        index = len(self.stands) - 1 - self.stands[::-1].index(place)
        return self._sum(self.keeps, self._missing(self.stands[:index], range(place)))

    def after_forward(self, place: int) -> Vector:
        """What is added behind the last of the blocks that `place` stands for, where the next one that ran has not begun."""
        return self._sum(self.keeps, self._missing(self.stands[: self._begin(place + 1)], range(place + 1)))

    def after_backward(self, place: int) -> Vector:
        """What is added when the first of the blocks that `place` stands for is done: what the blocks before it saved, and the gradients."""
        begin, count = self._begin(place), len(self.keeps)
        waiting = self._missing(self.stands[:begin], range(place))
        done = self._missing(self.stands[begin:], range(place, count))
        return plus(self._sum(self.saves, waiting), self._sum(self.leaves, done))

    def _begin(self, place: int) -> int:
        """The first block of the model that `place` stands for."""
        return len(self.stands) if place == len(self.keeps) else list(self.stands).index(place)

    def in_backward(self, place: int) -> Iterator[Vector]:
        """What the others add to the backward of `place`, for each block that it may be highest as."""
        for index in self._extremes(place):
            waiting = self._missing(self.stands[:index], range(place))
            done = self._missing(self.stands[index + 1 :], range(place + 1, len(self.keeps)))
            yield plus(self._sum(self.saves, waiting), self._sum(self.leaves, done))

    def _extremes(self, place: int) -> list[int]:
        """The blocks that `place` stands for whose backward may be the highest of them.

        What the others add is linear in how many of each place wait before a block (as many less are done behind it), so it is highest where
        those numbers are a corner of all of them.
        """
        before = [0] * len(self.keeps)
        points: list[tuple[int, tuple[int, ...]]] = []
        for index, at in enumerate(self.stands):
            if at == place:
                points.append((index, tuple(before)))
            before[at] += 1
        axes = [k for k in range(len(before)) if points[0][1][k] != points[-1][1][k]]
        if len(axes) < 2:
            return sorted({points[0][0], points[-1][0]})
        if len(axes) > 2:
            return [index for index, _ in points]
        x, y = axes
        return sorted({index for side in (1, -1) for index in _corners([(i, n[x], side * n[y]) for i, n in points])})


def _corners(points: Sequence[tuple[int, int, int]]) -> list[int]:
    """Which of some points (which, x, y), in the order of x, are corners of their upper hull."""
    kept: list[tuple[int, int, int]] = []
    for point in points:
        while len(kept) > 1:
            (_, ax, ay), (_, bx, by) = kept[-2:]
            if (bx - ax) * (point[2] - ay) < (by - ay) * (point[1] - ax):
                break
            kept.pop()
        kept.append(point)
    return [which for which, _, _ in kept]
