"""Levers, solvers and plans beside an answer: what to change, how far one can go, each one click away."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from calc.catalog.sources import SOURCES
from calc.planner.levers import Lever
from calc.planner.plans import METHODS, Constraints, Fitting
from calc.planner.room import fits
from calc.planner.solvers import Solution
from calc.planner.suggestions import UNFELT, Suggestion, WithoutEffect
from calc.units import Bytes
from pages.parts import charts, state, worked
from pages.parts.figure import figure
from pages.parts.here import Here
from pages.parts.state import plain, said, t
from pages.parts.verdict import LOOK
from pages.parts.words import small

SHOWN = 6
"""Suggestions that stand open; the others wait behind them."""
RISK = {"same": "green", "small": "orange", "changes": "red"}


@st.fragment(parallel=True)
def changes(here: Here) -> None:
    """What to change and how far one can go, beside the page: trying every lever holds nothing else up."""
    if state.touched():
        st.rerun()  # a button in here changed the scenario, which is the whole page's
    with st.container(border=True, key="levers"):
        levers(here)
        plans(here)
    with st.container(border=True):
        reach(here)


def levers(here: Here) -> None:
    """What to change: the best suggestions, all of them as a chart and a list, pairs, and what does not help."""
    given = worked.levers(here)
    turning = [one for one in given.helpful if one.turns]
    two = worked.lever_pairs(here) if not turning and not fits(given.before) else ()
    st.header(t("levers.title"), anchor=False)
    st.markdown(_opening(here, given.before.peak.allocated, len(turning), two, bool(given.helpful)))
    first = [one for one in two if one.turns] or list(given.helpful)
    _list(first[:SHOWN], "best")
    if given.helpful:
        with st.expander(t("levers.more", count=len(given.helpful))):
            largest = max(given.helpful, key=lambda one: one.saved)
            alt = t("levers.chart.alt", name=name(largest), size=largest.saved)
            charts.draw(savings(given.helpful), key="savings", alt=alt, name="levers")
            _list([one for one in given.helpful if one not in first[:SHOWN]], "more")
    opened = st.expander(t("levers.pairs"), key="lever_pairs", on_change="rerun")
    with opened:
        if opened.open:
            pairs = worked.lever_pairs(here)
            _list(list(pairs), "pair")
            if not pairs:
                st.markdown(small(t("levers.pairs.none")))
    if given.useless:
        with st.expander(t("levers.useless", count=len(given.useless))):
            st.markdown("\n".join(f"- **{t(f'lever.{one.lever.id}')}**: {why(one)}" for one in given.useless))


def _opening(here: Here, peak: Bytes, turning: int, two: tuple[Suggestion, ...], any_help: bool) -> str:
    if here.verdict in ("fits", "tight"):
        return t("levers.fits" if any_help else "levers.nothing")
    if turning:
        return t("levers.turn", count=turning) if turning > 1 else t("levers.turn.one")
    return t("levers.none" if any(one.turns for one in two) else "levers.hopeless" if any_help else "levers.nothing")


def name(suggestion: Suggestion) -> str:
    """What a suggestion is called."""
    return " + ".join(t(f"lever.{lever.id}") for lever in suggestion.levers)


def why(one: WithoutEffect) -> str:
    """Why a lever does not help, in the reader's language; a refusal is the model's own sentence."""
    if one.problem:
        return said(one.problem)
    if one.raised:
        return t("levers.raises", size=one.raised)
    words = t("levers.same", instant=t(f"instant.the.{one.instant}"))
    if one.lowered:
        instant, size = one.lowered[0]
        words += " " + t("levers.beside", instant=t(f"instant.the.{instant}"), size=size)
    return words


def time(low_high: tuple[float, float | None] | None) -> str:
    """A factor on the time as words."""
    if low_high is None:
        return t("levers.time.unknown")
    low, high = low_high
    if high is None:
        return t("levers.time.from", low=f"{low:.2f}")
    if low >= 1 / UNFELT and high <= 1.02:
        return t("levers.time.same")
    return t("levers.time", low=f"{low:.2f}", high=f"{high:.2f}")


def _list(some: list[Suggestion], place: str) -> None:
    """Suggestions, one a row, each with its button."""
    for number, one in enumerate(some):
        with st.container(horizontal=True, vertical_alignment="center", gap="small", key=f"lever_{place}_{number}"):
            with st.container(width="stretch", gap=None):
                colour, sign = LOOK[one.answer.verdict]
                verdict = f":{colour}-badge[{sign} {t(f'verdict.{one.answer.verdict}')}]"
                st.markdown(f"**{name(one)}** · **−{one.saved}** → {one.answer.peak.allocated} {verdict}")
                st.markdown(small(_terms(one)), help=_details(one.levers))
            st.button(
                t("levers.apply"), key=f"apply_{place}_{number}", help=t("levers.apply.help", name=name(one)),
                on_click=state.go, args=(one.scenario,),
            )  # fmt: skip


def _terms(one: Suggestion) -> str:
    """Risk, time, what to install, and what happens to the result."""
    installs = [t("levers.installs", name=lever.installs) for lever in one.levers if lever.installs]
    risk = f":{RISK[one.risk]}[{t(f'levers.risk.{one.risk}')}]"
    quality = " ".join(dict.fromkeys(t(f"lever.{lever.id}.quality") for lever in one.levers))
    return " · ".join([risk, time(one.time), *installs, quality])


def _details(levers: tuple[Lever, ...]) -> str:
    """How time and quality are known, with their sources."""
    lines = []
    for lever in levers:
        if lever.time:
            lines.append(f"- ×{lever.time.low:.2f}–{f'{lever.time.high:.2f}' if lever.time.high else '…'}: "
                         f"{t(f'lever.{lever.id}.reading')}")  # fmt: skip
        sources = dict.fromkeys([lever.quality_source, *(lever.time.sources if lever.time else ())])
        lines += [f"- [{plain(SOURCES[source].title)}]({SOURCES[source].url})" for source in sources]
    return "\n".join(lines)


def savings(some: Sequence[Suggestion]) -> charts.Figure:
    """What each change saves at the peak, the largest on top, in the colour of the verdict that it leads to."""
    ordered = sorted(some, key=lambda one: one.saved)
    groups = {verdict: [one for one in ordered if (one.answer.verdict in ("fits", "tight")) == fitting]
              for verdict, fitting in (("fits", True), ("does_not_fit", False))}  # fmt: skip
    return {
        "data": [
            {
                "type": "bar", "orientation": "h", "y": [name(one) for one in group], "x": [one.saved.gib for one in group],
                "name": t(f"verdict.{verdict}"), "marker": {"color": charts.CURVES[2 if verdict == "fits" else 3]},
                "customdata": [str(one.saved) for one in group], "text": [str(one.saved) for one in group],
                "textposition": "outside", "cliponaxis": False, "showlegend": True,
                "hovertemplate": "%{y}<br><b>−%{customdata}</b><extra></extra>",
            }
            for verdict, group in groups.items() if group
        ],
        "layout": {
            "height": 60 + 24 * len(ordered), "margin": {"l": 4, "r": 60, "t": 4, "b": 4}, "bargap": 0.3,
            "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
            "xaxis": {"ticksuffix": " GiB", "rangemode": "tozero", "fixedrange": True},
            "yaxis": {"categoryorder": "array", "categoryarray": [name(one) for one in ordered], "automargin": True,
                      "fixedrange": True},
        },
    }  # fmt: skip


def reach(here: Here) -> None:
    """How far one can go: micro-batch, length, rank and card, each one click away."""
    plan = here.scenario.plan
    batch, length, rank = worked.reach(here)
    st.header(t("solve.title"), anchor=False)
    with st.grid(3 if plan.method == "full" else 4, min_column_width=150):
        _solved("batch", batch, t("solve.at", length=f"{plan.seq_len:,}"))
        _solved("length", length, t("solve.with", batch=f"{plan.micro_batch_size:,}"))
        if plan.method != "full":
            _solved("rank", rank, t("solve.of"))
        _smallest(here)


def limits(here: Here) -> str:
    """How far one can go, in one sentence."""
    batch, length, _ = worked.reach(here)
    plan, gpu = here.scenario.plan, plain(here.gpu.name)
    if batch is None or length is None:
        none = t("batch.none", gpu=gpu, length=f"{plan.seq_len:,}")
        some = t("batch.some", longest=f"{length.value:,}", now=f"{plan.micro_batch_size:,}") if length else ""
        return f"{none} {some}".strip()
    return t(
        "batch.title", gpu=gpu, batch=f"{batch.value:,}", length=f"{plan.seq_len:,}", longest=f"{length.value:,}",
        now=f"{plan.micro_batch_size:,}",
    )  # fmt: skip


def _solved(what: str, solution: Solution | None, beside: str) -> None:
    with st.container(border=True, gap="small"):
        shown = t("solve.none") if solution is None else f"{solution.value:,}"
        figure(t(f"solve.{what}"), shown, beside, border=False)
        for problem in solution.answer.problems if solution else ():
            if problem.code == "beyond_context":
                st.markdown(small(said(problem.message)))
        if solution:
            st.button(
                t("solve.use"), key=f"solve_{what}", on_click=state.go, args=(solution.scenario,),
                help=t("solve.use.help", name=t(f"solve.{what}"), value=f"{solution.value:,}"),
            )  # fmt: skip


def _smallest(here: Here) -> None:
    with st.container(border=True, gap="small"):
        vendor = here.gpu.vendor
        card = worked.card(here, vendor)
        figure(
            t("solve.card"), card.gpu.name if card else t("solve.none"), str(card.gpu.capacity) if card else vendor,
            help=t("solve.unknown"), border=False,
        )  # fmt: skip
        if card:
            st.button(
                t("solve.use"), key="solve_card", on_click=state.go, args=(card.scenario,),
                help=t("solve.use.help", name=t("solve.card"), value=card.gpu.name),
            )  # fmt: skip


def plans(here: Here) -> None:
    """The best plan of each method that fits, under the visitor's own constraints."""
    opened = st.expander(t("plans.title"), key="best_plans", on_change="rerun")
    with opened:
        if not opened.open:
            return
        st.markdown(small(t("plans.about")))
        left, right = st.columns(2)
        with left:
            full = st.toggle(t("plans.full"), key="plans_full")
            wide = st.toggle(t("plans.narrow"), key="plans_narrow")
            bare = st.toggle(t("plans.installs"), key="plans_installs")
        with right:
            whole = st.number_input(
                t("plans.batch"),
                min_value=0,
                max_value=1_000_000,
                step=1,
                key="plans_batch",
                help=t("plans.batch.help"),
            )
        constraints = Constraints(
            methods=("full",) if full else METHODS,
            narrow_states=not wide,
            installs=not bare,
            global_batch=int(whole) or None,
        )
        found = worked.best_plans(here, constraints)
        if not found:
            st.info(t("plans.none"), icon=":material/info:")
        for number, one in enumerate(found):
            _plan(here, one, number)


def _plan(here: Here, one: Fitting, number: int) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key=f"plan_{number}"):
        with st.container(width="stretch", gap=None):
            colour, sign = LOOK[one.answer.verdict]
            badge = f":{colour}-badge[{sign} {t(f'verdict.{one.answer.verdict}')}]"
            st.markdown(f"**{t(f'option.method.{one.method}')}** · {one.answer.peak.allocated} {badge}")
            plan = one.scenario.plan
            steps = [t(f"lever.{lever.id}") for lever in one.levers]
            if plan.micro_batch_size != here.scenario.plan.micro_batch_size:
                steps.append(t("plans.split", batch=plan.micro_batch_size, steps=plan.gradient_accumulation_steps))
            st.markdown(small(" + ".join(steps) or t("plans.unchanged")))
        st.button(
            t("levers.apply"), key=f"plan_apply_{number}", on_click=state.go, args=(one.scenario,),
            help=t("levers.apply.help", name=t(f"option.method.{one.method}")),
        )  # fmt: skip
