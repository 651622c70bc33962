"""Framework versions whose behaviour is modelled: what the loss materialises, default optimizer, step arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from calc.catalog.table import Table


@dataclass(frozen=True, slots=True)
class Framework:
    """One version of a training stack, by what it does to memory and to the count of steps."""

    id: str
    label: str
    default_optimizer: str
    loss_layout: Literal["padded labels", "shifted logits", "chunked head"]
    """How labels meet logits: labels shifted and padded (logits whole), logits sliced and copied, or head and loss in pieces."""
    source: str
    gqa_in_sdpa: bool = True
    """sdpa gets grouped key heads as they are (from 4.53 on); before, they were repeated first."""
    reentrant_checkpointing: bool = False
    """Gradient checkpointing's default kind was the reentrant one before 5.0."""


FRAMEWORKS = Table(
    "framework",
    Framework("transformers-5.24", "transformers 5.24", "adamw_torch_fused", "padded labels", "transformers"),
    Framework("transformers-5.14", "transformers 5.14", "adamw_torch_fused", "padded labels", "transformers"),
    Framework(
        "transformers-4.57",
        "transformers 4.57",
        "adamw_torch_fused",
        "padded labels",
        "transformers",
        reentrant_checkpointing=True,
    ),
    Framework("transformers-4.51", "transformers 4.51", "adamw_torch", "padded labels", "transformers", False, True),
    Framework("transformers-4.44", "transformers 4.44", "adamw_torch", "shifted logits", "transformers", False, True),
)
