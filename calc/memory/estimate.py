"""From a scenario to the answer: every instant of the step on one GPU, line by line, and the verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from calc.autograd.storage import ACTIVATIONS, CASTS, EXCHANGED, GATHERED, GRADIENTS, LOGITS, TEMPORARIES
from calc.catalog.dtypes import DTYPES
from calc.catalog.gpus import GPUS
from calc.catalog.models import MODELS
from calc.memory import closed_form, in_backward, optimizer_states, optimizer_step, step
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
from calc.memory.recipes import PRECISIONS, micro_batches, optimizer_of, recipe
from calc.memory.weights import (
    adapter_lines,
    batch_lines,
    bucket_line,
    flattening_line,
    gradient_line,
    master_lines,
    model_buffer_lines,
    rounding_line,
    share_line,
    size,
    unscaling_line,
    weight_lines,
)
from calc.model import ConfigError, NotModelled, UnknownArchitecture, architecture, typed
from calc.model.counting import counted
from calc.model.family import Architecture
from calc.model.parameters import Parameter
from calc.model.recipe import Recipe
from calc.scenario import ConfigModel, PathModel, Scenario
from calc.units import Bytes

KINDS: tuple[tuple[int, Component, str], ...] = (
    (ACTIVATIONS, "activations", "Activations kept for the backward pass"),
    (LOGITS, "logits and loss", "Logits and loss"),
    (CASTS, "temporaries", "16-bit copies of the weights (autocast)"),
    (TEMPORARIES, "temporaries", "Gradients of activations, and scratch"),
    (GRADIENTS, "gradients", "Gradients made so far"),
    (GATHERED, "weights", "Weights gathered from the other GPUs"),
    (EXCHANGED, "temporaries", "Buffers that gather weights and reduce gradients"),
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
        return typed(scenario.model.config, scenario.model.id)
    if isinstance(scenario.model, PathModel):
        raise Refused("path_model", "a path is read by the command line only; pass the config itself", "model.path")
    return typed(MODELS[scenario.model].config, scenario.model)


def built(config: Mapping[str, Any]) -> Architecture:
    """The architecture of a config. Raises `Refused` with one sentence."""
    try:
        return architecture(config)
    except NotModelled as error:
        try:
            counted(config)
        except ConfigError as bad:
            raise Refused("bad_config", str(bad), "model") from None
        raise Refused("activations_not_modelled", str(error), "model") from None
    except UnknownArchitecture as error:
        raise Refused("unknown_architecture", str(error), "model") from None
    except ConfigError as error:
        raise Refused("bad_config", str(error), "model") from None


def estimate(scenario: Scenario, *, config: Mapping[str, Any] | None = None, granularity: int = 1) -> Breakdown:
    """Memory of one training step on the worst GPU.

    `config` is the model's config.json, when the scenario names a model that the embedded catalogue does not have. `granularity=512` counts
    as a card does: each allocation rounded as PyTorch's allocator does, and what kernels allocate for their own length.

    Raises `Refused` (code, message, field) for what cannot run or is not modelled, `UnknownName` for an unknown model.
    """
    model = built(config if config is not None else config_of(scenario))
    plan, gpu = scenario.plan, GPUS[scenario.hardware.gpu]
    notes = problems(scenario, model, gpu)
    how = recipe(plan, gpu, scratch=granularity > 1)
    stepping = in_backward.stepping(plan)
    if stepping is None:
        runs = [(run, _ran(model, run, granularity)) for run in micro_batches(how, plan.gradient_accumulation_steps)]
    else:
        runs = [(how, step.run(model, how, granularity=granularity, on_gradient=stepping, list_saved=False))]
    result = runs[0][1]
    stands = standing(scenario, model, result.stored, granularity=granularity)

    instants = [Instant("load", stands.load, stands.loaded)]
    for name, attribute in MOMENTS:
        moments: list[tuple[Recipe, step.Moment]] = [(run, getattr(ran, attribute)) for run, ran in runs]
        run, moment = max(moments, key=lambda one: one[1].total)
        allocated = Bytes(int(stands.during) + moment.total)
        made = _made(model, run, attribute, moment, stepping)
        instants.append(Instant(name, allocated, (*stands.lines, *stands.earlier, *made), moment.at))
    stepped = (*stands.stepped, *_made(model, how, "held", result.held, stepping))
    instants.append(Instant("optimizer step", total(stepped), stepped, "step"))

    highest = max(instants, key=lambda instant: int(instant.allocated))
    reserved, device = on_the_card(scenario, highest.allocated)
    return Breakdown(
        parameters=parameter_count(model, result.parameters),
        peak=Peak(highest.allocated, highest.name, reserved, device),
        instants=tuple(instants),
        lines=highest.lines,
        host=Host(Bytes(int(stands.on_host) + result.on_host), size(result.parameters)),
        capacity=gpu.capacity,
        verdict=verdict(device, gpu.capacity, notes),
        headroom=gpu.capacity - device.expected,
        problems=notes,
    )


def _made(
    model: Architecture, how: Recipe, attribute: str, moment: step.Moment, stepping: step.OnGradient | None
) -> tuple[Line, ...]:
    """What the run holds at a moment, line by line."""
    return tuple(
        Line(
            component,
            label,
            Bytes(moment.kinds[kind]),
            "exact",
            *_closed(model, how, attribute, kind, stepping),
            "oracle",
        )
        for kind, component, label in KINDS
        if moment.kinds[kind]
    )


@lru_cache(maxsize=128)
def _ran(model: Architecture, how: Recipe, granularity: int) -> step.Step:
    """The run on shapes, which plans that differ only in what stands beside it share: optimizers, cards."""
    return step.run(model, how, granularity=granularity, list_saved=False)


@dataclass(frozen=True, slots=True)
class Standing:
    """What stands beside the run on shapes: weights, states, buffers, and at the step the gradients."""

    lines: tuple[Line, ...]
    """Alive the whole step long."""
    loaded: tuple[Line, ...]
    """What is there after loading."""
    earlier: tuple[Line, ...]
    """Gradients of an earlier micro-batch."""
    stepped: tuple[Line, ...]
    """What is alive at the optimizer's step."""
    on_host: Bytes

    @property
    def during(self) -> Bytes:
        """Alive beside the run on shapes."""
        return total((*self.lines, *self.earlier))

    @property
    def load(self) -> Bytes:
        """Alive after loading."""
        return total(self.loaded)

    @property
    def stepping(self) -> Bytes:
        """Alive at the optimizer's step."""
        return total(self.stepped)


