"""Parameters by name and shape: what a family's forward pass asked for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod
from typing import Literal

Role = Literal["embedding", "head", "linear", "norm", "bias", "expert", "router", "adapter", "other"]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter tensor, and how many tensors of the same name pattern and shape the model has.

    `name` is the checkpoint's, with `*` for the layer's number: model.layers.*.self_attn.q_proj.weight.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    role: Role
    count: int = 1
    trainable: bool = True

    @property
    def numel(self) -> int:
        """Elements of one tensor."""
        return prod(self.shape)

    @property
    def is_expert(self) -> bool:
        """An expert's, or all experts' of a layer: before transformers 5 each expert is linear layers of its own."""
        return self.role == "expert" or (self.role == "linear" and _NUMBERED.search(self.name) is not None)


_NUMBERED = re.compile(r"\.experts\.\d+\.")
"""What names an expert that is a module of its own."""
