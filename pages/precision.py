"""The precision that the run will really have: updates that rounding loses, what each format takes and can hold."""

from __future__ import annotations

import streamlit as st

from pages.parts import charts, curves, numerics
from pages.parts.frame import framed
from pages.parts.state import t

here = framed()
what, _ = curves.drawn(here)
rate = numerics.rate(what)

st.title(numerics.headline(rate), anchor=False)
st.markdown(numerics.mine(here))

with st.container(border=True):
    st.header(t("precision.lost"), anchor=False)
    given = numerics.boxes(here, what, rate)
    numerics.shares(here, what, given)
    marks, lines = numerics.curve(given)
    charts.draw(charts.moved(marks, lines, given.rate), key="moved", alt=numerics.alt(given), name="precision")
    left, right = st.columns(2, gap="medium")
    with left:
        numerics.example(given)
    with right:
        numerics.remedies()

with st.container(border=True):
    st.header(t("precision.checks"), anchor=False)
    numerics.checks(given)

with st.container(border=True):
    st.header(t("precision.formats"), anchor=False)
    numerics.formats(here)

with st.container(border=True):
    st.header(t("precision.plans"), anchor=False)
    numerics.plans(here)

with st.container(border=True):
    st.header(t("precision.scaling"), anchor=False)
    numerics.scaling()

with st.container(border=True):
    st.header(t("precision.cards"), anchor=False)
    numerics.cards(here)
