"""The curves of the visit: what is drawn, the boxes that change it, and what becomes of each.

The link's own keys hold them, so boxes have no state of their own: each is given the kept value and reports a change.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from typing import Any

import streamlit as st
from pydantic import ValidationError

from calc.catalog.table import UnknownName
from calc.schedule import link
from calc.schedule.drawing import Segment, segments
from calc.schedule.expression import number
from calc.schedule.kinds import SCHEDULES
from calc.schedule.link import Drawn, Length
from calc.schedule.phases import ScheduleError
from calc.schedule.plan import Planned
from calc.schedule.steps import STEP_RULES, data_parallel_size
from pages.parts import state
from pages.parts.here import Here
from pages.parts.state import plain, said, t

# What a bare link draws, by method; frozen for good, as links are.
RATES = {"full": 1e-5, "lora": 2e-4, "qlora": 2e-4}
MOST_ROWS = 200_000
_REFUSED = "_curve_refused"


def default(here: Here) -> Drawn:
    """Cosine and linear at the method's usual rate."""
    rate = RATES[here.scenario.plan.method]
    return Drawn(curves=tuple(link.Curve(type=name, learning_rate=rate) for name in ("cosine", "linear")))


def drawn(here: Here) -> tuple[Drawn, tuple[str, ...]]:
    """What is drawn, and what in the link could not be used."""
    return link.read(state.beside(), default(here))


@dataclass(frozen=True)
class Curve:
    """One curve that can be drawn."""

    name: str
    planned: Planned
    segments: tuple[Segment, ...]
    axis: str
    seq_len: int

    def along(self, steps: tuple[int, ...]) -> list[float]:
        """Places of optimizer steps on the chosen axis."""
        return [at(self.planned, step, self.axis, self.seq_len) for step in steps]


def at(planned: Planned, step: int, axis: str, seq_len: int) -> float:
    """Where an optimizer step lies on an axis: itself, the epoch after it, or the tokens seen until then."""
    if axis == "epochs":
        return planned.epoch_after(step) or 0.0
    return float(planned.samples_after(step) * seq_len if axis == "tokens" else step)


def plans(here: Here, what: Drawn) -> list[Planned | str]:
    """Each curve worked out, or the sentence of why it cannot run."""
    plan = here.scenario.plan
    found: list[Planned | str] = []
    for curve in what.curves:
        try:
            sharing = plan.sharding
            ranks = data_parallel_size(
                here.scenario.hardware.num_gpus,
                tensor_parallel=sharing.tensor_parallel * sharing.pipeline_parallel,
                context_parallel=sharing.context_parallel,
            )
            made = link.plan(
                what.length, curve, batch=plan.micro_batch_size, accumulation=plan.gradient_accumulation_steps,
                ranks=ranks, framework=plan.framework,
            )  # fmt: skip
            planned = Planned(made)
            planned.schedule.at(0)
        except (ScheduleError, UnknownName, ValidationError) as refused:
            found.append(_reason(refused))
        else:
            found.append(planned)
    return found


def shown(here: Here, what: Drawn, worked: list[Planned | str], axis: str) -> list[Curve]:
    """The curves that can be drawn, in their order."""
    return [
        Curve(name(curve), planned, segments(planned.schedule), axis, here.scenario.plan.seq_len)
        for curve, planned in zip(what.curves, worked, strict=True)
        if isinstance(planned, Planned) and planned.steps and not _halts_inside(planned)
    ]


def _halts_inside(planned: Planned) -> bool:
    halt = planned.schedule.halts_at
    return halt is not None and halt.first < planned.steps


def name(curve: link.Curve) -> str:
    """A curve in a few words."""
    given = f" {link.options_text(curve.kwargs)}" if curve.kwargs else ""
    return f"{curve.type} {number(curve.learning_rate)}, {number(curve.warmup)}{given}"


