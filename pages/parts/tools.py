"""Two buttons that live in the browser: copy this page's link, and light or dark."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from calc import link
from pages.parts import state
from pages.parts.state import said, t

BROWSER = Path(__file__).parent / "browser"

_buttons = st.components.v2.component(
    "tools",
    html=(BROWSER / "tools.html").read_text(),
    css=(BROWSER / "tools.css").read_text(),
    js=(BROWSER / "tools.js").read_text(),
)


def tools(paths: tuple[str, ...]) -> None:
    """The buttons. `paths` are the pages' places in the address: a chosen theme holds for all of them."""
    data = {
        "query": link.encoded(state.query()),
        "language": state.language(),
        "copy": t("link.copy"),
        "copied": t("link.copied"),
        "manual": t("link.manual"),
        "theme": t("theme"),
        "paths": paths,
    }
    _buttons(key="tools", data=data, width="content")
    if why := state.unlinkable():
        st.caption(f"{t('link.without-model')} {said(why)}")
