"""The fit map as a chart that answers a click: micro-batch against length, and how far each card reaches."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import streamlit as st

from calc import Scenario
from calc.catalog.gpus import GPUS
from calc.memory.breakdown import COMPONENTS
from calc.planner.fit_map import Cell, FitMap, Frontier, stops
from calc.planner.levers import with_values
from pages.parts import charts, state, worked
from pages.parts.here import Here
from pages.parts.state import t

NUMBER = 40
"""Stops along each axis; the scenario's own values are one more."""
CARDS = 3
"""Cards whose frontier may be drawn beside the scenario's own."""
SHORTEST = 128

# From an empty card to a full one, then what lies beyond: legible on white and on black.
SCALE = [
    [0.0, "#cfe3f3"], [0.35, "#8fbcdf"], [0.7, "#3d82b8"], [0.79999, "#1d5a8c"], [0.8, "#e9b08a"], [0.88, "#d9825a"],
    [1.0, "#b4472a"],
]  # fmt: skip
FULL = 0.8
"""Where on the scale the card is full."""


def cards(here: Here) -> tuple[str, ...]:
    """The cards to draw: the scenario's own and those chosen."""
    others = st.multiselect(
        t("map.cards"), [name for name in GPUS if name != here.gpu.id], key="map_cards", max_selections=CARDS,
        format_func=lambda name: GPUS[name].name, placeholder=t("map.cards.none"),
    )  # fmt: skip
    return (here.gpu.id, *others)


def axes(here: Here) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Micro-batches and lengths of the map: spread by ratio, with the scenario's own among them."""
    plan = here.scenario.plan
    batches = stops(1, max(128, plan.micro_batch_size), NUMBER, including=(plan.micro_batch_size,))
    lengths = stops(SHORTEST, max(131_072, plan.seq_len), NUMBER, multiple=SHORTEST, including=(plan.seq_len,))
    return batches, lengths


def fit_map(here: Here) -> FitMap:
    """The map, its cards' boxes above it; a click on a cell makes it the scenario."""
    gpus = cards(here)
    batches, lengths = axes(here)
    made = worked.whole_map(here, batches, lengths, gpus)
    fitting = sum(cell.verdict in ("fits", "tight") for row in made.cells for cell in row)
    charts.draw(
        figure(made, here.scenario), key="fit_map", name="fit-map", clicked=_clicked,
        alt=t("map.alt", cells=len(batches) * len(lengths), fitting=fitting, gpu=here.gpu.name),
    )  # fmt: skip
    return made


def _clicked() -> None:
    """A cell was clicked: its micro-batch and length become the scenario's."""
    points = st.session_state["fit_map"].selection.points
    chosen = next((point["customdata"] for point in points if "customdata" in point), None)
    if chosen:
        batch, length = int(chosen[0]), int(chosen[1])
        state.go(with_values(state.scenario(), {"plan.micro_batch_size": batch, "plan.seq_len": length}))


def figure(made: FitMap, scenario: Scenario) -> charts.Figure:
    """Cells coloured by how full the card is, each card's frontier as a stair, the scenario as a ring."""
    capacity = int(made.frontiers[0].gpu.capacity)
    columns, rows = range(len(made.lengths)), range(len(made.batches))
    shares = [
        [min(FULL * int(cell.needed) / capacity, 1.0) if cell.verdict != "impossible" else 1.0 for cell in row]
        for row in made.cells
    ]
    # Plotly tells of clicks on points only, so an unseen point lies on each cell and carries its words.
    points = [(x, y, made.cells[y][x]) for y in rows for x in columns]
    own = (made.lengths.index(scenario.plan.seq_len), made.batches.index(scenario.plan.micro_batch_size))
    data: list[dict[str, Any]] = [
        {"type": "heatmap", "z": shares, "x": list(columns), "y": list(rows), "zmin": 0, "zmax": 1, "colorscale": SCALE,
         "showscale": False, "hoverinfo": "skip", "xgap": 0.5, "ygap": 0.5},
        {"type": "scatter", "mode": "markers", "x": [x for x, _, _ in points], "y": [y for _, y, _ in points],
         "customdata": [[cell.batch, cell.length] for _, _, cell in points], "text": [words(cell) for _, _, cell in points],
         "marker": {"size": 9, "opacity": 0, "symbol": "square"}, "showlegend": False,
         "selected": {"marker": {"opacity": 0}}, "unselected": {"marker": {"opacity": 0}},
         "hovertemplate": "%{text}<extra></extra>"},
        *[_stair(frontier, made, place) for place, frontier in enumerate(made.frontiers)],
        {"type": "scatter", "mode": "markers", "x": [own[0]], "y": [own[1]], "hoverinfo": "skip", "name": t("map.here"),
         "marker": {"symbol": "circle-open", "size": 15, "color": charts.LOAD_LINE, "line": {"width": 3}}},
    ]  # fmt: skip
    return {
        "data": data,
        "layout": {
            "height": 470, "margin": {"l": 4, "r": 8, "t": 8, "b": 4}, "hovermode": "closest", "dragmode": False,
            "clickmode": "event+select", "legend": {"orientation": "h", "y": -0.2, "x": 0},
            "xaxis": {**_ticks(made.lengths), "title": {"text": t("map.length")}},
            "yaxis": {**_ticks(made.batches), "title": {"text": t("map.batch")}},
        },
    }  # fmt: skip


