"""All optimizers on this plan: bytes by state tensor, what the step takes, what each costs, and its state_dict."""

from __future__ import annotations

import streamlit as st

from pages.parts import state
from pages.parts.choices import choices, fitting, pick, summary, tree
from pages.parts.frame import framed
from pages.parts.ledger import ledger
from pages.parts.state import said, t
from pages.parts.verdict import headline

here = framed()
if here.answer is None:
    headline(here)
    st.stop()

made = choices(here)
st.title(t("optimizers.title"), anchor=False)
with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
    st.markdown(summary(made, here), width="content")
    only = st.toggle(t("optimizers.fitting"), key="only_fitting", persist_state="session", width="content")
if only:
    made = fitting(made) or made
chosen = pick(made, here)
row = chosen.optimizer

with st.container(border=True):
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.header(f"{row.label} · `{row.id}`", anchor=False, width="content")
        if row.id == here.scenario.plan.optimizer:
            st.badge(t("optimizers.used"), icon=":material/check:", color="blue")
        else:
            st.button(
                t("optimizers.use", name=row.id), key="use_optimizer", on_click=state.go,
                args=(chosen.scenario,), disabled=not chosen.runs,
            )  # fmt: skip
    st.markdown(" ".join(said(one) for one in (row.cost, row.note, chosen.refusal or row.blocked) if one))
    if chosen.answer:
        lines = chosen.lines("optimizer states")
        if lines:
            ledger(lines, chosen.held("optimizer states"), key="state_tensors", title=t("optimizers.by-tensor"))
        else:
            st.caption(t("optimizers.no-state"))
        with st.expander(t("optimizers.tree"), expanded=True):
            st.caption(t("optimizers.tree.hint"))
            st.code(tree(chosen, here.config), language=None, wrap_lines=True)
