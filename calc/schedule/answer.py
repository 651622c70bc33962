"""The answer of `python -m calc schedule`: steps, warmup and the rate at each step asked for."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, ValidationError

from calc.catalog.table import UnknownName
from calc.scenario import Frozen
from calc.schedule.phases import ScheduleError
from calc.schedule.plan import Planned, SchedulePlan

MOST_PAIRS = 2_000_000


class Asked(SchedulePlan):
    """A schedule plan and the steps to answer for."""

    at: tuple[Annotated[int, Field(ge=0, le=10**9)], ...] | None = None
    """Scheduler steps s (optimizer step s + 1 uses the rate); left out, every one from 0 to T − 1."""


class ScheduleScenario(Frozen):
    """One line of the command's input."""

    schedule: Asked
    """The schedule."""


def answer(schedule_scenario: dict[str, Any]) -> dict[str, Any]:
    """`{"steps", "warmup_steps", "steps_per_epoch", "learning_rates": [[s, lr], …]}` for one schedule scenario.

    `steps_per_epoch` is None where the dataset's size is not given. Raises `ScheduleError` with a code, a message and
    the field at fault for everything that is wrong with the scenario.
    """
    try:
        asked = ScheduleScenario.model_validate(schedule_scenario).schedule
        planned = Planned(asked)
        schedule, at = planned.schedule, asked.at
    except ValidationError as error:
        first = error.errors()[0]
        path = ".".join(str(part) for part in first["loc"])
        raise ScheduleError(first["type"], first["msg"].removeprefix("Value error, "), path) from None
    except UnknownName as error:
        raise ScheduleError("unknown_name", str(error), "schedule.type") from None
    if at is None and planned.steps > MOST_PAIRS:
        raise ScheduleError("too_many_steps", f"{planned.steps:,} steps: name those you want in `at`", "schedule.at")
    return {
        "steps": planned.steps,
        "warmup_steps": planned.warmup.value,
        "steps_per_epoch": planned.steps_per_epoch,
        "learning_rates": [[step, schedule.at(step)] for step in (range(planned.steps) if at is None else at)],
    }
