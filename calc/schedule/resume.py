"""Resuming from a checkpoint with other arguments: what the new ones change, and what the checkpoint keeps.

Shape, length and warmup come from the new arguments, the position and the base rate from the checkpoint; the first
resumed step still uses the rate that the optimizer was saved with. Source: transformers 5.24, run.
"""

from __future__ import annotations

from dataclasses import dataclass

from calc.schedule.phases import Schedule


@dataclass(frozen=True, slots=True)
class Resumed:
    """The rates of a resumed run."""

    saved: Schedule
    """The schedule of the run that was saved."""
    planned: Schedule
    """The schedule of the new arguments, at the saved run's learning rate: a new one is ignored."""
    checkpoint: int
    """Optimizer steps done when it was saved."""

    def at(self, step: int) -> float:
        """The rate after `step` optimizer steps, counted from the first run's start."""
        return self.saved.at(step) if step <= self.checkpoint else self.planned.at(step)

    @property
    def jump(self) -> float:
        """Rate of the second resumed step over that of the first.

        1 − a little when nothing changed, inf after a finished run.
        """
        first, second = self.at(self.checkpoint), self.at(self.checkpoint + 1)
        return second / first if first else float("inf") if second else 1.0
