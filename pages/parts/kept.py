"""The tensors kept for the backward pass as a table: name, shape, type, bytes per token, why, and what would do without."""

from __future__ import annotations

import streamlit as st

from calc.catalog.dtypes import DTYPES
from calc.planner.tensors import KEEPERS, Kept
from calc.units import MIB, Bytes
from pages.parts import state, worked
from pages.parts.here import Here
from pages.parts.state import t
from pages.parts.tables import table
from pages.parts.words import small, unbroken

HEADS = ("tensor", "shape", "dtype", "count", "token", "total", "why", "removed")
PHONE = ("tensor", "total", "removed")
LEAST = Bytes(MIB)
"""Rows that hold less together are summed up in one."""


def kept(here: Here) -> None:
    """The table, largest first."""
    found = worked.tensors(here)
    plan = here.scenario.plan
    tokens = plan.micro_batch_size * plan.seq_len
    st.header(t("kept.title"), anchor=False)
    st.markdown(small(t("kept.about", total=found.total, token=_per_token(found.total, tokens))))
    heads = [t(f"kept.{head}") for head in HEADS]
    shown = sorted((row for row in found.rows if row.total >= LEAST), key=lambda row: -int(row.total))
    rows = [_row(row, tokens) for row in shown]
    if found.rest >= LEAST:
        why = t("keeper.checkpoint") if plan.gradient_checkpointing != "none" else ""
        rows.append([t("kept.rest"), "", "", "", _per_token(found.rest, tokens), unbroken(found.rest), why, ""])
    little = [row for row in found.rows if row.total < LEAST]
    if little:
        total = Bytes(sum(int(row.total) for row in little))
        rows.append(
            [t("kept.small", count=len(little)), "", "", "", _per_token(total, tokens), unbroken(total), "", ""]
        )
    # A phone has no room for the reasons beside the figures: they stay with what removes the tensor.
    places = [HEADS.index(head) for head in PHONE] if state.on_phone() else range(len(HEADS))
    table([heads[place] for place in places], [[row[place] for place in places] for row in rows], alt=t("kept.alt"))


def _row(row: Kept, tokens: int) -> list[str]:
    why = dict.fromkeys(_reason(row, keeper.id) for keeper in row.keepers)
    keepers = ", ".join(f"`{keeper.id}`" for keeper in row.keepers)
    names = ", ".join(f"`{_short(weight)}`" for weight in row.weights)
    return [
        t("kept.copy" if row.weight_copy else "kept.input", names=names)
        if names
        else t("kept.result", op=f"`{row.made_by}`", keepers=keepers),
        " × ".join(f"{size:,}" for size in row.shape),
        DTYPES[row.dtype].id,
        f"{row.count:,}",
        _per_token(row.total, tokens),
        unbroken(row.total),
        " ".join(why),
        ", ".join(t(f"lever.{lever.id}") for lever in row.removed_by),
    ]


def _reason(row: Kept, op: str) -> str:
    if row.weight_copy:
        return t("keeper.copy")
    return t(f"keeper.{op}") if op in KEEPERS else t("keeper.", op=op)


def _short(weight: str) -> str:
    """A layer's own name; an adapter's with the layer that it stands beside."""
    *_, layer, name = f".{weight}".split(".")
    return f"{layer}.{name}" if name.startswith("lora_") else name


def _per_token(total: Bytes, tokens: int) -> str:
    return unbroken(Bytes(round(int(total) / tokens)))