def total(lines: Sequence[Line]) -> Bytes:
    """The sum of some lines."""
    return Bytes(sum([int(line.bytes) for line in lines]))


def standing(
    scenario: Scenario, model: Architecture | None, parameters: Sequence[Parameter], *, granularity: int = 1
) -> Standing:
    """What a plan keeps of `parameters`, those that one GPU stores, beside the run on shapes; without a model its buffers are left out."""
    plan, how = scenario.plan, recipe(scenario.plan, GPUS[scenario.hardware.gpu])
    optimizer, precision = optimizer_of(plan), PRECISIONS[plan.precision]
    optimized = _masters(parameters) if precision.master else parameters
    states = optimizer_states.states(optimizer, optimized, plan.optimizer_args)
    temporary = optimizer_step.temporaries(optimizer, optimized, plan.optimizer_args)
    shared = parameters if how.sharded is None else [p for p in parameters if p.dtype in DTYPES]
    weights = (*weight_lines(shared), *adapter_lines(parameters))
    masters = master_lines(parameters) if precision.master else ()
    buffers = () if model is None else model_buffer_lines(model, how)
    rounding = (rounding_line(parameters, states, granularity),) if granularity > 1 else ()
    batch = batch_lines(model, how, precision.scaler)
    buckets = (bucket_line(parameters),) if plan.sharding.strategy == "ddp" else ()
    gradients: tuple[Line, ...] = () if optimizer.frees_gradients else (gradient_line(parameters),)
    kept = optimizer_states.lines(states)
    if how.sharded is not None:
        weights, kept, gradients = (
            tuple([share_line(line, how.sharded) for line in lines]) for lines in (weights, kept, gradients)
        )
        weights = (*weights, *weight_lines([p for p in parameters if p.dtype not in DTYPES]))
    scratch = (temporary.line,) if temporary.during == "optimizer step" and temporary.bytes else ()
    on_host = int(states.by_place["host"]) + int(states.by_place["unified"])
    if (
        how.sharded is not None and how.sharded.on_host
    ):  # shares of the weights, their gradients and states, and the step itself
        on_host = int(total((*weights, *kept, *gradients, *scratch))) + int(states.by_place["host"])
        weights = kept = gradients = rounding = scratch = ()
    if precision.scaler:
        scratch = (*scratch, unscaling_line(sum(int(line.bytes) for line in scratch)))
    if precision.master:  # larger than any optimizer's own temporaries, which come when the flat copy alone is left
        scratch = (flattening_line(optimizer_states.parameter_groups(optimizer, optimized, states.settings)),)
    lines = (*weights, *masters, *buffers, *batch, *kept, *buckets, *rounding)
    return Standing(
        lines=lines,
        loaded=(*weights, *buffers),
        earlier=gradients if how.accumulated and (how.sharded is None or how.sharded.turn == "each") else (),
        stepped=(*lines, *gradients, *scratch),
        on_host=Bytes(on_host),
    )


