"""Tensors with a shape, a dtype and a storage, and no numbers; the graph that their operations leave; and its backward.

`record` is the one way to make a tensor from others. A primitive tells it what PyTorch's derivative saves and what its backward
allocates (torch/csrc/autograd: derivatives.yaml for the formulas, engine.cpp for the order of things).

Shapes: (rows, columns) for what a linear layer sees, with rows = batch x length; (batch, heads, length, head_dim) for what attention
sees. `heads_first` says that such a tensor lies in memory head by head, so that folding it back to rows needs a copy.
"""

from __future__ import annotations

import heapq
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from math import prod
from typing import Any
from weakref import ref

from calc.autograd.offload import Offload, Packed, packed
from calc.autograd.storage import GRADIENTS, Standing, Storage, active

Shape = tuple[int, ...]
_sequence = count()


class StopRecomputation(Exception):
    """Everything that the backward needs of a checkpointed block is there again."""


class Recording:
    """How operations are noted at the moment: gradients on or off, and the checkpointed block that is run, if one is."""

    __slots__ = ("checkpoint", "enabled", "offload", "pinned", "recompute")

    def __init__(self) -> None:
        self.enabled = True
        self.offload: Offload | None = None
        """What moves saved tensors to host memory; none where they stay on the GPU."""
        self.pinned: list[tuple[int | None, Storage]] = []
        """What functions keep on themselves, with their block: it lives as long as the graph, not only until they have run."""
        self.checkpoint: Checkpoint | None = None
        self.recompute: Checkpoint | None = None


recording_mode = Recording()


@contextmanager
def without_graph() -> Iterator[None]:
    """No operation is noted within (torch.no_grad). Only inside `recording`, whose lock keeps other threads' runs away."""
    before, recording_mode.enabled = recording_mode.enabled, False
    try:
        yield
    finally:
        recording_mode.enabled = before


class Tensor:
    """A shape, a dtype, a storage and the node that made it."""

    __slots__ = ("dtype", "heads_first", "node", "requires_grad", "shape", "slot", "storage")
    grad: Tensor | None = None
    accumulator: Accumulate | None = None
    hook: Callable[[Leaf], None] | None = None
    name = ""

    def __init__(self, shape: Shape, dtype: str, storage: Storage, heads_first: bool = False) -> None:
        self.shape, self.dtype, self.storage, self.heads_first = shape, dtype, storage, heads_first
        self.node: Node | None = None
        self.slot = 0
        self.requires_grad = False


class View(Tensor):
    """Memory that is another tensor's too: a gradient that went back through a view. Nothing is added into it in place."""

    __slots__ = ()


class Leaf(Tensor):
    """A tensor that gradients end in: a weight, or an input that was made to need one."""

    __slots__ = ("accumulator", "grad", "hook", "name", "role")

    def __init__(
        self, shape: Shape, dtype: str, storage: Storage, heads_first: bool = False, *, name: str = ""
    ) -> None:
        super().__init__(shape, dtype, storage, heads_first)
        self.grad = self.accumulator = self.hook = None
        self.name, self.role = name, ""
        self.requires_grad = True


class Broad:
    """A gradient at full size for an input that was broadcast: it is summed when the function that made it is over."""

    __slots__ = ("full", "shape")

    def __init__(self, full: Tensor, shape: Shape) -> None:
        self.full, self.shape = full, shape


class Node:
    """An operation in the graph: where its gradients go, what it saved, and what its backward does."""

    __slots__ = (
        "__weakref__",
        "backward",
        "block",
        "checkpoint",
        "edges",
        "grads",
        "op",
        "packed",
        "saved",
        "scope",
        "sequence",
        "slots",
        "takes_saved",
        "waiting",
        "wants",
    )

    def __init__(self, op: str, inputs: Sequence[Tensor], backward: Callable[..., Any], outputs: int = 1) -> None:
        ledger = active.ledger
        self.op, self.scope, self.block = op, ledger.scope, ledger.block
        self.sequence = next(_sequence)
        self.backward: Callable[..., Any] | None = backward
        edges: list[tuple[Node | Accumulate, int] | None] = []
        wants: list[str] = []
        for t in inputs:
            wants.append(t.dtype)
            if t.node is not None:
                edges.append((t.node, t.slot))
            elif t.requires_grad:
                assert isinstance(t, Leaf)
                if t.accumulator is None:
                    t.accumulator = Accumulate(t)
                edges.append((t.accumulator, 0))
            else:
                edges.append(None)
        self.edges, self.wants = edges, wants
        self.saved: tuple[Storage, ...] = ()
        self.packed: tuple[Packed, ...] = ()
        """What it saved in the place of `saved`, where an `Offload` may have taken it away."""
        self.checkpoint: Checkpoint | None = None
        self.slots = (0, 0)
        self.takes_saved = False
        self.grads: list[Tensor | None] = [None] * outputs
        self.waiting = 0


