"""The table of lines: each row opens to its formula, this run's numbers, its source and how sure we are.

Formulas are worked out when the first row is opened, and no longer than one is open: the closed form of a run takes as long
as everything else on the page, and every move of a slider would pay for it.
"""

from __future__ import annotations

from typing import Any

import streamlit as st

from calc.catalog.sources import SOURCES
from calc.memory.breakdown import COMPONENTS, Line
from calc.units import Bytes
from pages.parts import texts
from pages.parts.state import language, t
from pages.parts.tools import BROWSER
from pages.parts.verdict import share

_table = st.components.v2.component(
    "ledger", html="<ol></ol>", css=(BROWSER / "ledger.css").read_text(), js=(BROWSER / "ledger.js").read_text()
)


@st.fragment
def ledger(lines: tuple[Line, ...], total: Bytes, *, key: str, title: str) -> None:
    """The lines as they stand, and their sum. The title is read out, not shown."""
    opened = bool(st.session_state.get(key, {}).get("opened"))
    rows = [_row(place, line, total, opened) for place, line in enumerate(lines) if line.bytes]
    rows.append({"label": t("fit.lines.total"), "size": str(total), "certainty": ""})
    _table(
        key=key, data={"title": title, "rows": tuple(rows), "wait": t("fit.wait")}, default={"opened": False},
        on_opened_change=_nothing, width="stretch",
    )  # fmt: skip


def _nothing() -> None:
    """Streamlit reports a component's state only to a callback."""


def _row(place: int, line: Line, total: Bytes, opened: bool) -> dict[str, Any]:
    return {
        "id": f"{line.component}/{line.label}/{place}",
        "colour": COMPONENTS.index(line.component),
        "label": t(f"component.{line.component}"),
        "detail": _detail(line),
        "share": share(line.bytes, total),
        "size": str(line.bytes),
        "certainty": t(f"certainty.{line.certainty}"),
        "facts": _facts(line) if opened else [],
    }


def _facts(line: Line) -> list[dict[str, str]]:
    """What an opened row shows: names, words, and what is code or a link."""
    source = SOURCES[line.source]
    facts = [
        {"name": t("fit.formula"), "text": line.formula, "kind": "code"},
        {"name": t("fit.numbers"), "text": f"{line.numbers} = {line.bytes:,} B", "kind": "code"},
        {"name": t("fit.note"), "text": texts.said(line.note, language())},
        {"name": t("fit.source"), "text": f"{source.title} ({source.detail})", "kind": "link", "link": source.url},
    ]
    return [fact for fact in facts if fact["text"]]


def _detail(line: Line) -> str:
    """What the label adds to the component's name."""
    name = texts.text(f"component.{line.component}", "en")
    added = line.label.removeprefix(name).lstrip(" ,:") if line.label.startswith(name) else line.label
    return texts.said(added, language())
