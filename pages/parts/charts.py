"""Charts as plain dictionaries for Plotly, which draws them.

Bars take their colours from the theme by their place, so there are always nine, one per component in the answer's
order, also where one is empty: the same component has the same colour on every page and in both modes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib import import_module
from typing import Any

import streamlit as st

from calc.memory.breakdown import COMPONENTS, Breakdown, Component, Instant
from calc.units import Bytes
from pages.parts.curves import Curve
from pages.parts.here import Here
from pages.parts.state import on_phone, t
from pages.parts.verdict import share

Figure = dict[str, Any]

LOAD_LINE = "#e8590c"
"""The card's line: one orange that stands out in both modes."""
SHADE = "rgba(128, 140, 152, 0.28)"
LEAST = 0.004
"""Share of the peak below which a component has no place in the legend."""
MENU = {"displaylogo": False, "modeBarButtonsToRemove": ["select2d", "lasso2d", "zoom2d", "pan2d", "autoScale2d"]}


def draw(figure: Figure, *, key: str, alt: str, name: str, clicked: Callable[[], None] | None = None) -> None:
    """Show a figure; its own menu saves it as a picture under this name. `clicked` is called with the points in the session's state."""
    import_module("pandas")  # plotly looks whether it is loaded, and fails where another run has it half loaded
    menu = {
        **MENU,
        "displayModeBar": False if on_phone() else "hover",
        "toImageButtonOptions": {"format": "svg", "filename": f"plimsoll-{name}"},
    }
    select: dict[str, Any] = {} if clicked is None else {"on_select": clicked, "selection_mode": "points"}
    st.plotly_chart(figure, key=key, alt=alt, config=menu, **select)


def by_component(instant: Instant) -> dict[Component, Bytes]:
    """What each component holds at an instant, all of them."""
    held = {component: Bytes(0) for component in COMPONENTS}
    for line in instant.lines:
        held[line.component] += line.bytes
    return held


def load(here: Here, answer: Breakdown) -> Figure:
    """The components at the peak, one on the other, against the card's line; what nvidia-smi shows as a range."""
    peak = next(instant for instant in answer.instants if instant.name == answer.peak.instant)
    bars = [
        {
            "type": "bar", "orientation": "h", "y": [0], "x": [size.gib], "width": 0.62, "showlegend": share(size, peak.allocated) > LEAST,
            "name": t(f"component.{component}"), "text": [f"{size}"], "textposition": "inside",
            "insidetextanchor": "middle", "textangle": 0, "constraintext": "inside",
            "hovertemplate": f"{t(f'component.{component}')}<br><b>{size}</b><extra></extra>",
        }
        for component, size in by_component(peak).items()
    ]  # fmt: skip
    device, line = answer.peak.device, answer.capacity
    # The highest figure is a warning, not a scale: the axis ends soon after the line and what is needed.
    end = max(line.gib * 1.12, device.expected.gib * 1.06)
    band = {
        "type": "scatter", "mode": "lines", "x": [device.low.gib, min(device.high.gib, end)], "y": [-0.5, -0.5],
        "line": {"width": 7, "color": SHADE}, "name": t("fit.load.range"), "showlegend": True,
        "hovertemplate": f"{t('fit.load.range')}<br><b>{device.low} – {device.high}</b><extra></extra>",
    }  # fmt: skip
    tick = {
        "type": "scatter", "mode": "markers", "x": [device.expected.gib], "y": [-0.5], "showlegend": False,
        "marker": {"symbol": "diamond", "size": 9, "color": "#7a8794"},
        "hovertemplate": f"nvidia-smi<br><b>{device.expected}</b><extra></extra>",
    }  # fmt: skip
    return {
        "data": [*bars, band, tick],
        "layout": {
            "barmode": "stack", "height": 172, "showlegend": not on_phone(), "margin": {"l": 4, "r": 8, "t": 24, "b": 0},
            "legend": {"orientation": "h", "y": -0.28, "x": 0, "traceorder": "normal"},
            "xaxis": {"range": [0, end], "ticksuffix": " GiB", "zeroline": False, "fixedrange": True},
            "yaxis": {"visible": False, "range": [-0.72, 0.42], "fixedrange": True},
            "uniformtext": {"minsize": 10, "mode": "hide"}, "bargap": 0,
            "shapes": [
                {"type": "line", "x0": line.gib, "x1": line.gib, "yref": "paper", "y0": 0, "y1": 1,
                 "line": {"color": LOAD_LINE, "width": 2.5}},
            ],
            "annotations": [
                {"x": line.gib, "yref": "paper", "y": 1, "yanchor": "bottom", "showarrow": False,
                 "text": f"<b>{here.gpu.name}</b> {line}", "xanchor": "right" if line.gib > end * 0.5 else "left"},
            ],
        },
    }  # fmt: skip