class Passing(Node):
    """A node of a checkpointed block's second run. Nobody goes backwards through it; it holds what it saved while its result lives.

    It is made where nobody waits for what was saved, because in the first run nobody used the result; elsewhere the checkpoint holds it.
    """

    __slots__ = ("before",)

    def __init__(self, saved: tuple[Storage, ...], before: tuple[Node | None, ...]) -> None:
        self.saved, self.before = saved, before


class Accumulate:
    """Puts a gradient into its leaf; runs as soon as it is ready, like PyTorch's AccumulateGrad."""

    __slots__ = ("grads", "leaf", "waiting")
    edges: tuple[()] = ()

    def __init__(self, leaf: Leaf) -> None:
        self.leaf = leaf
        self.grads: list[Tensor | None] = [None]
        self.waiting = 0

    def run(self) -> None:
        """Steal the first gradient, add later ones in place."""
        leaf, gradient = self.leaf, self.grads[0]
        self.grads[0] = None
        leaf.accumulator = None
        assert gradient is not None
        if leaf.grad is None:
            if gradient.storage.kind >= 0:
                gradient.storage.become(GRADIENTS)
            leaf.grad = gradient
        del gradient
        if leaf.hook is not None:
            leaf.hook(leaf)


def empty(shape: Shape, dtype: str, op: str, heads_first: bool = False) -> Tensor:
    """A tensor of its own, outside the graph."""
    return Tensor(shape, dtype, Storage(shape, dtype, op), heads_first)


def empty_view(shape: Shape, dtype: str, op: str, heads_first: bool = False) -> Tensor:
    """A view of a tensor of its own that nobody else holds."""
    return View(shape, dtype, Storage(shape, dtype, op), heads_first)


def kept(x: Tensor) -> Storage:
    """What an operation saves of x: its memory. On its way to host memory a part of a larger tensor is copied first, by itself."""
    mode, storage = recording_mode, x.storage
    if mode.offload is None or mode.checkpoint is not None or mode.recompute is not None:
        return storage
    if storage.kind < 0 or prod(x.shape) >= prod(storage.shape):
        return storage
    return Storage(x.shape, x.dtype, "contiguous")


def parameter(shape: Shape, dtype: str, name: str, trainable: bool) -> Leaf:
    """A weight: its bytes are standing ones."""
    tensor = Leaf(shape, dtype, Standing(shape, dtype, name), name=name)
    tensor.requires_grad = trainable
    return tensor


def view(x: Tensor, shape: Shape, heads_first: bool | None = None) -> Tensor:
    """The same memory in another shape."""
    first = x.heads_first if heads_first is None else heads_first
    if x.node is None and x.requires_grad and recording_mode.recompute is None:
        assert isinstance(x, Leaf)
        same = Leaf(shape, x.dtype, x.storage, first, name=x.name)
        if x.accumulator is None:
            x.accumulator = Accumulate(x)
        same.accumulator = x.accumulator
        return same
    y = View(shape, x.dtype, x.storage, first)
    y.node, y.slot, y.requires_grad = x.node, x.slot, x.requires_grad
    return y


def hooked(x: Tensor, op: str, hook: Callable[[], None]) -> Tensor:
    """The same tensor, with `hook` called when its gradient is there, before that goes on. Nothing, where it gets no gradient."""

    def backward(g: Tensor) -> tuple[Tensor]:
        hook()
        return (g,)

    return record(op, x.shape, x.dtype, (x,), backward, result=x.storage, heads_first=x.heads_first)


