"""Scenarios side by side: the visitor's own and those pinned, the settings and the lines in which they differ."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st
from pydantic import BaseModel

from calc import Refused, Scenario, estimate
from calc.__main__ import answer_object
from calc.catalog.gpus import GPUS
from calc.link import PATHS
from calc.memory.breakdown import COMPONENTS, Breakdown, Instant
from calc.planner.comparison import Difference, differences, lines, settings
from calc.planner.levers import value_at
from calc.scenario import QLora
from calc.units import Bytes
from pages.parts import charts, models, state, texts, visit
from pages.parts.downloads import address
from pages.parts.here import Here
from pages.parts.models import Unknown
from pages.parts.state import plain, said, t
from pages.parts.tables import table
from pages.parts.verdict import LOOK
from pages.parts.words import small, unbroken


@dataclass(frozen=True, slots=True)
class Side:
    """One of the scenarios compared."""

    name: str
    label: str
    scenario: Scenario
    answer: Breakdown | None
    refusal: str = ""

    @property
    def verdict(self) -> str:
        """The answer's, or `unknown`."""
        return self.answer.verdict if self.answer else "unknown"


def sides(here: Here) -> list[Side]:
    """The visitor's scenario, then those pinned."""
    first = Side(t("compare.this"), visit.label(here.scenario), here.scenario, here.answer, here.refusal)
    return [first, *(_side(number, pinned) for number, pinned in enumerate(visit.pins()[0], 1))]


def _side(number: int, scenario: Scenario) -> Side:
    name, label = t("compare.pinned", number=number), visit.label(scenario)
    known = models.of(scenario.model)
    if isinstance(known, Unknown):
        return Side(name, label, scenario, None, known.sentence)
    try:
        return Side(name, label, scenario, estimate(scenario, config=known.config))
    except Refused as refused:
        return Side(name, label, scenario, None, refused.message)
    except ValueError as bad:
        return Side(name, label, scenario, None, str(bad))


def signed(size: Bytes) -> str:
    """A difference with its sign."""
    return f"{'+' if size > 0 else '−' if size < 0 else '±'}{unbroken(abs(size))}"


def leads(compared: Sequence[Side]) -> list[str]:
    """One sentence for each other side: how far its peak is from this plan's, and what most of that is."""
    first, said = compared[0], []
    for side in compared[1:]:
        if first.answer is None or side.answer is None:
            continue
        found = differences(first.answer, side.answer)
        change = side.answer.peak.allocated - first.answer.peak.allocated
        if not found:
            said.append(t("compare.lead.same", name=f"**{plain(side.name)}**"))
            continue
        most = max(by_component(found).items(), key=lambda part: abs(int(part[1])))
        component = f"{t(f'component.{most[0]}')} {signed(most[1])}"
        said.append(t("compare.lead", name=f"**{plain(side.name)}**", change=signed(change), component=component))
    return said


def by_component(found: Sequence[Difference]) -> dict[str, Bytes]:
    """The differences of each component together."""
    held: dict[str, Bytes] = {}
    for one in found:
        held[one.component] = held.get(one.component, Bytes(0)) + one.change
    return held


def cards(here: Here, compared: Sequence[Side]) -> None:
    """Each side with its verdict and what can be done with it."""
    with st.grid(4, min_column_width=200):
        for place, side in enumerate(compared):
            with st.container(border=True, gap="small", key=f"side_{place}"):
                colour, sign = LOOK[side.verdict]
                st.markdown(f"**{plain(side.name)}** :{colour}-badge[{sign} {t(f'verdict.{side.verdict}')}]")
                st.markdown(small(plain(side.label)))
                if side.answer is None:
                    st.markdown(t("compare.unanswered", why=said(side.refusal)))
                else:
                    peak = side.answer.peak
                    st.markdown(
                        f"**{peak.device.expected}** / {side.answer.capacity}\n\n"
                        f"{t(f'instant.{peak.instant}')} {peak.allocated}"
                    )
                if place:
                    with st.container(horizontal=True, gap="small"):
                        st.button(
                            t("compare.open"), key=f"open_{place}", on_click=state.go, args=(side.scenario,),
                            help=t("compare.open.help", name=side.name),
                        )  # fmt: skip
                        st.button(
                            t("compare.remove"), key=f"remove_{place}", on_click=visit.unpin, args=(place - 1,),
                            type="tertiary", help=t("compare.remove.help", name=side.name),
                        )  # fmt: skip
                else:
                    visit.pin_button(here, key="pin_here")


