"""Whole steps with each loss kernel, to the byte, against recordings of the libraries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from calc import Scenario, estimate

GOLDEN = Path(__file__).parents[1] / "golden" / "steps_of_losses.json"
RECORDED = json.loads(GOLDEN.read_text(encoding="utf-8"))


def name_of(row: dict[str, Any]) -> str:
    return "-".join(str(row[key]) for key in ("model", "loss", "precision", "gradient_checkpointing"))


@pytest.mark.parametrize("row", RECORDED["rows"], ids=name_of)
def test_step_with_loss_kernel_peaks_where_recorded(row):
    plan = {key: row[key] for key in ("loss", "precision", "gradient_checkpointing", "attention")}
    usual = {"method": "full", "optimizer": "adamw_torch_fused", "micro_batch_size": 2, "seq_len": 56}
    config = RECORDED["configs"][row["model"]]
    answer = estimate(Scenario.model_validate({"model": {"config": config}, "plan": {**usual, **plan}}))
    at = {i.name: int(i.allocated) for i in answer.instants}
    ours = at["forward"], max(at[name] for name in ("loss", "backward", "end of backward")), at["optimizer step"]
    assert ours == (row["forward"], row["backward"], row["optimizer_step"])
