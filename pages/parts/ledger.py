"""The table of lines: each row opens to its formula, this run's numbers, its source and how sure we are."""

from __future__ import annotations

from typing import Any

import streamlit as st

from calc.catalog.sources import SOURCES
from calc.memory.breakdown import COMPONENTS, Line
from calc.units import Bytes
from pages.parts import texts
from pages.parts.state import t
from pages.parts.tools import BROWSER
from pages.parts.verdict import share

_table = st.components.v2.component(
    "ledger", html="<ol></ol>", css=(BROWSER / "ledger.css").read_text(), js=(BROWSER / "ledger.js").read_text()
)


def ledger(lines: tuple[Line, ...], total: Bytes, *, key: str, title: str) -> None:
    """The lines as they stand, and their sum. The title is read out, not shown."""
    rows = [_row(place, line, total) for place, line in enumerate(lines) if line.bytes]
    rows.append({"label": t("fit.lines.total"), "size": str(total), "certainty": ""})
    code = [t("fit.formula"), t("fit.numbers")]
    _table(key=key, data={"title": title, "rows": rows, "code": code}, width="stretch")


def _row(place: int, line: Line, total: Bytes) -> dict[str, Any]:
    source = SOURCES[line.source]
    facts = [(t("fit.formula"), line.formula, ""), (t("fit.numbers"), f"{line.numbers} = {line.bytes:,} B", "")]
    if line.note:
        facts.append(("", line.note, ""))
    facts.append((t("fit.source"), f"{source.title}{f' ({source.detail})' if source.detail else ''}", source.url))
    return {
        "id": f"{line.component}/{line.label}/{place}", "colour": COMPONENTS.index(line.component),
        "label": t(f"component.{line.component}"), "detail": _detail(line), "share": share(line.bytes, total),
        "size": str(line.bytes), "certainty": t(f"certainty.{line.certainty}"), "facts": facts,
    }  # fmt: skip


def _detail(line: Line) -> str:
    """What the label adds to the component's name."""
    name = texts.text(f"component.{line.component}", "en")
    return line.label.removeprefix(name).lstrip(" ,:") if line.label.startswith(name) else line.label
