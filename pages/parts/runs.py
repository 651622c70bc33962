"""The parts of the Schedule page: what a run takes, what its curves do, where to start, how long and how dear."""

from __future__ import annotations

import re
from typing import get_args

import streamlit as st

from calc.catalog.guidance import Objective, Topic, advice, rescaled, starting_rate, warmup_rule
from calc.catalog.throughput import PUBLISHED, prices, utilisation
from calc.memory.estimate import built, config_of
from calc.memory.recipes import recipe
from calc.memory.step import run
from calc.planner.cost import NoPeak, Range, cost, flops_per_token, run_time, work
from calc.schedule.drawing import telling_steps
from calc.schedule.expression import brief, number
from calc.schedule.flags import flags, training_arguments
from calc.schedule.link import Drawn
from calc.schedule.packing import packed_rows
from calc.schedule.phases import ScheduleError
from calc.schedule.plan import Planned
from calc.schedule.resume import Resumed
from calc.schedule.steps import StepPlan, Working
from calc.schedule.traps import traps as found_traps
from calc.units import count
from pages.parts import curves, texts, traps
from pages.parts.curves import Curve
from pages.parts.figure import figure
from pages.parts.here import Here
from pages.parts.models import Known
from pages.parts.state import language, plain, said, t
from pages.parts.tables import table

Worked = list[Planned | str]
MOST_LENGTHS = 200_000


def headline(what: Drawn, worked: Worked) -> str:
    """The first curve in one sentence."""
    one = worked[0]
    if isinstance(one, str):
        return t("schedule.title.refused", why=said(one))
    if one.schedule.halts_at or not one.steps:
        why = one.schedule.halts_at.reason if one.schedule.halts_at else "T = 0"
        return t("schedule.title.refused", why=said(why))
    return t(
        "schedule.title", steps=number(one.steps), warmup=number(one.warmup.value), kind=plain(one.kind.label),
        last=brief(one.schedule.at(one.steps - 1)),
    )  # fmt: skip


def figures(here: Here, planned: Planned) -> None:
    """Steps, warmup, tokens and epochs."""
    counted = planned.counted
    tokens = planned.samples_after(planned.steps) * here.scenario.plan.seq_len
    epochs = counted.epochs_trained if isinstance(counted, StepPlan) else planned.plan.num_train_epochs
    share = f"{planned.warmup.value / planned.steps:.1%}" if planned.steps else "0"
    with st.container(horizontal=True, gap="small"):
        _figure(
            "schedule.steps",
            number(planned.steps),
            t("schedule.steps.per_epoch", steps=number(counted.steps_per_epoch)),
        )
        _figure("schedule.warmup", number(planned.warmup.value), t("schedule.warmup.share", share=share))
        _figure(
            "schedule.tokens",
            count(tokens),
            t("schedule.tokens.sequences", count=count(planned.samples_after(planned.steps))),
        )
        _figure("schedule.trained", "" if epochs is None else number(round(epochs, 3)),
                t("schedule.trained.batch", count=number(planned.samples_after(1))))  # fmt: skip


def _figure(key: str, value: str, beside: str) -> None:
    figure(t(key), value, beside)


def counted(planned: Planned) -> tuple[Working, ...]:
    """How the steps and the warmup were counted."""
    lines = planned.counted.workings if isinstance(planned.counted, StepPlan) else ()
    return (*lines, planned.warmup)


def packing(here: Here, what: Drawn) -> None:
    """Rows from token lengths that the visitor pastes; they stay in this visit."""
    text = st.text_area(t("schedule.lengths"), help=t("schedule.lengths.help"), key="lengths", height=68)
    lengths = [int(digits) for digits in re.findall(r"\d{1,9}", text)[:MOST_LENGTHS]]
    if not lengths:
        return
    try:
        rows = {way: packed_rows(lengths, seq_len=here.scenario.plan.seq_len, strategy=way)
                for way in ("bfd", "bfd_split", "wrapped")}  # fmt: skip
    except ScheduleError:
        st.error(t("schedule.lengths.bad"))
        return
    st.markdown(
        t("schedule.lengths.rows", samples=number(len(lengths)), tokens=number(sum(lengths)), bfd=number(rows["bfd"]),
          split=number(rows["bfd_split"]), wrapped=number(rows["wrapped"]))
    )  # fmt: skip
    st.button(
        t("schedule.lengths.use"), key="use_rows", on_click=curves.put_length, args=(here, what),
        kwargs={"samples": rows["bfd"]},
    )  # fmt: skip


