"""This visit: the scenarios seen so far, one step back, and those pinned for comparison.

Pinned scenarios are part of the address, so a link carries them; the history is the session's and is gone when it ends.
"""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from calc import Scenario, link
from calc.catalog.gpus import GPUS
from calc.memory.breakdown import Problem
from calc.planner.comparison import MOST, pinned, pinned_text
from pages.parts import state
from pages.parts.here import Here
from pages.parts.state import plain, t
from pages.parts.verdict import LOOK
from pages.parts.words import small

PINS = "pins"
"""The key of the link that holds them."""
LONGEST = 12
"""Scenarios that are remembered."""
_SEEN = "_seen"


@dataclass(frozen=True, slots=True)
class Seen:
    """A scenario of this visit, as it stood on the page."""

    scenario: Scenario
    label: str
    verdict: str


def label(scenario: Scenario) -> str:
    """A scenario in a few words: model, method, batch x length, card."""
    plan = scenario.plan
    model = (
        scenario.model if isinstance(scenario.model, str) else getattr(scenario.model, "id", "") or t("model.pasted")
    )
    return (
        f"{model.rpartition('/')[2]} · {t(f'option.method.{plan.method}')} · {plan.micro_batch_size:,} × {plan.seq_len:,} · "
        f"{GPUS[scenario.hardware.gpu].name}"
    )


def remember(here: Here) -> None:
    """Note the scenario that is shown. Call once a run."""
    seen: list[Seen] = st.session_state.setdefault(_SEEN, [])
    now = Seen(here.scenario, label(here.scenario), here.verdict)
    if not seen or seen[-1].scenario != here.scenario:
        seen.append(now)
        del seen[:-LONGEST]
    else:
        seen[-1] = now


def history() -> list[Seen]:
    """The scenarios of this visit, the last one is shown now."""
    return list(st.session_state.get(_SEEN, []))


def _undo() -> None:
    seen: list[Seen] = st.session_state[_SEEN]
    seen.pop()
    state.go(seen[-1].scenario)


def pins() -> tuple[tuple[Scenario, ...], tuple[Problem, ...]]:
    """The pinned scenarios, and what in the link could not be used."""
    return pinned(state.beside().get(PINS, ""))


def pin(scenario: Scenario) -> None:
    """Pin one more scenario. For a callback."""
    _put((*pins()[0], scenario))


def unpin(place: int) -> None:
    """Let go of a pinned scenario, by its place. For a callback."""
    some = pins()[0]
    _put((*some[:place], *some[place + 1 :]))


def _put(scenarios: tuple[Scenario, ...]) -> None:
    rest = {name: text for name, text in state.beside().items() if name != PINS}
    state.put_beside(rest | ({PINS: pinned_text(scenarios)} if scenarios else {}))


def menu(here: Here) -> None:
    """One step back, pin, and the scenarios of this visit."""
    seen = history()
    with st.popover(t("visit.title"), icon=":material/history:"):
        if len(seen) > 1:
            before = seen[-2]
            st.button(
                t("visit.undo"), icon=":material/undo:", key="undo", on_click=_undo, width="stretch",
                help=t("visit.undo.help", name=plain(before.label)),
            )  # fmt: skip
        pin_button(here, key="pin")
        st.markdown(small(t("visit.history")))
        for place, one in reversed(list(enumerate(seen))):
            st.button(
                plain(one.label), key=f"seen_{place}", icon=LOOK[one.verdict][1], type="tertiary", width="stretch",
                on_click=state.go, args=(one.scenario,), disabled=one is seen[-1],
            )  # fmt: skip


def pin_button(here: Here, *, key: str) -> None:
    """Pin the scenario, or why it cannot be."""
    there = pins()[0]
    why = ""
    if here.scenario in there:
        why = t("visit.there")
    elif len(there) >= MOST:
        why = t("visit.full")
    elif not linkable(here.scenario):
        why = t("visit.unlinkable")
    st.button(
        t("visit.pin"),
        icon=":material/keep:",
        key=key,
        on_click=pin,
        args=(here.scenario,),
        disabled=bool(why),
        width="stretch",
    )
    st.markdown(small(why or t("visit.pinned", count=len(there), most=MOST)))


def linkable(scenario: Scenario) -> bool:
    """Whether a link can carry the whole scenario."""
    try:
        link.params(scenario)
    except link.NotLinkable:
        return False
    return True