def words(cell: Cell) -> str:
    """What the cursor says of a cell: sizes, verdict, and the peak by component."""
    summit = cell.summit
    parts = sorted(summit.held.items(), key=lambda part: -int(part[1]))
    lines = [f"{t(f'component.{name}')} {size}" for name, size in parts[:5]]
    return "<br>".join(
        [
            f"<b>{cell.batch:,} × {cell.length:,}</b> · {t(f'verdict.{cell.verdict}')}",
            t("map.needs", size=cell.needed),
            f"{t(f'instant.{summit.instant}')}: {summit.allocated}",
            *lines,
        ]
    )


def _stair(frontier: Frontier, made: FitMap, place: int) -> dict[str, Any]:
    """The border between what fits and what does not: above it lies one more sequence than fits."""
    # A card that takes none at a length has its border below the map.
    heights = [-0.5 if most is None else bisect_right(made.batches, most) - 0.5 for most in frontier.batches]
    xs = [edge for column in range(len(heights)) for edge in (column - 0.5, column + 0.5)]
    said = [
        t("map.reaches", batch="0" if most is None else f"{most:,}", length=f"{length:,}")
        for most, length in zip(frontier.batches, made.lengths, strict=True)
        for _ in (0, 1)
    ]
    return {
        "type": "scatter", "mode": "lines", "x": xs, "y": [height for height in heights for _ in (0, 1)],
        "name": frontier.gpu.name, "text": said, "hovertemplate": f"<b>{frontier.gpu.name}</b><br>%{{text}}<extra></extra>",
        "line": {"width": 3 if place == 0 else 2, "color": charts.LOAD_LINE if place == 0 else STAIRS[place - 1],
                 "dash": "solid" if place == 0 else "dash"},
    }  # fmt: skip


STAIRS = ("#111111", "#7a1fa2", "#00695c")
"""Frontiers of other cards: dark enough to stand out on the map itself, which is light in both modes."""


def _ticks(values: Sequence[int]) -> dict[str, Any]:
    """Every fifth stop or so by its value."""
    step = max(1, len(values) // 9)
    places = list(range(0, len(values), step))
    return {"tickvals": places, "ticktext": [f"{values[place]:,}" for place in places], "fixedrange": True, "zeroline": False,
            "showgrid": False, "range": [-0.5, len(values) - 0.5]}  # fmt: skip


def to_csv(made: FitMap) -> str:
    """The map as a sheet: one row a cell, in bytes, one column a component."""
    lines = [
        ",".join(["micro_batch_size", "seq_len", "verdict", "instant", "allocated", "needed", "device", *COMPONENTS])
    ]
    for row in made.cells:
        for cell in row:
            held = [str(int(cell.summit.held.get(name, 0))) for name in COMPONENTS]
            lines.append(",".join([str(cell.batch), str(cell.length), cell.verdict, cell.summit.instant,
                                   str(int(cell.summit.allocated)), str(int(cell.needed)),
                                   str(int(cell.device)), *held]))  # fmt: skip
    return "\n".join(lines) + "\n"
