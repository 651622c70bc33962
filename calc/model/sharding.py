"""Weights cut into one share per GPU: hooks at the edges of blocks that gather them, let them go, and reduce their gradients.

A block is a group of parameters that is gathered together; everything outside the blocks is one more, the root. Weights stay what they
are for the run, without bytes of their own; what a GPU holds of them beside its share is made and freed here.

Leaves out   how long the streams of a real GPU hold a buffer that Python has let go of.
Source       torch 2.13.0, torch/distributed/fsdp: _fully_shard/_fsdp_param_group.py and _fsdp_collectives.py for FSDP2,
             _runtime_utils.py and _flat_param.py for FSDP1; recordings of both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import Any, NamedTuple

from calc.autograd.elementwise import cast
from calc.autograd.storage import EXCHANGED, GATHERED, GRADIENTS, SIZE, Ledger, Storage, active, recording
from calc.autograd.tensor import Leaf, Shape, Tensor, empty, hooked, without_graph
from calc.model.family import Architecture
from calc.model.modules import Modules
from calc.model.recipe import Recipe, Sharded

Group = int | None
"""The number of a block, or None for the root."""


class Piece(NamedTuple):
    """A parameter of a group."""

    shape: Shape
    dtype: str
    """What it is gathered and computed with in."""
    stored: str
    """That of the shares."""
    trains: bool


Weights = Mapping[tuple[Group, str], Leaf]


def shard(architecture: Architecture, recipe: Recipe, small: Any, m: Modules) -> FullyShard | None:
    """What shards the weights of a run over the blocks of `small`; None where each GPU has all of them."""
    if recipe.sharded is None:
        return None
    pieces = _pieces(architecture, recipe, recipe.sharded, small)
    return STRATEGIES[recipe.sharded.strategy](recipe.sharded, recipe.dtype, pieces, m.weights)


def _pieces(architecture: Architecture, recipe: Recipe, sharded: Sharded, small: Any) -> dict[Group, dict[str, Piece]]:
    """Each group's parameters, from a forward pass over two tokens: a group is gathered before its first weight is asked for."""
    with recording(Ledger()), without_graph():
        m = Modules(
            replace(recipe, batch=1, length=2, checkpointing="none", sharded=None),
            small,
            model_type=architecture.model_type,
        )
        architecture.family.head(m, architecture.family.body(m, empty((m.rows,), "i64", "token ids")))
    groups: dict[Group, dict[str, Piece]] = {}
    for (group, name), weight in m.weights.items():
        if weight.dtype not in SIZE:  # packed codes, two in a byte, or the sharding does not take them
            if recipe.quantized is not None and recipe.quantized.shared:
                packed = -(-prod(weight.shape) // 2) // SIZE["bf16"]
                groups.setdefault(group, {})[name] = Piece((packed, 1), "bf16", "bf16", False)
            continue
        stored = sharded.adapters if weight.role == "adapter" else sharded.stored
        groups.setdefault(group, {})[name] = Piece(weight.shape, weight.dtype, stored, weight.requires_grad)
    return groups


def _made(size: int, dtype: str, op: str, kind: int) -> Storage:
    ledger = active.ledger
    before, ledger.kind = ledger.kind, kind
    storage = Storage((size,), dtype, op)
    ledger.kind = before
    return storage


def _share(size: int, ranks: int) -> int:
    """The largest of `ranks` parts; kept exact where it divides, for closed forms."""
    return -(-size // ranks) if size % ranks else size // ranks


class FullyShard:
    """FSDP2: each parameter is cut along its first dimension, padded to equal parts.

    A group is gathered into one buffer, and copied out of it parameter by parameter. In the forward pass a group's buffer is freed once
    the next group is copied out; in the backward pass at once, after which the buffer of the next group is gathered ahead.
    """

    def __init__(
        self, sharded: Sharded, dtype: str, pieces: Mapping[Group, Mapping[str, Piece]], weights: Weights
    ) -> None:
        self.sharded, self.ranks, self.dtype = sharded, sharded.ranks, dtype
        self.pieces, self.weights = pieces, weights
        self.narrow = sharded.stored != dtype
        """Mixed precision of the sharding's own: shares in a wider dtype than what is gathered and computed with."""
        self.buffers: dict[Group, Storage] = {}
        """Gathered and not copied out yet."""
        self.whole: dict[Group, list[Storage]] = {}
        """Weights that are there as a whole."""
        self.copied: Storage | None = None
        """The buffer that was copied out last in the forward pass."""
        self.reduced: Storage | None = None
        """The gradients that were sent last."""
        self.order: list[Group] = []
        """Groups in the order in which their forward ended."""
        self.in_backward: set[Group] = set()
        self.done: set[Group] = set()
        self.gradients: list[Storage] = []
        """This GPU's shares of the gradients that were reduced."""
        self.summed: list[Storage] = []
        """What was summed over the copies of the shares, held until the backward is over."""

    # -- sizes -----------------------------------------------------------------------------------------------------------

    def stored(self, group: Group, name: str) -> tuple[Shape, str]:
        """Shape and dtype of the largest share of a parameter, that of the first GPU; of one that is not shared out the whole."""
        piece = self.pieces.get(group, {}).get(name)
        if piece is None:
            whole = self.weights[(group, name)]
            return whole.shape, whole.dtype
        return (_share(piece.shape[0], self.ranks), *piece.shape[1:]), piece.stored

    def whole_gradients(self, group: Group) -> int:
        """Bytes of a group's gradients, whole, that earlier micro-batches have left; 0 where they are reduced at once."""
        if self.sharded.turn not in ("middle", "last"):
            return 0
        return sum([prod(p.shape) * SIZE[p.dtype] for p in self.pieces.get(group, {}).values() if p.trains])

    def _size(self, piece: Piece) -> int:
        """Elements of this GPU's share of a parameter."""
        return _share(piece.shape[0], self.ranks) * prod(piece.shape[1:])

    # -- the edges of groups ---------------------------------------------------------------------------------------------

    def enters(self, group: Group, x: Tensor) -> Tensor:
        """The input of a block: its weights are gathered, and when its backward is over its gradients are reduced."""
        self._gather(group)
        self._copy_out(group, forward=True)
        return hooked(x, "RegisterPostBackward", lambda: self._after_backward(group))

    @property
    def gradients_last(self) -> bool:
        """Whether a step's gradients live on, whatever the optimizer lets go of, until the model is called again."""
        return False

    def leaves(self, group: Group, y: Any) -> Any:
        """The result of a block: its weights are let go, and gathered again when its backward begins."""
        if self.sharded.reshard:
            del self.whole[group]
        self.order.append(group)
        return self._before_backward_at(group, y)

    def begins(self) -> None:
        """The model is called: what lies outside the blocks is gathered."""
        self._gather(None)
        self._copy_out(None, forward=True)

    def ends(self, loss: Tensor) -> Tensor:
        """The model returns its loss."""
        loss = cast(self.leaves(None, loss), self.dtype) if self.sharded.mixed else self.leaves(None, loss)
        self.copied = None
        return loss

    def finishes(self) -> None:
        """The backward is over: the root's gradients are reduced, and those of groups whose input needs none."""
        for group in self.pieces:
            if group not in self.done:
                self._after_backward(group)
        self.reduced = None
        self.summed.clear()

    def _before_backward_at(self, group: Group, y: Any) -> Any:
        if isinstance(y, Tensor):
            return hooked(y, "pre-backward", lambda: self._before_backward(group))
        return tuple([self._before_backward_at(group, one) for one in y])

    # -- what happens there ----------------------------------------------------------------------------------------------

    def _gather(self, group: Group) -> None:
        if group in self.buffers or group in self.whole:
            return
        pieces = self.pieces[group].values()
        shares = self._copied_shares(group)
        dtypes = {piece.dtype for piece in pieces}
        if len(dtypes) == 1:
            size, dtype = sum([self._size(piece) for piece in pieces]), dtypes.pop()
        else:  # as bytes
            size, dtype = sum([self._size(piece) * SIZE[piece.dtype] for piece in pieces]), "u8"
        self.buffers[group] = _made(size * self.ranks, dtype, "all-gather", EXCHANGED)
        del shares

    def _copied_shares(self, group: Group) -> list[Storage]:
        """This GPU's shares as they are sent, where they are not sent as they lie: from host memory parameter by parameter."""
        shares: list[Storage] = []
        pieces = self.pieces[group].values()
        narrowed = [piece for piece in pieces if piece.stored != piece.dtype]
        if self.sharded.on_host:
            for piece in pieces:
                share = _made(self._size(piece), piece.stored, "share from the host", EXCHANGED)
                if piece.stored != piece.dtype:
                    share = _made(self._size(piece), piece.dtype, "copy of the share", EXCHANGED)
                shares.append(share)
        elif narrowed:
            size = sum([self._size(piece) for piece in narrowed])
            shares.append(_made(size, narrowed[0].dtype, "copy of the share", EXCHANGED))
        return shares

    def _copy_out(self, group: Group, *, forward: bool) -> None:
        buffer = self.buffers.pop(group, None)
        if buffer is None:
            return
        self.whole[group] = [
            _made(self._size(piece) * self.ranks, piece.dtype, "gathered", GATHERED)
            for piece in self.pieces[group].values()
        ]
        self.copied = buffer if forward else None

    def _before_backward(self, group: Group) -> None:
        if group in self.in_backward:
            return
        self.in_backward.add(group)
        self._gather(group)
        self._copy_out(group, forward=False)
        place = self.order.index(group)
        if place:
            self._gather(self.order[place - 1])

    def _after_backward(self, group: Group) -> None:
        self.done.add(group)
        self.whole.pop(group, None)
        self.reduced = None
        trained = [piece for piece in self.pieces[group].values() if piece.trains]
        if not trained or self.sharded.turn in ("first", "middle"):
            return
        size, dtype, stored = sum([self._size(piece) for piece in trained]), trained[0].dtype, trained[0].stored
        sent = _made(size * self.ranks, dtype, "reduce-scatter", EXCHANGED)
        held = self._free_gradients(group)
        waits = 0
        if self.sharded.turn == "last":  # what earlier micro-batches left of them goes with them
            assert held is not None
            waits = prod(held.shape)
            gone = sum([prod(piece.shape) for piece in trained]) - waits
            self.gradients.append(_made(-gone, dtype, "gradients let go", GRADIENTS))
        own = _made(size, dtype, "reduced gradients", GRADIENTS)
        if self.sharded.copies > 1:  # held until the other copies' are summed in
            self.summed.append(own)
        if stored != dtype:
            own = _made(size, stored, "reduced gradients", GRADIENTS)
        del held
        if waits:
            self.gradients.append(_made(-waits, dtype, "gradients let go", GRADIENTS))
        if not self.sharded.on_host and self.sharded.turn != "each":
            self.gradients.append(own)
        self.reduced = sent

    def _free_gradients(self, group: Group) -> Tensor | None:
        """Let go of a group's gradients; that of the weight registered last is handed back, which torch's loop over them still names.

        transformers' blocks register their norms behind their layers, and a layer its bias behind its weight.
        """
        last = None
        for (owner, _), weight in self.weights.items():
            if owner == group and weight.requires_grad:
                if last is None or group is None or len(weight.shape) == 1 or len(last.shape) > 1:
                    last = weight.grad
                weight.grad = None
        return last


class FlatShard(FullyShard):
    """FSDP1: the parameters of a group are one flat parameter, which is cut, and gathered into its own memory.

    The root stays gathered from the forward pass to the end of the backward.
    """

    def stored(self, group: Group, name: str) -> tuple[Shape, str]:
        """What lies of a parameter within the first GPU's share of the flat one, and its dtype."""
        left = self._flat(group) // self.ranks
        for (owner, other), weight in self.weights.items():
            if owner != group:
                continue
            size = min(left, prod(weight.shape))
            if other == name:
                return (size,), self.sharded.stored
            left -= size
        raise KeyError(name)

    def _flat(self, group: Group) -> int:
        """Elements of the flat parameter, padded to equal parts."""
        return _share(self._filled(group), self.ranks) * self.ranks

    def _filled(self, group: Group) -> int:
        return sum([prod(piece.shape) for piece in self.pieces[group].values()])

    @property
    def gradients_last(self) -> bool:
        """A flat parameter's gradient does, unless it lies in host memory: the optimizer knows only the parameters within it."""
        return not self.sharded.on_host

    def leaves(self, group: Group, y: Any) -> Any:
        """The result of a block: its weights are let go, but not those of the root."""
        if group is not None and self.sharded.reshard:
            del self.whole[group]
        self.order.append(group)
        return self._before_backward_at(group, y)

    def ends(self, loss: Tensor) -> Tensor:
        """The model returns its loss, as it is."""
        return self.leaves(None, loss)  # type: ignore[no-any-return]

    def finishes(self) -> None:
        """The backward is over; gradients that lie in host memory need not stay on the GPU any longer."""
        super().finishes()
        if self.sharded.on_host:
            self.gradients.clear()

    def _gather(self, group: Group) -> None:
        """The flat parameter's own memory is filled. A share from the host stays as long: the parameters are views of it meanwhile."""
        if group in self.whole:
            return
        size = self._flat(group)
        share = None
        if self.narrow or self.sharded.on_host:
            share = _made(size // self.ranks, self.dtype, "copy of the share", EXCHANGED if self.narrow else GATHERED)
        self.whole[group] = [_made(size, self.dtype, "all-gather", GATHERED)]
        if share is not None and not self.narrow:
            self.whole[group].append(share)
        del share

    def _copy_out(self, group: Group, *, forward: bool) -> None:
        """Views of the flat parameter need no copy."""

    def _after_backward(self, group: Group) -> None:
        self.done.add(group)
        size = self._flat(group)
        padding = _made(size - self._filled(group), self.dtype, "zeros", EXCHANGED)  # a gradient that nobody made
        sent = _made(size, self.dtype, "flat gradient", EXCHANGED)
        del padding
        self._free_gradients(group)
        self.whole.pop(group, None)
        own = _made(size // self.ranks, self.dtype, "reduced gradients", GRADIENTS)
        if self.narrow:
            own = _made(size // self.ranks, self.sharded.stored, "reduced gradients", GRADIENTS)
        self.gradients.append(own)
        del sent


STRATEGIES: Mapping[str, type[FullyShard]] = {"fsdp2": FullyShard, "fsdp": FlatShard}
"""By `plan.sharding.strategy`."""
