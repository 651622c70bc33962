"""axolotl's own schedules, beside those it takes from transformers."""

from __future__ import annotations

from collections.abc import Iterator

from calc.schedule.hugging_face import HALF_COSINE, PROGRESS, WARMUP, WAVES
from calc.schedule.kind import Kind, Option, Run
from calc.schedule.phases import Halt, Leg, ScheduleError
from calc.schedule.pytorch import KINDS as TORCH

_ONE_CYCLE = next(kind for kind in TORCH if kind.id == "torch-one-cycle")


def cosine_min_lr(run: Run) -> Iterator[Leg]:
    inputs = {"m": run.number("cosine_min_lr_ratio")}
    yield Leg("warmup", 0, WARMUP)
    if run.options["cosine_constant_lr_ratio"] is None:
        yield Leg("cosine decay", run.W, f"lr * (m + (1 - m) * max(0, {HALF_COSINE}))", PROGRESS, inputs)
        return
    inputs["C"] = int(run.T * run.number("cosine_constant_lr_ratio"))
    formula, progress = f"lr * (m + (1 - m) * max(0, {HALF_COSINE}))", {"p": "(min(s, C) - W) / max(1, C - W)"}
    yield Leg("cosine decay", run.W, formula, progress, inputs)
    yield Leg("floor", max(run.W, inputs["C"]), formula, progress, inputs)


def quadratic_warmup(run: Run) -> Iterator[Leg]:
    yield Leg("warmup", 0, "lr * (s / max(1, W)) ** 2")
    yield Leg("cosine decay", run.W, f"lr * max(0, {HALF_COSINE})", PROGRESS)


def rex(run: Run) -> Iterator[Leg]:
    yield Leg("warmup", 0, "lr * (s + 1) / W")
    yield Leg("REX decay", run.W, "min_lr + (lr - min_lr) * z / (0.1 + 0.9 * z)", {"z": "(T - (s + 1)) / (T - W)"})
    yield Leg("floor", max(run.W, run.T - 1), "min_lr")


def one_cycle(run: Run) -> Iterator[Leg | Halt]:
    options = {option.name: option.default for option in _ONE_CYCLE.options}
    yield from _ONE_CYCLE.lay(Run(run.lr, run.W, run.T, {**options, "pct_start": run.W / run.T if run.T else 0.0}))


def interpolating_log(run: Run) -> Iterator[Leg]:
    if run.T < 2:
        raise ScheduleError("too_short", "the interpolation needs at least 2 steps", "max_steps")
    yield Leg("lowest", 0, "min_lr")
    yield Leg("logarithmic rise", 1, "min_lr * ((lr / min_lr) ** (1 / (T - 1))) ** (s - 1)")
    yield Leg("highest", run.T, "lr")


def jagged_restart(run: Run) -> Iterator[Leg]:
    """transformers' cosine, one step ahead, pulled to the floor and up again every R steps."""
    R, warm, anneal = (run.number(f"jagged_restart_{part}steps") for part in ("", "warmup_", "anneal_"))
    if R < 1:
        raise ScheduleError("bad_option", "jagged_restart_steps is at least 1", "kwargs.jagged_restart_steps")
    inner = {"warmup": "(s + 1) / max(1, W)", "cosine decay": "0.5 * (1 + cos(pi * p))"}
    fall = f", (R - x % R) / {anneal:g}" if anneal else ""
    scales = {
        "first window": f"min(1{fall}, 1)",
        "restarts": f"min(1, x % R / {warm:g}{fall})" if warm else f"min(1{fall}, 1)",
    }
    where = {"p": "(x - W) / max(1, T - W)", "x": "s + 1"}
    bounds = sorted({0.0, max(0.0, run.W - 1), R - 1})
    for first in bounds:
        shape = "warmup" if first < run.W - 1 else "cosine decay"
        window = "first window" if first < R - 1 else "restarts"
        yield Leg(
            shape if window == "first window" else f"{shape}, restarts",
            first,
            f"lr * ({inner[shape]}) * (f + (1 - f) * {scales[window]})",
            where,
            {"R": R, "f": run.number("jagged_restart_min_lr_scale")},
        )


KINDS = (
    Kind(
        "axolotl-cosine-min-lr",
        "cosine with cosine_min_lr_ratio",
        "axolotl",
        "axolotl",
        cosine_min_lr,
        (
            Option("cosine_min_lr_ratio", "number", None, "Rate at the end as a share of the peak.", required=True),
            Option(
                "cosine_constant_lr_ratio",
                "number",
                None,
                "Share of the run after which the rate stays at the end value.",
            ),
            WAVES,
        ),
        typed="lr_scheduler: cosine\nwarmup_steps: {W}{options}",
        traps=("num_cycles_are_waves",),
    ),
    Kind(
        "axolotl-quadratic-warmup",
        "cosine with lr_quadratic_warmup",
        "axolotl",
        "axolotl",
        quadratic_warmup,
        (WAVES,),
        typed="lr_scheduler: cosine\nlr_quadratic_warmup: true\nwarmup_steps: {W}{options}",
        note="Given with cosine_min_lr_ratio it wins, with a warning.",
        traps=("num_cycles_are_waves",),
    ),
    Kind(
        "axolotl-rex",
        "rex",
        "axolotl",
        "axolotl",
        rex,
        (Option("min_lr", "number", 0, "Lowest rate."),),
        typed="lr_scheduler: rex\nwarmup_steps: {W}{options}",
        note="The first step's rate is lr / W, and the last one's is min_lr, 0 by default.",
    ),
    Kind(
        "axolotl-one-cycle",
        "one_cycle",
        "axolotl",
        "axolotl",
        one_cycle,
        refuses_past_end=True,
        typed="lr_scheduler: one_cycle\nwarmup_steps: {W}{options}",
        note="Its rise is the warmup.",
        traps=("momentum_moves",),
    ),
    Kind(
        "axolotl-log-sweep",
        "log_sweep",
        "axolotl",
        "axolotl",
        interpolating_log,
        (Option("min_lr", "number", 1e-6, "Lowest rate."),),
        warmup="ignored",
        typed="lr_scheduler: log_sweep{options}",
        note="A search for the rate, not a schedule to train with.",
    ),
    Kind(
        "axolotl-jagged-restart",
        "cosine with jagged restarts",
        "axolotl",
        "axolotl",
        jagged_restart,
        (
            Option("jagged_restart_steps", "integer", None, "Steps between restarts.", required=True),
            Option("jagged_restart_warmup_steps", "integer", 10, "Steps of each rise."),
            Option("jagged_restart_anneal_steps", "integer", 1, "Steps of each fall."),
            Option("jagged_restart_min_lr_scale", "number", 0.001, "Share of the rate at a restart."),
        ),
        typed="lr_scheduler: cosine\nwarmup_steps: {W}{options}",
        note="For ReLoRA: the optimizer's state is pruned at each restart.",
    ),
)
