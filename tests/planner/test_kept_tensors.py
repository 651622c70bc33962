"""What is kept for the backward pass: every byte in a row, every row with its reason."""

from __future__ import annotations

from typing import Any

from plannable import scenarios

from calc import Scenario
from calc.catalog.gpus import GPUS
from calc.catalog.models import MODELS
from calc.memory.estimate import built
from calc.memory.problems import Refused, problems
from calc.memory.recipes import recipe
from calc.memory.step import run
from calc.planner.tensors import KEEPERS, kept_tensors
from calc.units import Bytes

PLANS: list[dict[str, Any]] = [
    {"method": "full"},
    {"method": "full", "attention": "eager", "precision": "bf16-mixed"},
    {"method": "full", "attention": "flash_attention_2", "loss": "liger"},
    {"method": "qlora", "precision": "bf16-autocast", "lora": {"dropout": 0.1}},
    {"method": "qlora", "quantization": {"format": "int8"}, "lora": {"use_dora": True}},
    {"method": "full", "gradient_checkpointing": "full", "loss": "chunked"},
    {"method": "full", "kernels": "liger", "loss": "triton", "attention": "flash_attention_2"},
    {"method": "qlora", "kernels": "foak", "loss": "triton", "precision": "bf16-autocast"},
]


def test_every_operation_that_keeps_something_has_its_reason() -> None:
    """For every family and form: a new operation without a row in the table fails here."""
    seen: set[str] = set()
    keeping: dict[str, str] = {}
    for name, known in MODELS.items():
        try:
            model = built(known.config)
        except Refused:
            continue
        if model.model_type in seen:
            continue
        seen.add(model.model_type)
        for plan in PLANS:
            for gpu in ("h100-sxm", "t4"):
                small = plan | {"micro_batch_size": 2, "seq_len": 256}
                scenario = Scenario.model_validate({"model": name, "plan": small, "hardware": {"gpu": gpu}})
                try:
                    problems(scenario, model, GPUS[gpu])
                except Refused:
                    continue
                ran = run(model, recipe(scenario.plan, GPUS[gpu]))
                assert all(saved.keepers for saved in ran.saved)
                keeping |= {op: name for saved in ran.saved for op, _ in saved.keepers if op not in keeping}

    assert {} == {op: name for op, name in keeping.items() if op not in KEEPERS}


def test_every_byte_that_is_kept_is_in_a_row_or_in_the_rest() -> None:
    """The rows and the rest sum to what is alive between forward and backward."""
    for scenario, _ in scenarios()[::8]:
        found = kept_tensors(scenario)

        assert found.rest >= 0
        assert found.total == sum((row.total for row in found.rows), found.rest)
        assert all(row.total == row.each * row.count for row in found.rows)


def test_without_checkpointing_the_rows_are_all_that_is_kept() -> None:
    """Llama 3.1 8B: no rest but the loss itself, four bytes."""
    scenario = Scenario.model_validate({"model": "meta-llama/Llama-3.1-8B", "plan": {"micro_batch_size": 2}})

    found = kept_tensors(scenario)

    assert Bytes(4) == found.rest


def test_checkpointed_blocks_keep_their_inputs_beside_the_graph() -> None:
    """32 blocks of Llama 3.1 8B, each its input of 2 x 2,048 x 4,096 bf16 numbers, and cosines and sines."""
    plan = {"micro_batch_size": 2, "gradient_checkpointing": "full"}
    scenario = Scenario.model_validate({"model": "meta-llama/Llama-3.1-8B", "plan": plan})

    found = kept_tensors(scenario)

    inputs = 32 * 2 * 2048 * 4096 * 2
    assert inputs <= found.rest <= inputs * 1.001


def test_what_is_said_to_remove_a_tensor_keeps_less() -> None:
    """Every setting named for a row: with it fewer bytes are alive before the backward pass."""
    for scenario, _ in scenarios()[::12]:
        found = kept_tensors(scenario)
        named = {lever.id: lever for row in found.rows for lever in row.removed_by}
        for lever in named.values():
            changed = lever.change(scenario)
            assert changed is not None
            less = sum((row.total for row in found.rows if lever in row.removed_by), Bytes(0))
            after = kept_tensors(changed)
            assert {(r.made_by, r.shape, r.dtype, r.in_blocks) for r in after.rows}.isdisjoint(
                {(r.made_by, r.shape, r.dtype, r.in_blocks) for r in found.rows if lever in r.removed_by}
            )
            assert less > 0


def test_plain_attention_names_what_flash_attention_spares() -> None:
    """The scores, 4 and 2 bytes for each pair of tokens and head."""
    plan = {"micro_batch_size": 1, "seq_len": 1024, "attention": "eager"}
    scenario = Scenario.model_validate({"model": "meta-llama/Llama-3.1-8B", "plan": plan})

    rows = kept_tensors(scenario).rows

    scores = [row for row in rows if row.shape == (1, 32, 1024, 1024)]
    assert scores
    for row in scores:
        assert {"attention-sdpa", "attention-flash"} <= {lever.id for lever in row.removed_by}
    gate = next(row for row in rows if row.weights == ("mlp.down_proj",))
    assert "checkpointing-full" in [lever.id for lever in gate.removed_by]
    assert not {"attention-sdpa", "attention-flash"} & {lever.id for lever in gate.removed_by}
