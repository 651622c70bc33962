"""Counts the bytes alive on a device, storage by storage, at every operation of a run.

Works on fake and on real tensors alike. Two counts run side by side: plain bytes, and bytes with each storage rounded up
to 512, as the caching allocator hands them out (what max_memory_allocated adds up).
"""

from __future__ import annotations

import dataclasses
import sys
import weakref

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

aten = torch.ops.aten
ROUND = 512
# References to the first operand of an addition when only the engine's buffer, the call's stack and Python hold it.
SOLE_OWNER, SOLE_STORAGE = 4, 2


@dataclasses.dataclass
class Peak:
    """The most bytes alive in one phase, and the operation that made it so."""

    bytes: int = 0
    rounded: int = 0
    at: str = ""


WATCHING: weakref.WeakSet[LiveBytes] = weakref.WeakSet()
resize = torch.UntypedStorage.resize_


def resize_and_count(storage: torch.UntypedStorage, size: int) -> None:
    """FSDP empties and fills storages that it keeps; no operation says so."""
    resize(storage, size)
    for live in WATCHING:
        if (known := live.sizes.get(storage._cdata)) is not None:
            live._resize(known, size)
            live.sizes[storage._cdata] = size
            live._note("resize_")


torch.UntypedStorage.resize_ = resize_and_count


class LiveBytes(TorchDispatchMode):
    """Live bytes now, and the peak of each phase; set `phase` as the run goes on."""

    def __init__(self, device: str):
        super().__init__()
        self.device = device
        self.live = self.rounded = 0
        self.sizes: dict[int, int] = {}
        self.watch: dict[int, weakref.ref] = {}
        self.peaks: dict[str, Peak] = {}
        self.modules: list[str] = []
        self.parts: dict = {}
        self.phase = "load"
        WATCHING.add(self)

    @property
    def phase(self) -> str:
        return self._phase

    @phase.setter
    def phase(self, name: str) -> None:
        self._phase = name
        self._peak = self.peaks.setdefault(name, Peak())
        self._note("")

    def forget_peaks(self) -> None:
        self.peaks = {}
        self.phase = self._phase

    def _note(self, at: str) -> None:
        if self.live > self._peak.bytes:
            self._peak.bytes, self._peak.at = self.live, at
        self._peak.rounded = max(self._peak.rounded, self.rounded)

    def _resize(self, old: int, new: int) -> None:
        self.live += new - old
        self.rounded += -(-new // ROUND) * ROUND - -(-old // ROUND) * ROUND

    def count(self, tensor: torch.Tensor, operation: str = "given") -> None:
        tensor = getattr(tensor, "_local_tensor", tensor)  # of a sharded tensor, this rank's part
        if tensor.device.type != self.device:
            return
        storage = tensor.untyped_storage()
        key, size = storage._cdata, storage.nbytes()
        known = self.sizes.get(key)
        if known == size:
            return
        if known is None:

            def gone(_, key=key):
                self._resize(self.sizes.pop(key), 0)
                del self.watch[key]

            self.watch[key] = weakref.ref(storage, gone)
        self._resize(known or 0, size)
        self.sizes[key] = size
        node = torch._C._current_autograd_node()
        where = node.name() if node is not None else self.modules[-1] if self.modules else ""
        self._note(f"{operation} in {where}" if where else operation)

    def count_module(self, module: torch.nn.Module) -> None:
        for tensor in [*module.parameters(), *module.buffers()]:
            self.count(tensor)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func is aten.add.Tensor and _engine_adds_in_place(args[0]):
            return args[0]
        if func is aten._local_scalar_dense.default and _is_fake(args[0]):
            if args[0].constant is not None:
                return args[0].constant.item()
            return 1.0 if args[0].dtype.is_floating_point else 1  # a number that a fake tensor cannot have
        if func is aten.masked_fill.Scalar and args[0].dtype.is_floating_point and not _can_be(args[2], args[0].dtype):
            raise RuntimeError(f"value cannot be converted to {args[0].dtype} without overflow")  # as the kernels do
        if func is aten.equal.default and _is_fake(args[0]):
            return True  # asked by Liger of the loss's gradient: it is 1
        if func is aten.nonzero.default and _is_fake(args[0]):  # taken to be true everywhere
            with self:
                return torch.empty(args[0].numel(), args[0].dim(), dtype=torch.int64, device=args[0].device)
        if func in SELECTING and any(_is_selection(index) for index in args[1] or ()):
            with self:
                return func(args[0], [*_every_place(args[1])], *args[2:], **(kwargs or {}))
        if func in INTO_ZEROS and _called_by_the_engine():
            return args[0]
        if func in self.parts:  # one operation to the dispatcher, Python code with allocations of its own to the GPU
            with self:
                return self.parts[func](*args, **(kwargs or {}))
        out = func(*args, **(kwargs or {}))
        for tensor in tree_iter(out):
            if isinstance(tensor, torch.Tensor):
                self.count(tensor, str(func).removesuffix(".default"))
        return out


INTO_ZEROS = (aten.index_put.default, aten.scatter_add.default, aten.scatter.src, aten.scatter.value)
"""What the derivatives of index, gather, topk and max do to zeros of their own: in place, but out of place under a dispatch mode."""
SELECTING = (aten.index.Tensor, aten.index_put.default, aten.index_put_.default, aten._index_put_impl_.default)


def _is_selection(index) -> bool:
    return index is not None and index.dtype == torch.bool and _is_fake(index)


def _every_place(indices):
    """Boolean indices as the integer ones that a GPU makes of them, when every place is chosen."""
    for index in indices:
        if _is_selection(index):
            yield from torch.empty(index.numel(), index.dim(), dtype=torch.int64, device=index.device).unbind(1)
        else:
            yield index


def _can_be(number: float, dtype: torch.dtype) -> bool:
    """Whether a number lies within a dtype, or is infinite."""
    return number in (float("inf"), float("-inf")) or abs(number) <= torch.finfo(dtype).max


def _is_fake(tensor: torch.Tensor) -> bool:
    return isinstance(tensor, torch._subclasses.fake_tensor.FakeTensor)


def _called_by_the_engine() -> bool:
    """Whether an operation is called by the engine, or a derivative of its own, and from no Python but the call into the engine."""
    if torch._C._current_autograd_node() is None:
        return False
    caller = sys._getframe(2)
    while caller is not None and caller.f_code.co_filename.endswith(
        ("torch/_dynamo/eval_frame.py", "torch/_compile.py", "oracle/live_bytes.py", "oracle/known_numbers.py")
    ):
        caller = caller.f_back
    return caller is not None and caller.f_code.co_filename.endswith("torch/autograd/graph.py")


def _engine_adds_in_place(gathered) -> bool:
    """Whether autograd would add the arriving gradient into `gathered` itself.

    The engine reuses the gradient that it has gathered so far when nothing else holds it or its storage, and it is no
    view; but never under a dispatch mode, so that we must do it for the engine. Only the engine's own additions are meant.
    """
    return (
        isinstance(gathered, torch.Tensor)
        and _called_by_the_engine()
        and not gathered._is_view()
        and gathered._use_count() == SOLE_OWNER
        and torch._C._storage_Use_Count(gathered.untyped_storage()._cdata) == SOLE_STORAGE
    )
