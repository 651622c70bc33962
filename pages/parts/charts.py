"""Charts as plain dictionaries for Plotly, which draws them.

Bars take their colours from the theme by their place, so there are always nine, one per component in the answer's
order, also where one is empty: the same component has the same colour on every page and in both modes.
"""

from __future__ import annotations

from typing import Any

import streamlit as st

from calc.memory.breakdown import COMPONENTS, Breakdown, Component, Instant
from calc.units import Bytes
from pages.parts.here import Here
from pages.parts.state import t

Figure = dict[str, Any]

LOAD_LINE = "#e8590c"
"""The card's line: one orange that stands out in both modes."""
SHADE = "rgba(128, 140, 152, 0.28)"
MENU = {"displaylogo": False, "modeBarButtonsToRemove": ["select2d", "lasso2d", "zoom2d", "pan2d", "autoScale2d"]}


def draw(figure: Figure, *, key: str, alt: str, name: str) -> None:
    """Show a figure; its own menu saves it as a picture under this name."""
    menu = {**MENU, "toImageButtonOptions": {"format": "svg", "filename": f"plimsoll-{name}"}}
    st.plotly_chart(figure, key=key, alt=alt, config=menu)


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
            "type": "bar", "orientation": "h", "y": [0], "x": [size.gib], "width": 0.62, "showlegend": size > 0,
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
            "barmode": "stack", "height": 172, "margin": {"l": 4, "r": 8, "t": 24, "b": 0},
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
