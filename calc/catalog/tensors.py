"""A tensor as memory sees it: a name, a shape, a dtype and the place where it lies."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Literal

from calc.catalog.dtypes import DTYPES
from calc.units import Bytes

Place = Literal["device", "host", "unified"]
"""GPU memory, host memory, or CUDA managed memory that the driver moves between the two."""
PLACES: tuple[Place, ...] = ("device", "host", "unified")


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor that something stores."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    """Id in `calc.catalog.dtypes`."""
    place: Place = "device"
    view_of: int = 0
    """Elements of the storage that a view keeps alive; 0 when the tensor has a storage of its own size."""
    shared: bool = False
    """One tensor for the whole optimizer, however many parameters refer to it."""
    symbol: str = ""
    """Its bytes in the field's symbols: n·b."""

    @property
    def numel(self) -> int:
        """Elements of the tensor itself."""
        return prod(self.shape)

    @property
    def bytes(self) -> Bytes:
        """Bytes of the tensor's own elements."""
        return DTYPES[self.dtype].size * self.numel

    @property
    def held(self) -> Bytes:
        """Bytes that exist as long as the tensor does: its storage, larger than itself when it is a view."""
        return DTYPES[self.dtype].size * (self.view_of or self.numel)
