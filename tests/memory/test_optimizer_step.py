"""What a step allocates, against recordings of the real libraries; clipping; gradients freed in the backward pass."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_optimizer_states import label, llama, one_by_one, recorded_parameters

from calc.catalog.optimizers import OPTIMIZERS, Optimizer, steps
from calc.catalog.sources import SOURCES
from calc.memory.optimizer_states import parameter_groups, states
from calc.memory.optimizer_step import clipping, largest_gradients, temporaries
from calc.model.parameters import Parameter

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "oracle_optim.json").read_text())
NOT_AS_ON_A_GPU = {
    "adamw_torch_4bit": "compiled on a GPU; recorded without compilation",
    "adamw_torch_8bit": "compiled on a GPU; recorded without compilation",
    "adamw_torch_fp8": "compiled on a GPU; recorded without compilation",
}
RECORDED = [row for row in GOLDEN["rows"] if "step" in row]
PLAIN = [row for row in RECORDED if row["groups"] != "targets" and row["optimizer"] not in NOT_AS_ON_A_GPU]
LOW_RANK = [row for row in RECORDED if row["groups"] == "targets"]
EVERY_ROW = pytest.mark.parametrize("row", OPTIMIZERS.values(), ids=list(OPTIMIZERS))
dtypes = st.sampled_from(["fp32", "bf16", "fp16"])


def stepped(row: dict[str, Any]) -> tuple[steps.Arena, list[Parameter]]:
    """An arena after the step of a recording's optimizer: the second step, with nothing renewed."""
    optimizer = OPTIMIZERS[row["optimizer"]]
    parameters, chosen, arena = recorded_parameters(row), optimizer.settings(row["args"]), steps.Arena()
    one_group = row["groups"] in ("one", "matrices")
    groups = (tuple(parameters),) if one_group else parameter_groups(optimizer, parameters, chosen)
    optimizer.step.run(arena, groups, chosen, worst=False)
    return arena, parameters


@pytest.mark.parametrize("row", PLAIN, ids=label)
def test_the_peak_of_a_step_is_the_recorded_one(row: dict[str, Any]) -> None:
    """To the byte; where the recorder met a few scalars only during the step, up to those scalars."""
    arena, _ = stepped(row)
    unseen = row["step"]["grew"]
    assert unseen <= 8
    assert row["step"]["above_end"] <= arena.peak <= row["step"]["above_end"] + unseen


@pytest.mark.parametrize("row", LOW_RANK, ids=label)
def test_the_peak_of_a_low_rank_step_is_the_recorded_one(row: dict[str, Any]) -> None:
    """The recorder met each projection when the step first used it: its peak is over what it had met by then."""
    arena, parameters = stepped(row)
    of = states(OPTIMIZERS[row["optimizer"]], parameters, row["args"])
    held = {s.parameter.name: sum(int(t.held) for t in s.tensors if "ortho" in t.name) for s in of.of}
    met = peak = 0
    for weight, most in (*arena.seen, (arena.now, arena.here)):
        assert weight is not None
        met += held[weight.name]
        peak = max(peak, met + most)
    scalar = 4 if "adafactor" in row["optimizer"] else 0  # one RMS that the recorder counted on its own
    assert 0 <= row["step"]["above_end"] + row["step"]["grew"] - peak <= scalar


def test_foreach_adamw_copies_the_larger_group_once_and_fused_copies_nothing() -> None:
    """Llama-2-7B in bf16: 12.5 GiB more than fused, as recorded on a fake GPU at full depth (62.756 and 50.221)."""
    h, i, layers, vocabulary = 4096, 11008, 32, 32_000
    shapes = [(h, h)] * 4 + [(i, h), (i, h), (h, i)]
    parameters = [
        Parameter("model.embed_tokens.weight", (vocabulary, h), "bf16", "embedding"),
        *(Parameter(f"model.layers.*.{n}.weight", s, "bf16", "linear", layers) for n, s in enumerate(shapes)),
        *(Parameter(f"model.layers.*.norm{n}.weight", (h,), "bf16", "norm", layers) for n in range(2)),
        Parameter("model.norm.weight", (h,), "bf16", "norm"),
        Parameter("lm_head.weight", (vocabulary, h), "bf16", "head"),
    ]
    matrices = 2 * (6_738_415_616 - 65 * h)
    assert matrices == temporaries(OPTIMIZERS["adamw_torch"], parameters).bytes
    assert 0 == temporaries(OPTIMIZERS["adamw_torch_fused"], parameters).bytes
    loop = temporaries(OPTIMIZERS["adamw_torch"], parameters, {"foreach": False}).bytes
    assert 2 * 2 * vocabulary * h + 2 * h * i == loop


def test_what_one_layer_leaves_behind_the_next_one_meets() -> None:
    """AdamW's loop: the quotient of a layer's last matrix still lives while the next layer's first one is made."""
    wide, narrow = (Parameter(f"layers.*.{n}.weight", (n, 100), "fp32", "linear", 3) for n in (100, 90))
    apart = [Parameter("layers.0.100.weight", (100, 100), "fp32", "linear"), narrow]
    row, args = OPTIMIZERS["adamw_torch"], {"foreach": False}
    assert 4 * (2 * 10_000 + 9_000) == temporaries(row, [wide, narrow], args).bytes
    norm = Parameter("norm.weight", (100,), "fp32", "norm")
    assert 4 * (2 * 10_000 + 9_000) == temporaries(row, [wide, narrow, norm], args).bytes
    assert 4 * (2 * 9_000 + 10_000) == temporaries(row, apart, args).bytes


