"""The visitor's own token lengths: how much is padding, what packing saves, which batch sets the peak."""

from __future__ import annotations

import streamlit as st

from calc import Refused, estimate
from calc.planner.lengths import BadLengths, Padding, lengths, padding
from calc.planner.levers import with_values
from pages.parts import state
from pages.parts.figure import figure
from pages.parts.here import Here
from pages.parts.state import said, t
from pages.parts.words import small

LARGEST_FILE = 20_000_000
"""Bytes of a file of lengths that are read."""


def token_lengths(here: Here) -> None:
    """Boxes to give them, and what they come to."""
    with st.expander(t("tokens.title"), key="tokens_open"):
        st.markdown(small(t("tokens.about")))
        typed = st.text_area(t("tokens.paste"), key="tokens_text", height=90, placeholder="512 1024 387 …")
        uploaded = st.file_uploader(t("tokens.upload"), type=["txt", "csv", "json", "jsonl"], key="tokens_file")
        given = uploaded.getvalue()[:LARGEST_FILE].decode(errors="replace") if uploaded else str(typed)
        if not given.strip():
            return
        plan = here.scenario.plan
        try:
            found = padding(lengths(given), micro_batch_size=plan.micro_batch_size, seq_len=plan.seq_len)
        except BadLengths as bad:
            st.warning(said(bad), icon=":material/error:")
            return
        _figures(here, found)


def _figures(here: Here, found: Padding) -> None:
    plan = here.scenario.plan
    with st.grid(5, min_column_width=140):
        _figure(
            "samples",
            f"{found.samples:,}",
            t("tokens.median", median=f"{found.median:,}", longest=f"{found.longest:,}"),
        )
        _figure("padded", f"{found.share:.1%}", t("tokens.of", tokens=f"{found.padded:,}"))
        _figure("grouped", f"{found.grouped_share:.1%}", t("tokens.of", tokens=f"{found.grouped:,}"))
        rows = t("tokens.rows", rows=f"{found.packed_rows:,}", length=f"{plan.seq_len:,}")
        _figure("packed", f"{found.packed_share:.1%}", rows)
        longest = with_values(here.scenario, {"plan.seq_len": found.longest_batch})
        try:
            device = estimate(longest, config=here.config).peak.device.expected
        except Refused:
            return
        said = t("tokens.peak.at", batch=f"{plan.micro_batch_size:,}", length=f"{found.longest_batch:,}", size=device)
        _figure("peak", f"{found.longest_batch:,}", said)
    if found.cut:
        st.info(t("tokens.cut", count=f"{found.cut:,}", length=f"{plan.seq_len:,}"), icon=":material/content_cut:")
    if found.longest != plan.seq_len:
        whole = with_values(here.scenario, {"plan.seq_len": found.longest})
        st.button(t("tokens.use", length=f"{found.longest:,}"), key="tokens_use", on_click=state.go, args=(whole,))


def _figure(what: str, value: str, beside: str) -> None:
    figure(t(f"tokens.{what}"), value, beside)
