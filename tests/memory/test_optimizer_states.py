"""Optimizer states against recordings of the real libraries, and laws over every row."""

from __future__ import annotations

import json
from math import prod
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calc.catalog.dtypes import DTYPES
from calc.catalog.optimizers import OPTIMIZERS, Optimizer
from calc.catalog.table import UnknownName
from calc.catalog.tensors import PLACES
from calc.memory.optimizer_states import lines, state_dict_tree, states
from calc.model.parameters import Parameter

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "oracle_optim.json").read_text())


def label(row: dict[str, Any]) -> str:
    """A recording's name and the dtype of its parameters."""
    return f"{row['recorded']}-{row['dtype']}"


def recorded_parameters(row: dict[str, Any]) -> list[Parameter]:
    """The parameters that the recorded optimizer had, in the model's order."""
    parameters = [Parameter(name, tuple(shape), row["dtype"], role) for name, shape, role in GOLDEN["parameters"]]
    return [p for p in parameters if row["groups"] != "matrices" or len(p.shape) == 2]


def llama(layers: int, dtype: str = "bf16", hidden: int = 64, vocabulary: int = 1000) -> list[Parameter]:
    """A Llama by groups, its repeated layers as patterns with a count."""
    h, i, kv = hidden, 3 * hidden, hidden // 2
    shapes = {
        "self_attn.q_proj": (h, h),
        "self_attn.k_proj": (kv, h),
        "self_attn.v_proj": (kv, h),
        "self_attn.o_proj": (h, h),
        "mlp.gate_proj": (i, h),
        "mlp.up_proj": (i, h),
        "mlp.down_proj": (h, i),
    }
    return [
        Parameter("model.embed_tokens.weight", (vocabulary, h), dtype, "embedding"),
        *(Parameter(f"model.layers.*.{n}.weight", s, dtype, "linear", layers) for n, s in shapes.items()),
        Parameter("model.layers.*.input_layernorm.weight", (h,), dtype, "norm", layers),
        Parameter("model.norm.weight", (h,), dtype, "norm"),
        Parameter("lm_head.weight", (vocabulary, h), dtype, "head"),
    ]


def one_by_one(parameters: list[Parameter]) -> list[Parameter]:
    """The same parameters with every layer written out."""
    flat = []
    for p in parameters:
        for layer in range(p.count):
            flat.append(Parameter(p.name.replace("*", str(layer)), p.shape, p.dtype, p.role))
    return flat


EVERY_ROW = pytest.mark.parametrize("row", OPTIMIZERS.values(), ids=list(OPTIMIZERS))
dtypes = st.sampled_from(["fp32", "bf16", "fp16"])


@pytest.mark.parametrize("row", GOLDEN["rows"], ids=label)
def test_state_bytes_are_the_recorded_ones(row: dict[str, Any]) -> None:
    """The total over 21 parameters, to the byte."""
    ours = states(OPTIMIZERS[row["optimizer"]], recorded_parameters(row), row["args"])
    assert row["total"] == ours.total


@pytest.mark.parametrize("row", GOLDEN["rows"], ids=label)
def test_every_state_tensor_has_its_recorded_name_dtype_and_shape(row: dict[str, Any]) -> None:
    """Tensor by tensor, for every parameter that the recording lists."""
    ours = states(OPTIMIZERS[row["optimizer"]], recorded_parameters(row), row["args"])
    by_parameter = {s.parameter.name: {t.name: [t.dtype, list(t.shape)] for t in s.tensors} for s in ours.of}
    assert row["states"] == {name: by_parameter[name] for name in row["states"]}


def test_the_recordings_cover_every_optimizer_that_could_be_recorded() -> None:
    """What is missing could not be run, or holds no tensor, and each is known by name."""
    recorded = {row["optimizer"] for row in GOLDEN["rows"]}
    assert {
        "adamw_torch_xla",
        "adamw_torch_npu_fused",
        "adamw_anyprecision",
        "galore_adafactor_layerwise",
        "paged_ademamix_32bit",
        "paged_ademamix_8bit",
        "adamw_hf",
    } == set(OPTIMIZERS) - recorded


