"""Runs on several GPUs: how few blocks tell all, lines and refusals. Recorded ones that a plan can ask for are in test_recorded_steps.py."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from oracle_rows import CARD

from calc import Scenario, estimate
from calc.catalog.gpus import GPUS
from calc.memory import step
from calc.memory.problems import Refused
from calc.memory.recipes import recipe
from calc.memory.surface import Surface
from calc.model import architecture

LLAMA = {"model_type": "llama", "vocab_size": 32000, "hidden_size": 512, "intermediate_size": 1376, "num_hidden_layers": 6,
         "num_attention_heads": 8, "num_key_value_heads": 4}  # fmt: skip


def asked(model: dict[str, Any], plan: dict[str, Any], gpus: int) -> Scenario:
    """A scenario on the pretended card."""
    hardware = {"gpu": CARD, "num_gpus": gpus}
    return Scenario.model_validate({"model": {"config": model}, "plan": plan, "hardware": hardware})


@pytest.mark.parametrize("strategy", ["fsdp2", "fsdp"])
def test_shares_in_host_memory_leave_the_gpu_the_batch_alone_at_the_step(strategy: str) -> None:
    """Weights, gradients and states lie in host memory, each GPU's share; only what a block gathers comes over."""
    sharding = {"strategy": strategy, "data_parallel": 4}
    plan = {"micro_batch_size": 2, "seq_len": 128, "sharding": sharding}
    here = estimate(asked(LLAMA, plan, 4))
    away = estimate(asked(LLAMA, plan | {"sharding": sharding | {"offload": "all"}}, 4))
    assert {line.component for line in away.instants[-1].lines} == {"buffers"}
    components = ("weights", "gradients", "optimizer states")
    moved = sum(int(line.bytes) for line in here.instants[-1].lines if line.component in components)
    assert int(away.host.training) - int(here.host.training) == moved
    assert away.peak.allocated < here.peak.allocated


@pytest.mark.parametrize("strategy", ["fsdp2", "fsdp"])
def test_copies_share_among_fewer_gpus(strategy: str) -> None:
    """Two copies over eight GPUs store what four GPUs with one copy do."""

    def stored(gpus: int, **more: int) -> int:
        plan = {"sharding": {"strategy": strategy, "data_parallel": gpus, **more}}
        return int(estimate(asked(LLAMA, plan, gpus)).instants[0].allocated)

    assert stored(8, replicas=2) == stored(4)


@pytest.mark.parametrize("checkpointing", ["none", "full"])
@pytest.mark.parametrize("strategy", ["fsdp2", "fsdp"])
def test_three_blocks_tell_all(strategy: str, checkpointing: str) -> None:
    """The first, one in the middle and the last, carried to full depth, are equal to a run of every block."""
    plan = {
        "micro_batch_size": 2,
        "seq_len": 128,
        "gradient_checkpointing": checkpointing,
        "sharding": {"strategy": strategy, "data_parallel": 4},
    }
    model = architecture(LLAMA)
    how = recipe(asked(LLAMA, plan, 4).plan, GPUS[CARD])
    alike = step.run(model, how)
    each = replace(model.dims, kinds=tuple(f"{kind} {n}" for n, kind in enumerate(model.dims.kinds)))
    apart = step.run(replace(model, dims=each), how)
    assert (alike.represents, apart.represents) == ((1, 4, 1), (1,) * 6)
    for instant in ("forward", "live", "loss", "backward", "end", "after"):
        assert getattr(alike, instant).total == getattr(apart, instant).total


@pytest.mark.parametrize("strategy", ["ddp", "fsdp2", "fsdp"])
def test_lines_sum_to_what_is_allocated_and_write_their_formula(strategy: str) -> None:
    """At every instant, with the gathered weights and the buffers as lines of their own."""
    plan = {"micro_batch_size": 2, "seq_len": 128, "sharding": {"strategy": strategy, "data_parallel": 4}}
    answer = estimate(asked(LLAMA, plan, 4))
    for instant in answer.instants:
        assert sum(int(line.bytes) for line in instant.lines) == int(instant.allocated)
        assert all(line.formula and line.numbers for line in instant.lines)
    labels = {line.label for instant in answer.instants for line in instant.lines}
    assert ("Weights gathered from the other GPUs" in labels) == (strategy != "ddp")
    assert ("Buckets that gradients are summed in (DDP)" in labels) == (strategy == "ddp")


def test_more_gpus_never_need_more_of_each() -> None:
    """A share of the weights shrinks, and nothing else grows."""
    plan = {"micro_batch_size": 2, "seq_len": 128}
    sizes = [
        int(estimate(asked(LLAMA, plan | {"sharding": {"strategy": "fsdp2", "data_parallel": n}}, n)).peak.allocated)
        for n in (2, 4, 8, 16)
    ]
    assert sizes == sorted(sizes, reverse=True)


