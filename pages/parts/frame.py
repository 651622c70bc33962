"""The frame around every page: navigation, controls on the left, the page on the right, the verdict at the bottom.

Streamlit finds the folder `pages` by itself: a link to a page that is opened before anybody has seen the first page
starts that page's file alone. So every page file begins with `here = framed()`, which runs the frame in its place.
"""

from __future__ import annotations

import base64
import gc
import threading
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import streamlit as st

from pages.parts import controls, state, visit
from pages.parts.downloads import downloads
from pages.parts.here import Here, here
from pages.parts.state import said, t
from pages.parts.tools import tools
from pages.parts.verdict import bottom

ROOT = Path(__file__).parents[2]
LOGO = ROOT / "assets" / "favicon.svg"


@dataclass(frozen=True, slots=True)
class Entry:
    """A page: its file under pages/, which is also its place in the address, and the sign beside its name."""

    id: str
    sign: str
    controls: bool = True
    """Whether the scenario's controls stand beside it."""


# The first is the page that opens. A new page is one line here, one file, and `nav.<id>` in the texts.
PAGES = (
    Entry("fit", ":material/directions_boat:"),
    Entry("optimizers", ":material/function:"),
    Entry("batch", ":material/grid_on:"),
    Entry("precision", ":material/straighten:"),
    Entry("schedule", ":material/show_chart:"),
    Entry("compare", ":material/compare_arrows:"),
)

_running = threading.local()


def framed() -> Here:
    """What this page is about. First line of every page file: runs the frame if the page was started without it."""
    if (current := getattr(_running, "here", None)) is None:
        main()
        st.stop()
    return current  # type: ignore[no-any-return]


def main() -> None:
    """The whole app, once a run."""
    st.set_page_config(page_title="Plimsoll", layout="wide", initial_sidebar_state="collapsed")
    pages = {entry.id: st.Page(ROOT / "pages" / f"{entry.id}.py", title=f"{t(f'nav.{entry.id}')} · Plimsoll", url_path=entry.id,
                               default=entry is PAGES[0]) for entry in PAGES}  # fmt: skip
    page = st.navigation(list(pages.values()), position="hidden")
    entry = next(entry for entry in PAGES if pages[entry.id] == page)
    state.arrive(entry.id)
    top = st.container()
    if entry.controls:
        left, right = st.columns([1, 2.55], gap="medium")
        with left, st.container(border=True, key="scenario"):
            controls.draw()
    else:
        right = st.container()
    now = here()
    if not state.passing():
        visit.remember(now)
    with top:
        _bar(entry, pages, now)
    with st.bottom, st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        bottom(now)
        if not state.on_phone():
            _offers(pages, now)
    state.publish()
    with right:
        _notes()
        _running.here = now
        try:
            page.run()
        finally:
            _running.here = None
            st.set_page_config(page_icon=str(LOGO))  # last: Streamlit loads numpy for it
            _settle()


def _bar(entry: Entry, pages: dict[str, st.Page], now: Here) -> None:
    """Name and pages. A page's link carries the scenario, also into a new tab."""
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute", gap="small"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small", width="content"):
            st.html(f'<img src="{_data_url(LOGO)}" width="28" height="28" alt="{t("tagline")}">', width=28)
            st.markdown("**Plimsoll**", width="content")
            with st.popover(t(f"nav.{entry.id}"), icon=":material/menu:") if state.on_phone() else nullcontext():
                for other in PAGES:
                    name = f"**{t(f'nav.{other.id}')}**" if other is entry else t(f"nav.{other.id}")
                    sign = other.sign if state.on_phone() else ""
                    st.page_link(pages[other.id], label=name, icon=sign, query_params=state.query())
        if state.on_phone():
            _offers(pages, now)


def _offers(pages: dict[str, st.Page], now: Here) -> None:
    """What every page offers: beside the verdict that stays in view, on a phone beside the pages."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small", width="content"):
        tools(tuple([path.url_path for path in pages.values()]))
        visit.menu(now)
        downloads(now)
        st.button(t("language.other"), key="language", on_click=state.other_language)


@cache
def _data_url(picture: Path) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(picture.read_bytes()).decode()}"


def _notes() -> None:
    if notes := state.notes():
        lines = "\n".join(f"- {said(note.message)}" for note in notes)
        st.warning(f"**{t('link.notes')}**\n{lines}", icon=":material/link_off:")


@st.cache_resource(show_spinner=False)
def _settle() -> None:
    """Take what the first run has loaded out of the garbage collector's rounds: Streamlit makes a full one a run."""
    gc.collect()
    gc.freeze()