def timeline(answer: Breakdown) -> Figure:
    """Each instant of the step as a stack, the binding one in full colour, under the card's line."""
    names = [t(f"instant.{instant.name}") for instant in answer.instants]
    weight = [1.0 if instant.name == answer.peak.instant else 0.45 for instant in answer.instants]
    held = [by_component(instant) for instant in answer.instants]
    bars = [
        {
            "type": "bar", "x": names, "y": [sizes[component].gib for sizes in held],
            "name": t(f"component.{component}"), "marker": {"opacity": weight}, "showlegend": False,
            "customdata": [f"{sizes[component]}" for sizes in held],
            "hovertemplate": f"%{{x}} · {t(f'component.{component}')}<br><b>%{{customdata}}</b><extra></extra>",
        }
        for component in COMPONENTS
    ]  # fmt: skip
    totals = [instant.allocated.gib for instant in answer.instants]
    tops = {
        "type": "scatter", "mode": "text", "x": names, "y": totals,
        "text": [_bold(f"{total:,.1f}", full == 1) for total, full in zip(totals, weight, strict=True)],
        "textposition": "top center", "showlegend": False, "hoverinfo": "skip", "cliponaxis": False,
    }  # fmt: skip
    line = answer.capacity
    top = max(line, answer.peak.allocated)
    return {
        "data": [*bars, tops],
        "layout": {
            "barmode": "stack", "height": 236, "margin": {"l": 4, "r": 8, "t": 4, "b": 4}, "bargap": 0.35,
            "xaxis": {"fixedrange": True},
            "yaxis": {"range": [0, top.gib * 1.14], "ticksuffix": " GiB", "fixedrange": True, "nticks": 6},
            "shapes": [
                {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": line.gib, "y1": line.gib,
                 "line": {"color": LOAD_LINE, "width": 2}},
            ],
        },
    }  # fmt: skip


def _bold(words: str, strong: bool) -> str:
    return f"<b>{words}</b>" if strong else words


# Streamlit puts the theme's own colours in the place of these; four that differ in both modes.
CURVES = ("#000001", "#000004", "#000006", "#000007")


def rates(shown: list[Curve], *, log: bool) -> Figure:
    """Learning rates over the run, one line a curve; each phase carries its name and formula for the cursor.

    The phases of the first curve are shaded and named.
    """
    lines: list[dict[str, Any]] = []
    for place, curve in enumerate(shown):
        colour = {"color": CURVES[place % len(CURVES)], "width": 2.4 if place == 0 else 1.8}
        group = {"legendgroup": str(place), "mode": "lines", "type": "scatter"}
        for number, segment in enumerate(curve.segments):
            lone = len(segment.steps) == 1
            lines.append(
                {
                    **group, "x": curve.along(segment.steps), "y": list(segment.rates), "line": colour,
                    "name": curve.name, "showlegend": number == 0, "mode": "lines+markers" if lone else "lines",
                    "hovertemplate": f"<b>%{{y:.4g}}</b> {segment.phase.name}<br>{segment.phase.numbers}"
                    f"<extra>{curve.name}</extra>",
                }
            )  # fmt: skip
        joints = [(a, b) for a, b in zip(curve.segments, curve.segments[1:], strict=False)]
        for a, b in joints:
            lines.append(
                {**group, "x": curve.along((a.steps[-1], b.steps[0])), "y": [a.rates[-1], b.rates[0]], "line": colour,
                 "showlegend": False, "hoverinfo": "skip"}
            )  # fmt: skip
    bands = [(segment, shown[0].along((segment.steps[0], segment.steps[-1]))) for segment in shown[0].segments[:12]]
    return {
        "data": lines,
        "layout": {
            "height": 330, "margin": {"l": 4, "r": 8, "t": 26, "b": 4}, "hovermode": "closest", "hoverdistance": 40,
            "legend": {"orientation": "h", "y": -0.14, "x": 0},
            "xaxis": {"rangemode": "tozero", "zeroline": False},
            "yaxis": {"type": "log" if log else "linear", "exponentformat": "e", "showexponent": "all",
                      "rangemode": "tozero"},
            "shapes": [
                {"type": "rect", "xref": "x", "yref": "paper", "x0": ends[0], "x1": ends[1], "y0": 0, "y1": 1,
                 "fillcolor": SHADE, "opacity": 0.35 if place % 2 == 0 else 0.0, "line": {"width": 0},
                 "layer": "below"}
                for place, (_, ends) in enumerate(bands)
            ],
            "annotations": [
                {"x": (ends[0] + ends[1]) / 2, "y": 1, "yref": "paper", "yanchor": "bottom", "showarrow": False,
                 "text": segment.phase.name, "font": {"size": 12}}
                for segment, ends in bands
                if len(bands) <= 6
            ],
        },
    }  # fmt: skip


def moved(marks: list[float], shares: dict[str, list[float]], rate: float) -> Figure:
    """Share of the weights that one step moves against the learning rate, a line a format, and the chosen rate."""
    return {
        "data": [
            {"type": "scatter", "mode": "lines", "x": marks, "y": values, "name": name,
             "line": {"color": CURVES[place % len(CURVES)], "width": 2},
             "hovertemplate": f"{name} · %{{x:.2e}}<br><b>%{{y:.1%}}</b><extra></extra>"}
            for place, (name, values) in enumerate(shares.items())
        ],
        "layout": {
            "height": 260, "margin": {"l": 4, "r": 8, "t": 22, "b": 4},
            "legend": {"orientation": "h", "y": -0.2, "x": 0},
            "xaxis": {"type": "log", "exponentformat": "e", "fixedrange": True},
            "yaxis": {"tickformat": ".0%", "range": [0, 1.03], "fixedrange": True},
            "shapes": [
                {"type": "line", "x0": rate, "x1": rate, "yref": "paper", "y0": 0, "y1": 1,
                 "line": {"color": LOAD_LINE, "width": 2}},
            ],
            "annotations": [
                {"x": math.log10(rate), "y": 1, "yref": "paper", "yanchor": "bottom", "showarrow": False,
                 "text": f"{rate:.3g}"},
            ],
        },
    }  # fmt: skip