def test_gradients_that_wait_for_the_last_micro_batch_are_whole() -> None:
    """Without reduction each GPU keeps all of them; reduced with each micro-batch, a share."""
    sharding = {"strategy": "fsdp2", "data_parallel": 4}
    plan = {"micro_batch_size": 2, "seq_len": 128, "gradient_accumulation_steps": 4}
    held = []
    for each in (False, True):
        answer = estimate(asked(LLAMA, plan | {"sharding": sharding | {"sync_each_batch": each}}, 4))
        for instant in answer.instants:
            assert sum(int(line.bytes) for line in instant.lines) == int(instant.allocated)
            assert all(int(line.bytes) > 0 and line.formula and line.numbers for line in instant.lines)
        forward = next(instant for instant in answer.instants if instant.name == "forward")
        held.append(sum(int(line.bytes) for line in forward.lines if line.component == "gradients"))
    assert held[0] == 2 * answer.parameters.total
    assert held[1] == held[0] / 4


@pytest.mark.parametrize("each", [False, True])
def test_the_surface_knows_every_micro_batch(each: bool) -> None:
    """Whichever of them sets the peak."""
    sharding = {"strategy": "fsdp2", "data_parallel": 4, "sync_each_batch": each}
    surface = Surface(asked(LLAMA, {"gradient_accumulation_steps": 3, "sharding": sharding}, 4))
    for batch, length in ((1, 1), (1, 64), (2, 64), (4, 512), (3, 4096)):
        assert surface.allocated(batch, length) == estimate(surface.at(batch, length)).peak.allocated


def test_mixed_precision_without_autocast_is_said() -> None:
    """FSDP's own is what was recorded; the Trainer adds autocast."""
    plan = {"precision": "bf16-mixed", "sharding": {"strategy": "fsdp2", "data_parallel": 2}}
    assert [note.code for note in estimate(asked(LLAMA, plan, 2)).problems] == ["sharding_without_autocast"]
    assert estimate(asked(LLAMA, plan | {"precision": "bf16"}, 2)).problems == ()


@pytest.mark.parametrize(
    ("plan", "gpus", "field"),
    [
        ({"sharding": {"strategy": "zero3", "data_parallel": 2}}, 2, "plan.sharding.strategy"),
        ({"sharding": {"strategy": "fsdp2", "data_parallel": 2}}, 4, "plan.sharding.data_parallel"),
        ({"sharding": {"strategy": "ddp"}}, 1, "plan.sharding.data_parallel"),
        ({}, 2, "plan.sharding.strategy"),
        ({"sharding": {"strategy": "fsdp2", "data_parallel": 2}, "precision": "bf16-autocast"}, 2, "plan.precision"),
        ({"sharding": {"strategy": "fsdp", "data_parallel": 2}, "precision": "bf16-master"}, 2, "plan.precision"),
        ({"sharding": {"strategy": "fsdp", "data_parallel": 2}, "method": "lora"}, 2, "plan.method"),
        ({"sharding": {"strategy": "fsdp2", "data_parallel": 2}, "method": "qlora"}, 2, "plan.method"),
        (
            {
                "sharding": {"strategy": "fsdp2", "data_parallel": 2},
                "method": "lora",
                "lora": {"modules_to_save": ["lm_head"]},
            },
            2,
            "plan.lora.modules_to_save",
        ),
        ({"sharding": {"strategy": "fsdp2", "data_parallel": 2}, "optimizer": "adafactor"}, 2, "plan.optimizer"),
        ({"sharding": {"strategy": "ddp", "data_parallel": 2}, "optimizer": "lomo"}, 2, "plan.optimizer"),
        (
            {"sharding": {"strategy": "fsdp", "data_parallel": 2}, "gradient_accumulation_steps": 2},
            2,
            "plan.gradient_accumulation_steps",
        ),
        ({"sharding": {"strategy": "fsdp2", "data_parallel": 2, "offload": "optimizer"}}, 2, "plan.sharding.offload"),
        ({"sharding": {"strategy": "ddp", "data_parallel": 2, "offload": "all"}}, 2, "plan.sharding.offload"),
        ({"sharding": {"offload": "all"}}, 1, "plan.sharding.offload"),
        (
            {"sharding": {"strategy": "fsdp2", "data_parallel": 2, "offload": "all"}, "optimizer": "sgd"},
            2,
            "plan.optimizer",
        ),
        ({"sharding": {"strategy": "fsdp2", "data_parallel": 6, "replicas": 4}}, 6, "plan.sharding.replicas"),
        ({"sharding": {"strategy": "fsdp2", "data_parallel": 4, "replicas": 4}}, 4, "plan.sharding.replicas"),
        ({"sharding": {"strategy": "ddp", "data_parallel": 4, "replicas": 2}}, 4, "plan.sharding.replicas"),
        (
            {"sharding": {"strategy": "ddp", "data_parallel": 4, "reshard_after_forward": False}},
            4,
            "plan.sharding.reshard_after_forward",
        ),
    ],
)
def test_what_is_not_modelled_on_several_gpus_is_refused_by_its_field(
    plan: dict[str, Any], gpus: int, field: str
) -> None:
    """Never approximated in silence."""
    with pytest.raises(Refused) as refused:
        estimate(asked(LLAMA, plan, gpus))
    assert refused.value.field == field
