"""Parameters: every configuration whose total is verified, and the adapters of every recorded LoRA run."""

from __future__ import annotations

from collections import defaultdict

import pytest
from recordings import Recorded, configurations, recorded

from calc.memory.step import run
from calc.model import Family, architecture, families, remote_code
from calc.model.recipe import Recipe

BY_TYPE: dict[str, list[dict]] = defaultdict(list)
for _row in configurations():
    if _row["check"].startswith("verified"):
        BY_TYPE[_row["config"].get("model_type")].append(_row)


def parameters(config: dict) -> int:
    """Elements of all tensors that a forward pass asked for."""
    model = architecture(config)
    attention = "sdpa" if "sdpa" in model.family.attentions else "eager"
    step = run(model, Recipe(batch=1, length=16, attention=attention))
    return sum(p.numel * p.count for p in step.parameters)


@pytest.mark.parametrize("model_type", sorted(t for t in BY_TYPE if t in families()))
def test_every_verified_total_is_exact(model_type: str) -> None:
    """The parameters that a family's forward pass asks for are those of the published checkpoint, tied tensors once."""
    expected = {row["id"]: row["total"] for row in BY_TYPE[model_type]}
    assert expected == {row["id"]: parameters(row["config"]) for row in BY_TYPE[model_type]}


@pytest.mark.parametrize("file", ["steps", "blocks", "real_sizes"])
def test_every_recorded_count_is_exact(file: str) -> None:
    """All parameters, and those that are trained: PEFT's adapters in the rows that have them."""
    off = [
        (r.title, found) for r in recorded(file) if (found := counts(r)) != (r.row["parameters"], r.row["trainable"])
    ]
    assert [] == off


def counts(r: Recorded) -> tuple[int, int]:
    """Parameters of a recorded run, and trained ones."""
    step = r.step()
    return sum(p.numel * p.count for p in step.parameters), sum(
        p.numel * p.count for p in step.parameters if p.trainable
    )


@pytest.mark.parametrize("file", ["steps", "blocks", "real_sizes"])
def test_every_recorded_buffer_is_exact(file: str) -> None:
    """Rotary frequencies and the like, in bytes."""
    off = []
    for r in recorded(file):
        found = r.model.family.buffers(r.model.dims, 4 if r.row["precision"] == "bf16-mixed" else 2)
        if r.row["buffer bytes"] is not None and found != r.row["buffer bytes"]:
            off.append((r.title, found, r.row["buffer bytes"]))
    assert [] == off


def test_every_family_says_where_it_comes_from() -> None:
    """The modelling file that it mirrors, with the version."""
    kinds: set[Family] = set(families().values())
    assert [] == [f.id for f in kinds if "modeling_" not in f.source and "transformers" not in f.source]


COUNTED = (
    "baichuan-inc/Baichuan-7B", "baichuan-inc/Baichuan2-7B-Chat", "internlm/internlm-chat-7b", "openbmb/MiniCPM-2B-sft-bf16",
    "OrionStarAI/Orion-14B-Chat", "Qwen/Qwen-1_8B-Chat", "THUDM/chatglm2-6b",
)  # fmt: skip
"""Repositories with code of their own whose totals were counted from that code's shapes."""


@pytest.mark.parametrize("id", COUNTED)
def test_models_with_code_of_their_own_are_exact_and_say_what_is_not_measured(id: str) -> None:
    """The total, and a note that their activations are modelled as another family's."""
    (row,) = (row for row in configurations() if row["id"] == id)
    assert row["total"] == parameters(row["config"])
    assert remote_code.NOTE in architecture(row["config"]).notes


def test_layers_for_further_tokens_are_counted_and_not_trained() -> None:
    """MiMo's total on the Hub includes them; no gradient reaches them."""
    (row,) = (row for row in configurations() if row["id"] == "XiaomiMiMo/MiMo-7B-Base")
    step = run(architecture(row["config"]), Recipe(batch=1, length=16))
    assert row["hub_total"] == sum(p.numel * p.count for p in step.parameters)
    assert row["total"] == sum(p.numel * p.count for p in step.parameters if p.trainable)