@pytest.mark.parametrize("name", ["ademamix", "ademamix_8bit", "adamw_8bit", "lion_8bit", "lion_32bit"])
def test_paging_moves_states_and_changes_none(name: str) -> None:
    """Same tensors as the unpaged optimizer; only states of 100,000 elements and more lie in managed memory."""
    paged_name = {"ademamix": "paged_ademamix_32bit", "adamw_8bit": "paged_adamw_8bit"}.get(name, f"paged_{name}")
    parameters = llama(2, hidden=256, vocabulary=3000)
    plain, paged = states(OPTIMIZERS[name], parameters), states(OPTIMIZERS[paged_name], parameters)
    assert plain.total == paged.total
    assert plain.by_name == paged.by_name
    for of in paged.of:
        for tensor in of.tensors:
            is_state = tensor.name.startswith("state")
            assert ("unified" if is_state and of.parameter.numel >= 100_000 else "device") == tensor.place
    assert 0 < paged.by_place["unified"]
    assert 0 == plain.by_place["unified"]


@pytest.mark.parametrize(
    ("optimizer", "shape", "quantised"),
    [
        ("adamw_8bit", (63, 65), False),
        ("adamw_8bit", (64, 64), True),
        ("adamw_8bit", (65, 65), True),
        ("adamw_torch_8bit", (63, 65), False),
        ("adamw_torch_8bit", (64, 64), True),
        ("adamw_torch_8bit", (65, 65), False),
        ("adamw_torch_4bit", (65, 65), False),
    ],
)
def test_the_threshold_is_4096_elements_and_torchao_wants_whole_blocks(
    optimizer: str, shape: tuple[int, int], quantised: bool
) -> None:
    """4,095 elements stay wide, 4,096 do not; 4,225 are no multiple of 256, which only bitsandbytes pads."""
    of = states(OPTIMIZERS[optimizer], [Parameter("layers.0.up_proj.weight", shape, "bf16", "linear")])
    assert quantised == any(tensor.dtype == "u8" for tensor in of.of[0].tensors)


def test_a_tied_embedding_stays_wide_and_an_untied_head_does_not() -> None:
    """Trainer and bitsandbytes 8-bit: the tied head is the embedding, so it follows it."""
    row = OPTIMIZERS["adamw_8bit"]
    of = {s.parameter.role: {t.name: t.dtype for t in s.tensors} for s in states(row, llama(1)).of}
    assert {"state1": "fp32", "state2": "fp32"} == of["embedding"]
    assert "u8" == of["head"]["state1"]


def test_llama_3_8b_embeddings_alone_cost_4_2_gb_of_8_bit_adam() -> None:
    """The finding of the recordings: the Trainer's override at a vocabulary of 128,256."""
    embedding = Parameter("model.embed_tokens.weight", (128_256, 4096), "bf16", "embedding")
    assert 4_202_692_608 == states(OPTIMIZERS["adamw_8bit"], [embedding]).total


def test_mistral_7b_with_adamw_keeps_two_moments_as_large_as_the_parameters() -> None:
    """7,241,732,096 parameters in fp32: 2 x 4 bytes each, and a count of steps per tensor."""
    h, i, kv, layers = 4096, 14336, 1024, 32
    linear = [(h, h), (kv, h), (kv, h), (h, h), (i, h), (i, h), (h, i)]
    parameters = [
        Parameter("model.embed_tokens.weight", (32_000, h), "fp32", "embedding"),
        *(Parameter(f"model.layers.*.{n}.weight", s, "fp32", "linear", layers) for n, s in enumerate(linear)),
        *(Parameter(f"model.layers.*.norm{n}.weight", (h,), "fp32", "norm", layers) for n in range(2)),
        Parameter("model.norm.weight", (h,), "fp32", "norm"),
        Parameter("lm_head.weight", (32_000, h), "fp32", "head"),
    ]
    of = states(OPTIMIZERS["adamw_torch"], parameters)
    weights = 4 * 7_241_732_096
    assert (weights, weights, 4 * 291) == (of.by_name["exp_avg"], of.by_name["exp_avg_sq"], of.by_name["step"])
    assert {"device": 2 * weights, "host": 4 * 291, "unified": 0} == of.by_place


