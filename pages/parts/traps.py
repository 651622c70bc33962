"""Known traps, advice and workings as a page shows them: each with the link to its source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from calc.catalog.guidance import Advice
from calc.catalog.sources import SOURCES
from calc.schedule.expression import number
from calc.schedule.steps import Working
from calc.schedule.traps import Trap
from pages.parts.state import plain, t
from pages.parts.tables import table

_LOOKS: dict[str, tuple[Any, str]] = {
    "stops": (st.error, ":material/block:"),
    "misleads": (st.warning, ":material/warning:"),
    "note": (st.info, ":material/info:"),
}


def source_link(id: str, words: str = "") -> str:
    """A source as a Markdown link."""
    source = SOURCES[id]
    return f"[{plain(words or source.title)}]({source.url})"


def show(found: Sequence[Trap], about: str = "") -> None:
    """The traps, worst first as they come: what happens, what to do, where it was seen."""
    for trap in found:
        look, sign = _LOOKS[trap.severity]
        values = {name: plain(value) for name, value in trap.values.items()}
        happens, do = (t(f"trap.{trap.id}{part}", **values) for part in ("", ".remedy"))
        look(f"{about}{happens} {do} {source_link(trap.source, t('schedule.source'))}", icon=sign)


def workings(lines: Sequence[Working]) -> None:
    """Counts with their formulas, in symbols and in this run's numbers."""
    heads = [t(f"schedule.table.{name}") for name in ("count", "formula", "numbers", "value")]
    rows = [
        (f"{line.label} {line.symbol}", f"`{line.formula}`", f"`{line.numbers}`", f"**{number(line.value)}**")
        for line in lines
    ]
    table(heads, rows, alt=t("schedule.counting"))


def advice(rows: Sequence[Advice]) -> None:
    """Advice as a table: the sentence, its range, how it is known, its source."""
    heads = [t("schedule.guidance.advice"), t("schedule.guidance.range"), t("schedule.guidance.known")]
    body = [(t(f"advice.{row.id}"), span(row), f"{t(f'known.{row.known}')}, {source_link(row.source)}") for row in rows]
    table(heads, body, alt=t("schedule.guidance"))


def span(row: Advice) -> str:
    """The range of a piece of advice, its start in bold."""
    if row.start is None or row.low is None or row.high is None:
        return ""
    if row.low == row.high:
        return f"**{number(row.start)}**"
    return f"{number(row.low)} – **{number(row.start)}** – {number(row.high)}"
