"""The verdict in words: one sentence at the top of a page, one line at the bottom of the window."""

from __future__ import annotations

from typing import Any

import streamlit as st

from calc.memory.breakdown import Breakdown, Instant, Problem, Span
from calc.units import Bytes
from pages.parts.here import Here
from pages.parts.state import plain, said, t

# How each verdict is shown: Streamlit's colour name and a sign that is not colour alone.
LOOK: dict[str, tuple[str, str]] = {
    "fits": ("green", ":material/check_circle:"),
    "tight": ("orange", ":material/error:"),
    "does_not_fit": ("red", ":material/cancel:"),
    "impossible": ("red", ":material/block:"),
    "unknown": ("gray", ":material/help:"),
}


def failing(answer: Breakdown) -> Instant | None:
    """The first instant of the step that the card cannot hold, with what driver and allocator keep beside it."""
    beside = answer.peak.device.expected - answer.peak.allocated
    return next((instant for instant in answer.instants if instant.allocated + beside > answer.capacity), None)


def operation(answer: Breakdown) -> str:
    """The operation that is running when the step is at its highest."""
    return next(instant.operation for instant in answer.instants if instant.name == answer.peak.instant).strip()


def between(span: Span) -> str:
    """A range in one unit."""
    return f"{span.low.gib:,.1f} – {span.high.gib:,.1f} GiB"


def sentence(here: Here) -> str:
    """The verdict in one sentence, as Markdown without formatting."""
    return f"{t(f'verdict.{here.verdict}')}: {_figures(here)}"


def _figures(here: Here) -> str:
    answer = here.answer
    if answer is None:
        return _at_least(here)
    if answer.verdict == "impossible":
        return said(next(problem.message for problem in answer.problems if problem.blocking))
    device = answer.peak.device
    return t(
        f"verdict.sentence.{answer.verdict}",
        device=device.expected, low=device.low, capacity=answer.capacity, gpu=plain(here.gpu.name),
    )  # fmt: skip


def _at_least(here: Here) -> str:
    """What a step holds at least where its activations are not known, else why there is no answer."""
    least = here.floor
    if least is None:
        return said(here.refusal)
    if least.verdict == "impossible":
        return said(next(problem.message for problem in least.problems if problem.blocking))
    return t(
        f"floor.sentence.{least.verdict}",
        known=least.peak.allocated, capacity=least.capacity, gpu=plain(here.gpu.name),
    )  # fmt: skip


def reason(here: Here) -> str:
    """What sets the peak, and where a run that does not fit would stop; empty where nothing runs."""
    answer = here.answer
    if answer is None or answer.verdict == "impossible":
        return ""
    said = []
    stop = failing(answer) if answer.verdict == "does_not_fit" else None
    if stop:
        first = stop is answer.instants[0]
        said.append(t("verdict.fails.first" if first else "verdict.fails", instant=t(f"instant.the.{stop.name}")))
    if not stop or stop.name != answer.peak.instant:
        said.append(t("verdict.peak", instant=_sentence_case(t(f"instant.the.{answer.peak.instant}"))))
    if answer.verdict == "tight":
        said.append(t("verdict.room", high=answer.peak.device.high))
    if here.gpu.capacity_status == "not looked up":
        said.append(t("verdict.capacity.not looked up"))
    return " ".join(said)


def headline(here: Here) -> None:
    """The page's heading: the verdict, painted before any chart."""
    colour, sign = LOOK[here.verdict]
    st.title(f":{colour}[{sign} {t(f'verdict.{here.verdict}')}:] {_figures(here)}", anchor=False)
    if said := reason(here):
        st.markdown(said)


def bottom(here: Here) -> None:
    """The verdict in one line that stays in view."""
    colour, sign = LOOK[here.verdict]
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="bottom_verdict"):
        st.badge(t(f"verdict.{here.verdict}"), color=colour, icon=sign)  # type: ignore[arg-type]
        if here.answer and here.answer.verdict != "impossible":
            device = here.answer.peak.device.expected
            st.markdown(f"**{device}** / {here.answer.capacity}", width="content")
            st.progress(share(device, here.answer.capacity), width="stretch")


def problems(found: tuple[Problem, ...]) -> None:
    """What else keeps the plan from running than the heading says, then what its owner should know, a sentence each."""
    blocking = [problem for problem in found if problem.blocking]
    for problem in (*blocking[1:], *(problem for problem in found if not problem.blocking)):
        show: Any = st.error if problem.blocking else st.info
        show(said(problem.message), icon=":material/block:" if problem.blocking else ":material/info:")


def share(part: Bytes, whole: Bytes) -> float:
    """A part as a share of the whole, between 0 and 1."""
    return min(1.0, max(0.0, int(part) / int(whole))) if whole else 0.0


def _sentence_case(words: str) -> str:
    return words[:1].upper() + words[1:]
