"""The learning rate that the run will really follow: steps, warmup, curves, traps, where to start, time and cost."""

from __future__ import annotations

import streamlit as st

from calc.schedule.plan import Planned
from pages.parts import charts, curves, runs, traps
from pages.parts.frame import framed
from pages.parts.state import plain, t

here = framed()
what, unusable = curves.drawn(here)
worked = curves.plans(here, what)
first = next((planned for planned in worked if isinstance(planned, Planned)), None)

st.title(runs.headline(what, worked), anchor=False)
for sentence in unusable:
    st.warning(plain(sentence), icon=":material/link_off:")

with st.container(border=True):
    st.header(t("schedule.run"), anchor=False)
    curves.length_boxes(here, what)
    if first:
        runs.figures(here, first)
    with st.expander(t("schedule.more")):
        curves.more_boxes(here, what)
        runs.packing(here, what)
    if first:
        with st.expander(t("schedule.counting")):
            traps.workings(runs.counted(first))
            st.caption(t("schedule.symbols"))

with st.container(border=True):
    st.header(t("schedule.curves"), anchor=False)
    curves.curve_boxes(here, what)
    runs.refusals(what, worked)
    axis, log = runs.axis_boxes(first)
    shown = curves.shown(here, what, worked, axis)
    if shown:
        charts.draw(charts.rates(shown, log=log), key="rates", alt=runs.alt(shown), name="schedule")
        runs.areas(shown)
        st.caption(t("schedule.convention"))

runs.warnings(what, worked)

if shown:
    with st.container(border=True):
        st.header(t("schedule.phases"), anchor=False)
        runs.phases(shown)
        runs.at_step(shown)
    with st.container(border=True):
        st.header(t("schedule.first-last"), anchor=False)
        runs.steps(shown)
        st.download_button(
            t("schedule.csv"), data=lambda: curves.to_csv(shown), file_name="plimsoll-schedule.csv", mime="text/csv",
            on_click="ignore", icon=":material/download:", key="curves_csv",
        )  # fmt: skip
    with st.container(border=True):
        st.header(t("schedule.flags"), anchor=False)
        runs.typed(shown)
    with st.container(border=True):
        st.header(t("schedule.resume"), help=t("schedule.resume.about"), anchor=False)
        runs.resume(what, shown)

with st.container(border=True):
    st.header(t("schedule.guidance"), anchor=False)
    runs.guidance(here, what, first)

if first:
    with st.container(border=True):
        st.header(t("schedule.time"), anchor=False)
        runs.time_and_cost(here, first)
