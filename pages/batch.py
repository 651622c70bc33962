"""Batch and sequence: the fit map, how far one can go, what trades against what, and every tensor that is kept."""

from __future__ import annotations

import streamlit as st

from pages.parts import fit_map, levers
from pages.parts.frame import framed
from pages.parts.kept import kept
from pages.parts.lengths import token_lengths
from pages.parts.state import t
from pages.parts.trades import trades
from pages.parts.verdict import headline

here = framed()
if here.answer is None:
    headline(here)
    st.stop()

st.title(levers.limits(here), anchor=False)

with st.container(border=True):
    st.header(t("map.title"), help=t("map.hint"), anchor=False)
    made = fit_map.fit_map(here)
    st.download_button(
        t("map.csv"), data=lambda: fit_map.to_csv(made), file_name="plimsoll-fit-map.csv", mime="text/csv", on_click="ignore",
        icon=":material/download:", key="map_csv",
    )  # fmt: skip

with st.container(border=True):
    levers.reach(here)

with st.container(border=True):
    trades(here)

with st.container(border=True):
    token_lengths(here)

with st.container(border=True):
    kept(here)
