"""What the optimizer keeps between steps: bytes by state tensor and place, and the tree that `state_dict()` shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from calc.catalog.dtypes import DTYPES
from calc.catalog.optimizers import Optimizer
from calc.catalog.optimizers.row import GroupValue
from calc.catalog.optimizers.states import Settings, kept, targeted
from calc.catalog.tensors import Place, Tensor
from calc.memory.breakdown import Line
from calc.model.parameters import Parameter
from calc.units import Bytes

NOTHING = Bytes(0)


@dataclass(frozen=True, slots=True)
class ParameterStates:
    """The tensors kept for one parameter, and for each of the others with its name pattern and shape."""

    parameter: Parameter
    tensors: tuple[Tensor, ...]


@dataclass(frozen=True, slots=True)
class OptimizerStates:
    """Everything an optimizer keeps for a set of parameters."""

    optimizer: Optimizer
    settings: Settings
    of: tuple[ParameterStates, ...]
    """Trainable parameters in the model's order."""
    by_name: Mapping[str, Bytes]
    """Bytes of each kind of state tensor, over all places."""
    by_place: Mapping[Place, Bytes]
    """Bytes that exist in each place. Managed memory ("unified") is outside PyTorch's allocator and its counters."""
    total: Bytes
    """Bytes of the state tensors themselves."""
    retained: Bytes
    """Bytes beyond them that are kept alive because a state is a view of a larger tensor."""


def states(
    optimizer: Optimizer, parameters: Sequence[Parameter], args: Mapping[str, object] | None = None
) -> OptimizerStates:
    """The optimizer's states for the trainable ones among `parameters`.

    Raises `UnknownName` or `BadArgument` for arguments that the optimizer does not understand.
    """
    settings = optimizer.settings(args)
    rules, own_tables = optimizer.states, optimizer.layerwise
    of: list[ParameterStates] = []
    by_name: dict[str, int] = {}
    by_place: dict[Place, int] = {"device": 0, "host": 0, "unified": 0}
    retained = 0
    shared: set[str] = set()
    for parameter in parameters:
        if not parameter.trainable:
            continue
        tensors = kept(rules, parameter, settings)
        of.append(ParameterStates(parameter, tensors))
        for tensor in tensors:
            times = parameter.count
            if tensor.shared and not own_tables:
                if tensor.name in shared:
                    continue
                shared.add(tensor.name)
                times = 1
            size = int(DTYPES[tensor.dtype].size)
            own = tensor.numel * size * times
            held = tensor.view_of * size * times or own
            by_name[tensor.name] = by_name.get(tensor.name, 0) + own
            by_place[tensor.place] += held
            retained += held - own
    total = sum(by_place.values()) - retained
    return OptimizerStates(
        optimizer,
        settings,
        tuple(of),
        {name: Bytes(size) for name, size in by_name.items()},
        {place: Bytes(size) for place, size in by_place.items()},
        Bytes(total),
        Bytes(retained),
    )


def lines(of: OptimizerStates, place: Place = "device") -> tuple[Line, ...]:
    """One line per kind of state tensor that lies in `place`; they sum to the bytes of that place."""
    counted: dict[str, dict[str, int]] = {}
    symbols: dict[str, list[str]] = {}
    rest: dict[str, int] = {}
    shared: set[str] = set()
    for states_of in of.of:
        for tensor in states_of.tensors:
            if tensor.place != place:
                continue
            times = states_of.parameter.count
            if tensor.shared and not of.optimizer.layerwise:
                if tensor.name in shared:
                    continue
                shared.add(tensor.name)
                times = 1
            elements = counted.setdefault(tensor.name, {})
            elements[tensor.dtype] = elements.get(tensor.dtype, 0) + tensor.numel * times
            symbols.setdefault(tensor.name, []).append(tensor.symbol)
            if tensor.view_of:
                rest[tensor.dtype] = rest.get(tensor.dtype, 0) + (tensor.view_of - tensor.numel) * times
    row = of.optimizer
    made = [
        _line(row, name, elements, " or ".join(dict.fromkeys(symbols[name])), row.note)
        for name, elements in counted.items()
    ]
    if any(rest.values()):
        note = "The projection is a slice of a singular factor, which stays in memory whole."
        made.append(_line(row, "rest of the singular factors", rest, "4·min(r, c)² − 4·k·min(r, c)", note))
    return tuple(made)


def _line(row: Optimizer, name: str, elements: Mapping[str, int], formula: str, note: str) -> Line:
    size = Bytes(sum(int(DTYPES[dtype].size) * n for dtype, n in elements.items()))
    numbers = " + ".join(f"{n:,} × {int(DTYPES[dtype].size)} B" for dtype, n in elements.items() if n)
    label = f"{row.family}: {name}"
    return Line("optimizer states", label, size, "exact", f"Σ {formula}", numbers or "0 B", row.source, note)


# ---------------------------------------------------------------------------------------- parameter groups