def figure(compared: Sequence[Side]) -> charts.Figure:
    """The components of each peak as a stack, with the line of its card."""
    held = [charts.by_component(_peak(side.answer)) if side.answer else {} for side in compared]
    names = [side.name for side in compared]
    capacities = [GPUS[side.scenario.hardware.gpu].capacity for side in compared]
    return {
        "data": [
            *[
                {"type": "bar", "x": names, "y": [sizes.get(component, Bytes(0)).gib for sizes in held],
                 "name": t(f"component.{component}"), "showlegend": any(sizes.get(component) for sizes in held),
                 "customdata": [str(sizes.get(component, Bytes(0))) for sizes in held],
                 "hovertemplate": f"%{{x}} · {t(f'component.{component}')}<br><b>%{{customdata}}</b><extra></extra>"}
                for component in COMPONENTS
            ],
            {"type": "scatter", "mode": "markers", "x": names, "y": [size.gib for size in capacities],
             "name": t("compare.capacity"), "customdata": [str(size) for size in capacities],
             "marker": {"symbol": "line-ew", "size": 46, "color": charts.LOAD_LINE,
                        "line": {"width": 3, "color": charts.LOAD_LINE}},
             "hovertemplate": f"{t('compare.capacity')}<br><b>%{{customdata}}</b><extra></extra>"},
        ],
        "layout": {
            "barmode": "stack", "height": 480 if state.on_phone() else 320, "margin": {"l": 4, "r": 8, "t": 8, "b": 4}, "bargap": 0.45,
            "legend": {"orientation": "h", "y": -0.12, "x": 0, "traceorder": "normal"},
            "xaxis": {"fixedrange": True},
            "yaxis": {"ticksuffix": " GiB", "fixedrange": True, "rangemode": "tozero", "zeroline": False},
        },
    }  # fmt: skip


def _peak(answer: Breakdown) -> Instant:
    return next(instant for instant in answer.instants if instant.name == answer.peak.instant)


def setting_rows(compared: Sequence[Side]) -> list[list[str]]:
    """The fields in which any two differ: label, then each side's value."""
    differing = {one.path for side in compared[1:] for one in settings(compared[0].scenario, side.scenario)}
    return [
        [texts.label(path, state.language()), *(_shown(path, side.scenario) for side in compared)]
        for path in PATHS
        if path in differing and not _only_defaults(path, compared)
    ]


def _only_defaults(path: str, compared: Sequence[Side]) -> bool:
    """Whether the sides differ in a field only because some methods do not have it: the others leave it as it is."""
    held = [value_at(side.scenario, path) for side in compared if path != "model"]
    default = value_at(Scenario(model="x", plan=QLora()), path)
    return None in held and all(value in (None, default) for value in held)


def _shown(path: str, scenario: Scenario) -> str:
    value: Any = scenario.model if path == "model" else value_at(scenario, path)
    match value:
        case None:
            return t("compare.none")
        case str() if path == "hardware.gpu":
            return GPUS[value].name
        case BaseModel():
            return plain(getattr(value, "id", "") or t("model.pasted"))
        case bool():
            return "✓" if value else "✗"
        case int() | float():
            return f"{value:,}"
        case dict():
            return plain(", ".join(f"{name}={inner}" for name, inner in value.items())) or t("compare.none")
        case tuple():
            return plain(", ".join(value)) or t("compare.none")
        case _:
            return plain(value)


def settings_table(compared: Sequence[Side]) -> None:
    """The settings that differ."""
    rows = setting_rows(compared)
    if not rows:
        st.markdown(small(t("compare.settings.none")))
        return
    table([t("compare.setting"), *(side.name for side in compared)], rows, alt=t("compare.settings"))


