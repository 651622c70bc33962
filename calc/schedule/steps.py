"""How many optimizer steps a run takes: three nested roundings, in the way each framework version does them.

Symbols: N samples, b per-device batch, R data-parallel ranks, ga accumulation, E epochs, B batches, L batches per
rank, U steps per epoch, T steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from calc.catalog.table import Table
from calc.schedule.expression import number
from calc.schedule.phases import ScheduleError


@dataclass(frozen=True, slots=True)
class StepRules:
    """What one framework version does with batches, warmup and logs."""

    id: str
    label: str
    version: tuple[int, int]
    """The transformers version underneath, which decides which schedules there are."""
    accumulation: Literal["up", "down"]
    """How L / ga is rounded to steps per epoch."""
    border: Literal["steps", "carries over"]
    """What batches left at an epoch's end do: make a step of their own, or wait for the next epoch's."""
    warmup: Literal["steps win", "ratio wins", "steps only", "axolotl"]
    """Which of warmup_steps and warmup_ratio counts, and how it is rounded."""
    logs: Literal["used", "next"]
    """Whether the logged learning_rate is the one just used or the one of the next step."""
    empty_loader: Literal["raises", "plans"]
    """What happens when drop_last leaves no batch at all."""
    counting: Literal["epoch", "run"] = "epoch"
    """Whether steps are rounded up per epoch (Trainer) or once over all epochs (axolotl)."""
    source: str = "transformers-trainer"


STEP_RULES = Table(
    "framework",
    StepRules("transformers-5.24", "transformers 5.24", (5, 24), "up", "steps", "steps only", "used", "raises"),
    StepRules("transformers-5.14", "transformers 5.14", (5, 14), "up", "steps", "ratio wins", "used", "raises"),
    StepRules("transformers-4.57", "transformers 4.57", (4, 57), "up", "steps", "steps win", "used", "raises"),
    StepRules("transformers-4.51", "transformers 4.51", (4, 51), "down", "steps", "steps win", "used", "raises"),
    # Between the versions that were run: its loop and its log are read in the source (4.46 to 4.51, up to 4.50).
    StepRules("transformers-4.48", "transformers 4.48", (4, 48), "down", "steps", "steps win", "next", "plans"),
    StepRules("transformers-4.44", "transformers 4.44", (4, 44), "down", "carries over", "steps win", "next", "plans"),
    StepRules(
        "own-loop",
        "a loop of one's own, as run_clm_no_trainer",
        (5, 24),
        "up",
        "steps",
        "steps only",
        "used",
        "plans",
        source="no-trainer",
    ),
    StepRules(
        "trl-1.16",
        "TRL 1.16 on transformers 5.24",
        (5, 24),
        "up",
        "steps",
        "steps only",
        "used",
        "raises",
        source="trl",
    ),
    StepRules(
        "axolotl-0.19",
        "axolotl 0.19",
        (5, 24),
        "up",
        "steps",
        "axolotl",
        "used",
        "raises",
        counting="run",
        source="axolotl",
    ),
)


@dataclass(frozen=True, slots=True)
class Working:
    """One count with its reason."""

    label: str
    symbol: str
    value: float
    formula: str
    """In symbols."""
    numbers: str
    """With this run's numbers."""


