"""The parts of the Precision page."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from calc.catalog.dtypes import DTYPES, FLOAT_FORMATS
from calc.catalog.gpus import GPUS
from calc.memory.breakdown import COMPONENTS
from calc.memory.recipes import PRECISIONS
from calc.planner.precisions import in_each_precision
from calc.schedule.expression import brief, number
from calc.schedule.link import Drawn
from calc.schedule.plan import Planned
from calc.schedule.rounding import (
    LOSS_SCALERS,
    REMEDIES,
    Store,
    average_is_stuck,
    average_share_moved,
    decay_moves_from,
    decays_below,
    moved_share,
    rounded,
    walked,
)
from calc.units import Bytes
from pages.parts import curves, traps
from pages.parts.charts import by_component
from pages.parts.figure import figure
from pages.parts.here import Here
from pages.parts.models import Known
from pages.parts.state import said, t
from pages.parts.tables import table

SIGMA = 0.02
BF16, FP16 = FLOAT_FORMATS["bf16"], FLOAT_FORMATS["fp16"]
STORES: tuple[Store, ...] = ("fp32 master", "nearest", "stochastic", "kahan")
DRAWN = ("bf16", "fp16")


@dataclass(frozen=True, slots=True)
class Given:
    """The training numbers of the page."""

    rate: float
    sigma: float
    decay: float
    beta2: float
    epsilon: float


def rate(what: Drawn) -> float:
    """The peak of the first curve."""
    return what.curves[0].learning_rate


def headline(rate: float) -> str:
    """What part of bf16 weights a step moves."""
    # The box of the spread stands below the heading; what it holds is known before it is drawn.
    share = moved_share(rate, sigma=st.session_state.get("sigma", SIGMA), held=BF16).share
    return t("precision.title", rate=number(rate), share=_percent(share))


def mine(here: Here) -> str:
    """Whether this plan is one that loses updates."""
    plan = here.scenario.plan
    held = PRECISIONS[plan.precision].weights if plan.method == "full" else plan.lora.adapter_dtype
    kept = held == "fp32" or plan.precision.endswith("master")
    return t("precision.mine.kept") if kept else t("precision.mine.rounded", format=held)


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def boxes(here: Here, what: Drawn, rate: float) -> Given:
    """The numbers that rounding depends on."""
    columns = st.columns(5, gap="small", vertical_alignment="bottom")
    with columns[0]:
        curves.rate_box(here, what)
    with columns[1]:
        sigma = st.number_input(
            t("precision.sigma"), min_value=1e-6, max_value=10.0, value=SIGMA, step=0.005, format="%.4g",
            help=t("precision.sigma.help"), key="sigma", persist_state="session",
        )  # fmt: skip
    with columns[2]:
        decay = st.number_input(
            t("precision.decay"), min_value=0.0, max_value=10.0, value=0.01, step=0.01, format="%.4g", key="decay",
            persist_state="session",
        )  # fmt: skip
    with columns[3]:
        beta2 = st.number_input(
            t("precision.beta2"), min_value=0.0, max_value=0.999999, value=0.999, step=0.001, format="%.6g",
            key="beta2", persist_state="session",
        )  # fmt: skip
    with columns[4]:
        epsilon = st.number_input(
            t("precision.epsilon"), min_value=0.0, max_value=1.0, value=1e-8, step=1e-8, format="%.1e",
            key="epsilon", persist_state="session",
        )  # fmt: skip
    return Given(rate, sigma, decay, beta2, epsilon)


def shares(here: Here, what: Drawn, given: Given) -> None:
    """The share at the peak rate in bf16 and fp16, and over the whole run; the working beneath."""
    found = moved_share(given.rate, sigma=given.sigma, held=BF16)
    half = moved_share(given.rate, sigma=given.sigma, held=FP16)
    with st.container(horizontal=True, gap="small"):
        for held, share in ((BF16, found), (FP16, half)):
            figure(
                t("precision.share", format=held.id),
                _percent(share.share),
                t("precision.frozen", threshold=number(share.threshold)),
            )
        first = curves.plans(here, what)[0]
        if isinstance(first, Planned) and not first.schedule.halts_at:
            average = average_share_moved(first.schedule, sigma=given.sigma, held=BF16)
            figure(t("precision.average"), _percent(average), t("precision.average.steps", steps=number(first.steps)))
    st.markdown(f"`{found.formula}`  \n`{found.numbers}` = **{_percent(found.share)}**")


def curve(given: Given) -> tuple[list[float], dict[str, list[float]]]:
    """Learning rates from 1e-8 to 1e-2, and the share that each format moves."""
    marks = [10 ** (-8 + 6 * step / 240) for step in range(241)]
    lines = {
        FLOAT_FORMATS[name].label: [
            moved_share(mark, sigma=given.sigma, held=FLOAT_FORMATS[name]).share for mark in marks
        ]
        for name in DRAWN
    }
    return marks, lines


def alt(given: Given) -> str:
    """The chart in a sentence."""
    share = _percent(moved_share(given.rate, sigma=given.sigma, held=BF16).share)
    return t("precision.chart.alt", share=share, rate=number(given.rate))


def example(given: Given) -> None:
    """One weight after 200 steps, kept in four ways."""
    st.subheader(t("precision.example", rate=number(given.rate)), anchor=False)
    rows = [(t(f"store.{store}"), f"{walked(0.02, given.rate, 200, held=BF16, store=store):.7f}") for store in STORES]
    heads = (t("precision.example.store"), t("precision.example.value"))
    table(heads, rows, alt=t("precision.example", rate=number(given.rate)))


def remedies() -> None:
    """What keeps small updates, what it costs, where it is described."""
    st.subheader(t("precision.remedies"), anchor=False)
    rows = [
        (t(f"remedy.{row.id}"), f"+{row.bytes_per_parameter}", f"{row.how} ({traps.source_link(row.source)})")
        for row in REMEDIES.values()
    ]
    heads = (t("precision.remedies"), t("precision.remedy.bytes"), t("precision.remedy.how"))
    table(heads, rows, alt=t("precision.remedies"))


def checks(given: Given) -> None:
    """Weight decay in bf16, beta2 in bf16 states, epsilon in fp16."""
    none, every = decay_moves_from(BF16)
    product = given.rate * given.decay
    said = {"product": brief(product), "none": brief(none), "every": brief(every)}
    if product == 0:
        st.info(t("precision.decay.off"))
    elif product < none:
        st.warning(t("precision.decay.lost", **said), icon=":material/warning:")
    elif product < every:
        st.info(t("precision.decay.some", **said))
    else:
        st.success(t("precision.decay.kept", **said))
    limit = number(decays_below(BF16))
    if average_is_stuck(given.beta2, BF16):
        st.warning(t("precision.beta2.stuck", beta2=number(given.beta2), limit=limit), icon=":material/warning:")
    else:
        st.success(t("precision.beta2.kept", beta2=number(given.beta2), limit=limit))
    kept = rounded(given.epsilon, FP16)
    if kept == 0:
        st.warning(t("precision.epsilon.lost", epsilon=number(given.epsilon)), icon=":material/warning:")
    else:
        st.success(t("precision.epsilon.kept", epsilon=number(given.epsilon), kept=number(kept)))


def formats(here: Here) -> None:
    """What each format can hold, and this model's weights in it."""
    total = here.answer.parameters.total if here.answer else 0
    heads = ("format", "bits", "largest", "smallest-normal", "smallest", "eps", "model", "note")
    rows = [
        (
            row.label, str(row.bits), number(row.largest), brief(row.smallest_normal), brief(row.smallest),
            brief(row.epsilon), str(Bytes(total * row.bits // 8)) if total else "",
            f"{said(row.note)} {traps.source_link(row.source, t('schedule.source'))}",
        )
        for row in FLOAT_FORMATS.values()
    ]  # fmt: skip
    table([t(f"precision.{name}") for name in heads], rows, alt=t("precision.formats"))
    st.caption(t("precision.nf4"))


def plans(here: Here) -> None:
    """The same plan in every precision: each component at its peak, and the peak."""
    if here.answer is None or not isinstance(here.model, Known):
        return
    found = in_each_precision(here.scenario, config=here.model.config)
    held = {}
    for row in found:
        if row.answer:
            peak = next(instant for instant in row.answer.instants if instant.name == row.answer.peak.instant)
            held[row.precision] = by_component(peak)
    used = [component for component in COMPONENTS if any(sizes[component] for sizes in held.values())]
    heads = [t("precision.format"), *(t(f"component.{component}") for component in used), t("precision.plans.peak")]
    rows = []
    for row in found:
        mark = "**" if row.precision == here.scenario.plan.precision else ""
        name = f"{mark}{t(f'option.precision.{row.precision}')}{mark}"
        if row.answer is None:
            rows.append((name, *("" for _ in used), t("precision.plans.refused", why=said(row.refusal))))
            continue
        rows.append(
            (name, *(str(held[row.precision][component]) for component in used), f"**{row.answer.peak.allocated}**")
        )
    table(heads, rows, alt=t("precision.plans"))


def scaling() -> None:
    """Overflow, and what a loss scaler does about small gradients."""
    lost = brief(FP16.smallest / 2)
    st.markdown(t("precision.scaling.about", lost=lost))
    heads = ("scaler", "scaler.start", "scaler.growth", "scaler.overflows", "scaler.kept")
    rows = [
        (
            f"{row.label} ({traps.source_link(row.source, t('schedule.source'))})", number(row.initial),
            number(row.growth_interval), str(row.hysteresis), brief(row.smallest_kept(FP16)),
        )
        for row in LOSS_SCALERS.values()
    ]  # fmt: skip
    table([t(f"precision.{name}") for name in heads], rows, alt=t("precision.scaling"))
    st.caption(t("precision.scaling.lag"))


def cards(here: Here) -> None:
    """Whether this card does bf16 and fp8 in hardware, and which others do."""
    gpu = here.gpu
    if gpu.bf16 is False:
        st.warning(t("precision.card.emulated", gpu=gpu.name), icon=":material/warning:")
    elif gpu.bf16:
        st.success(t("precision.card.native.fp8" if gpu.fp8 else "precision.card.native", gpu=gpu.name))
    words = {True: t("precision.yes"), False: t("precision.no"), None: t("precision.unknown")}
    rows = [
        {
            t("precision.card"): row.name,
            t("precision.card.capability"): row.compute_capability,
            DTYPES["bf16"].label: words[row.bf16],
            DTYPES["fp8"].label: words[row.fp8],
        }
        for row in GPUS.values()
    ]
    st.dataframe(rows, hide_index=True, key="cards", height=320, alt=t("precision.cards"))
