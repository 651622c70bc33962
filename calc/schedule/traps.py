"""What a plan will do that its owner did not ask for: measured traps, one row each, with the remedy and the source."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from calc.catalog.table import Table
from calc.schedule.expression import number
from calc.schedule.plan import Planned
from calc.schedule.steps import StepPlan

Values = Mapping[str, str]
Severity = Literal["stops", "misleads", "note"]
P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class TrapKind(Generic[P]):
    """One trap: when a plan is in it, what happens, what to do."""

    id: str
    severity: Severity
    message: str
    """What happens, with {values}."""
    remedy: str
    """What to do, with {values}."""
    source: str
    when: Callable[[P], Values | None]
    """The values for the texts where the plan is in the trap; None elsewhere."""
    of_kinds: bool = False
    """Only schedules that name this trap can fall into it."""


@dataclass(frozen=True, slots=True)
class Trap:
    """A trap that a plan is in."""

    id: str
    severity: Severity
    message: str
    remedy: str
    source: str
    values: Values
    """For texts in another language."""

    @classmethod
    def met(cls, row: TrapKind[P], values: Values) -> Trap:
        """The trap of a row, with its texts filled in."""
        return cls(row.id, row.severity, row.message.format(**values), row.remedy.format(**values), row.source, values)


def traps(planned: Planned) -> tuple[Trap, ...]:
    """The traps that a plan is in, those that stop it first.

    Raises `ScheduleError` where the plan is refused anyway.
    """
    halt = planned.schedule.halts_at
    # A run that crashes on its way has no rates to look at.
    rows = (
        [TRAPS["crash"]]
        if halt and halt.first < planned.steps
        else [row for row in TRAPS.values() if not row.of_kinds or row.id in planned.kind.traps]
    )
    found = [Trap.met(row, values) for row in rows if (values := row.when(planned)) is not None]
    order: dict[Severity, int] = {"stops": 0, "misleads": 1, "note": 2}
    return tuple(sorted(found, key=lambda trap: order[trap.severity]))


def _always(planned: Planned) -> Values | None:
    return {}


def _asked_for_warmup(planned: Planned) -> bool:
    return bool(planned.plan.warmup_steps or planned.plan.warmup_ratio)


def _option(planned: Planned, name: str) -> float | None:
    value = planned.kind.checked(planned.plan.kwargs).get(name)
    return float(value) if isinstance(value, int | float) else None


def _crash(planned: Planned) -> Values | None:
    halt = planned.schedule.halts_at
    return {"reason": halt.reason, "step": number(int(halt.first))} if halt else None


def _warmup_ignored(planned: Planned) -> Values | None:
    if planned.kind.warmup == "used" or not _asked_for_warmup(planned):
        return None
    return {"kind": planned.kind.id, "warmup": number(planned.warmup.value)}


def _warmup_past_end(planned: Planned) -> Values | None:
    W, T = planned.warmup.value, planned.steps
    if planned.kind.warmup == "ignored" or T == 0 or T * planned.plan.prepared_num_processes > W:
        return None
    return {"W": number(W), "T": number(T), "rate": number(planned.schedule.peak)}


def _first_step(planned: Planned) -> Values | None:
    if planned.steps == 0 or planned.schedule.at(0) != 0:
        return None
    zeros = next((s for s in range(min(planned.steps, 10)) if planned.schedule.at(s) != 0), planned.steps)
    if zeros / planned.steps < 0.005:  # nothing lost in a long run
        return None
    return {"zeros": number(zeros), "T": number(planned.steps), "share": f"{100 * zeros / planned.steps:.2g} %"}


def _only_step(planned: Planned) -> Values | None:
    return {} if planned.steps == 1 and planned.schedule.at(0) == 0 else None


def _schedule_free_fraction(planned: Planned) -> Values | None:
    given = planned.plan.warmup_steps
    if given is None or not 0 < given < 1:
        return None
    return {"given": number(given), "times": number(round(1 / given)), "rate": number(planned.schedule.at(0))}


def _waves(planned: Planned) -> Values | None:
    cycles = _option(planned, "num_cycles")
    if (
        planned.kind.id == "cosine_with_restarts"
        or cycles is None
        or cycles < 0.75
        or "decay_type" in planned.plan.kwargs
    ):
        return None
    return {"cycles": number(cycles), "last": number(planned.schedule.at(planned.steps - 1)) if planned.steps else "0"}


def _no_restart(planned: Planned) -> Values | None:
    return {} if _option(planned, "num_cycles") == 1 else None


def _unfinished_cycle(planned: Planned) -> Values | None:
    cycles = _option(planned, "num_cycles")
    return {"cycles": number(cycles)} if cycles is not None and cycles > 1 and not cycles.is_integer() else None


def _prepared(planned: Planned) -> Values | None:
    ticks, T, W = planned.plan.prepared_num_processes, planned.steps, planned.warmup.value
    if ticks == 1:
        return None
    return {
        "n": number(ticks),
        "end": number(-(-T // ticks)),
        "T": number(T),
        "W_n": number(W * ticks),
        "T_n": number(T * ticks),
    }


def _flat_inverse_sqrt(planned: Planned) -> Values | None:
    if planned.warmup.value or planned.plan.kwargs.get("timescale"):
        return None
    last = planned.schedule.at(max(planned.steps - 1, 0)) / planned.plan.learning_rate
    return {"T": number(planned.steps), "last": f"{100 * last:.3g} %"}


def _greedy_floor(planned: Planned) -> Values | None:
    floor = _option(planned, "min_lr")
    if floor is None or floor < planned.plan.learning_rate:
        return None
    return {"floor": number(floor), "rate": number(planned.plan.learning_rate)}


def _needs_evaluation(planned: Planned) -> Values | None:
    return {"kind": planned.kind.id}


def _epochs_cut(planned: Planned) -> Values | None:
    counted, plan = planned.counted, planned.plan
    trained = counted.epochs_trained if isinstance(counted, StepPlan) and plan.max_steps <= 0 else None
    if trained is None or trained > plan.num_train_epochs - 1e-9 or planned.rules.accumulation == "up":
        return None
    return {
        "framework": planned.rules.label,
        "trained": number(round(trained, 3)),
        "asked": number(plan.num_train_epochs),
        "L": number(counted.batches_per_epoch or 0),
        "ga": number(plan.gradient_accumulation_steps),
    }


def _logs_next(planned: Planned) -> Values | None:
    return {"framework": planned.rules.label} if planned.rules.logs == "next" else None


def _both_warmups(planned: Planned) -> Values | None:
    if not (planned.plan.warmup_steps and planned.plan.warmup_ratio):
        return None
    return {"framework": planned.rules.label, "W": number(planned.warmup.value), "formula": planned.warmup.formula}


def _ratio_of_one(planned: Planned) -> Values | None:
    ratio = planned.plan.warmup_ratio
    if planned.rules.warmup != "ratio wins" or ratio is None or ratio < 1:
        return None
    return {"ratio": number(ratio), "W": number(planned.warmup.value)}


def _stable_negative(planned: Planned) -> Values | None:
    if planned.kind.id not in ("warmup_stable_decay", "llamafactory-wsd") or planned.plan.kwargs.get(
        "num_stable_steps"
    ):
        return None
    decay, W, T = planned.plan.kwargs.get("num_decay_steps"), planned.warmup.value, planned.steps
    if not isinstance(decay, int) or W + decay <= T:
        return None
    return {"W": number(W), "D": number(decay), "T": number(T)}


def _deepspeed_warmup(planned: Planned) -> Values | None:
    if planned.plan.kwargs.get("warmup_type") == "linear":
        return None
    return {"W": number(planned.warmup.value)}


def _deepspeed_peak(planned: Planned) -> Values | None:
    return {"rate": number(planned.plan.learning_rate)}


def _timm_drop(planned: Planned) -> Values | None:
    W, T = int(planned.warmup.value), planned.steps
    if not 0 < W < T or planned.plan.kwargs.get("warmup_prefix"):
        return None
    return {"peak": number(planned.schedule.at(W - 1)), "after": number(planned.schedule.at(W))}


def _last_step_zero(planned: Planned) -> Values | None:
    if planned.steps < 2 or planned.schedule.halts_at or planned.schedule.at(planned.steps - 1) != 0:
        return None
    return {"T": number(planned.steps)}


def _completions_counted(planned: Planned) -> Values | None:
    completions = planned.plan.completions
    if completions is None:
        return None
    return {"G": number(completions.num_generations), "b": number(planned.plan.per_device_train_batch_size)}


def _options_dropped(planned: Planned) -> Values | None:
    return {"names": ", ".join(planned.plan.kwargs)} if planned.kind.ignores_options and planned.plan.kwargs else None


def _rises_past_end(planned: Planned) -> Values | None:
    """Past its end the curve climbs back, which a run sees whose schedule was built for fewer steps. Trainer's is not."""
    T, ticks = planned.steps, planned.plan.prepared_num_processes
    own = planned.kind.tool == "transformers" and ticks == 1
    if T < 8 or own or planned.schedule.halts_at or planned.kind.length == "ignored" or planned.kind.refuses_past_end:
        return None
    end = -(-T // ticks)
    later = planned.schedule.at(end + max(end // 4, 1))
    return {"T": number(end)} if later > planned.schedule.at(end) + planned.plan.learning_rate * 1e-3 else None


TRAPS: Table[TrapKind[Planned]] = Table(
    "trap",
    TrapKind(
        "crash",
        "stops",
        "The run crashes at scheduler step {step}: {reason}.",
        "Change the warmup or the schedule.",
        "transformers-schedules",
        _crash,
    ),
    TrapKind(
        "warmup_ignored",
        "misleads",
        "{kind} ignores the warmup: the first step already uses the full rate.",
        "Choose constant_with_warmup or another that warms up, or leave the warmup out.",
        "transformers-schedules",
        _warmup_ignored,
    ),
    TrapKind(
        "warmup_past_end",
        "misleads",
        "The warmup of {W} steps is not shorter than the run of {T}: the rate never gets past {rate}.",
        "Shorten the warmup.",
        "transformers-schedules",
        _warmup_past_end,
    ),
    TrapKind(
        "only_step_is_zero",
        "misleads",
        "The run's only step has rate 0, so nothing is trained: any warmup ratio of one step is one step.",
        "Leave the warmup out.",
        "warmup-zero",
        _only_step,
    ),
    TrapKind(
        "first_step_is_zero",
        "note",
        "The first {zeros} of {T} steps train at rate 0 and move nothing ({share} of the run).",
        "It is intended; it matters only in very short runs.",
        "warmup-zero",
        _first_step,
    ),
    TrapKind(
        "schedule_free_fraction",
        "misleads",
        "Trainer hands warmup_steps = {given} to the optimizer as it is: the first step runs at {rate}, {times} "
        "times the rate.",
        "Give a whole number of warmup steps, at least 1.",
        "schedulefree",
        _schedule_free_fraction,
        of_kinds=True,
    ),
    TrapKind(
        "num_cycles_are_waves",
        "misleads",
        "num_cycles counts waves here: {cycles} comes back up, and the last step runs at {last}.",
        "0.5 is one descent; for restarts use cosine_with_restarts.",
        "transformers-schedules",
        _waves,
        of_kinds=True,
    ),
    TrapKind(
        "no_restart",
        "note",
        "With num_cycles = 1, the default, cosine_with_restarts never restarts: it is plain cosine.",
        "Set num_cycles to the number of descents.",
        "cosine-restarts",
        _no_restart,
        of_kinds=True,
    ),
    TrapKind(
        "unfinished_cycle",
        "misleads",
        "{cycles} descents leave the last one unfinished, so the run ends at a high rate.",
        "Use a whole number.",
        "transformers-schedules",
        _unfinished_cycle,
        of_kinds=True,
    ),
    TrapKind(
        "prepared",
        "misleads",
        "accelerate steps a prepared schedule {n} times per optimizer step: it is over after step {end} of {T}.",
        "Do not prepare it, or build it with {W_n} warmup steps and {T_n} steps. Trainer does not prepare it.",
        "accelerate-scheduler",
        _prepared,
    ),
    TrapKind(
        "flat_inverse_sqrt",
        "misleads",
        "Without warmup the timescale is 10,000 steps: after {T} steps the rate is still {last} of the peak.",
        "Give warmup steps, or a timescale.",
        "transformers-schedules",
        _flat_inverse_sqrt,
        of_kinds=True,
    ),
    TrapKind(
        "greedy_floor",
        "misleads",
        "GreedyLR's min_lr {floor} is not below the rate {rate}: it can only raise the rate.",
        "Pass a min_lr below the rate in lr_scheduler_kwargs.",
        "greedy-lr",
        _greedy_floor,
        of_kinds=True,
    ),
    TrapKind(
        "needs_evaluation",
        "note",
        "{kind} changes the rate after an evaluation, and raises ValueError without an eval strategy.",
        "Set eval_strategy and, if not the loss, metric_for_best_model.",
        "transformers-schedules",
        _needs_evaluation,
        of_kinds=True,
    ),
    TrapKind(
        "epochs_cut",
        "misleads",
        "{framework} rounds {L} batches over {ga} down, so the run stops after {trained} epochs of {asked}.",
        "Use transformers 4.52 or newer, or set max_steps.",
        "floor-steps",
        _epochs_cut,
    ),
    TrapKind(
        "logs_next_rate",
        "note",
        "{framework} logs the rate of the next step, not of the one just done; the training is the same.",
        "Read the log one step later.",
        "logged-rate",
        _logs_next,
    ),
    TrapKind(
        "both_warmups",
        "misleads",
        "With both warmup_steps and warmup_ratio, {framework} takes {formula}: {W} steps.",
        "Give one of them.",
        "warmup-ratio",
        _both_warmups,
    ),
    TrapKind(
        "ratio_of_one",
        "misleads",
        "warmup_ratio = {ratio} is read as {W} step here, not as the whole run.",
        "Give a share below 1.",
        "warmup-ratio",
        _ratio_of_one,
    ),
    TrapKind(
        "stable_negative",
        "misleads",
        "Warmup {W} and decay {D} are longer than the run of {T}: there is no stable phase, and the decay "
        "starts part of the way down.",
        "Shorten one of them.",
        "wsd",
        _stable_negative,
        of_kinds=True,
    ),
    TrapKind(
        "deepspeed_log_warmup",
        "misleads",
        "DeepSpeed warms up logarithmically unless told otherwise: half the peak is reached after about "
        "√W of W = {W} steps.",
        "Set warmup_type to linear.",
        "deepspeed-warmup",
        _deepspeed_warmup,
        of_kinds=True,
    ),
    TrapKind(
        "deepspeed_peak",
        "note",
        "WarmupDecayLR takes its peak from warmup_max_lr, 0.001 when left out, not from the optimizer's {rate}.",
        "Write warmup_max_lr, or auto under Hugging Face.",
        "deepspeed",
        _deepspeed_peak,
        of_kinds=True,
    ),
    TrapKind(
        "timm_drop",
        "misleads",
        "The cosine has been running during the warmup: the rate drops from {peak} to {after} where it ends.",
        "Set warmup_prefix, and t_initial to the steps after the warmup.",
        "timm-prefix",
        _timm_drop,
        of_kinds=True,
    ),
    TrapKind(
        "last_step_is_zero",
        "note",
        "The last of {T} steps has rate 0 and moves nothing.",
        "Set a floor (min_lr) if that step should count.",
        "axolotl",
        _last_step_zero,
    ),
    TrapKind(
        "rate_ignored",
        "misleads",
        "Adafactor's relative step sets its own rate: learning_rate has no effect.",
        "Turn relative_step off to use it, as Trainer's --optim adafactor does.",
        "transformers-schedules",
        _always,
        of_kinds=True,
    ),
    TrapKind(
        "completions_counted",
        "note",
        "The batch of {b} counts completions, {G} for each prompt, not prompts.",
        "Multiply by num_generations when thinking in prompts.",
        "grpo-batch",
        _completions_counted,
    ),
    TrapKind(
        "options_dropped",
        "misleads",
        "This schedule drops options without a word: {names} has no effect.",
        "Leave them out, or choose a schedule that has them.",
        "transformers-schedules",
        _options_dropped,
    ),
    TrapKind(
        "momentum_moves",
        "note",
        "OneCycleLR also moves beta1, from 0.95 to 0.85 and back.",
        "Set cycle_momentum=False to keep it.",
        "torch-schedules",
        _always,
        of_kinds=True,
    ),
    TrapKind(
        "rises_past_end",
        "note",
        "Past step {T} this curve rises again, so a run longer than planned trains at growing rates.",
        "Plan the steps that are really made; Trainer does.",
        "transformers-schedules",
        _rises_past_end,
    ),
)