def _reason(refused: ValueError) -> str:
    if isinstance(refused, ValidationError):
        return str(refused.errors(include_url=False)[0]["msg"]).removeprefix("Value error, ")
    return str(refused)


def length_boxes(here: Here, what: Drawn) -> None:
    """Dataset, epochs, and whose arithmetic counts."""
    left, middle, right = st.columns([1, 1, 1.4], gap="small")
    with left:
        _number(here, what, "samples", t("schedule.samples"), t("schedule.samples.help"), low=1, step=100)
    with middle:
        _number(here, what, "epochs", t("schedule.epochs"), t("schedule.epochs.help"), low=0.0, step=1.0)
    with right:
        own = STEP_RULES[here.scenario.plan.framework].label
        labels = {"": t("schedule.framework.scenario", name=own)} | {row.id: row.label for row in STEP_RULES.values()}
        st.selectbox(
            t("schedule.framework"), list(labels), format_func=lambda word: labels[word],
            help=t("schedule.framework.help"), **_kept(here, what, "framework"),
        )  # fmt: skip


def more_boxes(here: Here, what: Drawn) -> None:
    """What few runs need."""
    first, second, third = st.columns(3, gap="small")
    with first:
        _number(here, what, "steps", t("schedule.max_steps"), t("schedule.max_steps.help"), low=0, step=100)
    with second:
        _number(here, what, "prepared", t("schedule.prepared"), t("schedule.prepared.help"), low=1, step=1)
    with third:
        _number(here, what, "generations", t("schedule.generations"), t("schedule.generations.help"), low=0, step=1)
    st.toggle(t("schedule.drop"), help=t("schedule.drop.help"), **_kept(here, what, "drop"))


def _number(here: Here, what: Drawn, field: str, label: str, about: str, *, low: float, step: float) -> None:
    st.number_input(label, min_value=low, step=step, help=about, **_kept(here, what, field))


def _kept(here: Here, what: Drawn, field: str) -> dict[str, Any]:
    key = f"run_{field}"
    value = getattr(what.length, field)
    if key not in st.session_state or st.session_state[key] != value:
        st.session_state[key] = value
    return {"key": key, "on_change": _took_length, "args": (here, what, field, key)}


def _took_length(here: Here, what: Drawn, field: str, key: str) -> None:
    put_length(here, what, **{field: st.session_state[key]})


def put_length(here: Here, what: Drawn, **changed: Any) -> None:
    """Change the run. For callbacks."""
    try:
        length = Length.model_validate(what.length.model_dump() | changed)
    except ValidationError as refused:
        st.session_state[_REFUSED] = (str(next(iter(changed.values()))), _reason(refused))
        return
    _put(here, what.model_copy(update={"length": length}))


def curve_boxes(here: Here, what: Drawn) -> None:
    """A row of boxes for each curve, and a button for one more."""
    if refused := st.session_state.pop(_REFUSED, None):
        st.error(t("schedule.not-a-number", typed=plain(refused[0]), why=said(refused[1])))
    names = [row.id for row in SCHEDULES.values() if row.listed]
    for place, curve in enumerate(what.curves):
        row = SCHEDULES[curve.type]
        takes = ", ".join(option.name for option in row.options) or t("schedule.options.none")
        columns = st.columns([1.7, 0.8, 0.9, 1.7, 0.8], vertical_alignment="bottom", gap="small")
        hidden: Any = "visible" if place == 0 else "collapsed"
        with columns[0]:
            st.selectbox(
                _label(place, "schedule.type"), names, label_visibility=hidden,
                format_func=lambda word: f"{word} · {SCHEDULES[word].tool}",
                help=row.note or None, **_box(here, what, place, "type", curve.type),
            )  # fmt: skip
        with columns[1]:
            st.text_input(
                _label(place, "schedule.rate"), label_visibility=hidden,
                **_box(here, what, place, "learning_rate", number(curve.learning_rate)),
            )  # fmt: skip
        with columns[2]:
            st.text_input(
                _label(place, "schedule.warmup.given"), label_visibility=hidden,
                **_box(here, what, place, "warmup", number(curve.warmup)),
            )  # fmt: skip
        with columns[3]:
            st.text_input(
                _label(place, "schedule.options"), label_visibility=hidden,
                help=t("schedule.options.help", names=takes), placeholder=takes,
                **_box(here, what, place, "kwargs", link.options_text(curve.kwargs)),
            )  # fmt: skip
        with columns[4]:
            if len(what.curves) > 1:
                st.button(
                    t("schedule.remove"), key=f"remove_{place}", type="tertiary",
                    on_click=_put, args=(here, _without(what, place)),
                )  # fmt: skip
    if len(what.curves) < len(link.CURVES):
        last = what.curves[-1]
        unused = next(name for name in names if name not in {curve.type for curve in what.curves})
        more = what.model_copy(
            update={"curves": (*what.curves, last.model_copy(update={"type": unused, "kwargs": {}}))}
        )
        st.button(t("schedule.add"), key="add_curve", icon=":material/add:", on_click=_put, args=(here, more))


