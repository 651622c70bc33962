"""What a page is about: the scenario of this visit and its answer, worked out once a run by the frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from calc import Breakdown, Refused, Scenario, estimate
from calc.catalog.gpus import GPUS, Gpu
from pages.parts import models, state
from pages.parts.models import Known, Unknown


@dataclass(frozen=True, slots=True)
class Here:
    """The scenario, its model, and the answer or the sentence that stands in its place."""

    scenario: Scenario
    model: Known | Unknown
    answer: Breakdown | None
    """None where there is no answer; then `refusal` says why."""
    refusal: str = ""
    verdict: str = "unknown"
    """The answer's, or for a plan that is refused `impossible`, or `unknown` where nobody can tell yet."""

    @property
    def config(self) -> dict[str, Any] | None:
        """The model's config.json; None where `calc` has it in its own catalogue."""
        return self.model.config if isinstance(self.model, Known) else None

    @property
    def gpu(self) -> Gpu:
        """The card."""
        return GPUS[self.scenario.hardware.gpu]


def here() -> Here:
    """The scenario of this visit, answered."""
    scenario, model = state.scenario(), models.current()
    if isinstance(model, Unknown):
        return Here(scenario, model, None, model.sentence)
    try:
        answer = estimate(scenario, config=model.config)
    except Refused as refused:
        unknown = refused.code.endswith("not_modelled")
        return Here(scenario, model, None, refused.message, "unknown" if unknown else "impossible")
    except ValueError as unknown_model:
        return Here(scenario, model, None, str(unknown_model))
    return Here(scenario, model, answer, verdict=answer.verdict)
