"""What a visitor chooses for a schedule, and what becomes of it: steps, warmup and the rate at every step."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

from pydantic import Field, StrictFloat, StrictInt, field_validator

from calc.scenario import Frozen
from calc.schedule.completions import CompletionPlan, completion_steps
from calc.schedule.kind import Kind
from calc.schedule.kinds import SCHEDULES, kind
from calc.schedule.phases import Schedule, ScheduleError
from calc.schedule.steps import STEP_RULES, StepPlan, StepRules, Working, planned_steps
from calc.schedule.warmup import resolved_warmup

Count = Annotated[int, Field(ge=1, le=10**9)]


class Completions(Frozen):
    """A run that generates its own samples (TRL's GRPO and RLOO).

    Num_samples then counts prompts, the batch completions.
    """

    num_generations: Annotated[int, Field(ge=1, le=10_000)] = 8
    """Completions per prompt (TRL: `num_generations`)."""
    steps_per_generation: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """Batches made at once (TRL: `steps_per_generation`); left out, gradient_accumulation_steps."""
    num_iterations: Annotated[int, Field(ge=1, le=1000)] = 1
    """Times that each batch is trained on (TRL: `num_iterations`)."""


class SchedulePlan(Frozen):
    """A schedule and the run it is for, in Hugging Face's words. The defaults are transformers 5.24's."""

    type: Annotated[str, Field(min_length=1, max_length=60)] = "linear"
    """The schedule (`lr_scheduler_type`), or another library's by its id."""
    learning_rate: Annotated[float, Field(gt=0, le=1000)] = 5e-5
    """The peak (`learning_rate`)."""
    warmup_steps: StrictInt | StrictFloat | None = None
    """Steps of warmup, or a share of the run where the version takes one (`warmup_steps`)."""
    warmup_ratio: StrictInt | StrictFloat | None = None
    """Share of the run that warms up, in the versions that have it (`warmup_ratio`)."""
    max_steps: Annotated[int, Field(ge=-1, le=10**9)] = -1
    """Optimizer steps; above 0 they override the epochs (`max_steps`)."""
    num_samples: Count | None = None
    """Rows of the dataset, after packing."""
    num_train_epochs: Annotated[float, Field(ge=0, le=10_000)] = 3.0
    """Passes over the dataset (`num_train_epochs`)."""
    per_device_train_batch_size: Annotated[int, Field(ge=1, le=65_536)] = 8
    """Sequences per GPU in one forward pass."""
    gradient_accumulation_steps: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    """Forward passes per optimizer step."""
    world_size: Annotated[int, Field(ge=1, le=65_536)] = 1
    """GPUs that draw different samples."""
    dataloader_drop_last: bool = False
    """Leave out the last batch when it is not full."""
    kwargs: dict[str, int | float | str | bool | list[float] | None] = Field(default_factory=dict, max_length=20)
    """The schedule's own options (`lr_scheduler_kwargs`)."""
    framework: str = "transformers-5.24"
    """The version whose arithmetic counts."""
    completions: Completions | None = None
    """For GRPO and RLOO: how completions are made."""
    prepared_num_processes: Annotated[int, Field(ge=1, le=65_536)] = 1
    """Processes whose `accelerator.prepare` steps the schedule too; 1 for Trainer, which does not prepare it."""

    @field_validator("type")
    @classmethod
    def _known_schedule(cls, value: str) -> str:
        return SCHEDULES[value].id

    @field_validator("framework")
    @classmethod
    def _known_framework(cls, value: str) -> str:
        return STEP_RULES[value].id


@dataclass(frozen=True)
class Planned:
    """A plan worked out. Each part raises `ScheduleError` where the framework refuses it."""

    plan: SchedulePlan

    @property
    def rules(self) -> StepRules:
        return STEP_RULES[self.plan.framework]

    @cached_property
    def kind(self) -> Kind:
        """The row of the schedule in this version."""
        return kind(self.plan.type, self.rules.version)

    @cached_property
    def counted(self) -> StepPlan | CompletionPlan:
        """The steps and their counting."""
        plan = self.plan
        if plan.completions is not None and plan.max_steps <= 0:
            if plan.num_samples is None:
                raise ScheduleError("num_samples_needed", "give the number of prompts, or max_steps", "num_samples")
            return completion_steps(
                num_prompts=plan.num_samples,
                per_device_train_batch_size=plan.per_device_train_batch_size,
                gradient_accumulation_steps=plan.gradient_accumulation_steps,
                world_size=plan.world_size,
                num_train_epochs=plan.num_train_epochs,
                **plan.completions.model_dump(),
            )
        return planned_steps(
            self.rules,
            num_samples=plan.num_samples,
            per_device_train_batch_size=plan.per_device_train_batch_size,
            gradient_accumulation_steps=plan.gradient_accumulation_steps,
            world_size=plan.world_size,
            num_train_epochs=plan.num_train_epochs,
            max_steps=plan.max_steps,
            dataloader_drop_last=plan.dataloader_drop_last,
        )

    @property
    def steps(self) -> int:
        """T."""
        return self.counted.steps

    @property
    def steps_per_epoch(self) -> int | None:
        """U; None where the dataset's size is unknown."""
        return None if self.plan.num_samples is None else self.counted.steps_per_epoch

    @cached_property
    def warmup(self) -> Working:
        """W and how it came about."""
        plan = self.plan
        return resolved_warmup(
            self.rules, steps=self.steps, warmup_steps=plan.warmup_steps, warmup_ratio=plan.warmup_ratio
        )

    @cached_property
    def schedule(self) -> Schedule:
        """The rate at every step."""
        # Trainer hands schedule-free optimizers what was typed, a fraction too.
        typed = self.plan.warmup_steps if self.kind.takes_typed_warmup else None
        return self.kind.schedule(
            learning_rate=self.plan.learning_rate,
            warmup_steps=self.warmup.value if typed is None else typed,
            steps=self.steps,
            options=self.plan.kwargs,
            ticks=self.plan.prepared_num_processes,
        )

    def samples_after(self, step: int) -> int:
        """Sequences (completions in GRPO) trained on after optimizer step `step`, short batches counted as full."""
        plan = self.plan
        return step * plan.per_device_train_batch_size * plan.gradient_accumulation_steps * plan.world_size

    def epoch_after(self, step: int) -> float | None:
        """The epoch logged after optimizer step `step`; None where the dataset's size is unknown."""
        if isinstance(self.counted, StepPlan):
            return None if self.counted.batches_per_epoch in (None, 0) else self.counted.epoch_after(step)
        return step / self.counted.steps_per_epoch
