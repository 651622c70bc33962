"""Resuming from a checkpoint with other arguments: what the new ones change, and what the checkpoint keeps.

Shape, length and warmup come from the new arguments, the position and the base rate from the checkpoint; the first
resumed step still uses the rate that the optimizer was saved with. Source: transformers 5.24, run.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from calc.catalog.table import Table
from calc.schedule.expression import number
from calc.schedule.phases import Schedule, ScheduleError
from calc.schedule.plan import Planned
from calc.schedule.traps import Trap, TrapKind, Values


@dataclass(frozen=True)
class Resumed:
    """A run saved under one plan and resumed under another."""

    saved: Planned
    new: Planned
    checkpoint: int
    """Optimizer steps done when it was saved."""

    def __post_init__(self) -> None:
        if not 0 < self.checkpoint <= self.saved.steps:
            raise ScheduleError(
                "checkpoint", f"a checkpoint lies between step 1 and {self.saved.steps:,}", "checkpoint"
            )

    @cached_property
    def planned(self) -> Schedule:
        """The new plan's schedule at the saved run's learning rate: a new rate is ignored."""
        plan = self.new.plan.model_copy(update={"learning_rate": self.saved.plan.learning_rate})
        return Planned(plan).schedule

    def at(self, step: int) -> float:
        """The rate after `step` optimizer steps, counted from the first run's start."""
        return (self.saved.schedule if step <= self.checkpoint else self.planned).at(step)

    @property
    def traps(self) -> tuple[Trap, ...]:
        """What resuming does unasked."""
        return tuple(Trap.met(row, values) for row in RESUME_TRAPS.values() if (values := row.when(self)) is not None)


def _rate_kept(resumed: Resumed) -> Values | None:
    saved, new = resumed.saved.plan.learning_rate, resumed.new.plan.learning_rate
    return None if saved == new else {"saved": number(saved), "new": number(new)}


def _jump(resumed: Resumed) -> Values | None:
    c = resumed.checkpoint
    if (
        c + 1 >= resumed.new.steps
        or c == resumed.saved.steps
        or resumed.planned.at(c + 1) == resumed.saved.schedule.at(c + 1)
    ):
        return None
    return {"step": number(c + 1), "first": number(resumed.at(c)), "second": number(resumed.at(c + 1))}


def _finished(resumed: Resumed) -> Values | None:
    c = resumed.checkpoint
    if c != resumed.saved.steps or c + 1 >= resumed.new.steps:
        return None
    return {"step": number(c + 1), "first": number(resumed.at(c)), "second": number(resumed.at(c + 1))}


def _nothing_left(resumed: Resumed) -> Values | None:
    if resumed.checkpoint < resumed.new.steps:
        return None
    return {"checkpoint": number(resumed.checkpoint), "T": number(resumed.new.steps)}


RESUME_TRAPS: Table[TrapKind[Resumed]] = Table(
    "resume trap",
    TrapKind(
        "resumed_rate_kept",
        "misleads",
        "The new learning rate {new} is ignored: base rate and first rate come from the checkpoint ({saved}).",
        "Start a new run from the saved weights, or edit the scheduler's state.",
        "resume",
        _rate_kept,
    ),
    TrapKind(
        "resumed_jump",
        "misleads",
        "Step {step} still runs at the saved {first}; from the next on the new plan's curve holds, at {second}.",
        "Resume with the same schedule, epochs and warmup, or expect the jump.",
        "resume",
        _jump,
    ),
    TrapKind(
        "resumed_after_the_end",
        "misleads",
        "A finished run is extended: step {step} runs at {first}, then the rate is back at {second}.",
        "Plan the whole length from the start, or start a new run from the weights.",
        "resume",
        _finished,
    ),
    TrapKind(
        "resumed_at_the_end",
        "stops",
        "The checkpoint at step {checkpoint} is not before the new end at step {T}: nothing is trained.",
        "Raise num_train_epochs or max_steps.",
        "resume",
        _nothing_left,
    ),
)