def test_radam_copies_once_its_variance_is_rectified() -> None:
    """The recording is the second step, still in place; from the fifth on it is like schedule-free AdamW."""
    parameters = llama(2)
    radam, adamw = OPTIMIZERS["schedule_free_radam"], OPTIMIZERS["schedule_free_adamw"]
    assert temporaries(adamw, parameters).bytes == temporaries(radam, parameters).bytes
    assert 0 == temporaries(radam, parameters, worst=False).bytes


def test_grokadamw_brings_three_states_and_two_more_copies_to_the_gpu() -> None:
    """One parameter alone: three states, the amplified gradient, and the root; five copies at once."""
    parameter = Parameter("w", (100, 50), "bf16", "linear")
    assert 5 * 2 * 5000 == temporaries(OPTIMIZERS["grokadamw"], [parameter]).bytes


def test_lomo_widens_gradient_and_weight_one_parameter_at_a_time() -> None:
    """bf16: two fp32 copies less the 16-bit gradient that is gone by then; fp32: nothing."""
    half, whole = (Parameter("w", (100, 50), dtype, "linear") for dtype in ("bf16", "fp32"))
    lomo = OPTIMIZERS["lomo"]
    assert 8 * 5000 - 2 * 5000 == temporaries(lomo, [half]).bytes
    assert 0 == temporaries(lomo, [whole]).bytes
    assert "backward" == temporaries(lomo, [half]).during


def test_a_renewed_projection_costs_an_svd_in_fp32() -> None:
    """Both factors, the singular values, a fp32 copy of the gradient, a product thrown away, the basis in bf16."""
    parameter = Parameter("model.layers.0.up_proj.weight", (300, 100), "bf16", "linear")
    row, args = OPTIMIZERS["galore_adamw"], {"rank": 10, "target_modules": "all-linear"}
    svd = 4 * (300 * 100 + 300 * 100 + 100 + 100 * 100 + 300 * 10) + 2 * 10 * 100
    assert svd == temporaries(row, [parameter], args).bytes
    assert svd > temporaries(row, [parameter], args, worst=False).bytes


def test_gradients_freed_in_the_backward_pass() -> None:
    """Recorded: none left after the backward pass. One at a time with hooks, two neighbours with LOMO, else all."""
    freed = {row["optimizer"] for row in GOLDEN["rows"] if row.get("gradients_alive") == 0}
    assert freed | {"galore_adafactor_layerwise"} == {row.id for row in OPTIMIZERS.values() if row.frees_gradients}
    parameters = llama(2)
    one, two, every = (largest_gradients(OPTIMIZERS[n], parameters) for n in ("apollo_adamw_layerwise", "lomo", "sgd"))
    assert 2 * 1000 * 64 == one
    assert 2 * (1000 * 64 + 64 * 64) == two
    assert sum(2 * p.numel * p.count for p in parameters) == every


def test_clipping_sums_in_chunks_of_the_longest_tensor() -> None:
    """A norm and a partial sum per tensor; Llama-3-8B's embedding makes it 8,016 partial sums for each of 291."""
    small = [Parameter("w", (10,), "bf16", "norm", 39)]
    assert 39 * 2 + 4 * 39 == clipping(small)
    large = [Parameter("e", (128_256, 4096), "bf16", "embedding"), Parameter("n", (4096,), "bf16", "norm", 290)]
    assert 291 * 2 + 4 * 291 * 8016 == clipping(large)


@EVERY_ROW
@settings(max_examples=10)
@given(dtype=dtypes, layers=st.integers(1, 4))
def test_repeated_layers_stand_for_all_of_them(row: Optimizer, dtype: str, layers: int) -> None:
    """A pattern with a count gives the peak of its layers one by one."""
    parameters = llama(layers, dtype)
    assert temporaries(row, one_by_one(parameters)).bytes == temporaries(row, parameters).bytes


@EVERY_ROW
@settings(max_examples=10)
@given(dtype=dtypes)
def test_a_step_leaves_nothing_behind(row: Optimizer, dtype: str) -> None:
    """Every temporary is dropped by the end."""
    chosen, parameters = row.settings({}), llama(2, dtype)
    arena = steps.Arena(alone=row.frees_gradients)
    row.step.run(arena, parameter_groups(row, parameters, chosen), chosen, worst=True)
    if row.frees_gradients or row.step.run is steps.galore_adamw_8bit_step:
        # 16-bit gradients go on the way; GaLore's projected ones stand in their place until zero_grad.
        assert -sum(2 * steps.size(p) * p.count for p in parameters) <= arena.live <= 0
    else:
        assert 0 == arena.live


@EVERY_ROW
@settings(max_examples=10)
@given(dtype=dtypes)
def test_temporaries_explain_themselves(row: Optimizer, dtype: str) -> None:
    """A formula, the run's numbers, a source that can be opened."""
    made = temporaries(row, llama(2, dtype))
    assert made.formula
    assert made.numbers
    assert made.source in SOURCES
    assert made.bytes == made.line.bytes
    assert ("0" == made.formula[0]) <= (0 == made.bytes)


@EVERY_ROW
def test_nothing_to_train_needs_nothing(row: Optimizer) -> None:
    """No trainable parameter, no step."""
    assert 0 == temporaries(row, []).bytes
    assert 0 == largest_gradients(row, [])
    assert 0 == clipping([])
