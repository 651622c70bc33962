"""Saved tensors in host memory: what leaves the GPU when an operation saves it, and what comes back for its backward.

The few saved last wait on the GPU for their copies to be done; what the backward has brought back stays until the next operation that
brings something back is over. A tensor saved twice within the wait is copied once, and the second operation keeps it where it is.

Leaves out   how long the streams of a real GPU hold a buffer that Python has let go of; memory at an address that was used before, which is
             taken for the older tensor and stays on the GPU.
Source       TRL 1.16, trl/models/activation_offloading.py (`activation_offloading=True`); recordings of it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from calc.autograd.storage import ACTIVATIONS, Standing, Storage, active

WAITING = 5
"""Tensors that wait for their copies at once, at most (`max_fwd_stash_size`)."""
SMALLEST = 1024
"""Bytes from which a tensor is worth the way (`min_offload_size`)."""


AWAY = Standing((), "fp32", "away")
"""In the place of memory that is not there at the moment."""


class Packed:
    """A saved tensor: kept as it is, or away in host memory."""

    __slots__ = ("dtype", "kept", "number", "op", "shape")

    def __init__(self, number: int, storage: Storage, *, away: bool) -> None:
        self.number = number
        self.kept = None if away else storage
        self.shape, self.dtype, self.op = storage.shape, storage.dtype, storage.op


class Offload:
    """The tensors on their way and those that came back."""

    __slots__ = ("back", "brought", "earlier", "left", "number", "on_host", "seen", "unpacked", "waiting")

    def __init__(self) -> None:
        self.number = 0
        self.waiting: dict[int, Storage] = {}
        """Saved in the forward pass and not known to be copied yet, by number."""
        self.seen: dict[int, int] = {}
        """Number of the last saved tensor with this memory, while it lies on the GPU."""
        self.on_host: dict[int | None, int] = {}
        """Bytes of the copies, by block."""
        self.back: dict[int, Storage] = {}
        """Brought back in the backward pass, by number."""
        self.earlier: list[int] = []
        """What the operations before this one have brought back."""
        self.brought: list[tuple[int, int]] = []
        """What this operation has brought back, with the references to it then."""
        self.unpacked = False
        """Whether this operation has needed anything that was away."""
        self.left: list[Storage] = []
        """What hangs on the last operation of the backward before, which is remembered until another one needs something."""

    def pack(self, storage: Storage) -> Packed:
        """Save a tensor."""
        self.number = number = self.number + 1
        key = id(storage)
        if key in self.seen:
            self.seen[key] = number
            return Packed(number, storage, away=False)
        if storage.kind < 0 or storage.size < SMALLEST:
            return Packed(number, storage, away=False)
        for old in list(self.waiting):
            if old > number - WAITING:
                break
            self._arrived(old)
        self.waiting[number] = storage
        self.seen[key] = number
        block = active.ledger.block
        self.on_host[block] = self.on_host.get(block, 0) + storage.size
        return Packed(number, storage, away=True)

    def _arrived(self, number: int) -> None:
        """A copy is done: the tensor may go."""
        storage = self.waiting.pop(number)
        if self.seen.get(id(storage)) == number:
            del self.seen[id(storage)]

    def unpack(self, packed: Packed) -> Storage:
        """A saved tensor for the operation whose backward runs."""
        if packed.kept is not None:
            if self.seen.get(id(packed.kept)) == packed.number:
                del self.seen[id(packed.kept)]
            return packed.kept
        if not self.unpacked:
            self.unpacked, self.earlier = True, list(self.back)
            self.left.clear()
        storage = self.waiting.get(packed.number)
        if storage is None:
            ledger = active.ledger
            before, ledger.kind = ledger.kind, ACTIVATIONS
            storage = self.back[packed.number] = Storage(packed.shape, packed.dtype, packed.op)
            ledger.kind = before
            self.brought.append((packed.number, sys.getrefcount(storage)))
        elif self.seen.get(id(storage)) == packed.number:
            del self.seen[id(storage)]
        return storage

    def over(self) -> None:
        """The backward of an operation is over: what others before it brought back may go, and what someone else holds by now."""
        if not self.unpacked:
            return
        self.unpacked = False
        for number, references in self.brought:
            storage = self.back.get(number)
            if storage is not None and sys.getrefcount(storage) > references:
                del self.back[number]
        storage = None
        self.brought.clear()
        for number in list(self.waiting):
            self._arrived(number)
        for number in self.earlier:
            self.back.pop(number, None)
        self.earlier.clear()

    def finish(self) -> None:
        """The backward pass is over."""
        self.back.clear()


def packed(offload: Offload, saved: Sequence[Storage]) -> tuple[Packed, ...]:
    """Saved tensors, one after another."""
    return tuple([offload.pack(storage) for storage in saved])
