"""One training step, run on shapes: what is alive at each instant, above the weights and the optimizer's states.

The forward pass of the family runs once over a few of its blocks, the loss and the backward follow in PyTorch's order, and depth.py
carries the run to all blocks.

Leaves out   scratch inside kernels, and what the allocator rounds up (`granularity=512` adds its rounding).
Source       recordings of the real frameworks on a fake GPU; PyTorch's derivatives for what each operation saves.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from calc.autograd.elementwise import scale
from calc.autograd.offload import WAITING, Offload
from calc.autograd.storage import (
    ACTIVATIONS,
    CASTS,
    GRADIENTS,
    INPUTS,
    LOGITS,
    TEMPORARIES,
    Event,
    Ledger,
    Segment,
    Storage,
    recording,
)
from calc.autograd.symbol import Dim, undominated
from calc.autograd.tensor import Accumulate, Leaf, Node, Tensor, backward, empty, recording_mode
from calc.memory.breakdown import InstantName
from calc.memory.depth import ZERO, Depth, Vector, plus, representatives
from calc.memory.logits import LOSSES, returned
from calc.model.family import Architecture
from calc.model.modules import Modules
from calc.model.parameters import Parameter
from calc.model.recipe import Recipe
from calc.model.sharding import FullyShard, Group, shard


class OnGradient(Hashable, Protocol):
    """Called when a weight's gradient is complete, and when the backward pass is over."""

    scales_loss: bool

    def __call__(self, weight: Leaf) -> None: ...

    def finish(self) -> None: ...


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
    """The operation that made it."""
    block: int | None
    keepers: tuple[tuple[str, str], ...]
    """The operations that keep it, each with the name of the trained weight that it works with, if any."""
    weight_copy: bool
    """It is autocast's 16-bit copy of the weight itself."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A total that may be the highest, where which one is depends on sizes still open."""

    instant: InstantName
    total: int
    ran: Vector
    """Bytes by kind in the blocks that were run."""
    others: Vector
    """What the blocks that were not run add."""

    @property
    def kinds(self) -> Vector:
        """Bytes by kind; with the inputs they sum to more than the total, which leaves them out."""
        return plus(self.ran, self.others)


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
    """Alive after the backward: the gradients, and outputs that someone holds."""
    held: Moment
    """Of that, what is alive at the optimizer's step too: outputs."""
    parameters: tuple[Parameter, ...]
    stored: tuple[Parameter, ...]
    """What one GPU stores of them: all, or its share."""
    saved: tuple[Saved, ...]
    """Of the blocks that were run; `represents` says how often each block's stand for."""
    represents: tuple[int, ...]
    """For each block that was run, how many of the model's it stands for."""
    on_host: int = 0
    """Bytes of saved tensors that lie in host memory when the backward begins."""
    candidates: tuple[Candidate, ...] = ()
    """With `open_sizes`: every total that may be the highest."""


