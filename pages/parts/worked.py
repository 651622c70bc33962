"""What the planner works out for a scenario, kept for whoever asks for the same one again.

A result depends on the scenario and on the model's config alone, so visitors share it; nothing that a visitor types beside these
(token lengths, a token) comes near it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from calc import Scenario
from calc.planner.fit_map import FitMap, fit_map
from calc.planner.plans import Constraints, Fitting, plans
from calc.planner.solvers import (
    Card,
    Solution,
    highest_rank,
    largest_micro_batch,
    longest_sequence,
    smallest_card,
)
from calc.planner.suggestions import Advice, Suggestion, advice, pairs
from calc.planner.tensors import Activations, kept_tensors
from calc.planner.trades import Growth, Way
from calc.planner.trades import growths as growths_of
from calc.planner.trades import ways as ways_of
from pages.parts.here import Here
from pages.parts.models import Known

Config = Mapping[str, Any] | None
_kept = st.cache_resource(max_entries=128, show_spinner=False)


def key(here: Here) -> str:
    """What a result depends on: the scenario, and the commit that the model's config was read from."""
    commit = here.model.commit if isinstance(here.model, Known) else ""
    return f"{here.scenario.model_dump_json()}@{commit}"


@_kept
def _advice(key: str, _scenario: Scenario, _config: Config) -> Advice:
    return advice(_scenario, config=_config)


@_kept
def _pairs(key: str, _given: Advice, _config: Config) -> tuple[Suggestion, ...]:
    return pairs(_given, config=_config)


@_kept
def _plans(key: str, _scenario: Scenario, _constraints: Constraints, _config: Config) -> tuple[Fitting, ...]:
    return plans(_scenario, _constraints, config=_config)


@_kept
def _reach(key: str, _scenario: Scenario, _config: Config) -> tuple[Solution | None, Solution | None, Solution | None]:
    return (
        largest_micro_batch(_scenario, config=_config),
        longest_sequence(_scenario, config=_config),
        highest_rank(_scenario, config=_config),
    )


@_kept
def _card(key: str, vendor: str, _scenario: Scenario, _config: Config) -> Card | None:
    return smallest_card(_scenario, vendor=vendor, config=_config)


@_kept
def _map(
    key: str,
    batches: tuple[int, ...],
    lengths: tuple[int, ...],
    gpus: tuple[str, ...],
    _scenario: Scenario,
    _config: Config,
) -> FitMap:
    return fit_map(_scenario, batches, lengths, gpus=gpus, config=_config)


@_kept
def _tensors(key: str, _scenario: Scenario, _config: Config) -> Activations:
    return kept_tensors(_scenario, config=_config)


@_kept
def _growths(
    key: str, batches: tuple[int, ...], lengths: tuple[int, ...], _scenario: Scenario, _config: Config
) -> tuple[Growth, ...]:
    return growths_of(_scenario, batches, lengths, config=_config)


@_kept
def _ways(key: str, _scenario: Scenario, _config: Config) -> tuple[Way, ...]:
    return ways_of(_scenario, config=_config)


def levers(here: Here) -> Advice:
    """Every lever tried alone."""
    return _advice(key(here), here.scenario, here.config)


def lever_pairs(here: Here) -> tuple[Suggestion, ...]:
    """The best pairs of levers."""
    return _pairs(key(here), levers(here), here.config)


def best_plans(here: Here, constraints: Constraints) -> tuple[Fitting, ...]:
    """The best plan that fits of each method."""
    return _plans(f"{key(here)}{constraints.model_dump_json()}", here.scenario, constraints, here.config)


def reach(here: Here) -> tuple[Solution | None, Solution | None, Solution | None]:
    """Largest micro-batch, longest sequence, highest rank."""
    return _reach(key(here), here.scenario, here.config)


def card(here: Here, vendor: str) -> Card | None:
    """The smallest card of a vendor that fits."""
    return _card(key(here), vendor, here.scenario, here.config)


def whole_map(here: Here, batches: tuple[int, ...], lengths: tuple[int, ...], gpus: tuple[str, ...]) -> FitMap:
    """The fit map with the frontiers of some cards."""
    return _map(key(here), batches, lengths, gpus, here.scenario, here.config)


def tensors(here: Here) -> Activations:
    """Everything that is kept for the backward pass."""
    return _tensors(key(here), here.scenario, here.config)


def growths(here: Here, batches: tuple[int, ...], lengths: tuple[int, ...]) -> tuple[Growth, ...]:
    """Memory against micro-batch and length, for the plan and with one change each."""
    return _growths(key(here), batches, lengths, here.scenario, here.config)


def ways(here: Here) -> tuple[Way, ...]:
    """Other ways to the same tokens per optimizer step."""
    return _ways(key(here), here.scenario, here.config)
