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
from calc.__main__ import answer_object, floor_object
from calc.memory.floor import Floor
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
    answer: Breakdown | Floor
    """The answer, or what is known of one."""
    link: str
    model: str
    verdict: str
    reason: str
    language: Language


def downloads(here: Here) -> None:
    """A menu with the three files."""
    with st.popover(t("download"), icon=":material/download:"):
        answer = here.answer or here.floor
        if answer is None:
            st.caption(t("verdict.unknown"))
            return
        report = Report(
            here.scenario, answer, address(), state.model_name(), sentence(here), reason(here), state.language()
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
    writer.writerow(("total", _instant(report), int(total), f"{total.gib:.6f}", "", "", "", ""))
    return text.getvalue()


def to_json(report: Report) -> str:
    """Link, scenario and answer, as the command line writes them."""
    known = report.answer
    whole = {
        "link": report.link,
        "scenario": report.scenario.model_dump(mode="json"),
        **({"known": floor_object(known)} if isinstance(known, Floor) else {"answer": answer_object(known)}),
    }
    return json.dumps(whole, indent=1, ensure_ascii=False)


def to_markdown(report: Report) -> str:
    """A report of one screen: verdict, figures, lines, and the link that reproduces it."""

    def say(key: str) -> str:
        return texts.text(key, report.language)

    answer, at = report.answer, say(f"instant.{_instant(report)}")
    if isinstance(answer, Floor):
        figures = {say("floor.known"): f"{answer.peak.allocated} ({at})"}
    else:
        device = answer.peak.device
        figures = {
            say("fit.peak"): f"{answer.peak.allocated} ({at})",
            say("fit.device"): f"{device.expected} ({device.low} – {device.high})",
            say("fit.headroom"): str(answer.headroom),
        }
    rows = [
        f"| {say(f'component.{line.component}')} | {texts.said(line.label, report.language)} | {line.bytes} | `{line.formula}` |"
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


def _instant(report: Report) -> str:
    """The instant that the figures are of."""
    return report.answer.peak.name if isinstance(report.answer, Floor) else report.answer.peak.instant


def address() -> str:
    """The link of this page with the whole scenario."""
    return f"{(st.context.url or '').partition('?')[0]}?{link.encoded(state.query())}"
