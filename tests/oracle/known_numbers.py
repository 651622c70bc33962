"""Fake tensors that know their numbers: grids of patches, placeholder tokens, masks made of them.

A model that sees images reads sizes out of tensors (how many patches an image has, where its tokens stand). A fake tensor has no
numbers, so small ones that were given some carry a real copy on the CPU, and every operation whose operands are all known is done on
the copies too. Nothing of that is counted: it stands for what the GPU would know.
"""

from __future__ import annotations

from typing import Any

import torch
from live_bytes import SELECTING, LiveBytes, _engine_adds_in_place
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_flatten, tree_map
from torch.utils.weak import WeakTensorKeyDictionary

aten = torch.ops.aten
LARGEST = 1 << 22
"""Elements of the largest tensor whose numbers are followed."""
SHAPED_BY_NUMBERS = {
    aten.nonzero.default,
    aten.masked_select.default,
    aten.unique_consecutive.default,
    aten.repeat_interleave.Tensor,
    aten.index.Tensor,
}
MAKING = {
    aten.arange.default,
    aten.arange.start,
    aten.arange.start_step,
    aten.zeros.default,
    aten.ones.default,
    aten.full.default,
    aten.scalar_tensor.default,
}
PRODUCTS = {aten.mm.default: 0, aten.bmm.default: 0, aten.addmm.default: 1}
"""Where their two factors begin among the operands."""


class KnownNumbers(LiveBytes):
    """Counts as LiveBytes does, and follows the numbers of small tensors."""

    def __init__(self, device: str):
        super().__init__(device)
        self.numbers = WeakTensorKeyDictionary()

    def know(self, tensor: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
        """Say what numbers a fake tensor has."""
        self.numbers[tensor] = numbers
        return tensor

    def told(self, func: Any, args: Any, out: Any) -> None:
        """Called with the result of an operation whose numbers are not known: a subclass may say what they are.

        It cannot look at each operation by itself, since what calls `__torch_dispatch__` is looked at too.
        """

    def _copies(self, func: Any, args: Any, kwargs: Any) -> Any:
        """The result on the real copies; None where an operand is not known."""
        flat, _ = tree_flatten((args, kwargs))
        tensors = [t for t in flat if isinstance(t, torch.Tensor)]
        if not tensors and func not in MAKING:
            return None
        if any(t not in self.numbers and isinstance(t, torch._subclasses.FakeTensor) for t in tensors):
            return None
        real = lambda t: self.numbers.get(t, t) if isinstance(t, torch.Tensor) else t  # noqa: E731
        args, kwargs = tree_map(real, args), tree_map(real, kwargs)
        if kwargs.get("device") is not None:
            kwargs = kwargs | {"device": torch.device("cpu")}
        with _disable_current_modes(), torch.no_grad():
            return func(*args, **kwargs)

    def _is_known_selection(self, index: torch.Tensor | None) -> bool:
        return index is not None and index.dtype == torch.bool and index in self.numbers

    def _places(self, indices: Any) -> Any:
        """Boolean indices as the integer ones that a GPU makes of them, as many as there are true ones."""
        for index in indices:
            if self._is_known_selection(index):
                with _disable_current_modes():
                    count = int(self.numbers[index].sum())
                yield from torch.empty(count, index.dim(), dtype=torch.int64, device=index.device).unbind(1)
            else:
                yield index

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func is aten.add.Tensor and _engine_adds_in_place(args[0]):  # before anything here holds the tensor too
            return args[0]
        kwargs = kwargs or {}
        if func in PRODUCTS and args[PRODUCTS[func]].dtype != args[PRODUCTS[func] + 1].dtype:
            raise RuntimeError("expected both factors to have the same dtype")  # as the kernels do
        if func is aten._local_scalar_dense.default and args[0] in self.numbers:
            with _disable_current_modes():
                return self.numbers[args[0]].item()
        copies = self._copies(func, args, kwargs)
        if copies is None and func in SELECTING and any(self._is_known_selection(index) for index in args[1] or ()):
            with self:
                return func(args[0], [*self._places(args[1])], *args[2:], **kwargs)
        if copies is None:
            out = super().__torch_dispatch__(func, types, args, kwargs)
            self.told(func, args, out)
            return out
        if func in SHAPED_BY_NUMBERS:
            device = args[0].device
            out = tree_map(
                lambda t: torch.empty(t.shape, dtype=t.dtype, device=device) if isinstance(t, torch.Tensor) else t,
                copies,
            )
            for tensor in tree_flatten(out)[0]:
                if isinstance(tensor, torch.Tensor):
                    self.count(tensor, str(func).removesuffix(".default"))
        else:
            out = super().__torch_dispatch__(func, types, args, kwargs)
        fake, real = tree_flatten(out)[0], tree_flatten(copies)[0]
        for tensor, copy in zip(fake, real, strict=False):
            if isinstance(tensor, torch.Tensor) and isinstance(copy, torch.Tensor) and copy.numel() <= LARGEST:
                self.numbers[tensor] = copy
        return out
