"""Will it fit? The verdict, the load against the card's line, the step by its instants, every line with its reason."""

from __future__ import annotations

import streamlit as st

from calc.units import count
from pages.parts import charts, levers
from pages.parts.figure import figure
from pages.parts.floor import known
from pages.parts.frame import framed
from pages.parts.ledger import ledger
from pages.parts.parameters import parameters
from pages.parts.state import t
from pages.parts.verdict import between, headline, operation, problems

here = framed()
headline(here)
answer, about = here.answer, here.about
if answer is None:
    if here.floor is not None:
        known(here, here.floor)
    if about is not None:
        with st.container(border=True):
            parameters(about)
    st.stop()
problems(answer.problems)

peak = answer.peak
with st.grid(4, min_column_width=150):
    figure(t("fit.device"), str(peak.device.expected), between(peak.device), help=t("fit.device.help"))
    spare = answer.headroom >= 0
    figure(
        here.gpu.name,
        str(answer.capacity),
        t("fit.spare" if spare else "fit.short", size=abs(answer.headroom)),
        tone="green" if spare else "red",
        help=t("fit.capacity.help"),
    )
    figure(t("fit.peak"), str(peak.allocated), t(f"instant.{peak.instant}"), help=t("fit.peak.help"))
    figure(
        t("fit.trainable"),
        count(answer.parameters.trainable),
        t("fit.trainable.of", total=count(answer.parameters.total)),
    )

# Places in the order of the page, filled in another: plotly is long in coming to a browser, and figures and lines need not wait for it.
load, changes, timeline = st.container(border=True), st.container(), st.container(border=True)

with st.container(border=True):
    st.header(t("fit.lines"), help=t("fit.lines.hint"), anchor=False)
    ledger(answer.lines, peak.allocated, key="lines", title=t("fit.lines"))
    st.caption(t("fit.host", training=answer.host.training, load=answer.host.load))

if answer.verdict != "impossible":
    with changes:
        levers.changes(here)

with load:
    largest = max(answer.lines, key=lambda line: line.bytes)
    alt = t(
        "fit.load.alt",
        allocated=peak.allocated,
        device=peak.device.expected,
        capacity=answer.capacity,
        largest=t(f"component.{largest.component}"),
    )
    charts.draw(charts.load(here, answer), key="load", alt=alt, name="load")

with timeline:
    st.header(t("fit.timeline"), anchor=False)
    alt = t("fit.timeline.alt", instant=t(f"instant.{peak.instant}"), allocated=peak.allocated)
    charts.draw(charts.timeline(answer), key="timeline", alt=alt, name="step")
    st.caption(t("fit.timeline.operation", instant=t(f"instant.{peak.instant}"), operation=operation(answer)))

if about is not None:
    with st.container(border=True):
        parameters(about)
