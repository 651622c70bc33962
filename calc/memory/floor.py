"""What a step holds at least, for a model whose activations are not modelled: weights, gradients and optimizer states are exact.

Counts      parameters, adapters, gradients, optimizer states, the optimizer's temporaries and the batch, on one GPU.
Leaves out  activations, logits and loss, the model's own buffers, the allocator's reserve and the CUDA context.
Sources     the class's table of parameters, or the tensors that the repository stores; PEFT and bitsandbytes for what adapters and 4 bits change.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from calc.catalog.gpus import GPUS
from calc.memory.breakdown import Host, Instant, Line, ParameterCount, Problem
from calc.memory.estimate import standing, total
from calc.memory.problems import problems, refuse_targets
from calc.memory.recipes import recipe
from calc.memory.weights import size
from calc.model.adapters import layer_of, targeted
from calc.model.counting import Counted
from calc.model.parameters import Parameter
from calc.model.recipe import Adapters, Recipe
from calc.scenario import Scenario
from calc.units import Bytes


@dataclass(frozen=True, slots=True)
class Floor:
    """The part of a step that is known without its activations."""

    parameters: ParameterCount
    instants: tuple[Instant, Instant]
    """Loading and the optimizer's step."""
    peak: Instant
    """The higher of them."""
    host: Host
    capacity: Bytes
    verdict: Literal["does_not_fit", "unknown", "impossible"]
    """What is known does not fit; or it does, and what is not known decides."""
    headroom: Bytes
    """What is left for all that is not known; negative when nothing is."""
    problems: tuple[Problem, ...]

    @property
    def lines(self) -> tuple[Line, ...]:
        """The lines of the higher instant."""
        return self.peak.lines


def floor(scenario: Scenario, model: Counted) -> Floor:
    """What the plan holds at least of that model. Raises `Refused` for a plan that cannot run."""
    gpu = GPUS[scenario.hardware.gpu]
    notes = problems(scenario, None, gpu)
    refuse_targets(scenario.plan, model.name, model.parameters)
    parameters = tuple(placed(model, recipe(scenario.plan, gpu)))
    stands = standing(scenario, None, parameters)
    load = Instant("load", stands.load, stands.loaded)
    step = Instant("optimizer step", total(stands.stepped), stands.stepped, "step")
    highest = max(load, step, key=lambda instant: int(instant.allocated))
    headroom = gpu.capacity - highest.allocated
    return Floor(
        parameters=ParameterCount(
            model.total, sum(p.numel * p.count for p in parameters if p.trainable), model.active, model.embedding
        ),
        instants=(load, step),
        peak=highest,
        host=Host(stands.on_host, size(parameters)),
        capacity=gpu.capacity,
        verdict="impossible" if any(n.blocking for n in notes) else "does_not_fit" if headroom < 0 else "unknown",
        headroom=headroom,
        problems=notes,
    )


def placed(model: Counted, how: Recipe) -> Iterator[Parameter]:
    """The parameters as a plan stores them, with the adapters beside them."""
    adapters = how.adapters
    for given in model.parameters:
        wide = given.dtype == "fp32" or (
            how.dtype == "fp16" and any(re.search(w, given.name) for w in model.wide_in_fp16)
        )
        p = replace(given, dtype="fp32" if wide else how.dtype, trainable=given.trainable and adapters is None)
        if adapters is None or not given.trainable:  # what no step runs stays as it is
            yield p
            continue
        if any(f".{module}." in f".{p.name}." for module in adapters.saved_modules):
            yield replace(p, name=f"{p.name} (original)")
            yield replace(p, trainable=True)
            continue
        layer = layer_of(p)
        if layer is None:
            yield p
            continue
        yield p if how.quantized is None else replace(p, dtype=how.quantized.dtype)
        if targeted(layer, adapters.targets):
            yield from _beside(p, adapters)


def _beside(p: Parameter, adapters: Adapters) -> Iterator[Parameter]:
    out, inner = p.shape
    shapes: list[tuple[str, tuple[int, ...]]] = [("lora_A", (adapters.rank, inner)), ("lora_B", (out, adapters.rank))]
    if adapters.dora:
        shapes.append(("lora_magnitude_vector", (out,)))
    for name, shape in shapes:
        yield Parameter(f"{p.name.removesuffix('weight')}{name}.weight", shape, adapters.dtype, "adapter", p.count)
