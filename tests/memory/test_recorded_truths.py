"""The other recordings of the real libraries: parameters, saved tensors, optimizer states, packed weights, and the proof on the real CPU."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from oracle_rows import CARD, GOLDEN, configs

from calc import Scenario
from calc.catalog.gpus import GPUS
from calc.catalog.optimizers import OPTIMIZERS
from calc.catalog.quantization import QUANTIZED_FORMATS
from calc.memory.optimizer_states import states
from calc.memory.recipes import recipe
from calc.memory.step import Step, run
from calc.model import architecture
from calc.model.counting import counted
from calc.model.parameters import Parameter, Role


def recorded(truth: str) -> list[dict[str, Any]]:
    """The rows of a file."""
    return json.loads((GOLDEN / f"{truth}.json").read_text(encoding="utf-8"))["rows"]


def how_many(blocks: str) -> int:
    """Blocks of "0-31" or "0,2,4-6"; one of the empty string."""
    ends = [part.partition("-") for part in blocks.split(",")]
    return sum(int(last or first) - int(first) + 1 for first, _, last in ends) if blocks else 1


@pytest.mark.parametrize(
    "row",
    recorded("parameters"),
    ids=lambda row: row["case"]["model"],
)
def test_the_class_has_the_counted_parameters(row: dict[str, Any]) -> None:
    """Total, embeddings, and every tensor by name and shape; buffers where the forward pass is modelled."""
    theirs = row["measured"]
    ours = counted(theirs["config"])
    assert ours.total == theirs["total"]
    assert theirs["embedding"] in {p.numel for p in ours.parameters if p.role == "embedding"}
    named: Counter[tuple[str, tuple[int, ...]]] = Counter()
    for p in ours.parameters:
        named[p.name, p.shape] += p.count
    expected: Counter[tuple[str, tuple[int, ...]]] = Counter()
    for name, shape, blocks in theirs["shapes"]:
        expected[name, tuple(shape)] += how_many(blocks)
    assert named == expected
    if ours.modelled:
        model = architecture(theirs["config"])
        assert model.family.buffers(model.dims, 4) == theirs["buffer_bytes"]


def by_block(step: Step) -> dict[int | None, Counter[tuple[str, int]]]:
    """Dtype and bytes of the saved tensors, block by block that was run."""
    found: dict[int | None, Counter[tuple[str, int]]] = {}
    for tensor in step.saved:
        found.setdefault(tensor.block, Counter())[tensor.dtype, tensor.size] += 1
    return found


@pytest.mark.parametrize(
    "row",
    recorded("saved"),
    ids=lambda row: " ".join(
        (row["case"]["model"], row["case"]["plan"]["attention"], row["case"]["plan"]["precision"])
    ),
)
def test_the_recorded_tensors_are_kept(row: dict[str, Any]) -> None:
    """All bytes kept for the backward pass, token ids included, and each block's tensors by dtype and bytes."""
    case, theirs = row["case"], row["measured"]
    plan = Scenario.model_validate({"model": {"config": configs()[case["model"]]}, "plan": case["plan"]}).plan
    model = architecture(configs()[case["model"]])
    step = run(model, recipe(plan, GPUS[CARD]))
    ids = 8 * plan.micro_batch_size * plan.seq_len
    kept = sum(t.size * (1 if t.block is None else step.represents[t.block]) for t in step.saved)
    assert kept + (0 if any(t.dtype == "i64" and t.op == "token ids" for t in step.saved) else ids) == theirs["bytes"]
    last = len(step.represents) - 1
    ours = by_block(step).get(last, Counter())
    expected = Counter((dtype, size) for _, dtype, _, size in theirs["block_tensors"][-1])
    assert sum(size * n for (_, size), n in ours.items()) == sum(size * n for (_, size), n in expected.items())


def small() -> list[Parameter]:
    """The parameters that the recorded optimizers had, layer by layer."""
    (row,) = [row for row in recorded("parameters") if row["case"]["model"] == "llama-small@2"]
    roles: dict[str, Role] = {"embed_tokens": "embedding", "lm_head": "head", "norm": "norm"}
    made = []
    for name, shape, blocks in row["measured"]["shapes"]:
        role = next((role for word, role in roles.items() if word in name), "linear")
        made += [Parameter(name.replace("*", str(n)), tuple(shape), "", role) for n in range(how_many(blocks))]
    return made


@pytest.mark.parametrize(
    "row",
    [row for row in recorded("optimizers") if "optim" in row["case"]],
    ids=lambda row: " ".join((row["case"]["optim"], row["case"].get("optim_args", ""), row["case"]["dtype"])),
)
def test_the_optimizer_keeps_the_recorded_bytes(row: dict[str, Any]) -> None:
    """Every optimizer that transformers names, stepped by the real library: all of its state tensors, in bytes."""
    case = row["case"]
    given = dict(part.split("=") for part in case["optim_args"].split(",")) if "optim_args" in case else {}
    args = {key: {"true": True, "false": False}.get(value, value) for key, value in given.items()}
    args = {
        key: float(value) if key == "momentum" else int(value) if key == "rank" else value
        for key, value in args.items()
    }
    if "rank" in args:
        args["target_modules"] = "attn,mlp"
    parameters = [Parameter(p.name, p.shape, case["dtype"], p.role) for p in small()]
    kept = states(OPTIMIZERS[case["optim"]], parameters, args)
    assert int(kept.total) == row["measured"]["state_bytes"]


@pytest.mark.parametrize("row", recorded("four_bit"), ids=lambda row: " ".join(map(str, row["case"].values())))
def test_a_packed_weight_takes_the_recorded_bytes(row: dict[str, Any]) -> None:
    """What bitsandbytes stores of a layer in 4 bits, with and without double quantisation."""
    case = row["case"]
    packed = QUANTIZED_FORMATS[case["format"]].bytes(case["out"], case["in"], double_quant=case["double_quant"])
    assert int(packed) == row["measured"]["bytes"]


def test_the_count_is_proved_on_the_real_cpu() -> None:
    """At least 40 real trainings; the allocator differs from the count by less than 256 bytes, or by scratch that only a CPU's kernels take."""
    proved = recorded("real_cpu")
    assert len(proved) >= 40
    for row in proved:
        scratch = row["measured"].get("scratch_in", {})
        for phase, difference in row["measured"]["real_less_counted"].items():
            assert phase in scratch or all(abs(number) <= 256 for number in difference), (row["case"], phase)
