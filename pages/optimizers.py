"""What each optimizer costs on this plan."""

from __future__ import annotations

import streamlit as st

from pages.parts.frame import framed
from pages.parts.state import t

here = framed()
st.title(t("optimizers.title"), anchor=False)