def refusals(what: Drawn, worked: Worked) -> None:
    """Curves that cannot run, and why."""
    for curve, planned in zip(what.curves, worked, strict=True):
        if isinstance(planned, str):
            st.error(f"**{plain(curve.type)}**: {said(planned)}", icon=":material/block:")


def axis_boxes(planned: Planned | None) -> tuple[str, bool]:
    """What lies on the axes."""
    known = planned is not None and planned.epoch_after(1) is not None
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        axis = st.segmented_control(
            t("schedule.axis"), ["steps", "epochs", "tokens"] if known else ["steps", "tokens"], default="steps",
            required=True, key="axis", format_func=lambda word: t(f"schedule.axis.{word}"),
            label_visibility="collapsed", persist_state="session",
        )  # fmt: skip
        log = st.toggle(t("schedule.log"), key="log", persist_state="session")
    return axis or "steps", log


def alt(shown: list[Curve]) -> str:
    """The chart in a sentence."""
    return t(
        "schedule.chart.alt", steps=number(shown[0].planned.steps), curves="; ".join(curve.name for curve in shown),
        peak=number(max(curve.planned.schedule.peak for curve in shown)),
    )  # fmt: skip


def areas(shown: list[Curve]) -> None:
    """The sum of each curve's rates, against its peak held."""
    said = []
    for curve in shown:
        schedule = curve.planned.schedule
        full = schedule.peak * schedule.steps
        share = t("schedule.area.of", share=f"{schedule.area / full:.1%}") if full else ""
        said.append(f"{plain(curve.name)}: **{brief(schedule.area)}** ({share})")
    st.markdown(f"{t('schedule.area')}: {'; '.join(said)}")


def warnings(what: Drawn, worked: Worked) -> None:
    """The traps of every curve; one that several are in is said once."""
    seen: set[tuple[str, str]] = set()
    for curve, planned in zip(what.curves, worked, strict=True):
        if isinstance(planned, str):
            continue
        fresh = [trap for trap in found_traps(planned) if (trap.id, trap.message) not in seen]
        seen |= {(trap.id, trap.message) for trap in fresh}
        traps.show(fresh, f"**{plain(curve.type)}**: ")


def phases(shown: list[Curve]) -> None:
    """Every phase with its steps and its formula, in symbols and in numbers."""
    heads = (t("schedule.phase"), t("schedule.phase.steps"), t("schedule.table.formula"), t("schedule.table.numbers"))
    for tab, curve in zip(st.tabs([curve.name for curve in shown]), shown, strict=True):
        found = [segment.phase for segment in curve.segments[:64]]
        rows = [
            (
                phase.name,
                f"{number(phase.first + 1)} – {number(phase.last + 1)}",
                f"`{phase.formula}`",
                f"`{phase.numbers}`",
            )
            for phase in found
        ]
        with tab:
            table(heads, rows, alt=t("schedule.phases"))


def at_step(shown: list[Curve]) -> None:
    """The formula in force at one step, every number in place."""
    last = max(1, shown[0].planned.steps)
    step = st.number_input(
        t("schedule.at"), min_value=1, max_value=last, value=min(last, 1 + int(shown[0].planned.warmup.value)), step=1
    )
    for curve in shown:
        schedule = curve.planned.schedule
        rate = number(schedule.at(step - 1))
        st.markdown(f"{plain(curve.name)}: `{schedule.working(step - 1)}` = **{rate}**")


