"""How batch, length, accumulation and checkpointing trade against each other: two charts, and one table of like with like."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from calc.planner.fit_map import stops
from calc.planner.suggestions import factor
from calc.planner.trades import Growth, Way
from calc.units import Bytes
from pages.parts import charts, levers, worked
from pages.parts.here import Here
from pages.parts.state import t
from pages.parts.tables import table
from pages.parts.verdict import LOOK
from pages.parts.words import small, unbroken

POINTS = 10


def trades(here: Here) -> None:
    """Memory against micro-batch and against length, and other ways to the same tokens per step."""
    plan = here.scenario.plan
    batches = stops(1, max(64, plan.micro_batch_size), POINTS, including=(plan.micro_batch_size,))
    lengths = stops(256, max(32_768, plan.seq_len), POINTS, multiple=128, including=(plan.seq_len,))
    drawn = worked.growths(here, batches, lengths)
    st.header(t("trades.title"), anchor=False)
    left, right = st.columns(2)
    for column, what, sizes, now, title in (
        (left, "batch", batches, plan.micro_batch_size, t("trades.batch", length=f"{plan.seq_len:,}")),
        (right, "length", lengths, plan.seq_len, t("trades.length", batch=f"{plan.micro_batch_size:,}")),
    ):
        with column:
            st.subheader(title, anchor=False)
            lines = [(_name(one), one.by_batch if what == "batch" else one.by_length) for one in drawn]
            alt = t("trades.alt", what=t(f"map.{what}"), capacity=here.gpu.capacity)
            charts.draw(
                figure(lines, sizes, now, here.gpu.capacity), key=f"trades_{what}", alt=alt, name=f"memory-by-{what}"
            )
    st.subheader(t("trades.table"), anchor=False)
    st.markdown(small(t("trades.table.about")))
    heads = [t(f"trades.{head}") for head in ("way", "micro", "peak", "instant", "verdict", "time")]
    table(heads, [_row(way) for way in worked.ways(here)], alt=t("trades.table"))


def _name(one: Growth) -> str:
    return t("trades.now") if one.lever is None else t("trades.with", name=t(f"lever.{one.lever.id}"))


def _row(way: Way) -> list[str]:
    plan, answer = way.scenario.plan, way.answer
    colour, sign = LOOK[answer.verdict]
    time = levers.time(factor(way.levers)) if way.levers else ""
    return [
        t(f"trades.way.{way.id}"),
        f"{plan.micro_batch_size:,} × {plan.seq_len:,} × {plan.gradient_accumulation_steps:,}",
        unbroken(answer.peak.allocated),
        t(f"instant.{answer.peak.instant}"),
        f":{colour}[{sign} {t(f'verdict.{answer.verdict}')}]",
        time,
    ]


def figure(
    lines: Sequence[tuple[str, Sequence[Bytes]]], sizes: Sequence[int], now: int, capacity: Bytes
) -> charts.Figure:
    """Memory on the card as one size grows, a line a plan, under the card's line; the plan's own size is marked."""
    most = max(sizes[-1], now)
    top = float(capacity.gib) * 1.6
    return {
        "data": [
            {"type": "scatter", "mode": "lines+markers", "x": list(sizes), "y": [size.gib for size in memory],
             "name": name, "customdata": [str(size) for size in memory], "marker": {"size": 5},
             "line": {"color": charts.CURVES[place % len(charts.CURVES)], "width": 2.4 if place == 0 else 1.8},
             "hovertemplate": f"%{{x:,}} · {name}<br><b>%{{customdata}}</b><extra></extra>"}
            for place, (name, memory) in enumerate(lines)
        ],
        "layout": {
            "height": 280, "margin": {"l": 4, "r": 8, "t": 8, "b": 4}, "legend": {"orientation": "h", "y": -0.18, "x": 0},
            "xaxis": {"range": [0, most * 1.03], "fixedrange": True, "zeroline": False},
            # What lies far above the card is of no use: the scale ends a little above it.
            "yaxis": {"range": [0, top], "ticksuffix": " GiB", "fixedrange": True, "zeroline": False},
            "shapes": [
                {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": capacity.gib, "y1": capacity.gib,
                 "line": {"color": charts.LOAD_LINE, "width": 2}},
                {"type": "line", "yref": "paper", "y0": 0, "y1": 1, "x0": now, "x1": now,
                 "line": {"color": "#7a8794", "width": 1, "dash": "dot"}},
            ],
        },
    }  # fmt: skip
