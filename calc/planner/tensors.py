"""What is kept for the backward pass, tensor by tensor: which operation keeps it and why, and which setting would do without it.

The list is read off the run itself. Whether a setting removes a tensor is not claimed but tried: the run is made again with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from calc.autograd.storage import INPUTS
from calc.catalog.gpus import GPUS
from calc.catalog.table import Table
from calc.memory import step
from calc.memory.estimate import built, config_of
from calc.memory.problems import Refused, problems
from calc.memory.recipes import recipe
from calc.planner.levers import LEVERS, Kind, Lever
from calc.scenario import Scenario
from calc.units import Bytes


@dataclass(frozen=True, slots=True)
class Keeper:
    """An operation and why its derivative needs a tensor."""

    id: str
    """PyTorch's name of the operation, or the function's."""
    reason: str


KEEPERS: Table[Keeper] = Table(
    "operation",
    Keeper("mm", "A weight's gradient is the product of its input and the incoming gradient."),
    Keeper("addmm", "A weight's gradient is the product of its input and the incoming gradient."),
    Keeper("bmm", "Each factor's gradient is a product with the other factor."),
    Keeper("baddbmm", "Each factor's gradient is a product with the other factor."),
    Keeper("grouped_mm", "An expert's gradient is the product of its tokens and the incoming gradient."),
    Keeper("int8_scaled_mm", "bitsandbytes keeps the input of an 8-bit product for the backward pass."),
    Keeper("mul", "Each factor's gradient is a product with the other factor."),
    Keeper("mul_", "The gradient is a product with the other factor."),
    Keeper("div", "The gradients are quotients with the divisor, and need the dividend too."),
    Keeper("div_", "The divisor's gradient is a quotient with the result."),
    Keeper("pow", "The slope of a square is twice its input."),
    Keeper("linalg_vector_norm", "The slope follows from its input's signs and the result."),
    Keeper("sqrt", "The slope of a root is half the reciprocal of its result."),
    Keeper("rsqrt", "The slope of a reciprocal root is a power of its result."),
    Keeper("tanh", "The slope follows from the result."),
    Keeper("sigmoid", "The slope follows from the result."),
    Keeper("exp", "The slope follows from the result."),
    Keeper("silu", "The slope of the activation is computed from its input."),
    Keeper("gelu", "The slope of the activation is computed from its input."),
    Keeper("softplus", "The slope of the activation is computed from its input."),
    Keeper("relu", "Only what was above zero passes a gradient on."),
    Keeper("convolution", "The gradients of input and weight are convolutions with the other one."),
    Keeper("steps", "Each step of the recurrence multiplies the state before it, whose gradient and the factor's are products."),
    Keeper("products", "What is read from each state is a product with it."),
    Keeper("silu product", "One kernel computes activation and product again from both factors."),
    Keeper("gelu product", "One kernel computes activation and product again from both factors."),
    Keeper("gelu_pytorch_tanh product", "One kernel computes activation and product again from both factors."),
    Keeper("expm1", "The slope follows from the result."),
    Keeper("logsumexp", "The slope is the softmax of its input, computed from input and result."),
    Keeper("minimum", "The gradient goes to the smaller one."),
    Keeper("where", "The gradient goes to the side that was chosen."),
    Keeper("masked_fill", "What was filled in passes no gradient on."),
    Keeper("clamp", "Only what lay between the bounds passes a gradient on."),
    Keeper("rms_norm", "The norm is computed again from its input and the reciprocal root of each row."),
    Keeper("native_layer_norm", "The norm is computed again from its input, mean and reciprocal deviation."),
    Keeper("rope", "The rotation is turned back with the same cosines and sines."),
    Keeper("_softmax", "The slope of a softmax follows from its result."),
    Keeper("_log_softmax", "The slope of a log-softmax follows from its result."),
    Keeper("flash attention", "Scores are computed again from queries, keys, values and the log-sum-exp of each row."),
    Keeper("efficient attention", "Scores are computed again from queries, keys, values and the log-sum-exp of each row."),
    Keeper("native_dropout", "The gradient is dropped where the value was."),
    Keeper("embedding", "Gradients go to the rows that were looked up."),
    Keeper("index", "Gradients go to the places that were read."),
    Keeper("gather", "Gradients go to the places that were read, whose positions it keeps."),
    Keeper("index_add_", "Gradients come from the places that were added to."),
    Keeper("index_add", "Gradients come from the places that were added to."),
    Keeper("scatter_", "Gradients come from the places that were written to."),
    Keeper("masked_scatter", "The mask says which gradients go to tokens and which to images."),
    Keeper("grid_sampler_2d", "Gradients go to the pixels around each point that was read."),
    Keeper("topk", "Gradients go to the chosen experts."),
    Keeper("max", "The gradient goes to the largest."),
    Keeper("PhimoeMultiplier", "The router's own function keeps scores, choice and result."),
    Keeper("nll_loss", "The gradient is the probability, less one at the label."),
    Keeper("liger_cross_entropy", "The gradient was computed in the logits' place and waits there."),
    Keeper("fast_cross_entropy", "The gradient is computed from logits, labels and the log-sum-exp of each row."),
    Keeper("fused_linear_cross_entropy", "The gradients of head and hidden states were computed in the forward pass and wait."),
    Keeper("chunked_log_probabilities", "Logits are computed again, piece by piece."),
    Keeper("cut_cross_entropy", "Logits are computed again inside the kernel, from the log-sum-exp of each token."),
    Keeper("checkpoint", "A checkpointed block keeps its input, to run again."),
)  # fmt: skip

REMOVING: tuple[Kind, ...] = (
    "checkpointing",
    "attention",
    "loss",
    "kernels",
    "padding",
    "adapter",
    "method",
    "offload",
)
"""Kinds of levers that may do without a tensor."""

Key = tuple[bool, str, tuple[int, ...], str]
Held = Mapping[tuple[bool, int, str], int]
"""Bytes by place, number of elements and the operation that keeps them."""


@dataclass(frozen=True, slots=True)
class Kept:
    """Tensors of one kind that are alive between forward and backward."""

    made_by: str
    """The operation that made it."""
    keepers: tuple[Keeper, ...]
    """The operations that keep it."""
    weights: tuple[str, ...]
    """The trained weights whose gradient needs it."""
    shape: tuple[int, ...]
    dtype: str
    each: Bytes
    count: int
    """How many the model has."""
    in_blocks: bool
    weight_copy: bool
    """It is autocast's 16-bit copy of a weight, kept because the input's gradient is a product with it."""
    removed_by: tuple[Lever, ...]
    """Single changes of the plan with which no such tensor is kept."""

    @property
    def total(self) -> Bytes:
        """All of them."""
        return self.each * self.count


@dataclass(frozen=True, slots=True)
class Activations:
    """Everything that the run keeps alive between forward and backward."""

    rows: tuple[Kept, ...]
    """In the order of the forward pass; equal tensors of several blocks together."""
    rest: Bytes
    """Beside the graph: inputs of checkpointed blocks, and what the model's frame holds."""
    total: Bytes
    """The sum of both."""


