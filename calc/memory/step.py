"""One training step, run on shapes: what is alive at each instant, above the weights and the optimizer's states.

The forward pass of the family runs once over a few of its blocks: the first, and one or two of each kind. Every further block of
a kind adds the same bytes to each event, so the run is extended to the full depth exactly: in the forward pass the blocks before one
add what they keep, in the backward pass the blocks that still wait add what they saved, those done their gradients.

Leaves out   scratch inside kernels, and what the allocator rounds up (`granularity=512` adds its rounding).
Source       recordings of the real frameworks on a fake GPU; PyTorch's derivatives for what each operation saves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from calc.autograd.elementwise import cast
from calc.autograd.loss import cross_entropy
from calc.autograd.storage import (
    ACTIVATIONS,
    GRADIENTS,
    INPUTS,
    KINDS,
    LOGITS,
    TEMPORARIES,
    Ledger,
    Segment,
    Storage,
    active,
    recording,
)
from calc.autograd.symbol import Dim
from calc.autograd.tensor import Node, Tensor, backward, empty
from calc.model.family import Architecture
from calc.model.modules import Modules
from calc.model.parameters import Parameter
from calc.model.recipe import Recipe

Vector = tuple[int, ...]
"""Bytes by kind, in the order of `KINDS`."""


@dataclass(frozen=True, slots=True)
class Moment:
    """The highest moment of an instant: bytes by kind, and the operation that was running."""

    total: int
    kinds: Vector
    at: str


@dataclass(frozen=True, slots=True)
class Saved:
    """A tensor that is kept for the backward pass."""

    shape: tuple[int, ...]
    dtype: str
    size: int
    op: str
    scope: str
    block: int | None


@dataclass(frozen=True, slots=True)
class Step:
    """What the run on shapes tells."""

    forward: Moment
    """Highest moment of the forward pass, the loss's forward included."""
    live: Moment
    """Alive between forward and backward."""
    loss: Moment
    """Highest moment of the loss's and head's backward."""
    backward: Moment
    """Highest moment of the blocks' backward."""
    end: Moment
    """Highest moment of the backward after the last block: the embedding's gradient."""
    after: Moment
    """Alive after the backward: the gradients."""
    parameters: tuple[Parameter, ...]
    saved: tuple[Saved, ...]
    """Of the blocks that were run; `represents` says how often each block's stand for."""
    represents: tuple[int, ...]
    """For each block that was run, how many of the model's it stands for."""


def representatives(kinds: Sequence[str]) -> tuple[list[int], list[int]]:
    """Which blocks to run, and for each block of the model the place in that list of the one that stands for it.

    The first block runs; so do the first block of each other kind, which is the first to use what its kind shares, and the second, which
    stands for the rest.
    """
    chosen: list[int] = []
    stands: list[int] = []
    seen: dict[str, list[int]] = {}
    for index, kind in enumerate(kinds):
        places = seen.setdefault(kind, [])
        if len(places) < 2:
            places.append(len(chosen))
            chosen.append(index)
        stands.append(places[-1])
    return chosen, stands


def run(
    architecture: Architecture,
    recipe: Recipe,
    *,
    granularity: int = 1,
    counts: Mapping[str, Dim] | None = None,
    on_gradient: Callable[[Tensor], None] | None = None,
) -> Step:
    """One step of `architecture` under `recipe`. Sizes in bytes; `granularity` rounds each allocation up to a multiple of it.

    `counts` gives the number of layers of each kind as a symbol, for closed forms; `on_gradient` is called when a weight's gradient
    is complete, for optimizers that step inside the backward pass.
    """
    dims = architecture.dims
    chosen, stands = representatives(dims.kinds)
    represents = [0] * len(chosen)
    for place in stands:
        represents[place] += 1
    small = replace(dims, kinds=tuple(dims.kinds[i] for i in chosen))
    ledger = Ledger(granularity=granularity)
    with recording(ledger):
        m = Modules(recipe, small, on_gradient)
        ledger.kind = INPUTS
        ids = empty((m.rows,), "i64", "token ids")
        inputs = ledger.total
        ledger.kind = ACTIVATIONS
        ledger.begin("forward")
        x = architecture.family.body(m, ids)
        loss = _loss(m, architecture, x)
        del x
        ledger.begin("after forward")
        m.casts.clear()
        live = ledger.total, tuple(ledger.live)
        saved = _saved(loss)
        ledger.kind = TEMPORARIES
        ledger.begin("backward")
        backward(loss, on_block=lambda block: ledger.begin("backward", block))
        loss = None  # type: ignore[assignment]
        ledger.begin("after backward")
        after = ledger.total, tuple(ledger.live)
    parameters = m.inventory({i: represents[i] for i in range(len(chosen))})
    m.weights.clear()
    symbols = None if counts is None else [counts[dims.kinds[i]] for i in chosen]
    return _extended(ledger.segments, live, after, inputs, stands, represents, parameters, saved, symbols)