def test_step_counts_lie_on_the_gpu_only_when_fused() -> None:
    """Fused AdamW keeps them beside the moments: 84 bytes for 21 tensors, as recorded on a fake GPU."""
    parameters = one_by_one(llama(2))
    tensors = len(parameters)
    plain, fused = (states(OPTIMIZERS[n], parameters) for n in ("adamw_torch", "adamw_torch_fused"))
    assert (4 * tensors, 0) == (plain.by_place["host"], fused.by_place["host"])
    assert plain.by_place["device"] + plain.by_place["host"] == fused.by_place["device"]
    assert fused.by_place == states(OPTIMIZERS["adamw_torch"], parameters, {"fused": True}).by_place


@pytest.mark.parametrize(
    ("recorded", "dtype", "retained"),
    [("galore_adamw", "fp32", 1_622_016), ("galore_adafactor", "bf16", 1_622_016), ("galore_adamw", "bf16", 73_728)],
)
def test_galore_keeps_whole_singular_factors_alive_in_fp32(recorded: str, dtype: str, retained: int) -> None:
    """The recorder met these storages when the step first used them: what it saw grow is what projections hold."""
    row = next(r for r in GOLDEN["rows"] if (r["recorded"], r["dtype"]) == (recorded, dtype))
    of = states(OPTIMIZERS[row["optimizer"]], recorded_parameters(row), row["args"])
    held = sum(int(t.held) for s in of.of for t in s.tensors if t.name == "projector.ortho_matrix")
    assert retained == held
    assert 0 <= row["step"]["grew"] - held <= 4
    assert held - of.by_name["projector.ortho_matrix"] == of.retained
    assert of.total + of.retained == sum(of.by_place.values())


@EVERY_ROW
@settings(max_examples=10)
@given(dtype=dtypes, layers=st.integers(1, 6))
def test_layers_add_up_for_every_row(row: Optimizer, dtype: str, layers: int) -> None:
    """A pattern with a count is the same as its layers one by one."""
    grouped, flat = (states(row, ps) for ps in (llama(layers, dtype), one_by_one(llama(layers, dtype))))
    assert flat.total == grouped.total
    assert flat.by_name == grouped.by_name
    assert flat.by_place == grouped.by_place


@EVERY_ROW
@settings(max_examples=10)
@given(dtype=dtypes)
def test_lines_sum_to_what_lies_in_each_place(row: Optimizer, dtype: str) -> None:
    """No byte of a place is without its line, and every line says what it multiplies."""
    of = states(row, llama(3, dtype))
    for place in PLACES:
        made = lines(of, place)
        assert of.by_place[place] == sum(line.bytes for line in made)
        for line in made:
            terms = [term.removesuffix(" B").replace(",", "").split(" × ") for term in line.numbers.split(" + ")]
            assert line.bytes == sum(int(n) * int(b) for n, b in terms)
            assert line.formula.startswith("Σ ")


@EVERY_ROW
@settings(max_examples=10)
@given(dtype=dtypes)
def test_frozen_parameters_have_no_state(row: Optimizer, dtype: str) -> None:
    """Only trainable parameters reach the optimizer."""
    frozen = [Parameter(p.name, p.shape, p.dtype, p.role, p.count, trainable=False) for p in llama(2, dtype)]
    assert 0 == states(row, frozen).total


@EVERY_ROW
@settings(max_examples=10)
@given(layers=st.integers(1, 5))
def test_states_never_shrink_when_layers_are_added(row: Optimizer, layers: int) -> None:
    """Monotone in depth."""
    assert states(row, llama(layers)).total <= states(row, llama(layers + 1)).total


@given(rank=st.integers(1, 60), row=st.sampled_from([r for r in OPTIMIZERS.values() if r.grouping == "targets"]))
def test_states_never_shrink_with_rank(rank: int, row: Optimizer) -> None:
    """Monotone in rank, whatever becomes 8-bit on the way up counts the scales too."""
    if "8bit" in row.id:
        return  # a state that grows over 4,096 elements becomes 8-bit, and shrinks
    low, high = (states(row, llama(2), {"rank": r, "target_modules": "all-linear"}).total for r in (rank, rank + 1))
    assert low <= high


@EVERY_ROW
@settings(max_examples=10)
@given(dtype=dtypes, shape=st.tuples(st.integers(1, 300), st.integers(1, 300)))
def test_a_state_is_never_larger_than_its_rule_allows(row: Optimizer, dtype: str, shape: tuple[int, int]) -> None:
    """No state tensor has a dtype that the table lacks, or more elements than the largest square of its parameter."""
    parameter = Parameter("model.layers.0.mlp.up_proj.weight", shape, dtype, "linear")
    for of in states(row, [parameter]).of:
        for tensor in of.tensors:
            assert tensor.dtype in DTYPES
            assert tensor.held >= tensor.bytes
            assert prod(tensor.shape) <= max(2 * max(shape) ** 2, 256, 128 * max(shape))


