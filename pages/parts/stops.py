"""A number of the scenario as a slider over its usual values and a box for any other, which answer while they are dragged.

Streamlit's own slider says nothing before it is let go, and two of its widgets for one number report each other's old values.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import streamlit as st

from calc import link
from pages.parts import state, texts
from pages.parts.state import t
from pages.parts.tools import BROWSER

_slider = st.components.v2.component(
    "stops",
    html=(BROWSER / "stops.html").read_text(),
    css=(BROWSER / "stops.css").read_text(),
    js=(BROWSER / "stops.js").read_text(),
)


def stops(path: str, usual: tuple[int, ...]) -> None:
    """The control of a whole number: a slider whose stops are the usual values, and a box."""
    key, language = link.PATHS[path], state.language()
    low, high = texts.bounds(path)
    label = texts.label(path, language)
    data = {
        "key": key,
        "label": label,
        "help": texts.help_of(path, language).replace("`", ""),
        "helping": t("stops.help", label=label),
        "exact": t("stops.exact", label=label),
        "value": state.kept(path),
        "stops": usual,
        "min": low,
        "max": high,
        "language": language,
    }
    _slider(key=key, data=data, on_value_change=partial(_moved, path, key), width="stretch")


def _moved(path: str, key: str) -> None:
    """Take what the browser says if it is a value of the field."""
    said: Any = st.session_state[key].get("value")
    low, high = texts.bounds(path)
    match said:
        case [int() | float() as value, bool() as live, _] if (
            low is not None and high is not None and low <= value <= high
        ):
            state.put(path, int(value), live=live)
