"""Every optimizer's row: names, arguments, sources, formulas."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calc.catalog.optimizers import OPTIMIZERS, BadArgument, Optimizer
from calc.catalog.sources import SOURCES
from calc.catalog.table import UnknownName

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "oracle_optim.json").read_text())
EVERY_ROW = pytest.mark.parametrize("row", OPTIMIZERS.values(), ids=list(OPTIMIZERS))


def test_every_name_of_transformers_has_a_row() -> None:
    """The 41 OptimizerNames of transformers 5.24."""
    names = GOLDEN["provenance"]["optimizer_names"]
    assert 41 == len(names)
    assert set() == set(names) - set(OPTIMIZERS)


def test_other_optimizers_that_people_fine_tune_with_have_rows() -> None:
    """Muon, PyTorch's Adafactor, Lion, CAME, SOAP, Prodigy, torchao's fp8, SGD with momentum and more."""
    others = {
        "muon", "torch_adafactor", "lion", "came", "soap", "prodigy", "adamw_torch_fp8", "sgd_momentum", "nadam",
        "adamax", "ademamix_torch", "adamw_hf",
    }  # fmt: skip
    assert set() == others - set(OPTIMIZERS)


@EVERY_ROW
def test_every_row_names_its_sources_and_says_what_it_costs(row: Optimizer) -> None:
    """Sources can be opened; texts are one or a few whole sentences."""
    assert row.source in SOURCES
    assert row.paper in SOURCES
    assert row.cost.endswith(".")
    assert row.label
    assert row.library
    assert all(argument.help.endswith(".") for argument in row.arguments)


@EVERY_ROW
def test_what_cannot_run_names_the_nearest_that_can(row: Optimizer) -> None:
    """A refusal has a reason and a way out, and the way out is open."""
    assert bool(row.blocked) == bool(row.instead)
    if row.blocked:
        assert row.id in row.blocked
        assert not OPTIMIZERS[row.instead].blocked


def test_which_cannot_run_on_an_nvidia_gpu() -> None:
    """Other hardware, a package that is not to be had, and a pair of libraries that contradict each other."""
    assert {
        "adamw_torch_xla",
        "adamw_torch_npu_fused",
        "adamw_anyprecision",
        "galore_adafactor_layerwise",
    } == {row.id for row in OPTIMIZERS.values() if row.blocked}


@EVERY_ROW
@settings(max_examples=10)
@given(name=st.text(max_size=30))
def test_unknown_arguments_are_errors_that_list_the_known_ones(row: Optimizer, name: str) -> None:
    """No argument is dropped in silence."""
    known = {argument.name for argument in row.arguments}
    if name in known:
        return
    with pytest.raises(UnknownName, match="argument of"):
        row.settings({name: 1})


@pytest.mark.parametrize(
    ("optimizer", "args"),
    [
        ("sgd", {"momentum": "much"}),
        ("sgd", {"momentum": -0.1}),
        ("sgd", {"momentum": float("nan")}),
        ("sgd", {"momentum": 10**400}),
        ("sgd", {"momentum": "inf"}),
        ("sgd", {"nesterov": "perhaps"}),
        ("galore_adamw", {"rank": 0}),
        ("galore_adamw", {"rank": 1.5}),
        ("galore_adamw", {"rank": True}),
        ("galore_adamw", {"proj_type": "full"}),
        ("galore_adamw", {"target_modules": ""}),
        ("galore_adamw", {"target_modules": "(a+)+$"}),
        ("adamw_torch", {"foreach": None}),
    ],
)
def test_senseless_values_are_refused(optimizer: str, args: dict[str, object]) -> None:
    """A value that is not what the argument means is an error that names the argument."""
    with pytest.raises(BadArgument, match=next(iter(args))):
        OPTIMIZERS[optimizer].settings(args)


def test_text_as_in_optim_args_is_understood() -> None:
    """optim_args="momentum=0.9,nesterov=true" arrives as text."""
    settings = OPTIMIZERS["sgd"].settings({"momentum": "0.9", "nesterov": "true", "foreach": "False"})
    assert (0.9, True, False) == (settings["momentum"], settings["nesterov"], settings["foreach"])


def test_the_trainer_wants_targets_for_low_rank_optimizers() -> None:
    """GaLore and APOLLO stop without optim_target_modules; all others start without arguments."""
    wanting = {row.id for row in OPTIMIZERS.values() if row.missing({})}
    assert {row.id for row in OPTIMIZERS.values() if row.family in ("GaLore", "APOLLO")} == wanting
    assert () == OPTIMIZERS["galore_adamw"].missing({"target_modules": "all-linear"})


def test_formulas_in_the_fields_symbols() -> None:
    """What the page shows: a term per state tensor, equal ones counted, exceptions named."""

    def formula(name: str, **args: object) -> str:
        row = OPTIMIZERS[name]
        return row.formula(row.settings(args))

    assert "4 + 2·n·b" == formula("adamw_torch")
    assert "4 + 3·n·b" == formula("adamw_torch", amsgrad=True)
    assert "2·n + 8·⌈n/256⌉ + 2·1024 once; vectors 8·n; embeddings 8·n" == formula("adamw_8bit")
    assert "4·r + 4·c + 4; vectors 4·n + 4" == formula("adafactor")
    assert "k·c·b + 2·k·r·b; vectors 2·n·b; embeddings 2·n·b" == formula("galore_adamw")
    assert "0" == formula("lomo")


RECORDED_DEFAULTS = [row for row in GOLDEN["rows"] if "defaults" in row]


@pytest.mark.parametrize("row", RECORDED_DEFAULTS, ids=lambda row: f"{row['recorded']}-{row['dtype']}")
def test_parameter_groups_have_the_recorded_keys_and_defaults(row: dict[str, dict[str, object]]) -> None:
    """Keys and defaults of the library's own groups, but for lr and for what the run set."""
    ours = OPTIMIZERS[str(row["optimizer"])]
    recorded = {key: value for key, value in row["defaults"].items() if key != "lr"}
    assert set(recorded) == set(ours.group)
    given = {"foreach", "amsgrad", "momentum", "centered", "beta1"}
    for key, value in recorded.items():
        if key in given:
            continue
        assert value == (str(ours.group[key]) if isinstance(ours.group[key], tuple) else ours.group[key]), key