def record(
    op: str,
    shape: Shape,
    dtype: str,
    inputs: Sequence[Tensor],
    backward: Callable[..., Any],
    saved: Sequence[Storage] = (),
    *,
    saves_output: bool = False,
    heads_first: bool = False,
    result: Storage | None = None,
    extra: Sequence[tuple[Shape, str, str] | tuple[Shape, str, str, int]] = (),
    pinned: Sequence[Storage] = (),
    takes_saved: bool = False,
) -> Tensor:
    """The result of an operation.

    `saved` are the inputs that its derivative keeps, noted before it runs; `saves_output` says that it keeps its result too;
    `extra` are further results (log-sum-exp, mask, seed) that only the derivative uses. `result` is given by operations that write
    into an existing storage; `pinned` is what a function keeps on itself, where no checkpoint reaches it and until the whole graph is let go. With `takes_saved` the backward
    is handed what was saved, to write over it.
    """
    mode = recording_mode
    tracked = False
    if mode.enabled:
        for t in inputs:
            if t.requires_grad:
                tracked = True
                break
    if not tracked:
        y = Tensor(shape, dtype, Storage(shape, dtype, op) if result is None else result, heads_first)
        unused = [Storage(*one) for one in extra]  # made all the same, and let go
        return y
    recompute, checkpoint = mode.recompute, mode.checkpoint
    passing: tuple[Storage, ...] = ()
    if recompute is not None:
        if saved:
            passing = recompute.keep(saved)
    else:
        node = Node(op, inputs, backward)
        node.takes_saved = takes_saved
        if checkpoint is not None:
            number = len(saved) + len(extra) + saves_output
            if number:
                node.checkpoint, node.slots = checkpoint, checkpoint.promise(number, node)
            saved = ()
        elif mode.offload is not None and saved:
            node.packed, saved = packed(mode.offload, saved), ()
    if recompute is not None and op in recompute.keeps:
        storage, others = recompute.outputs.popleft()
    else:
        storage = Storage(shape, dtype, op) if result is None else result
        others = tuple([Storage(*one) for one in extra]) if extra else ()
    y = Tensor(shape, dtype, storage, heads_first)
    y.requires_grad = True
    if recompute is not None:
        if recompute.outlived:
            kept = (*saved, storage, *others) if saves_output else (*saved, *others)
            y.node = Passing(kept, tuple([t.node for t in inputs]))
        elif passing or recompute.passes:
            recompute.passes = True
            y.node = Passing(passing, tuple([t.node for t in inputs]))
        if saves_output:
            recompute.keep((storage, *others))
        elif others:
            recompute.keep(others)
        return y
    y.node = node
    if pinned:
        mode.pinned.extend([(node.block, storage) for storage in pinned])
    if checkpoint is not None:
        if op in checkpoint.keeps:
            checkpoint.outputs.append((storage, others))
        node.saved = tuple(pinned)
    elif mode.offload is not None:
        results = (*others[:1], storage, *others[1:]) if saves_output else others  # in the order of their names
        node.packed += packed(mode.offload, results)
        node.saved = tuple(pinned)
    elif saves_output:
        node.saved = (*saved, storage, *others, *pinned)
    else:
        node.saved = (*saved, *others, *pinned)
    return y


class Checkpoint:
    """A block whose saved tensors are thrown away and made again in the backward (torch.utils.checkpoint, use_reentrant=False).

    The first tensor that the backward asks for runs the block again; the second run stops as soon as the last saved tensor exists;
    each saved tensor is let go when its node has taken it, and not kept at all when its node is gone, because nobody used the result.

    `keeps` names operations whose results are kept all the same, so that the second run need not compute them again.
    """

    __slots__ = ("again", "keeps", "kept", "number", "origin", "outlived", "outputs", "owners", "passes", "ran")

    def __init__(self, again: Callable[[], Any], keeps: frozenset[str] = frozenset()) -> None:
        self.again: Callable[[], Any] | None = again
        self.keeps = keeps
        self.outputs: deque[tuple[Storage, tuple[Storage, ...]]] = deque()
        self.number = 0
        self.owners: list[ref[Node]] = []
        self.kept: list[Storage | None] = []
        self.passes = False
        """Something was saved that nobody waits for, so that it matters which results are alive."""
        self.outlived = False
        """Someone outside keeps results of the second run, and with them what led to them."""
        self.ran = False
        self.origin = (active.ledger.block, active.ledger.scope)

    def promise(self, n: int, node: Node) -> tuple[int, int]:
        """Note that the next `n` saved tensors, those of `node`, will be made again; the number of the first, and of the first after them."""
        first = self.number
        self.number = end = first + n
        owner = ref(node)
        self.owners.extend((owner,) * n)
        return first, end

    def keep(self, storages: Sequence[Storage]) -> tuple[Storage, ...]:
        """Take what the second run saves, and hand back what nobody waits for."""
        kept, owners = self.kept, self.owners
        passing: tuple[Storage, ...] = ()
        for storage in storages:
            if owners[len(kept)]() is None:
                kept.append(None)
                passing = (*passing, storage)
            else:
                kept.append(storage)
        if len(kept) == self.number:
            raise StopRecomputation
        return passing

    def saved(self, slots: tuple[int, int]) -> tuple[Storage | None, ...]:
        """The saved tensors of one node; the block runs again if it has not."""
        if not self.ran:
            self.ran = True
            ledger, mode = active.ledger, recording_mode
            before = ledger.kind, ledger.scope, mode.recompute, mode.enabled
            ledger.kind, mode.recompute, mode.enabled = 0, self, True
            again, self.again = self.again, None
            assert again is not None
            try:
                again()
            except StopRecomputation as stop:
                stop.__traceback__ = None
            finally:
                ledger.kind, ledger.scope, mode.recompute, mode.enabled = before
            self.again = again
        first, end = slots
        taken = tuple(self.kept[first:end])
        self.kept[first:end] = [None] * (end - first)
        return taken


