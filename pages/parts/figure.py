"""One figure under its name, with what stands beside it.

Not st.metric: React shows what it loads late at most every 300 ms, and plotly would then come between the verdict and its figures.
"""

from __future__ import annotations

from typing import Literal

import streamlit as st

from pages.parts.state import plain

Tone = Literal["gray", "green", "red"]


def figure(
    label: str, value: str, beside: str = "", *, tone: Tone = "gray", help: str | None = None, border: bool = True
) -> None:
    """The name, the figure large, and a short remark in a colour."""
    with st.container(border=border, gap="xxsmall", height="stretch"):
        st.markdown(f":small[{plain(label)}]", help=help)
        st.markdown(
            f'<span class="figure" style="font-size:1.5rem;font-weight:600;line-height:1.3">{plain(value)}</span>',
            unsafe_allow_html=True,
        )
        if beside:
            st.markdown(f":{tone}-badge[{plain(beside)}]")