def run(
    architecture: Architecture,
    recipe: Recipe,
    *,
    granularity: int = 1,
    counts: Mapping[str, Dim] | None = None,
    on_gradient: OnGradient | None = None,
    open_sizes: bool = False,
    list_saved: bool = True,
) -> Step:
    """One step of `architecture` under `recipe`. Sizes in bytes; `granularity` rounds each allocation up to a multiple of it.

    `counts` gives the number of layers of each kind as a symbol, for closed forms; `on_gradient` is called when a weight's gradient
    is complete, for optimizers that step inside the backward pass. `open_sizes` notes every total that may be the highest, instead of
    the highest at these sizes. Without `list_saved` the tensors kept for the backward pass are counted and not listed.
    """
    dims = architecture.dims
    # What enters the first block has no gradient where only adapters are trained, so the second may be the first to keep what all share;
    # not where the first block's queries are adapted, which meet all of that.
    frozen = recipe.adapters is not None and recipe.checkpointing == "none" and not recipe.adapters.meets_queries
    chosen, stands = representatives(
        dims.kinds,
        last=recipe.sharded is not None or recipe.offloads,
        lead=WAITING + 1 if recipe.offloads else 0,
        first=2 if frozen else 1,
    )
    represents = [0] * len(chosen)
    for place in stands:
        represents[place] += 1
    small = replace(dims, kinds=tuple(dims.kinds[i] for i in chosen))
    ledger = Ledger(granularity=granularity, scratch=recipe.scratch, events=[] if open_sizes else None)
    with recording(ledger):
        recording_mode.pinned.clear()
        recording_mode.offload = offload = Offload() if recipe.offloads else None
        m = Modules(recipe, small, on_gradient, architecture.model_type)
        m.sharding = sharding = shard(architecture, recipe, small, m)
        ledger.kind = INPUTS
        ids = empty((m.rows,), "i64", "token ids")
        if recipe.padded and architecture.family.masks_states:
            m.padding = empty((m.rows, 1), "i64", "padding mask")
        given = architecture.family.given(dims, recipe)
        m.given = tuple([empty(one.shape, one.dtype, one.label) for one in given])
        inputs = ledger.total
        ledger.kind = ACTIVATIONS
        ledger.begin("forward")
        if sharding is not None:
            sharding.begins()
        loss = _loss(m, architecture, architecture.family.body(m, ids))
        if sharding is not None:
            loss = sharding.ends(loss)
        m.casts.clear()
        m.seen.clear()
        ledger.begin("after forward")
        live = tuple(ledger.live)
        saved = _saved(loss) if list_saved else ()
        ledger.kind = TEMPORARIES
        ledger.begin("backward")
        scaled = (
            scale(loss) if recipe.scaled or (on_gradient is not None and on_gradient.scales_loss) else loss
        )  # the caller holds both until the backward is over
        backward(
            scaled,
            on_block=lambda block: ledger.begin("backward", block),
            at_end=None if sharding is None else sharding.finishes,
        )
        if on_gradient is not None:
            on_gradient.finish()
        loss = scaled = None  # type: ignore[assignment]
        recording_mode.offload = None
        hung = [one.storage.size for one in m.contexts if type(one) is Leaf] if recipe.offloads else []
        m.contexts.clear()
        pinned = _pinned(len(chosen))
        recording_mode.pinned.clear()
        ledger.begin("after backward")
        after = tuple(ledger.live)
        m.outputs.clear()
    parameters = m.inventory(dict(enumerate(represents)))
    stored = parameters if sharding is None else m.inventory(dict(enumerate(represents)), sharding)
    m.weights.clear()
    symbols = None if counts is None else [counts[dims.kinds[i]] for i in chosen]
    depth = Depth.of(ledger.segments, stands, symbols, pinned)
    already = ZERO if sharding is None else _left(sharding, depth, len(chosen))
    highest: dict[InstantName, Moment] = {}
    candidates: list[Candidate] = []
    events: dict[int, list[Event]] = {}
    for instant, segment, added in _placed(ledger.segments, depth):
        more = plus(added, already)
        if open_sizes:
            if (
                id(segment) not in events
            ):  # what is added is the same for all of a segment, so it does not change which may be highest
                places = undominated([total for total, _ in segment.events])
                events[id(segment)] = [segment.events[place] for place in places]
            shift = sum(more) - inputs
            candidates.extend(Candidate(instant, total + shift, kinds, more) for total, kinds in events[id(segment)])
            continue
        kinds = plus(segment.peak_kinds, more)
        moment = Moment(sum(kinds) - inputs, kinds, segment.peak_at)
        if instant not in highest or moment.total > highest[instant].total:
            highest[instant] = moment
    rest = _moment(plus(plus(after, depth.everywhere(depth.gradients)), already), inputs)
    held = tuple([v if kind == LOGITS else 2 * sum(hung) if kind == ACTIVATIONS else 0 for kind, v in enumerate(after)])
    begun = highest.get("forward", rest)
    if sharding is not None and sharding.gradients_last:  # until the model is called the next time
        if open_sizes:
            candidates.append(Candidate("forward", rest.total, after, depth.everywhere(depth.gradients)))
        else:
            begun = max(begun, rest, key=lambda moment: moment.total)
    if open_sizes and (recipe.keeps_outputs or hung):
        candidates.append(Candidate("optimizer step", sum(held), held, ZERO))
    return Step(
        forward=begun,
        live=_moment(plus(live, depth.everywhere(depth.saves)), inputs),
        loss=highest.get("loss", rest),
        backward=highest.get("backward", highest.get("loss", rest)),
        end=highest.get("end of backward", rest),
        after=rest,
        held=_moment(held, 0),
        parameters=parameters,
        stored=stored,
        saved=saved,
        represents=tuple(represents),
        candidates=tuple(candidates),
        on_host=0 if offload is None else _on_host(offload, represents),
    )


