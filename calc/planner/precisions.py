"""One plan in each precision: what the same model, batch and length take, component by component."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from calc.memory.breakdown import Breakdown
from calc.memory.estimate import estimate
from calc.memory.problems import Refused
from calc.scenario import Precision, Scenario


@dataclass(frozen=True, slots=True)
class InPrecision:
    """A plan in one precision: its answer, or the sentence of why there is none."""

    precision: Precision
    answer: Breakdown | None
    refusal: str = ""


def in_each_precision(scenario: Scenario, *, config: Mapping[str, Any] | None = None) -> tuple[InPrecision, ...]:
    """The answers of a scenario in every precision, in the order of the choice. `config` as `estimate` takes it."""
    found = []
    for word in get_args(Precision):
        plan = scenario.plan.model_copy(update={"precision": word})
        try:
            answer = estimate(scenario.model_copy(update={"plan": plan}), config=config)
        except Refused as refused:
            found.append(InPrecision(word, None, refused.message))
            continue
        blocking = next((problem.message for problem in answer.problems if problem.blocking), "")
        found.append(InPrecision(word, None if blocking else answer, blocking))
    return tuple(found)
