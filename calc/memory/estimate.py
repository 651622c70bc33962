"""From a scenario to the answer: every instant of the step on one GPU, line by line, and the verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from calc.autograd.storage import ACTIVATIONS, CASTS, GRADIENTS, LOGITS, TEMPORARIES
from calc.autograd.tensor import Tensor
from calc.catalog.gpus import GPUS
from calc.catalog.models import MODELS
from calc.catalog.optimizers import OPTIMIZERS
from calc.memory import closed_form, optimizer_states, optimizer_step, step
from calc.memory.allowance import reserved_and_device
from calc.memory.breakdown import (
    Breakdown,
    Component,
    Host,
    Instant,
    InstantName,
    Line,
    ParameterCount,
    Peak,
    Problem,
    Span,
    Verdict,
)
from calc.memory.problems import Refused, problems
from calc.memory.recipes import PRECISIONS, recipe
from calc.memory.weights import (
    adapter_lines,
    buffer_lines,
    gradient_line,
    master_lines,
    rounding_line,
    size,
    weight_lines,
)
from calc.model import ConfigError, UnknownArchitecture, architecture
from calc.model.family import Architecture
from calc.model.parameters import Parameter, Role
from calc.model.recipe import Recipe
from calc.scenario import ConfigModel, PathModel, Scenario
from calc.units import Bytes

KINDS: tuple[tuple[int, Component, str], ...] = (
    (ACTIVATIONS, "activations", "Activations kept for the backward pass"),
    (LOGITS, "logits and loss", "Logits and loss"),
    (CASTS, "temporaries", "16-bit copies of the weights (autocast)"),
    (TEMPORARIES, "temporaries", "Gradients of activations, and scratch"),
    (GRADIENTS, "gradients", "Gradients made so far"),
)
"""What the run on shapes counts, as lines of the answer."""

MOMENTS: tuple[tuple[InstantName, str], ...] = (
    ("forward", "forward"),
    ("loss", "loss"),
    ("backward", "backward"),
    ("end of backward", "end"),
)
"""Instants that the run on shapes tells, and their field of `step.Step`."""


def config_of(scenario: Scenario) -> Mapping[str, Any]:
    """The config.json that a scenario means. Raises `UnknownName` for an id that the embedded catalogue does not have."""
    if isinstance(scenario.model, ConfigModel):
        return scenario.model.config
    if isinstance(scenario.model, PathModel):
        raise Refused("path_model", "a path is read by the command line only; pass the config itself", "model.path")
    return MODELS[scenario.model].config


def built(config: Mapping[str, Any]) -> Architecture:
    """The architecture of a config. Raises `Refused` with one sentence."""
    try:
        return architecture(config)
    except UnknownArchitecture as error:
        raise Refused("unknown_architecture", str(error), "model") from None
    except ConfigError as error:
        raise Refused("bad_config", str(error), "model") from None


def estimate(scenario: Scenario, *, config: Mapping[str, Any] | None = None, granularity: int = 1) -> Breakdown:
    """Memory of one training step on the worst GPU.

    `config` is the model's config.json, when the scenario names a model that the embedded catalogue does not have. `granularity=512` rounds
    each allocation as PyTorch's allocator does.

    Raises `Refused` (code, message, field) for what cannot run or is not modelled, `UnknownName` for an unknown model.
    """
    model = built(config if config is not None else config_of(scenario))
    plan, gpu = scenario.plan, GPUS[scenario.hardware.gpu]
    notes = problems(scenario, model, gpu)
    run = recipe(plan, gpu)
    optimizer = OPTIMIZERS[plan.optimizer]
    on_gradient = _stepping_in_backward(scenario) if optimizer.frees_gradients else None
    result = step.run(model, run, granularity=granularity, on_gradient=on_gradient)
    parameters = result.parameters
    precision = PRECISIONS[plan.precision]
    optimized = _masters(parameters) if precision.master else parameters
    states = optimizer_states.states(optimizer, optimized, plan.optimizer_args)
    temporary = optimizer_step.temporaries(optimizer, optimized, plan.optimizer_args)

    weights = (*weight_lines(parameters), *adapter_lines(parameters))
    masters = master_lines(parameters) if precision.master else ()
    buffers = buffer_lines(model, run, precision.scaler)
    kept = optimizer_states.lines(states)
    gradients = gradient_line(parameters)
    earlier = (gradients,) if run.accumulated and not optimizer.frees_gradients else ()
    rounding = (rounding_line(parameters, states, granularity),) if granularity > 1 else ()
    standing = (*weights, *masters, *buffers, *kept, *rounding)
    base = sum(int(line.bytes) for line in standing)
    before = sum(int(line.bytes) for line in earlier)

    load = (*weights, *buffers[:1])
    instants = [Instant("load", Bytes(sum(int(line.bytes) for line in load)), load)]
    for name, attribute in MOMENTS:
        moment: step.Moment = getattr(result, attribute)
        made = tuple(
            Line(
                component,
                label,
                Bytes(moment.kinds[kind]),
                "exact",
                *_closed(model, run, attribute, kind),
                "oracle",
                "",
            )
            for kind, component, label in KINDS
            if moment.kinds[kind]
        )
        instants.append(Instant(name, Bytes(base + before + moment.total), (*standing, *earlier, *made), moment.at))
    stepping = [*standing]
    if not optimizer.frees_gradients:
        stepping.append(gradients)
    if temporary.during == "optimizer step" and temporary.bytes:
        stepping.append(temporary.line)
    instants.append(
        Instant("optimizer step", Bytes(sum(int(line.bytes) for line in stepping)), tuple(stepping), "step")
    )

    highest = max(instants, key=lambda instant: int(instant.allocated))
    reserved, device = reserved_and_device(
        highest.allocated, gpu, num_gpus=scenario.hardware.num_gpus, whole_logits=plan.loss in ("eager", "triton")
    )
    capacity = gpu.capacity
    return Breakdown(
        parameters=parameter_count(model, parameters),
        peak=Peak(highest.allocated, highest.name, reserved, device),
        instants=tuple(instants),
        lines=highest.lines,
        host=Host(Bytes(int(states.by_place["host"]) + int(states.by_place["unified"])), size(parameters)),
        capacity=capacity,
        verdict=_verdict(device, capacity, notes),
        headroom=capacity - device.expected,
        problems=notes,
    )


def _closed(model: Architecture, run: Recipe, instant: str, kind: int) -> tuple[Any, Any]:
    return partial(closed_form.formula, model, run, instant, kind), partial(
        closed_form.numbers, model, run, instant, kind
    )


def _masters(parameters: Sequence[Parameter]) -> tuple[Parameter, ...]:
    """What the optimizer works on when an fp32 master copy is kept."""
    return tuple(
        Parameter(p.name, p.shape, "fp32" if p.trainable else p.dtype, p.role, p.count, p.trainable) for p in parameters
    )


def _stepping_in_backward(scenario: Scenario) -> Any:
    """What happens when a gradient is complete and the optimizer uses it at once: its temporaries, then it is freed."""
    optimizer, args = OPTIMIZERS[scenario.plan.optimizer], scenario.plan.optimizer_args

    def used(weight: Tensor) -> None:
        role: Role = "norm" if len(weight.shape) == 1 else "linear"
        own = (Parameter(weight.name, weight.shape, weight.dtype, role),)
        extra = optimizer_step.temporaries(optimizer, own, args).bytes
        if extra:
            step.scratch(int(extra))
        weight.grad = None

    return used


def parameter_count(model: Architecture, parameters: Sequence[Parameter]) -> ParameterCount:
    """Total, trainable, active and embedding parameters. Adapters count as trainable, not as the model's total."""
    total = sum(p.numel * p.count for p in parameters if p.role != "adapter" and not p.name.endswith("(original)"))
    return ParameterCount(
        total=total,
        trainable=sum(p.numel * p.count for p in parameters if p.trainable),
        active=total - _idle(model, parameters),
        embedding=sum(p.numel * p.count for p in parameters if p.role == "embedding"),
    )


def _idle(model: Architecture, parameters: Sequence[Parameter]) -> int:
    """Expert weights that one token does not pass."""
    experts = sum(p.numel * p.count for p in parameters if p.role == "expert")
    if not experts:
        return 0
    number: int = getattr(model.dims, "num_experts")  # noqa: B009 - only mixtures have experts, and their dims say how many
    chosen: int = getattr(model.dims, "num_experts_per_tok")  # noqa: B009
    return experts - experts * chosen // number


def _verdict(device: Span, capacity: Bytes, notes: Sequence[Problem]) -> Verdict:
    if any(note.blocking for note in notes):
        return "impossible"
    if device.expected > capacity:
        return "does_not_fit"
    return "tight" if device.high > capacity else "fits"
