"""The form for a model that exists nowhere yet: layers, widths, heads, vocabulary."""

from __future__ import annotations

import streamlit as st

from calc.model import ConfigError
from calc.model.custom import SIZES, custom_config, sizes_of
from calc.scenario import ConfigModel
from pages.parts import state
from pages.parts.state import said, t

NAME = "custom-llama"
"""What such a model is called; a link holds it, so it is the same in every language."""
_FAILED, _TIED = "_custom_failed", "custom_tied"


def form() -> None:
    """Every size with a box; what cannot be a model is said in one sentence, and all that was typed stays."""
    _begin()
    st.markdown(f"**{t('custom')}**", help=t("custom.help"))
    with st.form("custom", border=False):
        left, right = st.columns(2)
        for place, size in enumerate(SIZES):
            with (left, right)[place % 2]:
                st.number_input(
                    t(f"custom.{size.name}"), min_value=1, max_value=size.most, step=1, key=f"custom_{size.name}",
                    placeholder=t("custom.derived"), help=f"`{size.name}`",
                )  # fmt: skip
        st.toggle(t("custom.tied"), key=_TIED, help="`tie_word_embeddings`")
        st.form_submit_button(t("custom.use"), on_click=_use)
    if failed := st.session_state.get(_FAILED):
        st.warning(said(failed))


def _begin() -> None:
    """Fill boxes that are not there yet: with the sizes of the scenario's own model, else with an example's."""
    model = state.kept("model")
    of = sizes_of(model.config) if isinstance(model, ConfigModel) else None
    sizes, tied = of or ({size.name: size.default for size in SIZES}, False)
    for size in SIZES:
        st.session_state.setdefault(f"custom_{size.name}", sizes[size.name])
    st.session_state.setdefault(_TIED, tied)


def _use() -> None:
    try:
        config = custom_config(
            {size.name: st.session_state[f"custom_{size.name}"] for size in SIZES}, tied=st.session_state[_TIED]
        )
    except ConfigError as error:
        st.session_state[_FAILED] = str(error)
        return
    st.session_state.pop(_FAILED, None)
    state.put("model", ConfigModel(config=config, id=NAME))