@pytest.mark.parametrize(
    ("patterns", "hit"),
    [
        ("all-linear", {"q_proj", "up_proj", "lm_head"}),
        ("all_linear", {"q_proj", "up_proj", "lm_head"}),
        (".*self_attn.*", {"q_proj"}),
        (".*self_attn.*, .*mlp.*", {"q_proj", "up_proj"}),
        ("up_proj", {"up_proj"}),
        ("model.layers.*.mlp.up_proj", {"up_proj"}),
        (r".*\.q_proj", {"q_proj"}),
        ("k_proj", set()),
    ],
)
def test_targets_are_named_as_the_trainer_names_them(patterns: str, hit: set[str]) -> None:
    """A part of a layer's name, or a pattern of the whole; embeddings, norms and three-dimensional experts never."""
    parameters = [
        Parameter("model.embed_tokens.weight", (100, 40), "bf16", "embedding"),
        Parameter("model.layers.*.self_attn.q_proj.weight", (40, 40), "bf16", "linear", 2),
        Parameter("model.layers.*.mlp.up_proj.weight", (80, 40), "bf16", "linear", 2),
        Parameter("model.layers.*.mlp.experts.up_proj", (4, 80, 40), "bf16", "expert", 2),
        Parameter("model.norm.weight", (40,), "bf16", "norm"),
        Parameter("lm_head.weight", (100, 40), "bf16", "head"),
    ]
    of = states(OPTIMIZERS["galore_adamw"], parameters, {"rank": 4, "target_modules": patterns})
    projected = {s.parameter.name for s in of.of if any(t.name.startswith("projector") for t in s.tensors)}
    assert hit == {name.removesuffix(".weight").split(".")[-1] for name in projected}


def test_unknown_arguments_reach_nobody_in_silence() -> None:
    """states() refuses what the row does not know."""
    with pytest.raises(UnknownName):
        states(OPTIMIZERS["adamw_torch"], llama(1), {"rank": 8})


def test_the_state_dict_of_adamw_as_a_tree() -> None:
    """Index, step, exp_avg, exp_avg_sq with shape and dtype, then two groups: with decay, and norms without."""
    tree = state_dict_tree(OPTIMIZERS["adamw_torch"], llama(3), lr=1e-4, weight_decay=0.1)
    state, groups = tree.children
    assert ("state", "param_groups") == (state.key, groups.key)
    assert ["0", "1, 8, … (3 tensors)", "2, 9, … (3 tensors)"] == [branch.key for branch in state.children[:3]]
    leaves = {leaf.key: leaf.value for leaf in state.children[1].children}
    assert {
        "step": "Tensor[] float32, host",
        "exp_avg": "Tensor[64, 64] bfloat16",
        "exp_avg_sq": "Tensor[64, 64] bfloat16",
    } == leaves
    first, second = ({leaf.key: leaf.value for leaf in group.children} for group in groups.children)
    assert ("0.0001", "0.1", "[0 … 22]") == (first["lr"], first["weight_decay"], first["params"])
    assert ("0.0001", "0", "[23 … 26]") == (second["lr"], second["weight_decay"], second["params"])
    assert {"betas", "eps", "amsgrad", "maximize", "foreach", "capturable", "differentiable", "fused"} <= set(first)
    assert states(OPTIMIZERS["adamw_torch"], llama(3)).total == tree.bytes


@EVERY_ROW
@settings(max_examples=10)
@given(layers=st.integers(1, 5))
def test_a_tree_shows_every_parameter_once(row: Optimizer, layers: int) -> None:
    """As many branches as parameter patterns, and as many indices as tensors."""
    parameters = llama(layers)
    state, groups = state_dict_tree(row, parameters).children
    assert states(row, parameters).total == state.bytes
    assert len(parameters) == len(state.children)
    assert f"{sum(p.count for p in parameters)} parameters" == state.value
    firsts = [int(branch.key.split(",")[0]) for branch in state.children]
    assert len(firsts) == len(set(firsts))
    assert groups.children
