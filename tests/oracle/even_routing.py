"""Experts that a loop goes through, one after another, with as many tokens as the router sent to each.

Such a class reads the numbers of its router, which a fake tensor has none of. Here the router chooses in turn: copy after copy goes to the
next expert, so that all get the same share.
"""

from __future__ import annotations

from typing import Any

import fake_gpu  # noqa: F401  (before torch)
import torch
import transformers
from known_numbers import KnownNumbers
from torch.nn import functional
from torch.utils._python_dispatch import _disable_current_modes

aten = torch.ops.aten
ADDING = (aten.index_add.default, aten.index_add_.default)
MODEL_TYPES = frozenset(("dbrx", "jetmoe") if transformers.__version__ >= "5" else ("mixtral",))
"""Types whose experts are such a loop in this version of transformers."""


def one_hot(places: torch.Tensor, num_classes: int = -1) -> torch.Tensor:
    """torch's one_hot as a GPU runs it; a fake tensor is compared with every class instead, as for a compiler."""
    whole = torch.zeros(*places.shape, num_classes, dtype=torch.int64, device=places.device)
    return whole.scatter_(-1, places.unsqueeze(-1), 1)


class EvenRouting(KnownNumbers):
    """Counts as KnownNumbers does, and knows what each router chooses."""

    def __init__(self, device: str):
        super().__init__(device)
        functional.one_hot = one_hot

    def told(self, func: Any, args: Any, out: Any) -> None:
        """A router's choice is known."""
        if func is aten.topk.default:
            self.know(out[1], in_turn(out[1].shape, args[0].shape[-1]))
        if func in ADDING and args[0].dtype != args[3].dtype:
            raise RuntimeError(
                "self and source must have the same scalar type"
            )  # as the kernels do, where a fake tensor adds them


def in_turn(shape: Any, experts: int) -> torch.Tensor:
    """Places that go round: (rows, k)."""
    with _disable_current_modes():
        return (torch.arange(shape.numel()) % experts).reshape(shape)
