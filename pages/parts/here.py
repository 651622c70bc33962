"""What a page is about: the scenario of this visit and its answer, worked out once a run by the frame."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from calc import Breakdown, Refused, Scenario, estimate
from calc.catalog.gpus import GPUS, Gpu
from calc.catalog.models import MODELS
from calc.memory.estimate import config_of
from calc.memory.floor import Floor, floor
from calc.memory.nearest import likely
from calc.model.about import About, about
from calc.model.counting import counted as count
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
    floor: Floor | None = None
    """What the step holds at least, where only its activations are not known."""

    @property
    def config(self) -> dict[str, Any] | None:
        """The model's config.json; None where `calc` has it in its own catalogue."""
        return self.model.config if isinstance(self.model, Known) else None

    @property
    def about(self) -> About | None:
        """What is known of the model's parameters; None where they are not."""
        return _about(self.scenario, self.model) if isinstance(self.model, Known) else None

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
        return _refused(scenario, model, refused)
    except ValueError as unknown_model:
        return Here(scenario, model, None, str(unknown_model))
    return Here(scenario, model, answer, verdict=answer.verdict)


def _refused(scenario: Scenario, model: Known, refused: Refused) -> Here:
    """No answer; but where only the activations are not known, what is held beside them."""
    if refused.code in ("activations_not_modelled", "unknown_architecture", "bad_config"):
        known = _about(scenario, model)
        try:
            least = None if known is None else floor(scenario, known.model, known.checkpoint)
        except Refused as plan:
            return Here(scenario, model, None, plan.message, "impossible")
        if least is not None and known is not None:
            config = model.config if model.config is not None else config_of(scenario)
            least = replace(least, likely=likely(scenario, least, known.model, config))
            return Here(scenario, model, None, refused.message, least.verdict, least)
    unknown = refused.code.endswith("not_modelled") or refused.code == "unknown_architecture"
    return Here(scenario, model, None, refused.message, "unknown" if unknown else "impossible")


def _about(scenario: Scenario, model: Known) -> About | None:
    config = model.config if model.config is not None else config_of(scenario)
    row = MODELS[scenario.model] if isinstance(scenario.model, str) and scenario.model in MODELS else None
    try:
        counted = model.stored or count(config)
        return about(counted, config, row.hub_total if row and not model.commit else model.stored_total)
    except ValueError:
        return None
