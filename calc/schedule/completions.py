"""Steps of GRPO and RLOO in TRL, where the per-device batch counts completions, not prompts."""

from __future__ import annotations

import math
from dataclasses import dataclass

from calc.schedule.phases import ScheduleError


@dataclass(frozen=True, slots=True)
class CompletionPlan:
    """Steps of a run that generates its own samples."""

    steps: int
    """T: optimizer steps."""
    steps_per_epoch: int
    batches_per_epoch: int
    """Batches that each rank draws in an epoch."""
    generation_batch_size: int
    """Completions made at once over all ranks."""
    prompts_per_generation: int
    """Prompts that share one generation."""
    completions_per_epoch: int
    """What the sampler yields in an epoch, repeats counted."""


def completion_steps(
    *,
    num_prompts: int,
    per_device_train_batch_size: int,
    gradient_accumulation_steps: int = 1,
    world_size: int = 1,
    num_generations: int = 8,
    steps_per_generation: int | None = None,
    num_iterations: int = 1,
    num_train_epochs: float = 1.0,
) -> CompletionPlan:
    """Steps for `num_prompts` prompts with `num_generations` completions each, every batch used `num_iterations` times.

    Raises `ScheduleError` where TRL does: a generation batch that groups do not divide, or more prompts in it than
    there are. Source: TRL 1.16, run.
    """
    b, ga, R, G = per_device_train_batch_size, gradient_accumulation_steps, world_size, num_generations
    spg = ga if steps_per_generation is None else steps_per_generation
    generated = b * R * spg
    if generated % G:
        raise ScheduleError(
            "generations",
            f"a generation batch of {generated} completions does not divide into groups of {G}",
            "num_generations",
        )
    prompts = generated // G
    drawn = num_prompts // prompts * prompts * G * num_iterations * spg
    if drawn == 0:
        raise ScheduleError(
            "no_batch", f"{num_prompts} prompts are fewer than the {prompts} of one generation batch", "num_samples"
        )
    L = -(-drawn // (b * spg)) // R
    U = max(1, -(-L // ga))
    return CompletionPlan(math.ceil(num_train_epochs * U), U, L, generated, prompts, drawn)
