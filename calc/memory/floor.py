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
from calc.memory.problems import problems, refuse_layers, refuse_parameter_adapters, refuse_targets
from calc.memory.recipes import recipe
from calc.memory.stored_weights import as_stored, stored_line, stored_problems
from calc.memory.weights import size
from calc.model.adapters import layer_of, targeted
from calc.model.counting import Counted, Part
from calc.model.parameter_adapters import converted, factor_shapes
from calc.model.parameters import Parameter
from calc.model.quantized_checkpoint import QuantizedCheckpoint
from calc.model.recipe import Adapters, Recipe
from calc.scenario import Scenario
from calc.units import Bytes


@dataclass(frozen=True, slots=True)
class Likely:
    """An estimate of a step's peak."""

    low: Bytes
    expected: Bytes
    """With the block whose parameters are nearest in number."""
    high: Bytes
    nearest: str
    """That block's architecture."""
    compared: tuple[str, ...]
    """All that were built."""


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
    likely: Likely | None = None
    """What the whole step probably takes, by known blocks of the model's sizes (nearest.py)."""

    @property
    def lines(self) -> tuple[Line, ...]:
        """The lines of the higher instant."""
        return self.peak.lines


def floor(scenario: Scenario, model: Counted, checkpoint: QuantizedCheckpoint | None = None) -> Floor:
    """What the plan holds at least of that model, of which a checkpoint may store the weights quantised.

    Raises `Refused` for a plan that cannot run.
    """
    gpu = GPUS[scenario.hardware.gpu]
    notes = (*problems(scenario, None, gpu), *stored_problems(scenario.plan, checkpoint, gpu))
    refuse_parameter_adapters(scenario.plan, model.model_type)
    refuse_layers(scenario.plan, model.model_type, model.name)
    refuse_targets(scenario.plan, model.model_type, model.name, model.parameters)
    parameters = tuple(placed(model, recipe(scenario.plan, gpu)))
    kept = as_stored(scenario.plan, checkpoint, gpu)
    packed: tuple[Line, ...] = ()
    if kept is not None and kept.base is None:
        held, rest = kept.split(parameters)
        packed, parameters = (stored_line(held, kept),), tuple(rest)
    stands = standing(scenario, None, parameters)
    loaded, stepped = (*packed, *stands.loaded), (*packed, *stands.stepped)
    load = Instant("load", total(loaded), loaded)
    step = Instant("optimizer step", total(stepped), stepped, "step")
    highest = max(load, step, key=lambda instant: int(instant.allocated))
    headroom = gpu.capacity - highest.allocated
    return Floor(
        parameters=ParameterCount(
            model.total, sum(p.numel * p.count for p in parameters if p.trainable), model.active, model.embedding
        ),
        instants=(load, step),
        peak=highest,
        host=Host(stands.on_host, Bytes(int(size(parameters)) + sum(int(line.bytes) for line in packed))),
        capacity=gpu.capacity,
        verdict="impossible" if any(n.blocking for n in notes) else "does_not_fit" if headroom < 0 else "unknown",
        headroom=headroom,
        problems=notes,
    )


def placed(model: Counted, how: Recipe) -> Iterator[Parameter]:
    """The parameters as a plan stores them, with the adapters beside them."""
    adapters = how.adapters
    elsewhere, bare = (
        (frozenset[str](), frozenset[str]())
        if adapters is None
        else converted(model.model_type, adapters.targets, how.grouped_experts)
    )
    if (
        adapters is not None and "lm_head" in adapters.saved_modules and not model.head
    ):  # tied, so that a copy of the table is trained
        table = next((p for p in model.parameters if p.role == "embedding"), None)
        if table is not None:
            yield replace(table, name="lm_head.weight (copy)", dtype=how.dtype, role="head", trainable=True)
    packed = how.quantized is not None and how.quantized.format != "int8"
    layers = {p.name.removesuffix("weight") for p in model.parameters if layer_of(p) is not None} if packed else set()
    for given, part in model.by_part():
        wide = given.dtype == "fp32" or (
            how.dtype == "fp16" and any(re.search(w, given.name) for w in model.wide_in_fp16)
        )
        trained = given.trainable and _is_trained(part, how)
        p = replace(given, dtype="fp32" if wide else how.dtype, trainable=trained and adapters is None)
        runs = given.trainable or part != "text"
        if how.quantized is not None and runs and p.name.endswith("bias") and p.name[:-4] in layers:
            p = replace(
                p, dtype=how.quantized.compute
            )  # bitsandbytes turns a 4-bit layer's bias in its first forward pass
        if adapters is None or not trained:  # what no step runs gets no adapter
            yield p if how.quantized is None or layer_of(p) is None else replace(p, dtype=how.quantized.dtype)
            continue
        if any(f".{module}." in f".{p.name}." for module in adapters.saved_modules):
            yield replace(p, name=f"{p.name} (original)")
            yield replace(p, trainable=True)
            continue
        layer = layer_of(p)
        name = p.name.removesuffix(".weight")
        if p.role in ("expert", "router") and name.rpartition(".")[2] in bare:
            yield p
            for matrix, shape in zip(("lora_A", "lora_B"), factor_shapes(name, p.shape, adapters.rank), strict=True):
                yield Parameter(f"{name}.{matrix}.weight", shape, adapters.dtype, "adapter", p.count)
            continue
        if layer is None:
            yield p
            continue
        yield p if how.quantized is None else replace(p, dtype=how.quantized.dtype)
        if targeted(layer, adapters.targets) and layer.rpartition(".")[2] not in elsewhere:
            yield from _beside(p, adapters)


def _is_trained(part: Part, how: Recipe) -> bool:
    """Whether a step reaches that part of the model and the plan does not freeze it: towers without an input do not run."""
    return part in how.trained and (part == "text" or how.images is not None)


def _beside(p: Parameter, adapters: Adapters) -> Iterator[Parameter]:
    out, inner = p.shape
    shapes: list[tuple[str, tuple[int, ...]]] = [("lora_A", (adapters.rank, inner)), ("lora_B", (out, adapters.rank))]
    if adapters.dora:
        shapes.append(("lora_magnitude_vector", (out,)))
    for name, shape in shapes:
        yield Parameter(f"{p.name.removesuffix('weight')}{name}.weight", shape, adapters.dtype, "adapter", p.count)