def _loss(m: Modules, architecture: Architecture, x: Tensor) -> Tensor:
    """ForCausalLMLoss: logits in fp32 against labels shifted by one and padded."""
    active.ledger.kind = LOGITS
    logits = architecture.family.head(m, x)
    upcast = cast(logits, "fp32")
    labels = empty((m.batch, m.length + 1), "i64", "padded labels")
    shifted = labels if m.batch == 1 else empty((m.rows,), "i64", "shifted labels")
    return cross_entropy(upcast, shifted)


def _saved(loss: Tensor) -> tuple[Saved, ...]:
    """Every storage that the graph keeps, once, with the block that was the first to keep it."""
    assert loss.node is not None
    nodes: dict[int, Node] = {}
    stack: list[Node] = [loss.node]
    while stack:
        node = stack.pop()
        if node.sequence in nodes:
            continue
        nodes[node.sequence] = node
        stack.extend(edge[0] for edge in node.edges if edge is not None and type(edge[0]) is Node)
    found: dict[int, Saved] = {}
    for sequence in sorted(nodes):
        node = nodes[sequence]
        for storage in node.saved:
            if storage.kind >= 0 and id(storage) not in found:
                found[id(storage)] = Saved(
                    storage.shape, storage.dtype, storage.size, storage.op, storage.scope, node.block
                )
    return tuple(found.values())


def _minus(a: Vector, b: Vector) -> Vector:
    return tuple([x - y for x, y in zip(a, b, strict=True)])


def _plus(a: Vector, b: Vector, times: int = 1) -> Vector:
    return tuple([x + times * y for x, y in zip(a, b, strict=True)])


