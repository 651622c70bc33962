"""Framework versions whose behaviour is modelled: what the loss materialises, default optimizer, step arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from calc.catalog.table import Table

Logits = Literal["upcast by the model", "shifted and copied", "padded labels"]
"""How whole logits meet the labels that lie one token ahead: the model upcasts them and copies all but each sequence's last (read in 4.44 and 4.45);
the loss does both, while the model still holds its own (4.48); or the labels move instead (4.51 and later)."""


@dataclass(frozen=True, slots=True)
class Framework:
    """One version of a training stack, by what it does to memory and to the count of steps."""

    id: str
    label: str
    default_optimizer: str
    logits: Logits
    source: str
    grouped_keys: Literal["as they are", "repeated", "as the card takes them"] = "as they are"
    """How sdpa gets grouped key heads. As they are, a card without a flash kernel falls back to PyTorch's formula, which holds every score."""
    flash_repeats: tuple[str, ...] = ()
    """Model types whose flash-attention 2 class repeats grouped key heads first, as each class had its own."""
    narrow_logits: tuple[str, ...] = ()
    """Model types whose class gives the loss its logits in their own dtype."""
    one_mask: bool = False
    """Eager attention's mask of a batch without padding is one for all sequences; later it is made for each."""
    position_tables: tuple[str, ...] = ()
    """Model types of which each layer holds a table of cosines and one of sines for every position that the config allows."""
    position_masks: tuple[str, ...] = ()
    """Model types of which each layer holds a boolean mask of every position by every position, and the number that it masks with."""
    reentrant_checkpointing: bool = False
    """Gradient checkpointing is of the older kind: the whole block runs again, and its graph is run backwards inside the outer one."""
    grouped_experts: bool = True
    """Experts are 3-D parameters that a grouped product uses; before, each was a module of linear layers, run one after another."""
    chunked_loss: bool = True
    """The trainer on top (TRL) can compute head and loss in tiles."""
    keeps_outputs: bool = False
    """The logits that the model returned are held through backward and step, as in a loop that keeps `outputs` under a name."""


FRAMEWORKS = Table(
    "framework",
    Framework("transformers-5.24", "transformers 5.24", "adamw_torch_fused", "padded labels", "transformers"),
    Framework("transformers-5.14", "transformers 5.14", "adamw_torch_fused", "padded labels", "transformers"),
    Framework("transformers-4.57", "transformers 4.57", "adamw_torch_fused", "padded labels", "transformers", position_masks=("gpt2",),
              reentrant_checkpointing=True, grouped_experts=False, chunked_loss=False),
    Framework("transformers-4.51", "transformers 4.51", "adamw_torch", "padded labels", "transformers",
              position_masks=("gpt2",),
              grouped_keys="repeated", reentrant_checkpointing=True, grouped_experts=False, chunked_loss=False, one_mask=True),
    Framework("transformers-4.48", "transformers 4.48", "adamw_torch", "shifted and copied", "transformers",
              position_masks=("gpt2",),
              grouped_keys="repeated", reentrant_checkpointing=True, grouped_experts=False, chunked_loss=False, one_mask=True),
    Framework("transformers-4.44", "transformers 4.44", "adamw_torch", "upcast by the model", "transformers",
              flash_repeats=("mistral", "mixtral", "qwen2", "qwen2_moe", "phi3", "starcoder2"),
              narrow_logits=("biogpt", "bloom", "falcon", "gpt2", "gpt_bigcode", "gpt_neox", "mpt", "opt", "persimmon", "stablelm"),
              position_tables=("mixtral", "qwen2", "qwen2_moe", "starcoder2"), position_masks=("gpt2",),
              grouped_keys="repeated", reentrant_checkpointing=True, grouped_experts=False, chunked_loss=False, one_mask=True),
    Framework("own-loop", "a loop of one's own on transformers 5", "adamw_torch", "padded labels", "transformers",
              grouped_keys="as the card takes them", keeps_outputs=True),
)  # fmt: skip