def keeper(op: str) -> Keeper:
    """The row of an operation; for one that has none yet, what is true of all."""
    return KEEPERS[op] if op in KEEPERS else Keeper(op, f"The derivative of {op} needs it.")


def kept_tensors(scenario: Scenario, *, config: Mapping[str, Any] | None = None) -> Activations:
    """Every tensor kept for the backward pass. Raises what `estimate` raises."""
    ran = _run(scenario, config)
    before = _bytes(ran)
    tried = [(lever, set(map(_key, after.saved)), _bytes(after)) for lever, after in _tried(scenario, config)]
    counted: dict[tuple[Key, tuple[tuple[str, str], ...], bool], list[int]] = {}
    for saved in ran.saved:
        count = counted.setdefault((_key(saved), saved.keepers, saved.weight_copy), [saved.size, 0])
        count[1] += _times(ran, saved)
    rows = tuple(
        Kept(
            made_by=key[1],
            keepers=tuple(map(keeper, dict.fromkeys(op for op, _ in keepers))),
            weights=tuple(dict.fromkeys(name.removesuffix(".weight") for _, name in keepers if name)),
            shape=key[2],
            dtype=key[3],
            each=Bytes(size),
            count=count,
            in_blocks=key[0],
            weight_copy=copied,
            removed_by=tuple(
                lever for lever, keys, after in tried if key not in keys and _less(key, keepers, before, after)
            ),
        )
        for (key, keepers, copied), (size, count) in counted.items()
    )
    inputs = ran.live.kinds[INPUTS]
    total = Bytes(ran.live.total + inputs)
    return Activations(rows, total - Bytes(sum(int(row.total) for row in rows)), total)


def _run(scenario: Scenario, config: Mapping[str, Any] | None) -> step.Step:
    model, gpu = built(config if config is not None else config_of(scenario)), GPUS[scenario.hardware.gpu]
    problems(scenario, model, gpu)
    return step.run(model, recipe(scenario.plan, gpu))


def _tried(scenario: Scenario, config: Mapping[str, Any] | None) -> Iterator[tuple[Lever, step.Step]]:
    for lever in LEVERS.values():
        changed = lever.change(scenario) if lever.kind in REMOVING else None
        if changed is None:
            continue
        try:
            yield lever, _run(changed, config)
        except Refused:
            continue


def _key(saved: step.Saved) -> Key:
    return (saved.block is not None, saved.op, saved.shape, saved.dtype)


def _less(key: Key, keepers: Sequence[tuple[str, str]], before: Held, after: Held) -> bool:
    """Whether less is kept in its place: a tensor that only gets another name, or is made by another operation, is not removed."""
    return all(after.get(like, 0) < before[like] for like in (_like(key, op) for op, _ in keepers))


def _like(key: Key, op: str) -> tuple[bool, int, str]:
    """Tensors of as many elements that the same kind of operation keeps, inside the blocks or outside."""
    return key[0], prod(key[2]), op


def _times(ran: step.Step, saved: step.Saved) -> int:
    return 1 if saved.block is None else ran.represents[saved.block]


def _bytes(ran: step.Step) -> Held:
    held: dict[tuple[bool, int, str], int] = {}
    for saved in ran.saved:
        for op in {op for op, _ in saved.keepers}:
            like = _like(_key(saved), op)
            held[like] = held.get(like, 0) + saved.size * _times(ran, saved)
    return held
