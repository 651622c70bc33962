"""Levers, solvers and plans of a scenario as one JSON object, for `python -m calc plan`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from calc.memory.breakdown import Breakdown
from calc.planner.comparison import settings
from calc.planner.plans import Constraints, Fitting, plans
from calc.planner.solvers import (
    Card,
    Solution,
    highest_rank,
    largest_micro_batch,
    longest_sequence,
    smallest_card,
)
from calc.planner.suggestions import Suggestion, WithoutEffect, advice, pairs
from calc.scenario import Scenario


def answer(
    scenario: Scenario, constraints: Constraints | None = None, *, config: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Everything that the planner knows of one scenario, in bytes. Raises what `estimate` raises."""
    constraints = constraints or Constraints()
    margin = constraints.margin
    found = advice(scenario, config=config, margin=margin)
    return {
        "now": summary(found.before),
        "levers": [suggestion_object(one, scenario) for one in found.helpful],
        "pairs": [suggestion_object(one, scenario) for one in pairs(found, config=config, margin=margin)],
        "without_effect": [without_effect_object(one) for one in found.useless],
        "largest_micro_batch": solution_object(largest_micro_batch(scenario, config=config, margin=margin)),
        "longest_sequence": solution_object(longest_sequence(scenario, config=config, margin=margin)),
        "highest_rank": solution_object(highest_rank(scenario, config=config, margin=margin)),
        "smallest_card": card_object(smallest_card(scenario, config=config, margin=margin)),
        "plans": [fitting_object(one, scenario) for one in plans(scenario, constraints, config=config)],
    }


def summary(answer: Breakdown) -> dict[str, Any]:
    """Verdict and peak."""
    return {
        "verdict": answer.verdict,
        "allocated": int(answer.peak.allocated),
        "instant": answer.peak.instant,
        "device": int(answer.peak.device.expected),
        "capacity": int(answer.capacity),
    }


def changes(before: Scenario, after: Scenario) -> dict[str, Any]:
    """The settings that differ, by dotted path, with their new value."""
    return {
        one.path: one.after.model_dump(mode="json") if isinstance(one.after, BaseModel) else one.after
        for one in settings(before, after)
        if one.after is not None
    }


def suggestion_object(suggestion: Suggestion, before: Scenario) -> dict[str, Any]:
    """A lever, or a pair, with what it does and costs."""
    return {
        "id": suggestion.id,
        "label": " + ".join(lever.label for lever in suggestion.levers),
        "saved": int(suggestion.saved),
        "fits": suggestion.answer.verdict in ("fits", "tight"),
        "makes_it_fit": suggestion.turns,
        "risk": suggestion.risk,
        "quality": [lever.quality for lever in suggestion.levers],
        "time": suggestion.time,
        "installs": [lever.installs for lever in suggestion.levers if lever.installs],
        "sources": list(
            dict.fromkeys(
                source
                for lever in suggestion.levers
                for source in (lever.quality_source, *(lever.time.sources if lever.time else ()))
            )
        ),
        "changes": changes(before, suggestion.scenario),
        **summary(suggestion.answer),
    }


def without_effect_object(one: WithoutEffect) -> dict[str, Any]:
    """A lever that does not help, and why."""
    return {"id": one.lever.id, "label": one.lever.label, "raised": int(one.raised), "reason": one.reason}


def solution_object(solution: Solution | None) -> dict[str, Any] | None:
    """The largest value that fits."""
    if solution is None:
        return None
    return {"field": solution.path, "value": solution.value, "bounded": solution.bounded, **summary(solution.answer)}


def card_object(card: Card | None) -> dict[str, Any] | None:
    """The smallest card that fits."""
    return None if card is None else {"gpu": card.gpu.id, "name": card.gpu.name, **summary(card.answer)}


def fitting_object(plan: Fitting, before: Scenario) -> dict[str, Any]:
    """The best plan of a method."""
    return {
        "method": plan.method,
        "levers": [lever.id for lever in plan.levers],
        "changes": changes(before, plan.scenario),
        **summary(plan.answer),
    }
