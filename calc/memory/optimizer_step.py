"""What the optimizer's step allocates on top of weights, gradients and states, and which gradients exist at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from calc.catalog.dtypes import DTYPES
from calc.catalog.optimizers import Optimizer, steps
from calc.memory.breakdown import Certainty, Line
from calc.memory.optimizer_states import parameter_groups
from calc.model.parameters import Parameter
from calc.units import Bytes


@dataclass(frozen=True, slots=True)
class Temporaries:
    """The most extra bytes alive at once during the step."""

    bytes: Bytes
    formula: str
    numbers: str
    """The same with this run's numbers: which parameter, or how many elements."""
    during: Literal["optimizer step", "backward"]
    """When they are alive: after the backward pass, or inside it for optimizers that update there."""
    certainty: Certainty
    source: str
    note: str = ""

    @property
    def line(self) -> Line:
        """The answer's line."""
        return Line(
            "temporaries",
            "Optimizer step",
            self.bytes,
            self.certainty,
            self.formula,
            self.numbers,
            self.source,
            self.note,
        )


def temporaries(
    optimizer: Optimizer,
    parameters: Sequence[Parameter],
    args: Mapping[str, object] | None = None,
    *,
    worst: bool = True,
) -> Temporaries:
    """Peak bytes of one step over the standing weights, gradients and states of the trainable parameters.

    `worst` takes the step of a run that needs most: one that renews a projection, or that has left a warm-up branch.
    Workspace inside solvers (SVD, QR) and allocator rounding are not counted.
    Raises `UnknownName` or `BadArgument` for arguments that the optimizer does not understand.
    """
    settings = optimizer.settings(args)
    groups = parameter_groups(optimizer, parameters, settings)
    arena = steps.Arena(alone=optimizer.frees_gradients)
    if optimizer.frees_gradients:
        for parameter in (p for group in groups for p in group):
            arena.live = 0  # the gradient that one step freed is not the next one's
            optimizer.step.run(arena, ((parameter,),), settings, worst=worst)
    else:
        optimizer.step.run(arena, groups, settings, worst=worst)
    at = arena.at
    numbers = (
        f"{arena.peak:,} B at {at.name} ({' × '.join(f'{d:,}' for d in at.shape)}, {at.dtype})"
        if at is not None
        else " + ".join(f"{total:,} B" for group in groups for total in steps.by_dtype(group))
        if arena.peak
        else "0 B"
    )
    return Temporaries(
        Bytes(arena.peak),
        optimizer.step.formula(settings),
        numbers,
        "backward" if optimizer.frees_gradients else "optimizer step",
        optimizer.step.certainty,
        optimizer.source,
        optimizer.note,
    )


def clipping(parameters: Sequence[Parameter]) -> Bytes:
    """Bytes that clipping by the global norm allocates before the step (`max_grad_norm`, on by default)."""
    return steps.clipping([p for p in parameters if p.trainable])


def largest_gradients(optimizer: Optimizer, parameters: Sequence[Parameter]) -> Bytes:
    """Gradients alive at once: all of them, or the largest one or two neighbours where the backward pass frees them."""
    sizes: list[int] = []
    for weight in steps.in_order([p for p in parameters if p.trainable]):
        sizes.append(steps.size(weight))
    if not optimizer.frees_gradients:
        return Bytes(sum(p.numel * p.count * int(DTYPES[p.dtype].size) for p in parameters if p.trainable))
    width = optimizer.gradients_alive
    return Bytes(max((sum(sizes[i : i + width]) for i in range(len(sizes))), default=0))
