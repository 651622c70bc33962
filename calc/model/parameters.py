"""Parameters by name and shape: what a family's forward pass asked for."""

from __future__ import annotations

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