def parameter_groups(
    optimizer: Optimizer, parameters: Sequence[Parameter], settings: Settings
) -> tuple[tuple[Parameter, ...], ...]:
    """The optimizer's parameter groups in their order: with and without weight decay, or projected and not."""
    trainable = [p for p in parameters if p.trainable]
    if optimizer.grouping == "one":
        return (tuple(trainable),)
    if optimizer.grouping == "targets":
        second = [targeted(p, settings) for p in trainable]
    else:
        # The Trainer spares biases and norms from weight decay, and makes two groups even when the decay is zero.
        second = [p.role in ("norm", "bias") for p in trainable]
    return tuple(
        tuple(p for p, is_second in zip(trainable, second, strict=True) if is_second is which)
        for which in (False, True)
    )


# ---------------------------------------------------------------------------------------- the tree


@dataclass(frozen=True, slots=True)
class Node:
    """A branch or leaf of the tree that people see when they print `optimizer.state_dict()`."""

    key: str
    value: str = ""
    bytes: Bytes = NOTHING
    """Of everything below, repeated layers included."""
    children: tuple[Node, ...] = ()


def state_dict_tree(
    optimizer: Optimizer,
    parameters: Sequence[Parameter],
    args: Mapping[str, object] | None = None,
    *,
    lr: float = 5e-5,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 0.0,
) -> Node:
    """`optimizer.state_dict()` as a tree: state tensors with shape, dtype and bytes by index, then parameter groups.

    Repeated layers are one branch whose key lists the indices that PyTorch gives them.
    """
    of = states(optimizer, parameters, args)
    tensors = {id(s.parameter): s.tensors for s in of.of}
    given = {name: of.settings[name] for name in args or {}}
    branches: list[Node] = []
    groups: list[Node] = []
    index = 0
    for number, group in enumerate(parameter_groups(optimizer, parameters, of.settings)):
        start = index
        for parameter, first, stride in _indices(group, index):
            branches.append(
                _branch(optimizer, parameter, tensors[id(parameter)], _keys(first, stride, parameter.count))
            )
            index += parameter.count
        values = {
            "lr": lr,
            **_hyperparameters(
                optimizer.group, betas, eps, weight_decay if number == 0 or optimizer.grouping != "decay" else 0.0
            ),
            **{
                k: v
                for k, v in given.items()
                if k in optimizer.group or (optimizer.grouping == "targets" and number == 1)
            },
        }
        keys = tuple(Node(key, _shown(value)) for key, value in values.items())
        groups.append(Node(str(number), "", children=(*keys, Node("params", _range(start, index)))))
    state = Node("state", f"{index} parameters", of.total, tuple(branches))
    return Node("state_dict", optimizer.label, state.bytes, (state, Node("param_groups", children=tuple(groups))))


def _indices(group: Sequence[Parameter], start: int) -> Iterator[tuple[Parameter, int, int]]:
    """Each parameter with the index of its first tensor and the distance to the next layer's."""
    at = start
    for run in _runs(group):
        layers = min(p.count for p in run)
        stride = sum(p.count for p in run) // layers
        for parameter in run:
            yield parameter, at, stride
            at += parameter.count // layers
        at += stride * (layers - 1)


def _runs(group: Sequence[Parameter]) -> Iterator[list[Parameter]]:
    run: list[Parameter] = []
    for parameter in group:
        if parameter.count == 1:
            if run:
                yield run
            yield [parameter]
            run = []
        else:
            run.append(parameter)
    if run:
        yield run


def _keys(first: int, stride: int, count: int) -> str:
    if count == 1:
        return str(first)
    if count == 2:
        return f"{first}, {first + stride}"
    return f"{first}, {first + stride}, … ({count} tensors)"


def _range(start: int, stop: int) -> str:
    return f"[{start} … {stop - 1}]" if stop - start > 1 else str(list(range(start, stop)))


def _branch(optimizer: Optimizer, parameter: Parameter, tensors: tuple[Tensor, ...], key: str) -> Node:
    numbers = tuple(Node(name, "number") for name in optimizer.numbers)
    leaves = tuple(
        Node(
            t.name,
            f"Tensor{list(t.shape)} {DTYPES[t.dtype].label}{'' if t.place == 'device' else f', {t.place}'}",
            t.bytes,
        )
        for t in tensors
    )
    own = sum(t.bytes for t in tensors if not t.shared or optimizer.layerwise)
    return Node(key, parameter.name, Bytes(own * parameter.count), (*numbers, *leaves))


def _hyperparameters(
    group: Mapping[str, GroupValue], betas: tuple[float, float], eps: float, weight_decay: float
) -> dict[str, GroupValue]:
    """A library's group with the run's values in it, where the library has such a key."""
    values = dict(group)
    old = values.get("betas")
    if isinstance(old, tuple):
        values["betas"] = (*betas, *old[2:]) if old[:2] == (0.9, 0.999) else old
    if values.get("eps") == 1e-8:
        values["eps"] = eps
    if "weight_decay" in values:
        values["weight_decay"] = weight_decay
    return values


def _shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
