"""Small tables of Markdown cells; a wide one scrolls inside itself on a phone."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, alt: str) -> None:
    """Rows under their heads. A head that is empty or said twice is told apart by blanks, which Streamlit does not show."""
    names = [head + " " * place for place, head in enumerate(heads)]
    st.table([dict(zip(names, row, strict=True)) for row in rows], border="horizontal", hide_index=True, alt=alt)
