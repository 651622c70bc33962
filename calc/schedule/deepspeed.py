"""DeepSpeed's schedulers. Its iteration is one behind the scheduler's steps.

The first two optimizer steps use the lowest rate.
"""

from __future__ import annotations

from collections.abc import Iterator

from calc.schedule.kind import Kind, Option, Run
from calc.schedule.phases import Leg, ScheduleError

# DeepSpeed never warms up in fewer than two steps.
_GAMMAS = {"log": "1 / log(max(2, W)) * log(s)", "linear": "(s - 1) / max(2, W)"}


def _warmup(run: Run, first: str, low: str, span: str) -> Iterator[Leg]:
    if run.W < 1:
        raise ScheduleError("no_warmup", "DeepSpeed's warmup_num_steps is a whole number from 1", "warmup_steps")
    yield Leg("before the first tick", 0, first)
    yield Leg("warmup", 1, f"{low} + {span} * g", {"g": _GAMMAS[run.text("warmup_type")]})


def _decays(run: Run) -> float:
    """First step past the warmup."""
    return max(2, run.W) + 1


def warmup(run: Run) -> Iterator[Leg]:
    yield from _warmup(run, "warmup_min_lr", "warmup_min_lr", "(lr - warmup_min_lr)")
    yield Leg("constant", _decays(run), "lr")


def warmup_decay(run: Run) -> Iterator[Leg]:
    yield from _warmup(run, "warmup_min_lr", "warmup_min_lr", "(lr - warmup_min_lr)")
    yield Leg(
        "linear decay",
        _decays(run),
        "warmup_min_lr + (lr - warmup_min_lr) * d",
        {"d": "max(0, (T - (s - 1)) / max(1, T - max(2, W)))"},
    )


def warmup_cosine(run: Run) -> Iterator[Leg]:
    for leg in _warmup(run, "0", "warmup_min_ratio", "(1 - warmup_min_ratio)"):
        yield Leg(leg.name, leg.first, f"lr * ({leg.expression})", leg.where)
    yield Leg(
        "cosine decay",
        _decays(run),
        "lr * (cos_min_ratio + (1 - cos_min_ratio) * 0.5 * (1 + cos(pi * p)))",
        {"p": "min(1, (s - max(2, W)) / max(1, T - max(2, W)))"},
    )


def range_test(run: Run) -> Iterator[Leg]:
    interval = f"s {'//' if run.options['lr_range_test_staircase'] else '/'} lr_range_test_step_size"
    yield Leg("range test", 0, f"lr * (1 + lr_range_test_step_rate * ({interval}))")


def one_cycle(run: Run) -> Iterator[Leg]:
    up = run.number("cycle_first_step_size")
    down = run.number("cycle_second_step_size") if run.options["cycle_second_step_size"] is not None else up
    inputs = {"up": up, "down": down}
    yield Leg("rise", 0, "cycle_min_lr + (lr - cycle_min_lr) * s / up", inputs=inputs)
    yield Leg("fall", up, "cycle_min_lr + (lr - cycle_min_lr) * (1 - (s - up) / down)", inputs=inputs)
    yield Leg("constant", up + down, "cycle_min_lr")


_TYPE = Option("warmup_type", "choice", "log", "Shape of the warmup.", choices=("log", "linear"))
_LOW = Option("warmup_min_lr", "number", 0.0, "Rate before the warmup.")
_NOTE = "Warmup is logarithmic unless warmup_type is linear; the first two optimizer steps both run at the lowest rate."


def _typed(name: str, parameters: str) -> str:
    """What to write under "scheduler" in a DeepSpeed file."""
    return f'{{{{"type": "{name}", "params": {{{{{parameters}{{options}}}}}}}}}}'


KINDS = (
    Kind(
        "deepspeed-warmup",
        "WarmupLR",
        "DeepSpeed",
        "deepspeed",
        warmup,
        (_LOW, _TYPE),
        length="ignored",
        typed=_typed("WarmupLR", '"warmup_max_lr": {lr}, "warmup_num_steps": {W}'),
        note=_NOTE,
        traps=("deepspeed_log_warmup",),
    ),
    Kind(
        "deepspeed-warmup-decay",
        "WarmupDecayLR",
        "DeepSpeed",
        "deepspeed",
        warmup_decay,
        (_LOW, _TYPE),
        typed=_typed("WarmupDecayLR", '"total_num_steps": {T}, "warmup_max_lr": {lr}, "warmup_num_steps": {W}'),
        note=_NOTE + " Without warmup_max_lr in the file the peak is 0.001, not the optimizer's rate.",
        traps=("deepspeed_log_warmup", "deepspeed_peak"),
    ),
    Kind(
        "deepspeed-warmup-cosine",
        "WarmupCosineLR",
        "DeepSpeed",
        "deepspeed",
        warmup_cosine,
        (
            Option("warmup_min_ratio", "number", 0.0, "Share of the peak before the warmup."),
            Option("cos_min_ratio", "number", 1e-4, "Share of the peak at the end."),
            _TYPE,
        ),
        typed=_typed("WarmupCosineLR", '"total_num_steps": {T}, "warmup_num_steps": {W}'),
        note="Warmup is logarithmic unless warmup_type is linear; the first optimizer step has rate 0.",
        traps=("deepspeed_log_warmup",),
    ),
    Kind(
        "deepspeed-range-test",
        "LRRangeTest",
        "DeepSpeed",
        "deepspeed",
        range_test,
        (
            Option("lr_range_test_step_size", "integer", 2000, "Steps of one increase."),
            Option("lr_range_test_step_rate", "number", 1.0, "Increase per interval, as a share of the first rate."),
            Option("lr_range_test_staircase", "flag", False, "Increase in stairs."),
        ),
        warmup="ignored",
        length="ignored",
        typed=_typed("LRRangeTest", '"lr_range_test_min_lr": {lr}'),
        note="A search for the rate, not a schedule to train with.",
    ),
    Kind(
        "deepspeed-one-cycle",
        "OneCycle",
        "DeepSpeed",
        "deepspeed",
        one_cycle,
        (
            Option("cycle_min_lr", "number", None, "Lowest rate.", required=True),
            Option("cycle_first_step_size", "integer", 2000, "Steps of the rise."),
            Option("cycle_second_step_size", "integer", None, "Steps of the fall; left out, as many as the rise."),
        ),
        warmup="ignored",
        length="ignored",
        typed=_typed("OneCycle", '"cycle_max_lr": {lr}'),
        note="The decay after the cycle (decay_step_size) is not modelled.",
    ),
)