def on_the_card(scenario: Scenario, allocated: Bytes) -> tuple[Span, Span]:
    """What the allocator holds and what nvidia-smi shows for that peak."""
    return reserved_and_device(
        allocated,
        GPUS[scenario.hardware.gpu],
        num_gpus=scenario.hardware.num_gpus,
        whole_logits=scenario.plan.loss in ("eager", "triton"),
    )


def _closed(
    model: Architecture, run: Recipe, instant: str, kind: int, stepping: step.OnGradient | None
) -> tuple[Any, Any]:
    return partial(closed_form.formula, model, run, instant, kind, stepping), partial(
        closed_form.numbers, model, run, instant, kind, stepping
    )


def _masters(parameters: Sequence[Parameter]) -> tuple[Parameter, ...]:
    """What the optimizer works on when an fp32 master copy is kept."""
    return tuple(
        Parameter(p.name, p.shape, "fp32" if p.trainable else p.dtype, p.role, p.count, p.trainable) for p in parameters
    )


def parameter_count(model: Architecture, parameters: Sequence[Parameter]) -> ParameterCount:
    """Total, trainable, active and embedding parameters. Adapters count as trainable, not as the model's total."""
    total = sum(
        p.numel * p.count for p in parameters if p.role != "adapter" and not p.name.endswith(("(original)", "(copy)"))
    )
    return ParameterCount(
        total=total,
        trainable=sum(p.numel * p.count for p in parameters if p.trainable),
        active=total - _idle(model, parameters),
        embedding=sum(p.numel * p.count for p in parameters if p.role == "embedding"),
    )


def _idle(model: Architecture, parameters: Sequence[Parameter]) -> int:
    """Expert weights that one token does not pass."""
    experts = sum(p.numel * p.count for p in parameters if p.is_expert)
    if not experts:
        return 0
    sizes = model.text
    number: int = getattr(sizes, "num_experts")  # noqa: B009 - only mixtures have experts, and their dims say how many
    chosen: int = getattr(sizes, "num_experts_per_tok")  # noqa: B009
    return experts - experts * chosen // number


def verdict(device: Span, capacity: Bytes, notes: Sequence[Problem]) -> Verdict:
    """Fits when even the high figure does; tight when only the expected one does."""
    if any(note.blocking for note in notes):
        return "impossible"
    if device.expected > capacity:
        return "does_not_fit"
    return "tight" if device.high > capacity else "fits"