def steps(shown: list[Curve]) -> None:
    """First and last steps, and both sides of every boundary."""
    marks = sorted({step for curve in shown for step in telling_steps(curve.planned.schedule)})
    heads = [t("schedule.step"), *(plain(curve.name) for curve in shown)]
    rows = [(number(step), *(number(curve.planned.schedule.at(step - 1)) for curve in shown)) for step in marks]
    table(heads, rows, alt=t("schedule.first-last"))


def typed(shown: list[Curve]) -> None:
    """What to type for each curve."""
    for tab, curve in zip(st.tabs([curve.name for curve in shown]), shown, strict=True):
        with tab:
            st.code(flags(curve.planned), language="bash", wrap_lines=True)
            if not curve.planned.kind.typed:
                st.code(training_arguments(curve.planned), language="python")


def resume(what: Drawn, shown: list[Curve]) -> None:
    """What happens when the first curve's run is resumed with other arguments."""
    saved = shown[0].planned
    if saved.steps < 2:
        return
    left, middle, right = st.columns(3, gap="small")
    with left:
        step = st.number_input(
            t("schedule.resume.step"), min_value=1, max_value=saved.steps, value=saved.steps // 2, step=1
        )
    with middle:
        names = [curve.name for curve in shown]
        chosen = st.selectbox(t("schedule.resume.curve"), range(len(names)), format_func=lambda place: names[place])
    with right:
        epochs = st.number_input(
            t("schedule.resume.epochs"), min_value=0.0, value=saved.plan.num_train_epochs, step=1.0
        )
    plan = shown[chosen or 0].planned.plan.model_copy(update={"num_train_epochs": epochs})
    try:
        resumed = Resumed(saved, Planned(plan), step)
        found = resumed.traps
        if step + 1 < resumed.new.steps:
            rates = (number(resumed.at(step)), number(resumed.at(step + 1)))
            st.markdown(
                t(
                    "schedule.resume.rates",
                    step=number(step + 1),
                    first=rates[0],
                    next=number(step + 2),
                    second=rates[1],
                )
            )
    except ScheduleError as refused:
        st.error(said(refused))
        return
    traps.show(found)
    if not found:
        st.success(t("schedule.resume.same"))


def guidance(here: Here, what: Drawn, planned: Planned | None) -> None:
    """Where to start for this method and size, and what others advise."""
    plan = here.scenario.plan
    parameters = here.answer.parameters.total if here.answer else 8e9
    objectives = list(get_args(Objective))[1:]
    chosen = st.segmented_control(
        t("schedule.guidance.objective"), objectives, default="sft", required=True, key="objective",
        format_func=lambda word: t(f"objective.{word}"), persist_state="session",
    )  # fmt: skip
    objective: Objective = chosen or "sft"
    try:
        start = starting_rate(method=plan.method, parameters=parameters, objective=objective)
    except LookupError:
        pass
    else:
        grid = ", ".join(number(rate) for rate in (start.low, start.start, start.high) if rate is not None)
        said = t("schedule.guidance.start", start=number(start.start or 0), grid=grid, method=plan.method,
                 size=count(round(parameters)))  # fmt: skip
        extra = f" {t('schedule.guidance.warmup', steps=number(warmup_rule(planned.steps)))}." if planned else ""
        st.markdown(said + extra)
    topics: list[Topic] = list(get_args(Topic))
    for tab, topic in zip(st.tabs([t(f"topic.{topic}") for topic in topics]), topics, strict=True):
        with tab:
            traps.advice(
                advice(topic, method=plan.method, parameters=parameters, objective=objective, optimizer=plan.optimizer)
            )
            if topic == "batch" and planned:
                _rescale(what, planned)


