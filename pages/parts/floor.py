"""The part of a step that is known of a model whose activations are not modelled."""

from __future__ import annotations

import streamlit as st

from calc.memory.floor import Floor, Likely
from calc.units import count
from pages.parts.figure import figure
from pages.parts.here import Here
from pages.parts.ledger import ledger
from pages.parts.state import t
from pages.parts.verdict import problems


def known(here: Here, least: Floor) -> None:
    """What is not known, in words, then the figures and lines that are."""
    problems(least.problems)
    if least.likely is not None:
        probable(least.likely)
    st.info(t("floor.missing"), icon=":material/info:")
    with st.grid(3, min_column_width=150):
        figure(t("floor.known"), str(least.peak.allocated), t(f"instant.{least.peak.name}"), help=t("floor.known.help"))
        spare = least.headroom >= 0
        figure(
            here.gpu.name, str(least.capacity), t("floor.left" if spare else "fit.short", size=abs(least.headroom)),
            tone="gray" if spare else "red", help=t("fit.capacity.help"),
        )  # fmt: skip
        figure(
            t("fit.trainable"),
            count(least.parameters.trainable),
            t("fit.trainable.of", total=count(least.parameters.total)),
        )
    with st.container(border=True):
        st.header(t("floor.lines"), help=t("fit.lines.hint"), anchor=False)
        ledger(least.lines, least.peak.allocated, key="lines", title=t("floor.lines"))
        st.caption(t("fit.host", training=least.host.training, load=least.host.load))


def probable(by: Likely) -> None:
    """An estimate of the whole, in one sentence that says what it is."""
    st.markdown(
        t("floor.likely", expected=by.expected, low=by.low, high=by.high, nearest=by.nearest, count=len(by.compared)),
        help=t("floor.likely.help", compared=", ".join(by.compared)),
    )
