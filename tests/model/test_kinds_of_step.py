"""Checkpointing of the older and of the selective kind, and PyTorch's attention formula, against recordings of the real libraries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from calc.memory.step import run
from calc.model import architecture
from calc.model.recipe import Adapters, Recipe

GOLDEN = json.loads((Path(__file__).parent.parent / "golden" / "kinds_of_step.json").read_text())
ONE = 4
"""The loss's own gradient of one: the recording's first step has it in a tensor more."""


def recipe(row: dict[str, Any]) -> Recipe:
    """The run that a row is of."""
    mixed, adapters = row["precision"] == "bf16-mixed", row["adapters"]
    return Recipe(
        batch=row["batch"],
        length=row["length"],
        dtype="fp32" if mixed else row["precision"],
        autocast="bf16" if mixed else None,
        attention=row["attention"],
        flash=row["kind"] != "formula",
        checkpointing={"reentrant": "full", "selective": "selective", "formula": "none"}[row["kind"]],
        reentrant=row["kind"] == "reentrant",
        adapters=adapters and Adapters(adapters["rank"], tuple(adapters["target_modules"]), adapters["dropout"]),
    )


@pytest.mark.parametrize(
    "row",
    GOLDEN["rows"],
    ids=lambda r: (
        f"{r['kind']}-{r['model']}-{r['batch']}x{r['length']}-{r['precision']}-{r['attention']}-{bool(r['adapters'])}"
    ),
)
def test_a_recorded_step_is_met_to_the_byte(row: dict[str, Any]) -> None:
    """Alive between the passes, the highest moments of both, and what the backward pass leaves."""
    config = {**GOLDEN["sizes"], "model_type": row["model"], "num_hidden_layers": row["layers"]}
    model = architecture({**config, "tie_word_embeddings": row["model"] == "qwen2"})

    step = run(model, recipe(row))

    assert row["forward_live"] == step.live.total
    assert row["forward_peak"] == step.forward.total
    assert row["backward_peak"] - ONE == max(step.loss.total, step.backward.total, step.end.total)
    assert row["after"] - ONE == step.after.total