@dataclass(frozen=True, slots=True)
class StepPlan:
    """The steps of a run, and how they were counted."""

    steps: int
    """T: optimizer steps in the run."""
    steps_per_epoch: int
    """U. Without a length it is T, as Trainer has it."""
    batches_per_epoch: int | None
    """L: batches that each rank draws in an epoch; None where the length is unknown."""
    total_batch_size: int
    """Sequences in one optimizer step over all ranks."""
    num_train_epochs: int | None
    """Epochs begun; None where the length is unknown."""
    num_examples: int
    """Samples in an epoch, as Trainer reports."""
    num_train_samples: float
    """Samples in the run, as Trainer reports; E · N, so a fraction where E is one."""
    gradient_accumulation_steps: int
    border: Literal["steps", "carries over"]
    workings: tuple[Working, ...]

    def epoch_after(self, step: int, *, stream_batches: int | None = None) -> float:
        """The epoch that Trainer logs after optimizer step `step` (from 1).

        Without a length Trainer takes T · ga batches for an epoch; a stream that ends after `stream_batches` starts
        over, and the number jumps to the next whole one. Raises `ScheduleError` where such a stream is too short for
        one step.
        """
        ga, L = self.gradient_accumulation_steps, self.batches_per_epoch
        if step == 0:
            return 0.0
        if L is None:
            return self._stream_epoch(step, stream_batches)
        if self.border == "steps":
            passes, rest = divmod(step, -(-L // ga))
            return passes + min(rest * ga, L) / L
        if ga <= L:
            return step * ga / L
        return self._short_epoch(step, L)

    def _stream_epoch(self, step: int, batches: int | None) -> float:
        ga = self.gradient_accumulation_steps
        declared = self.steps * ga
        if batches is None:
            return step * ga / declared
        if self.border == "carries over":
            passes = (step * ga - 1) // batches
            return passes + (step * ga - passes * batches) / declared
        if batches < ga:
            raise ScheduleError(
                "stream_too_short", "the stream has fewer batches than one step accumulates", "num_samples"
            )
        passes, done = divmod(step - 1, batches // ga)
        return passes + (done + 1) * ga / declared

    def _short_epoch(self, step: int, L: int) -> float:
        """4.44 with fewer batches than accumulation.

        It steps at each epoch's end and whenever ga batches have come together.
        """
        ga, drawn = self.gradient_accumulation_steps, 0
        while step:
            drawn += 1
            step -= drawn % ga == 0 or drawn % L == 0
        return drawn / L

    @property
    def epochs_trained(self) -> float | None:
        """How far through the data the run ends; None where the length is unknown or no step is made."""
        return None if self.batches_per_epoch in (None, 0) else self.epoch_after(self.steps)


def data_parallel_size(
    world_size: int, *, tensor_parallel: int = 1, context_parallel: int = 1, sequence_parallel: int = 1
) -> int:
    """R: how many ranks draw different samples."""
    shared = tensor_parallel * context_parallel * sequence_parallel
    if world_size % shared:
        raise ScheduleError("world_size", f"{world_size} GPUs do not divide into groups of {shared}", "world_size")
    return world_size // shared


def planned_steps(
    rules: StepRules,
    *,
    num_samples: int | None,
    per_device_train_batch_size: int,
    gradient_accumulation_steps: int = 1,
    world_size: int = 1,
    num_train_epochs: float = 3.0,
    max_steps: int = -1,
    dataloader_drop_last: bool = False,
    iterable: bool = False,
    sequence_parallel: int = 1,
    batch_rebalance: bool = False,
) -> StepPlan:
    """Steps of a run over `num_samples` rows (packed rows when packing; None for a stream without a length).

    `world_size` is the number of data-parallel ranks. `max_steps` above 0 overrides the epochs. Raises `ScheduleError`
    where the framework does: a stream without max_steps, or no batch left by drop_last.
    """
    b, ga, R, N = per_device_train_batch_size, gradient_accumulation_steps, world_size, num_samples
    total = b * ga * R
    if N is None:
        if max_steps <= 0:
            raise ScheduleError("max_steps_needed", "a stream without a length needs max_steps", "max_steps")
        return StepPlan(
            max_steps,
            max_steps,
            None,
            total,
            None,
            total * max_steps,
            total * max_steps,
            ga,
            rules.border,
            (Working("steps", "T", max_steps, "max_steps", number(max_steps)),),
        )
    edge = "floor" if dataloader_drop_last else "ceil"
    B = N // b if dataloader_drop_last else -(-N // b)
    L = (B // R if dataloader_drop_last else -(-B // R)) * sequence_parallel
    workings = [
        Working("batches", "B", B, f"{edge}(N / b)", f"{edge}({number(N)} / {number(b)})"),
        Working(
            "batches per rank",
            "L",
            L,
            f"{edge}(B / R){' · sp' if sequence_parallel > 1 else ''}",
            f"{edge}({number(B)} / {number(R)}){f' · {sequence_parallel}' if sequence_parallel > 1 else ''}",
        ),
    ]
    if L == 0 and max_steps <= 0 and rules.empty_loader == "raises":
        raise ScheduleError(
            "no_batch",
            "dropping the last batch leaves none: fewer samples than one batch over all ranks",
            "num_samples",
        )
    if batch_rebalance:
        U = N // total if dataloader_drop_last else -(-N // total)
        workings.append(
            Working("steps per epoch", "U", U, f"{edge}(N / (b · ga · R))", f"{edge}({number(N)} / {number(total)})")
        )
    else:
        U = max(1, -(-L // ga) if rules.accumulation == "up" else L // ga)
        turn = "ceil" if rules.accumulation == "up" else "floor"
        workings.append(
            Working("steps per epoch", "U", U, f"max(1, {turn}(L / ga))", f"max(1, {turn}({number(L)} / {number(ga)}))")
        )
    if max_steps > 0:
        T, epochs, samples = max_steps, -(-max_steps // max(U, 1)), float(max_steps * total)
        workings.append(Working("steps", "T", T, "max_steps", number(max_steps)))
    elif rules.counting == "run":
        T, epochs, samples = math.ceil(N * num_train_epochs / total), math.ceil(num_train_epochs), N * num_train_epochs
        workings.append(
            Working(
                "steps",
                "T",
                T,
                "ceil(N · E / (b · ga · R))",
                f"ceil({number(N)} · {number(num_train_epochs)} / {number(total)})",
            )
        )
    else:
        T, epochs = math.ceil(num_train_epochs * U), math.ceil(num_train_epochs)
        samples = (L * b if iterable and R > 1 else N) * num_train_epochs
        workings.append(Working("steps", "T", T, "ceil(E · U)", f"ceil({number(num_train_epochs)} · {number(U)})"))
    return StepPlan(
        T, U, L, total, epochs, L * b if iterable and R > 1 else N, samples, ga, rules.border, tuple(workings)
    )


def packed_axolotl_steps(
    *, packed_batches: int, micro_batch_size: int, total_batch_size: int, num_train_epochs: float
) -> int:
    """T of a packed axolotl run.

    Its loader's batches become steps, at least one an epoch, rounded down over the run.
    """
    return int(max(1, packed_batches * micro_batch_size // total_batch_size) * num_train_epochs)


def estimated_axolotl_steps(
    *, tokens: int, packing_efficiency: float, seq_len: int, total_batch_size: int, num_train_epochs: float
) -> int:
    """T of a packed axolotl run with `sample_packing_eff_est` set: an estimate from tokens, less one step an epoch."""
    return int((math.floor(0.99 * tokens / packing_efficiency / seq_len // total_batch_size) - 1) * num_train_epochs)


def interval(steps: int, value: float) -> int:
    """Steps between saves, evaluations or logs: a value below 1 is a share of the run, rounded up."""
    return math.ceil(steps * value) if value < 1 else int(value)
