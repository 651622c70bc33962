"""Curves of the Schedule page <-> keys of a link.

`run=samples:21200,epochs:3` says how long the run is, `curve=cosine/0.0002/0.03/num_cycles:2` (and curve2 to curve4) what
is drawn: schedule, learning rate, warmup, options. Batch, accumulation and cards are the scenario's own keys. Reading
never fails: a part that cannot be used is reported and left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field, StrictFloat, StrictInt, ValidationError, field_validator

from calc.scenario import Frozen
from calc.schedule.kinds import SCHEDULES
from calc.schedule.plan import Completions, SchedulePlan
from calc.schedule.steps import STEP_RULES

CURVES = ("curve", "curve2", "curve3", "curve4")
KEYS = ("run", *CURVES)
LONGEST = 400


class Curve(Frozen):
    """One curve on the page."""

    type: str = "cosine"
    learning_rate: Annotated[float, Field(gt=0, le=1000)] = 2e-4
    warmup: StrictInt | StrictFloat = 0.03
    """A share of the run below 1, else steps."""
    kwargs: dict[str, int | float | str | bool | list[float] | None] = Field(default_factory=dict, max_length=20)

    @field_validator("type")
    @classmethod
    def _known(cls, value: str) -> str:
        return SCHEDULES[value].id


class Length(Frozen):
    """How long the run is, and whose arithmetic counts. 21,200 samples are KoAlpaca's."""

    samples: Annotated[int, Field(ge=1, le=10**9)] = 21_200
    epochs: Annotated[float, Field(ge=0, le=10_000)] = 3.0
    steps: Annotated[int, Field(ge=0, le=10**9)] = 0
    """Above 0 it overrides the epochs (`max_steps`)."""
    drop: bool = False
    """`dataloader_drop_last`."""
    framework: str = ""
    """Id in `STEP_RULES`; empty for the scenario's."""
    prepared: Annotated[int, Field(ge=1, le=65_536)] = 1
    """Processes that step an accelerate-prepared schedule."""
    generations: Annotated[int, Field(ge=0, le=10_000)] = 0
    """Completions per prompt; above 0 the run is GRPO's and samples are prompts."""

    @field_validator("framework")
    @classmethod
    def _known(cls, value: str) -> str:
        return STEP_RULES[value].id if value else ""


class Drawn(Frozen):
    """What the page draws."""

    length: Length = Length()
    curves: Annotated[tuple[Curve, ...], Field(min_length=1, max_length=4)] = (Curve(),)


def written(drawn: Drawn, default: Drawn) -> dict[str, str]:
    """Keys and values of a link; nothing for what is the default."""
    changed = {
        name: value for name, value in drawn.length.model_dump().items() if value != getattr(default.length, name)
    }
    keys = {"run": ",".join(f"{name}:{_text(value)}" for name, value in changed.items())} if changed else {}
    if drawn.curves != default.curves:
        keys |= {key: _curve_text(curve) for key, curve in zip(CURVES, drawn.curves, strict=False)}
    return keys


def read(values: Mapping[str, str], default: Drawn) -> tuple[Drawn, tuple[str, ...]]:
    """What a link's keys draw, and a sentence for each part that could not be used."""
    problems: list[str] = []
    length = default.length
    for part in filter(None, values.get("run", "")[:LONGEST].split(",")):
        name, _, text = part.partition(":")
        try:
            if name not in Length.model_fields:
                raise ValueError("it is no part of a run")
            value: object = (text == "1") if name == "drop" else text
            length = Length.model_validate(length.model_dump() | {name: value})
        except ValueError as error:
            problems.append(_problem("run", part, error))
    curves = []
    for key in CURVES:
        if key in values:
            try:
                curves.append(_curve(values[key][:LONGEST]))
            except ValueError as error:
                problems.append(_problem(key, values[key], error))
    return Drawn(length=length, curves=tuple(curves) or default.curves), tuple(problems)


def plan(length: Length, curve: Curve, *, batch: int, accumulation: int, ranks: int, framework: str) -> SchedulePlan:
    """The schedule plan of one curve in this run. Warmup below 1 is a share where the version has warmup_ratio, too."""
    rules = STEP_RULES[length.framework or framework]
    share = isinstance(curve.warmup, float) and curve.warmup < 1
    ratio = share and rules.warmup in ("steps win", "axolotl")
    given: int | float = curve.warmup if share else int(curve.warmup)
    return SchedulePlan(
        type=curve.type,
        learning_rate=curve.learning_rate,
        warmup_steps=None if ratio else given,
        warmup_ratio=given if ratio else None,
        max_steps=length.steps or -1,
        num_samples=length.samples,
        num_train_epochs=length.epochs,
        per_device_train_batch_size=batch,
        gradient_accumulation_steps=accumulation,
        world_size=ranks,
        dataloader_drop_last=length.drop,
        kwargs=curve.kwargs,
        framework=rules.id,
        completions=Completions(num_generations=length.generations) if length.generations else None,
        prepared_num_processes=length.prepared,
    )


def options_text(kwargs: Mapping[str, object]) -> str:
    """Options as they stand in a link and in the page's box: num_cycles:2,min_lr:1e-06."""
    return ",".join(
        f"{name}:{str(value).lower() if isinstance(value, bool) else _text(value)}" for name, value in kwargs.items()
    )


def options(text: str) -> dict[str, object]:
    """What `options_text` wrote. Numbers, true and false, lists with semicolons; the rest are words."""
    found: dict[str, object] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        name, separator, given = part.replace("=", ":", 1).partition(":")
        if not separator or not name.strip():
            raise ValueError(f"write options as name:value, not '{part[:40]}'")
        found[name.strip()] = value(given.strip())
    return found


def _curve_text(curve: Curve) -> str:
    parts = [curve.type, _text(curve.learning_rate), _text(curve.warmup)]
    return "/".join(parts + ([options_text(curve.kwargs)] if curve.kwargs else []))


def _curve(text: str) -> Curve:
    name, rate, warmup, given = [*text.split("/", 3), "", "", "", ""][:4]
    fields: dict[str, object] = {"type": name, "kwargs": options(given)}
    if rate:
        fields["learning_rate"] = rate
    if warmup:
        fields["warmup"] = value(warmup)
    return Curve.model_validate(fields)


def _text(value: object) -> str:
    match value:
        case bool():
            return "1" if value else "0"
        case float():
            return repr(value).removesuffix(".0")
        case list() | tuple():
            return ";".join(_text(float(item)) for item in value)
        case _:
            return str(value)


def value(text: str) -> object:
    """A number, a flag, a list of numbers, or a word, by its looks."""
    if text in ("true", "True", "false", "False"):
        return text.lower() == "true"
    if ";" in text:
        return [float(item) for item in text.split(";") if item]
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text


def _problem(key: str, text: str, error: ValueError) -> str:
    if isinstance(error, ValidationError):
        reason = str(error.errors(include_url=False)[0]["msg"]).removeprefix("Value error, ")
    else:
        reason = str(error)
    shown = text if len(text) <= 40 else f"{text[:37]}..."
    return f"{key}={shown} was left out: {reason}"
