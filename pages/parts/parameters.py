"""The model's parameters: how many, which, what its repository stores, and what can be trained on that."""

from __future__ import annotations

import streamlit as st

from calc.model.about import About
from calc.units import count
from pages.parts.state import plain, said, t
from pages.parts.tables import table
from pages.parts.words import small


def parameters(about: About) -> None:
    """A table of what is known, and every note beneath it."""
    model = about.model
    rows = [(t("parameters.total"), model.total, "")]
    if model.experts is not None:
        held, chosen = model.experts
        rows.append((t("parameters.active"), model.active, t("parameters.active.of", chosen=chosen, held=held)))
    rows += [(t(f"parameters.part.{part}"), size, "") for part, size in about.parts.items() if len(about.parts) > 1]
    rows.append((t("parameters.embedding"), model.embedding, ""))
    rows.append((t("parameters.head"), model.head, "" if model.head else t("parameters.tied")))
    if about.hub_total is not None:
        rows.append((t("parameters.stored"), about.hub_total, _difference(about)))
    st.header(t("parameters"), help=t("parameters.help"), anchor=False)
    table(
        [t("parameters.what"), t("parameters.number"), t("parameters.exactly"), t("parameters.remark")],
        [(name, count(size), f"{size:,}", remark) for name, size, remark in rows],
        alt=t("parameters"),
    )
    for reason in about.reasons or ():
        st.markdown(small(f"{count(reason.elements)} ({reason.elements:+,}): {said(reason.text)}"))
    _checkpoint(about)
    st.markdown(small(t("parameters.source", source=plain(model.source))))
    if model.notes:
        with st.expander(t("parameters.notes", number=len(model.notes))):
            for note in model.notes:
                st.markdown(small(said(note)))


def _difference(about: About) -> str:
    if not about.difference:
        return t("parameters.same")
    return t("parameters.explained" if about.reasons else "parameters.unexplained", difference=f"{about.difference:+,}")


def _checkpoint(about: About) -> None:
    """How the weights are stored, and what can be trained on them."""
    stored = about.checkpoint
    if stored is None:
        return
    size = t("parameters.unsized") if about.load is None else str(about.load)
    st.info(
        t(
            "parameters.quantized",
            method=plain(stored.method.label), size=size, advice=said(stored.method.advice),
            adapters=t("parameters.adapters" if stored.method.adapters else "parameters.no-adapters"),
        )
    )  # fmt: skip
