"""What is known of a model's parameters: how many, which, what its repository stores, and what can be trained on that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from calc.model.counting import Counted, Part, checkpoint_of
from calc.model.hub_total import Reason, explained
from calc.model.quantized_checkpoint import QuantizedCheckpoint, stored
from calc.units import Bytes


@dataclass(frozen=True, slots=True)
class About:
    """The parameters of a model, beside what its repository stores."""

    model: Counted
    parts: Mapping[Part, int]
    """Elements by part, the largest first."""
    hub_total: int | None
    """Elements that the Hub counts in the repository's safetensors files; None where it does not."""
    difference: int
    """How many more the Hub counts; 0 where nothing is known."""
    reasons: tuple[Reason, ...] | None
    """What the difference is made of; None where that is not known."""
    checkpoint: QuantizedCheckpoint | None
    """How the stored weights are quantised, if they are."""
    load: Bytes | None
    """What the weights take as they are stored, in 16 bits where they are not quantised; None where the format's sizes are not known."""


def about(model: Counted, config: Mapping[str, Any], hub_total: int | None = None) -> About:
    """Gather what is known. Raises ConfigError for a quantisation that is not known."""
    checkpoint = checkpoint_of(model, config)
    unknown = checkpoint is not None and checkpoint.format is None
    return About(
        model=model,
        parts=dict(sorted(model.parts().items(), key=lambda part: -part[1])),
        hub_total=hub_total,
        difference=0 if hub_total is None else hub_total - model.total,
        reasons=None if hub_total is None else explained(model, config, hub_total),
        checkpoint=checkpoint,
        load=None if unknown else Bytes(loaded(model, checkpoint)),
    )


def loaded(model: Counted, checkpoint: QuantizedCheckpoint | None) -> int:
    """Bytes of the weights as they are stored: 16 bits an element, or the checkpoint's format. Raises ConfigError without its sizes."""
    if checkpoint is not None:
        return stored(model.parameters, checkpoint).bytes
    return sum(p.numel * p.count * (4 if p.dtype == "fp32" else 2) for p in model.parameters)