def lines_tables(compared: Sequence[Side]) -> None:
    """For each other side the lines in which its peak differs from this plan's."""
    first = compared[0]
    for side in compared[1:]:
        if first.answer is None or side.answer is None:
            continue
        st.subheader(f"{side.name}: {visit.label(side.scenario)}", anchor=False)
        heads = [t("compare.line"), first.name, side.name, t("compare.change")]
        rows = [
            [
                f"{t(f'component.{one.component}')} · {said(one.label)}",
                unbroken(one.before),
                unbroken(one.after),
                f"**{signed(one.change)}**",
            ]
            for one in differences(first.answer, side.answer)
        ]
        a, b = first.answer.peak.allocated, side.answer.peak.allocated
        rows.append([f"**{t('compare.sum')}**", f"**{a}**", f"**{b}**", f"**{signed(b - a)}**"])
        table(heads, rows, alt=t("compare.lines"))


def downloads(compared: Sequence[Side]) -> None:
    """The comparison as CSV, JSON and Markdown."""
    st.header(t("compare.download"), anchor=False)
    link = address()
    said = [f"- {one}" for one in leads(compared)]
    heads = ["", *(side.name for side in compared)]
    setting = setting_rows(compared)
    held = [lines(side.answer) if side.answer else {} for side in compared]
    keys = list(dict.fromkeys(key for one in held for key in one))
    with st.container(horizontal=True, gap="small"):
        for kind, ending, mime, data in (
            ("csv", "csv", "text/csv", lambda: to_csv(compared, keys, held)),
            ("json", "json", "application/json", lambda: to_json(compared, link)),
            ("markdown", "md", "text/markdown", lambda: to_markdown(compared, heads, setting, keys, held, said, link)),
        ):
            st.download_button(
                t(f"download.{kind}"), data=data, mime=mime, on_click="ignore", file_name=f"plimsoll-comparison.{ending}",
                key=f"compare_{kind}", icon=":material/download:",
            )  # fmt: skip


Lines = list[dict[tuple[Any, str], Bytes]]


def to_csv(compared: Sequence[Side], keys: Sequence[tuple[Any, str]], held: Lines) -> str:
    """One row a line of any peak, in bytes, one column a scenario."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["component", "label", *(side.label for side in compared)])
    for key in keys:
        writer.writerow([*key, *(int(one.get(key, 0)) for one in held)])
    writer.writerow(["total", "", *(sum(int(size) for size in one.values()) for one in held)])
    return text.getvalue()


def to_json(compared: Sequence[Side], link: str) -> str:
    """The link, and every scenario with its answer as the command line writes it."""
    whole = {
        "link": link,
        "scenarios": [
            {
                "scenario": side.scenario.model_dump(mode="json"),
                "answer": answer_object(side.answer) if side.answer else {"error": side.refusal},
            }
            for side in compared
        ],
    }
    return json.dumps(whole, indent=1, ensure_ascii=False)


def to_markdown(
    compared: Sequence[Side],
    heads: Sequence[str],
    setting: Sequence[Sequence[str]],
    keys: Sequence[tuple[Any, str]],
    held: Lines,
    said: Sequence[str],
    link: str,
) -> str:
    """A report for a pull request or a ticket: what differs, line by line, and the link that reproduces it."""

    def row(cells: Sequence[str]) -> str:
        return f"| {' | '.join(cells)} |"

    rows = [row([f"{key[0]}: {key[1]}", *(str(one.get(key, Bytes(0))) for one in held)]) for key in keys]
    total = row(["**total**", *(f"**{Bytes(sum(int(size) for size in one.values()))}**" for one in held)])
    verdicts = row(["verdict", *(side.verdict for side in compared)])
    return "\n".join(
        [
            "## Plimsoll", "", *(f"- **{side.name}**: {side.label}" for side in compared), *said, "",
            row(heads), row(["---", *("---:" for _ in compared)]), verdicts, *map(row, setting), *rows, total, "",
            f"[Plimsoll]({link})", "",
        ]
    )  # fmt: skip
