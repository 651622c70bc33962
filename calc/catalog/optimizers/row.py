"""One optimizer as a trainer names it: its states, its step, its arguments, what it costs and where it runs."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from calc.catalog.optimizers.states import Projected, Settings, StateRule, Value, kept
from calc.catalog.optimizers.steps import StepRule
from calc.catalog.table import UnknownName

Kind = Literal["number", "count", "flag", "choice", "modules"]
GroupValue = str | int | float | bool | None | tuple[float | None, ...]


class BadArgument(ValueError):
    """An argument of an optimizer whose value cannot be what it means."""


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument that an optimizer understands (Hugging Face: `optim_args`)."""

    name: str
    kind: Kind
    default: Value
    help: str
    choices: tuple[str, ...] = ()
    required: bool = False
    """The trainer refuses to start without it; `default` is what pages fill in to compare optimizers."""

    def read(self, value: object) -> Value:
        """The value, from itself or from text such as optim_args="momentum=0.9,nesterov=true".

        Raises `BadArgument` when it is not of the argument's kind.
        """
        read = _READERS[self.kind](value, self.choices)
        if read is None:
            raise BadArgument(
                f"{self.name}: {_EXPECTED[self.kind].format(', '.join(self.choices))}, not {str(value)[:60]!r}"
            )
        return read


_EXPECTED = {
    "number": "a number from 0 up",
    "count": "a whole number from 1 up",
    "flag": "true or false",
    "choice": "one of {}",
    "modules": "'all-linear', or names of layers separated by commas, with .* for anything",
}


def _number(value: object, choices: tuple[str, ...]) -> float | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _count(value: object, choices: tuple[str, ...]) -> int | None:
    number = _number(value, choices)
    return int(number) if number is not None and number >= 1 and number == int(number) and number <= 2**31 else None


def _flag(value: object, choices: tuple[str, ...]) -> bool | None:
    if isinstance(value, str):
        return {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}.get(value.lower())
    return bool(value) if value in (0, 1) else None


def _choice(value: object, choices: tuple[str, ...]) -> str | None:
    return value if isinstance(value, str) and value in choices else None


def _modules(value: object, choices: tuple[str, ...]) -> str | None:
    return value if isinstance(value, str) and re.fullmatch(r"(?=.*\w)[\w\s,.*\\-]{1,400}", value) else None


_READERS: dict[Kind, Callable[[object, tuple[str, ...]], Value | None]] = {
    "number": _number,
    "count": _count,
    "flag": _flag,
    "choice": _choice,
    "modules": _modules,
}


def _sum(symbols: list[str]) -> str:
    """Equal terms counted, the rest added: 4 + 2·n·b."""
    counted = {term: symbols.count(term) for term in symbols}
    return " + ".join(_times(times, term) for term, times in counted.items()) or "0"


def _times(times: int, term: str) -> str:
    number, _, rest = term.partition("·")
    if times == 1:
        return term
    if number.isdigit():
        return f"{times * int(number)}{'·' * bool(rest)}{rest}"
    return f"{times}·({term})" if "/" in term else f"{times}·{term}"


@dataclass(frozen=True, slots=True)
class Optimizer:
    """An optimizer's row."""

    id: str
    """Hugging Face's name (`optim`), or ours where it has none."""
    label: str
    family: str
    """The method: AdamW, Lion, Adafactor, ..."""
    library: str
    """What must be installed."""
    states: tuple[StateRule, ...]
    step: StepRule
    source: str
    """Where states and step were read or recorded; id in `calc.catalog.sources`."""
    paper: str
    """Id in `calc.catalog.sources`."""
    cost: str
    """What it costs or gains beside memory, in one sentence."""
    arguments: tuple[Argument, ...] = ()
    group: Mapping[str, GroupValue] = field(default_factory=dict)
    """Keys that `state_dict()["param_groups"]` shows beside lr and params, with the library's defaults."""
    numbers: tuple[str, ...] = ()
    """Plain Python numbers that a parameter's state holds beside its tensors."""
    grouping: Literal["decay", "targets", "one"] = "decay"
    """How parameters are grouped: with and without weight decay (the Trainer), projected or not, or all together."""
    gradients_alive: int = 0
    """Gradients that exist at once when the step happens inside the backward pass; 0 when all wait for the step."""
    layerwise: bool = False
    """An optimizer of its own for each parameter, run by a hook in the backward pass."""
    scales_loss: bool = False
    """Its backward pass is that of a multiple of the loss, whatever the precision."""
    accumulates: bool = True
    """Whether `gradient_accumulation_steps` above 1 works with it."""
    distributes: bool = True
    """Whether it runs under DistributedDataParallel."""
    blocked: str = ""
    """Why it cannot run on an NVIDIA GPU today; empty when it can."""
    instead: str = ""
    """Id of the nearest one that can, when blocked."""
    note: str = ""
    """What else to know about its memory."""

    @property
    def frees_gradients(self) -> bool:
        """Gradients are used and freed one by one in the backward pass, so only the largest counts."""
        return self.gradients_alive > 0

    @property
    def in_backward(self) -> Optimizer:
        """The same with an optimizer of its own for each parameter, run by a hook when its gradient is there, which then goes."""
        return replace(self, gradients_alive=1, layerwise=True, accumulates=False, distributes=False)

    def formula(self, settings: Settings, dtype: str = "bf16") -> str:
        """Bytes kept per parameter tensor of `dtype`, in the field's symbols, for matrices and whatever differs.

        n elements of b bytes, r rows, c columns, rank k.
        """
        kinds = {
            "": Projected("layers.*.proj.weight", (4096, 4096), dtype, "linear", 1),
            "vectors": Projected("norm.weight", (2048,), dtype, "norm", 1),
            "embeddings": Projected("embed_tokens.weight", (32_000, 4096), dtype, "embedding", 1),
        }
        texts = {kind: _sum([t.symbol for t in kept(self.states, probe, settings)]) for kind, probe in kinds.items()}
        rest = [f"{kind} {text}" for kind, text in texts.items() if kind and text != texts[""]]
        return "; ".join([texts[""], *rest])

    def settings(self, args: Mapping[str, object] | None = None) -> Settings:
        """Every argument with its value, from what was given and the defaults.

        Raises `UnknownName` for an argument that this optimizer does not have, `BadArgument` for a senseless value.
        """
        values: dict[str, Value] = {argument.name: argument.default for argument in self.arguments}
        for name, value in (args or {}).items():
            known = next((argument for argument in self.arguments if argument.name == name), None)
            if known is None:
                raise UnknownName(f"argument of {self.id}", name, list(values) or ["none"])
            values[name] = known.read(value)
        return values

    def missing(self, args: Mapping[str, object]) -> tuple[Argument, ...]:
        """Arguments without which the trainer refuses to start, and that were not given."""
        return tuple(argument for argument in self.arguments if argument.required and argument.name not in args)
