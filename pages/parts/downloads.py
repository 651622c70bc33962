"""The answer to take along: CSV for a sheet, JSON for a program, Markdown for a ticket or a pull request.

A file is written when someone asks for it, outside the run that drew its button, so whatever depends on the visit (language,
address) is taken along in the `Report`.
"""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass
from functools import partial

import streamlit as st

from calc import Breakdown, Scenario, link
from calc.__main__ import answer_object
from pages.parts import state, texts
from pages.parts.here import Here
from pages.parts.state import t
from pages.parts.texts import Language
from pages.parts.verdict import reason, sentence

COLUMNS = ("component", "label", "bytes", "GiB", "certainty", "formula", "numbers", "source")


@dataclass(frozen=True, slots=True)
class Report:
    """A scenario and its answer, with all that a file says about them."""

    scenario: Scenario
    answer: Breakdown
    link: str
    model: str
    verdict: str
    reason: str
    language: Language


def downloads(here: Here) -> None:
    """A menu with the three files."""
    with st.popover(t("download"), icon=":material/download:"):
        if here.answer is None:
            st.caption(t("verdict.unknown"))
            return
        report = Report(
            here.scenario, here.answer, address(), state.model_name(), sentence(here), reason(here), state.language()
        )
        for kind, ending, mime, written in (
            ("csv", "csv", "text/csv", to_csv),
            ("json", "json", "application/json", to_json),
            ("markdown", "md", "text/markdown", to_markdown),
        ):
            st.download_button(
                t(f"download.{kind}"), data=partial(written, report), mime=mime, on_click="ignore", width="stretch",
                file_name=f"plimsoll.{ending}", key=f"download_{kind}",
            )  # fmt: skip


def to_csv(report: Report) -> str:
    """Every line of the peak and its sum."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for line in report.answer.lines:
        size = (int(line.bytes), f"{line.bytes.gib:.6f}")
        writer.writerow(
            (line.component, line.label, *size, line.certainty, line.formula, line.numbers, line.source)
        )  # fmt: skip
    total = report.answer.peak.allocated
    writer.writerow(("total", report.answer.peak.instant, int(total), f"{total.gib:.6f}", "", "", "", ""))
    return text.getvalue()


def to_json(report: Report) -> str:
    """Link, scenario and answer, as the command line writes them."""
    whole = {
        "link": report.link,
        "scenario": report.scenario.model_dump(mode="json"),
        "answer": answer_object(report.answer),
    }
    return json.dumps(whole, indent=1, ensure_ascii=False)


def to_markdown(report: Report) -> str:
    """A report of one screen: verdict, figures, lines, and the link that reproduces it."""

    def say(key: str) -> str:
        return texts.text(key, report.language)

    peak = report.answer.peak
    figures = {
        say("fit.peak"): f"{peak.allocated} ({say(f'instant.{peak.instant}')})",
        say("fit.device"): f"{peak.device.expected} ({peak.device.low} – {peak.device.high})",
        say("fit.headroom"): str(report.answer.headroom),
    }
    rows = [
        f"| {say(f'component.{line.component}')} | {line.label} | {line.bytes} | `{line.formula}` |"
        for line in report.answer.lines
    ]
    return "\n".join(
        [
            f"## {report.verdict}", "", report.reason, "",
            *(f"- {name}: **{figure}**" for name, figure in figures.items()), "",
            f"| {say('fit.component')} | {say('fit.line')} | {say('fit.size')} | {say('fit.formula')} |",
            "|---|---|---:|---|", *rows, "", f"[{report.model}]({report.link})", "",
        ]
    )  # fmt: skip


def address() -> str:
    """The link of this page with the whole scenario."""
    return f"{(st.context.url or '').partition('?')[0]}?{link.encoded(state.query())}"
