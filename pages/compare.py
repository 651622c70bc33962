"""Compare: up to four scenarios side by side, the difference explained line by line, all in one link."""

from __future__ import annotations

import streamlit as st

from pages.parts import charts, compare, visit
from pages.parts.frame import framed
from pages.parts.state import said, t

here = framed()
compared = compare.sides(here)

st.title(t("compare.title"), anchor=False)
for problem in visit.pins()[1]:
    st.warning(said(problem.message), icon=":material/link_off:")
if len(compared) == 1:
    st.info(t("compare.alone"), icon=":material/keep:")
for sentence in compare.leads(compared):
    st.markdown(sentence)

compare.cards(here, compared)
if len(compared) > 1:
    with st.container(border=True):
        st.header(t("compare.chart"), anchor=False)
        sizes = "; ".join(f"{side.name} {side.answer.peak.device.expected}" for side in compared if side.answer)
        charts.draw(compare.figure(compared), key="compare", alt=t("compare.chart.alt", said=sizes), name="compare")
    with st.container(border=True):
        st.header(t("compare.settings"), anchor=False)
        compare.settings_table(compared)
    with st.container(border=True):
        st.header(t("compare.lines"), anchor=False)
        compare.lines_tables(compared)
    with st.container(border=True):
        compare.downloads(compared)
