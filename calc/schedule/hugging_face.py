"""The twelve schedules of transformers' `get_scheduler`, with its order of operations, so values agree to the last bit.

Each factor multiplies the optimizer's learning rate. p is the progress of the decay.
"""

from __future__ import annotations

from collections.abc import Iterator

from calc.schedule.kind import Kind, Option, Run
from calc.schedule.phases import Halt, Leg, ScheduleError

WARMUP = "lr * (s / max(1, W))"
PROGRESS = {"p": "(s - W) / max(1, T - W)"}
HALF_COSINE = "0.5 * (1 + cos(pi * num_cycles * 2 * p))"

WAVES = Option(
    "num_cycles", "number", 0.5, "Waves of the cosine: 0.5 is one descent, 1 goes down and back up to the peak."
)
MIN_LR = (
    Option("min_lr", "number", None, "Rate at the end. Give this or min_lr_rate."),
    Option("min_lr_rate", "number", None, "Rate at the end as a share of the peak."),
)


def linear(run: Run) -> Iterator[Leg]:
    yield Leg("warmup", 0, WARMUP)
    yield Leg("linear decay", run.W, "lr * max(0, (T - s) / max(1, T - W))")


def cosine(run: Run) -> Iterator[Leg]:
    yield Leg("warmup", 0, WARMUP)
    yield Leg("cosine decay", run.W, f"lr * max(0, {HALF_COSINE})", PROGRESS)


