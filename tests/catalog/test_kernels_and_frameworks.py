"""Rows of fused kernels and framework versions: sourced, and in step with what a scenario can choose."""

from __future__ import annotations

from typing import get_args

from calc.catalog.frameworks import FRAMEWORKS
from calc.catalog.kernels import KERNELS
from calc.catalog.optimizers import OPTIMIZERS
from calc.catalog.sources import SOURCES
from calc.model import families
from calc.scenario import Kernels


def test_every_row_names_its_source() -> None:
    """One that the table of sources has."""
    assert {row.source for row in (*KERNELS.values(), *FRAMEWORKS.values())} <= set(SOURCES)


def test_kernels_are_those_that_a_scenario_can_choose() -> None:
    """Unsloth's, which replace the whole forward pass, are refused."""
    assert {"unsloth"} == set(get_args(Kernels)) - set(KERNELS)
    assert set(KERNELS) < set(get_args(Kernels))


def test_the_architectures_that_kernels_know_are_modelled() -> None:
    """No row promises what no family can run."""
    for row in KERNELS.values():
        assert set(row.head_types) <= set(families())
        assert set(row.model_types or ()) <= set(families())


def test_default_optimizers_exist() -> None:
    """A framework's default is a row of its own table."""
    assert {row.default_optimizer for row in FRAMEWORKS.values()} <= set(OPTIMIZERS)