def rate_box(here: Here, what: Drawn) -> None:
    """The first curve's rate alone, for another page."""
    st.text_input(
        t("precision.rate"), help=t("precision.rate.help"),
        **_box(here, what, 0, "learning_rate", number(what.curves[0].learning_rate)),
    )  # fmt: skip
    if refused := st.session_state.pop(_REFUSED, None):
        st.error(t("schedule.not-a-number", typed=plain(refused[0]), why=said(refused[1])))


def _label(place: int, key: str) -> str:
    return t(key) if place == 0 else f"{t(key)} {place + 1}"


def _without(what: Drawn, place: int) -> Drawn:
    return what.model_copy(update={"curves": (*what.curves[:place], *what.curves[place + 1 :])})


def _box(here: Here, what: Drawn, place: int, field: str, value: str) -> dict[str, Any]:
    key = f"curve{place + 1}_{field}"
    if key not in st.session_state or st.session_state[key] != value:
        st.session_state[key] = value
    return {"key": key, "on_change": _took_curve, "args": (here, what, place, field, key)}


def _took_curve(here: Here, what: Drawn, place: int, field: str, key: str) -> None:
    typed = str(st.session_state[key])
    put_curve(here, what, place, field, typed)


def put_curve(here: Here, what: Drawn, place: int, field: str, typed: str) -> None:
    """Change one part of one curve from what was typed. For callbacks."""
    try:
        value: Any = typed.replace(",", "") if field in ("learning_rate", "warmup") else typed
        if field == "warmup":
            value = link.value(value)
        elif field == "kwargs":
            value = link.options(typed)
        # Another schedule takes other options.
        kept: dict[str, Any] = {"kwargs": {}} if field == "type" else {}
        curve = link.Curve.model_validate(what.curves[place].model_dump() | kept | {field: value})
    except ValueError as refused:
        st.session_state[_REFUSED] = (typed, _reason(refused))
        return
    _put(here, what.model_copy(update={"curves": (*what.curves[:place], curve, *what.curves[place + 1 :])}))


def _put(here: Here, what: Drawn) -> None:
    state.put_beside(link.written(what, default(here)))


def to_csv(curves: list[Curve]) -> str:
    """Every optimizer step with its epoch, tokens and the rates of all curves; of very long runs the drawn steps."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["step", "epoch", "tokens", *(curve.name for curve in curves)])
    first = curves[0]
    T = first.planned.steps
    steps = range(1, T + 1) if T <= MOST_ROWS else [step for part in first.segments for step in part.steps]
    for step in steps:
        epoch = first.planned.epoch_after(step)
        tokens = int(at(first.planned, step, "tokens", first.seq_len))
        rates = (repr(curve.planned.schedule.at(step - 1)) for curve in curves)
        writer.writerow([step, "" if epoch is None else f"{epoch:.6g}", tokens, *rates])
    return text.getvalue()