def cosine_with_restarts(run: Run) -> Iterator[Leg]:
    formula = "lr * max(0, 0.5 * (1 + cos(pi * (num_cycles * p % 1))))"
    descents, decay = run.number("num_cycles"), max(1, run.T - run.W)
    yield Leg("warmup", 0, WARMUP)
    yield Leg(
        "descent 1" if 1 < descents <= 64 else "cosine decay" if descents <= 1 else "restarts", run.W, formula, PROGRESS
    )
    if 1 < descents <= 64:
        for cycle in range(1, -int(-descents // 1)):
            yield Leg(f"descent {cycle + 1}", run.W + cycle * decay / descents, formula, PROGRESS)
    yield Leg("past the end", run.W + decay, "lr * 0")


def polynomial(run: Run) -> Iterator[Leg | Halt]:
    if not run.lr > run.number("lr_end"):
        raise ScheduleError(
            "lr_end_above_lr",
            f"lr_end ({run.number('lr_end'):g}) must be smaller than the learning rate ({run.lr:g}); "
            "lower it through lr_scheduler_kwargs",
            "kwargs.lr_end",
        )
    yield Leg("warmup", 0, WARMUP)
    if run.W == run.T:
        yield Halt(
            run.W,
            "polynomial divides by T − W, which is 0: the run crashes after its last optimizer step. Shorten the "
            "warmup",
        )
    elif run.W < run.T:
        yield Leg(
            "polynomial decay",
            run.W,
            "lr * (((lr - lr_end) * (1 - p) ** power + lr_end) / lr)",
            {"p": "(s - W) / (T - W)"},
        )
    if run.W != run.T:
        yield Leg("past the end", max(run.W, run.T + 1), "lr * (lr_end / lr)")


def constant(run: Run) -> Iterator[Leg]:
    yield Leg("constant", 0, "lr")


def constant_with_warmup(run: Run) -> Iterator[Leg]:
    yield Leg("warmup", 0, WARMUP)
    yield Leg("constant", run.W, "lr")


def inverse_sqrt(run: Run) -> Iterator[Leg]:
    timescale = run.options["timescale"] if run.options["timescale"] is not None else (run.W or 10_000)
    if not isinstance(timescale, int | float) or timescale <= 0:
        raise ScheduleError("bad_option", "timescale is more than 0", "kwargs.timescale")
    yield Leg("warmup", 0, WARMUP)
    yield Leg(
        "inverse square root",
        run.W,
        "lr * (1 / sqrt((s + (timescale - W)) / timescale))",
        inputs={"timescale": timescale},
    )


def _floor(run: Run) -> dict[str, float]:
    """The end's rate as a share m of the peak."""
    rate, share = run.options["min_lr"], run.options["min_lr_rate"]
    if (rate is None) == (share is None):
        wrong = "one of min_lr and min_lr_rate" if rate is None else "only one of min_lr and min_lr_rate"
        raise ScheduleError("min_lr", f"give {wrong} in lr_scheduler_kwargs", "kwargs.min_lr")
    return {"m": run.number("min_lr_rate") if rate is None else run.number("min_lr") / run.lr}


def cosine_with_min_lr(run: Run) -> Iterator[Leg]:
    floor = _floor(run)
    yield Leg("warmup", 0, WARMUP)
    yield Leg("cosine decay", run.W, f"lr * max(0, {HALF_COSINE} * (1 - m) + m)", PROGRESS, floor)


def cosine_warmup_with_min_lr(run: Run) -> Iterator[Leg]:
    floor = _floor(run)
    ramp = (
        "(s + 1) / max(1, W)"
        if run.options["warmup_lr_rate"] is None
        else "warmup_lr_rate + (1 - warmup_lr_rate) * s / max(1, W - 1)"
    )
    yield Leg("warmup", 0, f"lr * ({ramp})")
    yield Leg(
        "cosine decay", run.W, f"lr * max(0, {HALF_COSINE} * (1 - m) + m)", {"p": "(s - W + 1) / max(1, T - W)"}, floor
    )


RAMPS = {"linear": "p", "cosine": "0.5 * (1 - cos(pi * p))", "1-sqrt": "1 - sqrt(1 - p)"}
DECAYS = {"linear": "1 - p", "cosine": HALF_COSINE, "1-sqrt": "1 - sqrt(p)"}


def warmup_stable_decay(run: Run) -> Iterator[Leg]:
    D = run.number("num_decay_steps")
    S = run.number("num_stable_steps") if run.options["num_stable_steps"] is not None else run.T - run.W - D
    inputs = {"m": run.number("min_lr_ratio"), "D": D, "S": S}
    ramp, decay = RAMPS[run.text("warmup_type")], DECAYS[run.text("decay_type")]
    yield Leg("warmup", 0, f"lr * max(0, ({ramp}) * (1 - m) + m)", {"p": "s / max(1, W)"}, inputs)
    yield Leg("stable", run.W, "lr")
    yield Leg(
        "decay",
        max(run.W, run.W + S),
        f"lr * max(0, ({decay}) * (1 - m) + m)",
        {"p": "(s - W - S) / max(1, D)"},
        inputs,
    )
    yield Leg("floor", max(run.W, run.W + S, run.W + S + D), "lr * m", inputs=inputs)


def early_warmup_stable_decay(run: Run) -> Iterator[Leg]:
    inputs = {"m": run.number("min_lr_ratio"), "D": run.number("num_decay_steps"), "S": run.number("num_stable_steps")}
    start = run.W + inputs["S"]
    yield Leg("warmup", 0, WARMUP)
    yield Leg("stable", run.W, "lr")
    yield Leg("decay", start, f"lr * ((1 - m) * max(0, {HALF_COSINE}) + m)", {"p": "(s - W - S) / max(1, D)"}, inputs)
    yield Leg("floor", start + inputs["D"], "lr * m", inputs=inputs)


def llama_factory_stable_decay(run: Run) -> Iterator[Leg]:
    rest = run.T - run.W
    filled = {**run.options, "num_stable_steps": rest // 3, "num_decay_steps": rest - rest // 3}
    given = {name: value for name, value in run.options.items() if value is not None}
    yield from warmup_stable_decay(Run(run.lr, run.W, run.T, {**filled, **given}))


_TYPES = ("linear", "cosine", "1-sqrt")
_STABLE = Option(
    "num_stable_steps", "integer", None, "Steps at the peak; left out, what warmup and decay leave of the run."
)
_WSD = (
    Option("warmup_type", "choice", "linear", "Shape of the warmup.", choices=_TYPES),
    Option("decay_type", "choice", "cosine", "Shape of the decay.", choices=_TYPES),
    Option("min_lr_ratio", "number", 0, "Rate at both ends as a share of the peak."),
    WAVES,
)

KINDS = (
    Kind(
        "linear",
        "Linear",
        "transformers",
        "transformers-schedules",
        linear,
        note="The last step uses lr / (T − W), not 0.",
    ),
    Kind(
        "cosine",
        "Cosine",
        "transformers",
        "transformers-schedules",
        cosine,
        (WAVES,),
        note="num_cycles counts waves: 1 climbs back to the peak. Past T the rate rises again.",
        traps=("num_cycles_are_waves",),
    ),
    Kind(
        "cosine_with_restarts",
        "Cosine with restarts",
        "transformers",
        "transformers-schedules",
        cosine_with_restarts,
        (Option("num_cycles", "number", 1, "Descents: the default 1 never restarts."),),
        note="num_cycles counts descents here; with the default 1 it is plain cosine.",
        traps=("no_restart", "unfinished_cycle"),
    ),
    Kind(
        "polynomial",
        "Polynomial",
        "transformers",
        "transformers-schedules",
        polynomial,
        (
            Option("lr_end", "number", 1e-7, "Rate at the end; must be below the learning rate."),
            Option("power", "number", 1.0, "1 is a straight line."),
        ),
    ),
    Kind(
        "constant",
        "Constant",
        "transformers",
        "transformers-schedules",
        constant,
        warmup="ignored",
        length="ignored",
        ignores_options=True,
        note="Warmup has no effect; constant_with_warmup has one.",
    ),
    Kind(
        "constant_with_warmup",
        "Constant with warmup",
        "transformers",
        "transformers-schedules",
        constant_with_warmup,
        length="ignored",
        ignores_options=True,
    ),
    Kind(
        "inverse_sqrt",
        "Inverse square root",
        "transformers",
        "transformers-schedules",
        inverse_sqrt,
        (
            Option(
                "timescale",
                "integer",
                None,
                "Steps after which the decay is felt; left out, the warmup, or 10,000 without one.",
            ),
        ),
        length="ignored",
        note="Without warmup the timescale is 10,000 steps, so a short run stays almost flat.",
        traps=("flat_inverse_sqrt",),
    ),
    Kind(
        "cosine_with_min_lr",
        "Cosine with a floor",
        "transformers",
        "transformers-schedules",
        cosine_with_min_lr,
        (WAVES, *MIN_LR),
        note="Warmup starts at 0, not at the floor.",
        traps=("num_cycles_are_waves",),
    ),
    Kind(
        "cosine_warmup_with_min_lr",
        "Cosine with a floor, warmup from above 0",
        "transformers",
        "transformers-schedules",
        cosine_warmup_with_min_lr,
        (
            WAVES,
            *MIN_LR,
            Option("warmup_lr_rate", "number", None, "First rate as a share of the peak; left out, 1 / W."),
        ),
        since=(4, 54),
        note="The first step's rate is not 0.",
        traps=("num_cycles_are_waves",),
    ),
    Kind(
        "warmup_stable_decay",
        "Warmup, stable, decay",
        "transformers",
        "transformers-schedules",
        warmup_stable_decay,
        (Option("num_decay_steps", "integer", None, "Steps of the decay.", required=True), _STABLE, *_WSD),
        before=((4, 49), "early-wsd"),
        note="Warmup starts at min_lr_ratio times the peak.",
        traps=("stable_negative",),
    ),
    Kind(
        "early-wsd",
        "Warmup, stable, decay before 4.49",
        "transformers",
        "transformers-schedules",
        early_warmup_stable_decay,
        (
            Option("num_stable_steps", "integer", None, "Steps at the peak.", required=True),
            Option("num_decay_steps", "integer", None, "Steps of the decay.", required=True),
            Option("min_lr_ratio", "number", 0, "Rate at the end as a share of the peak."),
            WAVES,
        ),
        listed=False,
    ),
    Kind(
        "llamafactory-wsd",
        "Warmup, stable, decay as LLaMA-Factory fills it",
        "LLaMA-Factory",
        "llama-factory",
        llama_factory_stable_decay,
        (
            Option("num_decay_steps", "integer", None, "Left out, two thirds of what warmup leaves."),
            Option("num_stable_steps", "integer", None, "Left out, one third of what warmup leaves."),
            *_WSD,
        ),
        typed="lr_scheduler_type: warmup_stable_decay",
    ),
)