def _left(sharding: FullyShard, depth: Depth, ran: int) -> Vector:
    """Whole gradients that earlier micro-batches have left, of all blocks and of what is outside them."""
    groups: tuple[Group, ...] = (None, *range(ran))
    sizes = [tuple([sharding.whole_gradients(g) if k == GRADIENTS else 0 for k in range(len(ZERO))]) for g in groups]
    total = depth.everywhere(sizes[1:])
    for size in sizes:
        total = plus(total, size)
    return total


def _on_host(offload: Offload, represents: Sequence[int]) -> int:
    """Bytes of saved tensors in host memory, those of all blocks."""
    return sum([size * (1 if block is None else represents[block]) for block, size in offload.on_host.items()])


def _pinned(blocks: int) -> list[int]:
    """Bytes that the functions of each block keep on themselves, each storage once."""
    seen: set[int] = set()
    sizes = [0] * blocks
    for block, storage in recording_mode.pinned:
        if block is not None and storage.kind >= 0 and id(storage) not in seen:
            seen.add(id(storage))
            sizes[block] += storage.size
    return sizes


def _loss(m: Modules, architecture: Architecture, x: Tensor) -> Tensor:
    """The loss of the class, by the kernel that is in use if it is that of the next token."""
    if architecture.family.loss is None:
        loss, logits = LOSSES[m.recipe.loss](m, architecture, x)
    else:
        loss, logits = architecture.family.loss(m, x)
    del x
    m.frame.clear()
    returned(m, logits)
    return loss


def _moment(kinds: Vector, inputs: int) -> Moment:
    return Moment(sum(kinds) - inputs, kinds, "")


def _placed(segments: Sequence[Segment], depth: Depth) -> Iterator[tuple[InstantName, Segment, Vector]]:
    """Each segment with its instant and what the blocks that were not run add to it."""
    in_backward = False
    block: int | None = None
    dropped = ZERO
    final = max([index for index, segment in enumerate(segments) if segment.block is not None], default=-1)
    for index, segment in enumerate(segments):
        if segment.name == "start":
            continue
        if segment.name == "let go":
            dropped = depth.everywhere(depth.drops)
            continue
        if segment.name == "autocast over":  # copies of weights that no node keeps are gone, those of all blocks
            held, saved = depth.everywhere(depth.keeps)[CASTS], depth.everywhere(depth.saves)[CASTS]
            dropped = plus(dropped, tuple([saved - held if k == CASTS else 0 for k in range(len(ZERO))]))
        if segment.name == "after forward":
            in_backward, block = True, None
        if segment.block is None:
            if not in_backward:
                yield "forward", segment, ZERO if block is None else plus(depth.after_forward(block), dropped)
            elif block is None:
                yield "loss", segment, depth.everywhere(depth.saves)
            else:  # between two stacks, or behind the last block that has a backward: those of a frozen tower have none
                yield "backward" if index < final else "end of backward", segment, depth.after_backward(block)
            continue
        block = segment.block
        if not in_backward:
            yield "forward", segment, depth.in_forward(segment.block)
        else:
            for more in depth.in_backward(segment.block):
                yield "backward", segment, more


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
    found: dict[int, tuple[Storage, int | None, list[tuple[str, str]]]] = {}
    for sequence in sorted(nodes):
        node = nodes[sequence]
        weight = next(filter(None, (_leaf(edge[0]) for edge in node.edges if edge is not None)), "")
        for storage in node.saved:
            if storage.kind >= 0:
                _, _, keepers = found.setdefault(id(storage), (storage, node.block, []))
                if (node.op, weight) not in keepers:
                    keepers.append((node.op, weight))
    return tuple(
        Saved(s.shape, s.dtype, s.size, s.op, block, tuple(keepers), s.kind == CASTS)
        for s, block, keepers in found.values()
    )


def _leaf(target: Node | Accumulate) -> str:
    """The name of the weight that a gradient goes to, also through the cast of autocast; empty where it goes to another operation."""
    if type(target) is Accumulate:
        return target.leaf.name
    if type(target) is Node and target.op == "_to_copy" and target.edges[0] is not None:
        ahead = target.edges[0][0]
        return ahead.leaf.name if type(ahead) is Accumulate else ""
    return ""


def scratch(size: int) -> None:
    """Note that `size` bytes were alive for a moment, at the point of the run where this is called."""
    held = Storage((size,), "u8", "optimizer step")
    del held