def accumulate_into(target: Node | Accumulate, slot: int, gradient: Tensor) -> None:
    """Add a gradient to the one that waits at a node: into its memory if nothing else holds it and it is no view, else into new memory.

    Source: torch/csrc/autograd/input_buffer.cpp, and tests/oracle/real_cpu.py, where the CPU's allocator shows it.
    """
    if type(target.grads[slot]) is not View and _holders(target.grads, slot) == ALONE:
        return
    waiting = target.grads[slot]
    if waiting is not None:
        target.grads[slot] = empty(waiting.shape, waiting.dtype, "gradient sum", waiting.heads_first)


def _leaves_first(edges: Sequence[tuple[Node | Accumulate, int] | None]) -> list[tuple[int, Any]]:
    """The edges in the order in which gradients go on: weights come first in any queue, what goes to another operation passes views before."""
    leaves: list[tuple[int, Any]] = []
    others: list[tuple[int, Any]] = []
    for one in enumerate(edges):
        (leaves if one[1] is not None and type(one[1][0]) is Accumulate else others).append(one)
    return leaves + others


def _holders(gradients: list[Tensor | None], slot: int) -> tuple[int, int]:
    """How many references there are to a gradient, and to its memory."""
    gradient = gradients[slot]
    assert gradient is not None
    return sys.getrefcount(gradient), sys.getrefcount(gradient.storage)


ALONE = _holders([Tensor((), "fp32", Standing((), "fp32", ""))], 0)
"""What `_holders` says of a gradient that only its list holds; interpreters differ in what they count."""


def backward(
    loss: Tensor,
    gradient: Tensor | None = None,
    *,
    on_block: Callable[[int | None], None] | None = None,
    at_end: Callable[[], None] | None = None,
) -> None:
    """Run the graph backwards in PyTorch's order: of the nodes that are ready, the one recorded last runs first.

    `gradient` is that of `loss`, by default a one; `at_end` is called when all nodes have run, as the engine's own callbacks are.
    """
    root = loss.node
    assert root is not None
    seen, stack = {id(root)}, [root]
    while stack:
        for edge in stack.pop().edges:
            if edge is None:
                continue
            target = edge[0]
            target.waiting += 1
            if id(target) not in seen:
                seen.add(id(target))
                stack.append(target)  # type: ignore[arg-type]
    del seen, stack
    ledger, offload = active.ledger, recording_mode.offload
    if gradient is None:
        gradient = empty((1,), loss.dtype, "ones_like")
    root.grads[loss.slot] = gradient
    ready: list[tuple[int, Any]] = [(-root.sequence, root)]
    push, pop = heapq.heappush, heapq.heappop
    block = root.block
    del root
    while ready:
        node = pop(ready)[1]
        if node.block != block:
            block = node.block
            if on_block is not None:
                on_block(block)
        ledger.scope = node.scope
        incoming, node.grads = node.grads, []
        function, edges = node.backward, node.edges
        node.backward = None
        taken: Any = None
        if node.checkpoint is not None:
            taken = node.checkpoint.saved(node.slots)
        elif offload is not None:
            taken = tuple([offload.unpack(one) for one in node.packed])
            node.packed = ()
        outgoing = list(function(taken or node.saved, *incoming) if node.takes_saved else function(*incoming))
        taken = None
        for k, want in enumerate(node.wants):
            made = outgoing[k]
            if made is None:
                continue
            if type(made) is Broad:
                made = outgoing[k] = empty(made.shape, made.full.dtype, "sum")
            if made.dtype != want and edges[k] is not None:
                outgoing[k] = empty(made.shape, want, "gradient cast", made.heads_first)
        made = incoming = None
        if offload is not None:
            offload.over()
        node.saved, node.checkpoint = (), None
        for k, edge in _leaves_first(edges):
            if edge is None:
                outgoing[k] = None
                continue
            made, outgoing[k] = outgoing[k], None
            target, slot = edge
            if made is not None:
                if target.grads[slot] is None:
                    target.grads[slot] = made
                else:
                    accumulate_into(target, slot, made)
                made = None
            target.waiting -= 1
            if target.waiting:
                continue
            if type(target) is Accumulate:  # first in any queue, so it need not wait in ours
                target.run()
            else:
                push(ready, (-target.sequence, target))
        node.edges = []
        del node, edges, function
    if offload is not None:
        offload.finish()
    if at_end is not None:
        at_end()
    del gradient