def _rescale(what: Drawn, planned: Planned) -> None:
    """The first curve's rate at this run's batch, known for another."""
    st.subheader(t("schedule.rescale"), anchor=False)
    left, right = st.columns(2, gap="small")
    new = planned.samples_after(1)
    with left:
        old = st.number_input(t("schedule.rescale.from"), min_value=1, value=16, step=1)
    with right:
        noise = st.number_input(t("schedule.rescale.noise"), min_value=0, value=0, step=16)
    rate = what.curves[0].learning_rate
    st.markdown(t("schedule.rescale.to", old=number(old), new=number(new), rate=number(rate)))
    heads = [t("schedule.rescale.rule"), t("schedule.rate"), t("schedule.table.formula"), t("schedule.source")]
    rows = [
        (row.rule, f"**{number(row.rate)}**", f"`{row.formula}`", f"{row.note} {traps.source_link(row.source)}")
        for row in rescaled(rate, batch=old, new_batch=new, noise_batch=noise or None)
    ]
    table(heads, rows, alt=t("schedule.rescale"))


def time_and_cost(here: Here, planned: Planned) -> None:
    """Hours as a range from published utilisation, and money at the visitor's price."""
    if here.answer is None or not isinstance(here.model, Known):
        return
    plan, hardware, gpu = here.scenario.plan, here.scenario.hardware, here.gpu
    architecture = built(here.model.config if here.model.config is not None else config_of(here.scenario))
    small = plan.model_copy(update={"micro_batch_size": 1, "seq_len": 1})
    of_model = work(architecture.dims, run(architecture, recipe(small, gpu)).parameters)
    flops = flops_per_token(
        of_model, family=plan.method, checkpointed=plan.gradient_checkpointing != "none", seq_len=plan.seq_len
    )
    published = utilisation(gpu, plan.method)
    left, right = st.columns([1, 1.6], gap="medium")
    with left:
        price = st.number_input(t("schedule.time.price"), min_value=0.0, value=_price(here), step=0.1, format="%.2f")
        seen = "; ".join(
            f"\\${row.low:.2f} – {row.high:.2f} ({row.date}, {traps.source_link(row.source)})" for row in prices(gpu)
        )
        st.caption(t("schedule.time.price.seen", ranges=seen) if seen else t("schedule.time.price.none"))
    with right:
        low, high = st.slider(
            t("schedule.time.share"), 1, 90, (round(100 * published.low), round(100 * published.high)),
            help=t("schedule.time.share.help"), key=f"share_{published.id}",
        )  # fmt: skip
    typed_share = (low, high) != (round(100 * published.low), round(100 * published.high))
    share = Range(low / 100, (low + high) / 200, high / 100) if typed_share else None
    tokens = planned.samples_after(planned.steps) * plan.seq_len
    try:
        took = run_time(
            flops, tokens=tokens, gpu=gpu, num_gpus=hardware.num_gpus, family=plan.method, share_of_peak=share
        )
    except NoPeak:
        st.info(t("schedule.time.none"))
        return
    money = cost(took, price_per_gpu_hour=price, num_gpus=hardware.num_gpus)
    with st.container(horizontal=True, gap="small"):
        _span("schedule.time.hours", took.hours, "{:,.2g}")
        _span("schedule.time.cost", money, "${:,.2f}")
        _span("schedule.time.speed", took.tokens_per_second, "{:,.0f}")
    st.markdown(f"`{flops.formula}` · `{flops.numbers}` = **{flops.total / 1e9:,.1f} GFLOP** / token")
    st.markdown(f"`{texts.said(took.formula, language())}` · `{took.numbers}`")
    if not took.sources and not share:
        st.info(t("schedule.time.unpublished"))
    with st.expander(t("schedule.time.from")):
        for name in published.rows or list(PUBLISHED):
            row = PUBLISHED[name]
            st.markdown(
                f"- {row.gpus}, {row.setup}: {number(row.tokens_per_second)} tok/s = {row.utilisation:.0%} "
                f"({traps.source_link(row.source)})"
            )


def _price(here: Here) -> float:
    seen = prices(here.gpu)
    return round((seen[0].low + seen[0].high) / 2, 2) if seen else 1.0


def _span(key: str, span: Range, form: str) -> None:
    _figure(
        key, form.format(span.expected),
        t("schedule.time.range", low=form.format(span.low), high=form.format(span.high)),
    )  # fmt: skip