def _extended(
    segments: Sequence[Segment],
    live: tuple[int, Vector],
    after: tuple[int, Vector],
    inputs: int,
    stands: Sequence[int],
    represents: Sequence[int],
    parameters: tuple[Parameter, ...],
    saved: tuple[Saved, ...],
    symbols: Sequence[Dim] | None,
) -> Step:
    """The run carried to full depth."""
    count = len(represents)
    keeps: list[Vector] = [()] * count  # what a block leaves alive in the forward pass
    saves: list[Vector] = [()] * count  # what a block's saved tensors hold when the backward begins
    leaves: list[Vector] = [()] * count  # what a block's backward leaves: its gradients
    forwards: list[Segment] = []
    backwards: list[Segment] = []
    before = None
    for segment in segments:
        if segment.block is not None:
            change = _minus(segment.end_kinds, before)  # type: ignore[arg-type]
            if segment.name == "forward":
                keeps[segment.block] = change
            else:
                gradients = tuple([v if k == GRADIENTS else 0 for k, v in enumerate(change)])
                leaves[segment.block] = gradients
                saves[segment.block] = tuple([0 if k == GRADIENTS else -v for k, v in enumerate(change)])
        before = segment.end_kinds
    extra = [n - 1 for n in represents]

    def layers(place: int, times: int) -> int:
        """A number of layers, with its formula when the run is symbolic."""
        return times if symbols is None else symbols[place] + (times - symbols[place].value)

    zero: Vector = (0,) * len(KINDS)

    def beyond(vectors: Sequence[Vector], which: Callable[[int], int] = lambda place: extra[place]) -> Vector:
        """What the blocks that were not run add, by the vectors of those that stand for them."""
        total = zero
        for place in range(count):
            times = which(place)
            if times and vectors[place]:
                total = _plus(total, vectors[place], layers(place, times))
        return total

    all_keeps, all_saves, all_leaves = beyond(keeps), beyond(saves), beyond(leaves)
    last: dict[int, int] = {}
    for index, place in enumerate(stands):
        last[place] = index

    def moment(segment: Segment, more: Vector) -> Moment:
        kinds = _plus(segment.peak_kinds, more)
        return Moment(sum(kinds) - inputs, kinds, segment.peak_at)

    forward = loss = back = end = None
    in_backward = False
    passed_blocks = False
    for segment in segments:
        if segment.name == "after forward":
            in_backward = True
        elif segment.name == "start":
            continue
        if not in_backward:
            if segment.block is None:
                more = zero if not forwards and segment.name == "forward" else all_keeps
            else:
                forwards.append(segment)
                more = _before(segment.block, stands, last[segment.block], keeps, layers)
            forward = _higher(forward, moment(segment, more))
        elif segment.block is None:
            if passed_blocks:
                end = _higher(end, moment(segment, all_leaves))
            else:
                loss = _higher(loss, moment(segment, all_saves))
        else:
            passed_blocks = True
            backwards.append(segment)
            for index in _ends(segment.block, stands):
                back = _higher(back, moment(segment, _around(segment.block, index, stands, saves, leaves, layers)))
    assert forward is not None
    assert loss is not None
    live_kinds = _plus(live[1], all_saves)
    after_kinds = _plus(after[1], all_leaves)
    rest = Moment(sum(after_kinds) - inputs, after_kinds, "")
    return Step(
        forward,
        Moment(sum(live_kinds) - inputs, live_kinds, ""),
        loss,
        back or loss,
        end or rest,
        rest,
        parameters,
        saved,
        tuple(represents),
    )


def _higher(a: Moment | None, b: Moment) -> Moment:
    return b if a is None or b.total > a.total else a


def _ends(place: int, stands: Sequence[int]) -> list[int]:
    """The blocks of the model that may be highest among those that block `place` stands for."""
    indices = [i for i, p in enumerate(stands) if p == place]
    if len(set(stands)) <= 2:
        return [indices[0], indices[-1]] if len(indices) > 1 else indices
    return indices


Layers = Callable[[int, int], int]


def _before(place: int, stands: Sequence[int], index: int, keeps: Sequence[Vector], layers: Layers) -> Vector:
    """What the blocks before `index` that were not run add to the forward of block `place`."""
    times = [0] * len(keeps)
    for p in stands[:index]:
        times[p] += 1
    for p in range(place):
        times[p] -= 1
    total: Vector = (0,) * len(KINDS)
    for p, n in enumerate(times):
        if n:
            total = _plus(total, keeps[p], layers(p, n))
    return total


def _around(
    place: int, index: int, stands: Sequence[int], saves: Sequence[Vector], leaves: Sequence[Vector], layers: Layers
) -> Vector:
    """What the blocks that were not run add to the backward of block `place` when it stands for `index`: those before it their saved
    tensors, those after it their gradients."""
    waiting, done = [0] * len(saves), [0] * len(saves)
    for p in stands[:index]:
        waiting[p] += 1
    for p in stands[index + 1 :]:
        done[p] += 1
    for p in range(len(saves)):
        if p < place:
            waiting[p] -= 1
        elif p > place:
            done[p] -= 1
    total: Vector = (0,) * len(KINDS)
    for p in range(len(saves)):
        if waiting[p]:
            total = _plus(total, saves[p], layers(p, waiting[p]))
        if done[p]:
            total = _plus(total, leaves[p], layers(p, done[p]))
    return total


def scratch(size: int) -> None:
    """Note that `size` bytes were alive for a moment, at the point of the run where this is called."""
    held = Storage((size,), "u8", "optimizer step")
    del held
