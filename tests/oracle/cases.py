"""Everything that is measured, as rows. To add a case, add a row; to add a kind of truth, add a `Truth` and its module.

A case speaks the product's own words: `plan` holds fields of calc's Scenario. Nothing here imports torch.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator
from typing import Any

from models import MODELS, REAL, TINY

Case = dict[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class Truth:
    """One golden file: what it is about, the module that measures its cases, and how many the quick check repeats."""

    name: str
    about: str
    module: str
    cases: tuple[Case, ...]
    sample: int = 4


@dataclasses.dataclass(frozen=True, slots=True)
class Grid:
    """Models times settings; attention that a model's class refuses is left out, and a class that only has eager takes it."""

    models: Iterable[str]
    batches: tuple[tuple[int, int], ...] = ((2, 56),)
    precision: tuple[str, ...] = ("bf16",)
    attention: tuple[str, ...] = ("sdpa",)
    gradient_checkpointing: tuple[str, ...] = ("none", "full")
    optimizer: tuple[str, ...] = ("adamw_torch_fused",)
    more: tuple[dict[str, Any], ...] = ({},)
    """Further plan fields, one dict per variant."""

    def __iter__(self) -> Iterator[Case]:
        for name, (batch, length), precision, attention, checkpointing, optimizer, more in itertools.product(
                self.models, self.batches, self.precision, self.attention, self.gradient_checkpointing, self.optimizer, self.more):
            supported = MODELS[name].attention
            if attention not in supported and (attention != self.attention[0] or "eager" in self.attention):
                continue
            yield {"model": name, "plan": {
                "method": "full", "precision": precision, "optimizer": optimizer, "micro_batch_size": batch, "seq_len": length,
                "gradient_checkpointing": checkpointing, "attention": attention if attention in supported else supported[0]} | more}


def rows(*grids: Iterable[Case]) -> tuple[Case, ...]:
    """All cases of all grids, none twice."""
    seen: dict[str, Case] = {}
    for case in itertools.chain(*grids):
        seen.setdefault(repr(case), case)
    return tuple(seen.values())


def named(models: Iterable[Any], *kinds: str) -> list[str]:
    return [model.name for model in models if model.kind in kinds]


ALL_TINY, REAL_LAYERS = named(TINY, "tiny"), named(REAL, "real")
MIXTURES = [name for name in (*ALL_TINY, *REAL_LAYERS) if "E" in MODELS[name].symbols
            or any(field in MODELS[name].given for field in ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"))]
DENSE_TINY = [name for name in ALL_TINY if name not in MIXTURES]
DENSE_REAL = [name for name in REAL_LAYERS if name not in MIXTURES]
FOUR = ["llama-2-7b@2", "llama-3-8b@2", "qwen2.5-3b@2", "gemma-2-2b@2"]

TRUTHS = (
    Truth("parameters", "Parameters, buffers and configs of the measured models, from the real classes", "parameters",
          tuple({"model": model.name} for model in (*TINY, *REAL)), sample=12),
    Truth("saved", "Tensors that one forward pass keeps for backward, by symbol", "saved",
          rows(Grid(ALL_TINY, precision=("bf16", "bf16-mixed"), attention=("sdpa", "eager"), gradient_checkpointing=("none",))), sample=8),
    Truth("steps_tiny", "Whole steps of every family, tiny models", "train_step",
          rows(Grid(ALL_TINY, batches=((2, 56), (3, 64)), precision=("bf16", "bf16-mixed"), attention=("sdpa", "eager"))), sample=10),
    Truth("steps_real", "Whole steps of some layers of published models", "train_step",
          rows(Grid(DENSE_REAL, batches=((1, 512), (2, 2048)), precision=("bf16", "bf16-mixed"), attention=("sdpa", "eager")),
               Grid([name for name in REAL_LAYERS if name in MIXTURES], batches=((1, 512), (2, 2048)), attention=("sdpa", "eager"))), sample=10),
    Truth("steps_precision", "Whole steps in the other recipes: pure fp32, autocast over bf16 weights, fp16 with a GradScaler", "train_step",
          rows(Grid([*DENSE_TINY, *FOUR], batches=((2, 64),), precision=("fp32", "bf16-autocast", "fp16-mixed"), attention=("sdpa", "eager"))),
          sample=8),
)
