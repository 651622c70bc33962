"""The answer to take along: CSV for a sheet, JSON for a program, Markdown for a ticket or a pull request."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import streamlit as st

from calc import link
from calc.memory.breakdown import Breakdown
from pages.parts import state
from pages.parts.here import Here
from pages.parts.state import t
from pages.parts.verdict import reason, sentence

COLUMNS = ("component", "label", "bytes", "GiB", "certainty", "formula", "numbers", "source")


def downloads(here: Here) -> None:
    """A menu with the three files."""
    with st.popover(t("download"), icon=":material/download:"):
        answer = here.answer
        if answer is None:
            st.caption(t("verdict.unknown"))
            return
        files = (
            ("csv", "text/csv", to_csv),
            ("json", "application/json", to_json),
            ("markdown", "text/markdown", to_markdown),
        )
        for kind, mime, written in files:
            st.download_button(
                t(f"download.{kind}"), data=written(here, answer), mime=mime, on_click="ignore", width="stretch",
                file_name=f"plimsoll.{'md' if kind == 'markdown' else kind}", key=f"download_{kind}",
            )  # fmt: skip


def rows(answer: Breakdown) -> list[dict[str, Any]]:
    """The lines of the peak, one row each."""
    return [
        {
            "component": line.component, "label": line.label, "bytes": int(line.bytes), "GiB": f"{line.bytes.gib:.4f}",
            "certainty": line.certainty, "formula": line.formula, "numbers": line.numbers, "source": line.source,
        }
        for line in answer.lines
    ]  # fmt: skip


def to_csv(here: Here, answer: Breakdown) -> str:
    """Every line of the peak and its sum."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows(answer))
    peak = answer.peak
    writer.writerow({"component": "total", "bytes": int(peak.allocated), "GiB": f"{peak.allocated.gib:.4f}"})
    return text.getvalue()


def to_json(here: Here, answer: Breakdown) -> str:
    """Scenario, link and answer."""
    from dataclasses import asdict

    whole = {"link": address(), "scenario": here.scenario.model_dump(mode="json"), "answer": asdict(answer)}
    return json.dumps(whole, indent=1, ensure_ascii=False)


def to_markdown(here: Here, answer: Breakdown) -> str:
    """A report of one screen: verdict, figures, lines, and the link that reproduces it."""
    peak = answer.peak
    lines = [
        f"## {sentence(here)}", "", reason(here), "",
        f"| {t('fit.peak')} | {t('fit.device')} | {t('fit.headroom')} |", "|---|---|---|",
        f"| {peak.allocated} | {peak.device.expected} ({peak.device.low} – {peak.device.high}) | {answer.headroom} |",
        "", "| | | |", "|---|---:|---|",
    ]  # fmt: skip
    lines += [
        f"| {t(f'component.{line.component}')}: {line.label} | {line.bytes} | `{line.formula}` |"
        for line in answer.lines
    ]
    lines += ["", f"[{state.model_name()}]({address()})", ""]
    return "\n".join(lines)


def address() -> str:
    """The link of this page with the whole scenario."""
    return f"{(st.context.url or '').partition('?')[0]}?{link.encoded(state.query())}"
