"""What a row of the schedule table is: a named shape, the options its library takes, and the legs it lays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from calc.schedule.phases import Halt, Leg, Schedule, ScheduleError

OptionValue = int | float | str | bool | tuple[float, ...] | None
Options = Mapping[str, OptionValue]
Version = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Option:
    """One keyword of a schedule, under its library's own name."""

    name: str
    type: Literal["number", "integer", "choice", "flag", "numbers"]
    default: OptionValue = None
    about: str = ""
    required: bool = False
    choices: tuple[str, ...] = ()

    def checked(self, value: object) -> OptionValue:
        """The value, if it is of this option's type; else an error that says what it may be."""
        match self.type, value:
            case _, None if not self.required:
                return None
            case "number", int() | float() if not isinstance(value, bool):
                return value
            case "integer", int() if not isinstance(value, bool):
                return value
            case "flag", bool():
                return value
            case "choice", str() if value in self.choices:
                return value
            case "numbers", list() | tuple() if all(
                isinstance(v, int | float) and not isinstance(v, bool) for v in value
            ):
                return tuple(float(v) for v in value)
        wanted = (
            f"one of {', '.join(self.choices)}"
            if self.choices
            else {
                "number": "a number",
                "integer": "a whole number",
                "flag": "true or false",
                "numbers": "a list of numbers",
            }[self.type]
        )
        raise ScheduleError("bad_option", f"{self.name} is {wanted}, not {value!r}", f"kwargs.{self.name}")


@dataclass(frozen=True, slots=True)
class Run:
    """What a schedule is built from. `W` is a float only where a library lets a fraction through."""

    lr: float
    """The rate asked for: the optimizer's learning rate, before the schedule."""
    W: float
    """Warmup steps."""
    T: int
    """Optimizer steps planned."""
    options: Options = field(default_factory=dict)

    def number(self, name: str) -> float:
        """A numeric option."""
        value = self.options[name]
        if not isinstance(value, int | float):
            raise ScheduleError("missing_option", f"{name} is needed here", f"kwargs.{name}")
        return value

    def text(self, name: str) -> str:
        """A worded option."""
        return str(self.options[name])

    @property
    def inputs(self) -> dict[str, float]:
        """The symbols of formulas: lr, W, T and every numeric option."""
        numbers = {name: value for name, value in self.options.items() if isinstance(value, int | float)}
        return {"lr": self.lr, "W": self.W, "T": self.T, **numbers}


Lay = Callable[[Run], Iterable[Leg | Halt]]


@dataclass(frozen=True, slots=True)
class Kind:
    """One schedule of one library."""

    id: str
    label: str
    tool: str
    """The library, as a reader knows it."""
    source: str
    """Id in `calc.catalog.sources`."""
    lay: Lay
    options: tuple[Option, ...] = ()
    warmup: Literal["used", "ignored"] = "used"
    """Whether the library's warmup steps have an effect."""
    length: Literal["used", "ignored"] = "used"
    """Whether the number of steps has an effect."""
    since: Version = (0, 0)
    """First transformers version with it; (0, 0) for other libraries and for all versions looked at."""
    before: tuple[Version, str] | None = None
    """In versions before this one the row with this id holds instead."""
    ignores_options: bool = False
    """The library drops unknown keywords without a word."""
    takes_typed_warmup: bool = False
    """Trainer passes warmup_steps on as typed, a fraction too."""
    refuses_past_end: bool = False
    """Stepping past the run raises."""
    traps: tuple[str, ...] = ()
    """Ids in `calc.schedule.traps` of what can go wrong with this schedule alone."""
    listed: bool = True
    """Offered by name; an older behaviour is reached through the name of the newer."""
    typed: str = ""
    """The call to type, with {lr}, {W}, {T} and {options}.

    Empty for the Trainer's own schedules, whose flags `flags` spells.
    """
    note: str = ""
    """What surprises."""

    def checked(self, given: Mapping[str, object]) -> dict[str, OptionValue]:
        """All options with their values; unknown ones, missing ones and wrong types are errors."""
        known = {option.name: option for option in self.options}
        unknown = [name for name in given if name not in known]
        if unknown and not self.ignores_options:
            takes = f"it takes {', '.join(known)}" if known else "it takes none"
            raise ScheduleError(
                "unknown_option", f"{self.id} has no option {unknown[0]!r}; {takes}", f"kwargs.{unknown[0]}"
            )
        missing = [option.name for option in self.options if option.required and given.get(option.name) is None]
        if missing:
            raise ScheduleError(
                "missing_option", f"{self.id} needs {missing[0]} in lr_scheduler_kwargs", f"kwargs.{missing[0]}"
            )
        return {
            option.name: option.checked(given[option.name]) if option.name in given else option.default
            for option in self.options
        }

    def schedule(
        self,
        *,
        learning_rate: float,
        warmup_steps: float,
        steps: int,
        options: Mapping[str, object] | None = None,
        ticks: int = 1,
    ) -> Schedule:
        """The schedule for one run. Raises `ScheduleError` where the library refuses."""
        run = Run(learning_rate, warmup_steps, steps, self.checked(options or {}))
        return Schedule(self.id, steps, tuple(self.lay(run)), run.inputs, ticks)


def cycles(first: float, length: float, growth: float, stop: float, most: int = 64) -> list[tuple[float, float]]:
    """Starts and lengths of cycles that begin before `stop`, each `growth` times as long as the one before.

    No more than `most`.
    """
    found: list[tuple[float, float]] = []
    while first < stop and len(found) < most:
        found.append((first, length))
        first, length = first + length, length * growth
    return found
