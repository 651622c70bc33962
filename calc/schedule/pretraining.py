"""Schedules of pretraining code: Megatron-LM, torchtitan, nanoGPT, litgpt, torchtune, OpenNMT's Noam, timm.

Tools disagree about the first step: transformers, torchtune, litgpt and timm start at s / W, nanoGPT at (s + 1) / (W +
1), torchtitan and Noam at (s + 1) / W.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from calc.schedule import hugging_face
from calc.schedule.kind import Kind, Option, Run
from calc.schedule.phases import Halt, Leg, ScheduleError

_COSINE = "0.5 * (1 + cos(pi * p))"
_MEGATRON_WSD = {
    "linear": "1 - q",
    "cosine": "0.5 * (1 + cos(pi * q))",
    "exponential": "2 * 0.5 ** q - 1",
    "minus_sqrt": "1 - sqrt(q)",
}


def megatron(run: Run) -> Iterator[Leg]:
    step = run.number("increment")
    D = run.number("lr_decay_steps") if run.options["lr_decay_steps"] is not None else run.T * step
    if not run.W < D:
        raise ScheduleError(
            "warmup_past_decay", "Megatron asserts that the warmup is shorter than lr_decay_steps", "warmup_steps"
        )
    style, inputs = run.text("lr_decay_style"), {"D": D}
    x = {"x": "s * increment"} if step != 1 else {"x": "s"}
    decays = math.floor(run.W / step) + 1 if run.W > 0 else 0
    ends = math.floor(D / step) + 1
    yield Leg("warmup", 0, "init_lr + (lr - init_lr) * x / W", x, inputs)
    progress = {"p": "(x - W) / (D - W)"}
    match style:
        case "constant":
            yield Leg("constant", decays, "lr")
            return
        case "linear":
            yield Leg("linear decay", decays, "min_lr + (1 - p) * (lr - min_lr)", {**progress, **x}, inputs)
        case "cosine":
            yield Leg("cosine decay", decays, f"min_lr + {_COSINE} * (lr - min_lr)", {**progress, **x}, inputs)
        case "inverse-square-root":
            yield Leg("inverse square root", decays, "max(min_lr, lr * sqrt(max(W, 1)) / sqrt(max(x, 1)))", x, inputs)
        case _:
            if run.options["wsd_decay_steps"] is None:
                raise ScheduleError("missing_option", "WSD needs wsd_decay_steps", "kwargs.wsd_decay_steps")
            anneals = D - run.number("wsd_decay_steps")
            yield Leg("stable", decays, "lr", inputs=inputs)
            yield Leg(
                "decay",
                max(decays, math.floor(anneals / step) + 1),
                f"min_lr + ({_MEGATRON_WSD[run.text('lr_wsd_decay_style')]}) * (lr - min_lr)",
                {"q": "(x - A) / wsd_decay_steps", **x},
                {**inputs, "A": anneals},
            )
    yield Leg("floor", ends, "min_lr")


_TITAN = {"linear": "1 - p", "sqrt": "1 - sqrt(p)", "cosine": _COSINE}


def torchtitan(run: Run) -> Iterator[Leg | Halt]:
    W = min(run.W, run.T)
    ratio = run.options["decay_ratio"]
    D = run.T - W if ratio is None else min(round(run.T * run.number("decay_ratio")), run.T - W)
    # One virtual step past the last keeps the last rate above the floor.
    inputs = {"W": W, "D": D, "S": run.T + 1 - W - D}
    decays = W + inputs["S"]
    yield Leg("warmup", 0, "lr * ((s + 1) / W)", inputs=inputs)
    yield Leg("stable", W, "lr", inputs=inputs)
    if D:
        yield Leg(
            "decay",
            decays,
            f"lr * (min_lr_factor + (1 - min_lr_factor) * ({_TITAN[run.text('decay_type')]}))",
            {"p": "(s + 1 - W - S) / D"},
            inputs,
        )
    else:
        yield Halt(decays, "torchtitan divides by the decay's length, which is 0")


def _cosine_to(run: Run, D: float, floor: float, ramp: str) -> Iterator[Leg | Halt]:
    inputs = {"D": D, "min_lr": floor}
    yield Leg("warmup", 0, ramp)
    if D == run.W:
        yield Halt(run.W, "the decay divides by its length, which is 0: shorten the warmup")
    else:
        yield Leg("cosine decay", run.W, f"min_lr + {_COSINE} * (lr - min_lr)", {"p": "(s - W) / (D - W)"}, inputs)
    yield Leg("floor", max(run.W, D + 1), "min_lr", inputs=inputs)


def nanogpt(run: Run) -> Iterator[Leg | Halt]:
    D = run.number("lr_decay_iters") if run.options["lr_decay_iters"] is not None else run.T
    floor = run.number("min_lr") if run.options["min_lr"] is not None else run.lr / 10
    return _cosine_to(run, D, floor, "lr * (s + 1) / (W + 1)")


def litgpt_pretrain(run: Run) -> Iterator[Leg | Halt]:
    return _cosine_to(run, run.T, run.number("min_lr"), "lr * s / W")


def litgpt_finetune(run: Run) -> Iterator[Leg]:
    if run.W < 1:
        raise ScheduleError("no_warmup", "litgpt divides by its warmup steps: give at least 1", "warmup_steps")
    if run.W >= run.T:
        raise ScheduleError(
            "warmup_past_end", "litgpt's cosine has max_steps − warmup steps, which must be more than 0", "warmup_steps"
        )
    yield Leg("warmup", 0, "lr * (s / W)")
    yield Leg("cosine decay", run.W, "lr * (1 + cos(pi * (s - W) / (T - W))) / 2")


def noam(run: Run) -> Iterator[Leg]:
    if run.W < 1:
        raise ScheduleError("no_warmup", "Noam's warmup is at least 1 step", "warmup_steps")
    formula, k = "lr * (model_size ** -0.5 * min(k ** -0.5, k * W ** -1.5))", {"k": "s + 1"}
    yield Leg("warmup", 0, formula, k)
    yield Leg("inverse square root", run.W, formula, k)


def timm_cosine(run: Run) -> Iterator[Leg]:
    t_initial = run.number("t_initial") if run.options["t_initial"] is not None else run.T
    mul, limit = run.number("cycle_mul"), run.number("cycle_limit")
    if t_initial <= 0 or mul <= 0:
        raise ScheduleError("bad_option", "t_initial and cycle_mul are more than 0", "kwargs.t_initial")
    if limit > 1000:
        raise ScheduleError("bad_option", "cycle_limit is 1,000 at most", "kwargs.cycle_limit")
    # Without warmup_prefix the cosine's clock has run during the warmup, so the rate drops where the warmup ends.
    shift = run.W if run.options["warmup_prefix"] else 0
    yield Leg("warmup", 0, "warmup_lr_init + s * (lr - warmup_lr_init) / W")
    first, length = float(shift), float(t_initial)
    for cycle in range(int(limit)):
        if first + length > run.W:
            yield Leg(
                "cosine decay" if limit == 1 else f"cycle {cycle + 1}",
                max(run.W, first),
                "lr_min + 0.5 * (lr * cycle_decay ** i - lr_min) * (1 + cos(pi * (s - start) ** k_decay / length "
                "** k_decay))",
                inputs={"i": cycle, "start": first, "length": length},
            )
        first, length = first + length, length * mul
    yield Leg("floor", max(run.W, first), "lr_min")


_MIN_LR = Option("min_lr", "number", None, "Lowest rate; left out, a tenth of the peak.")

KINDS = (
    Kind(
        "megatron",
        "Megatron-LM",
        "Megatron-LM",
        "megatron",
        megatron,
        (
            Option(
                "lr_decay_style",
                "choice",
                "linear",
                "Shape of the decay.",
                choices=("constant", "linear", "cosine", "inverse-square-root", "WSD"),
            ),
            Option("init_lr", "number", 0.0, "Rate at the start of the warmup."),
            Option("min_lr", "number", 0.0, "Lowest rate."),
            Option("lr_decay_steps", "integer", None, "Steps (or samples) until the floor; left out, the run."),
            Option("wsd_decay_steps", "integer", None, "Steps of WSD's decay."),
            Option(
                "lr_wsd_decay_style", "choice", "exponential", "Shape of WSD's decay.", choices=tuple(_MEGATRON_WSD)
            ),
            Option("increment", "integer", 1, "1 when counting steps, the global batch when counting samples."),
        ),
        typed="--lr {lr} --lr-warmup-iters {W} --lr-decay-iters {T}{options}",
    ),
    Kind(
        "torchtitan",
        "torchtitan",
        "torchtitan",
        "torchtitan",
        torchtitan,
        (
            Option("decay_ratio", "number", None, "Share of the run that decays; left out, all after the warmup."),
            Option("decay_type", "choice", "linear", "Shape of the decay.", choices=tuple(_TITAN)),
            Option("min_lr_factor", "number", 0.0, "Rate at the end as a share of the peak."),
        ),
        typed="lr_scheduler: warmup_steps = {W}{options}",
        note="The first step's rate is lr / W, not 0, and the last one's is above the floor.",
    ),
    Kind(
        "nanogpt",
        "nanoGPT",
        "nanoGPT",
        "nanogpt",
        nanogpt,
        (_MIN_LR, Option("lr_decay_iters", "integer", None, "Steps until the floor; left out, the run.")),
        typed="learning_rate = {lr}; warmup_iters = {W}; lr_decay_iters = {T}{options}",
        note="The first step's rate is lr / (W + 1), not 0.",
    ),
    Kind(
        "torchtune-cosine",
        "torchtune cosine with warmup",
        "torchtune",
        "torchtune",
        hugging_face.cosine,
        (hugging_face.WAVES,),
        typed="lr_scheduler: {{_component_: torchtune.training.lr_schedulers.get_cosine_schedule_with_warmup, "
        "num_warmup_steps: {W}{options}}}",
        note="The curve of transformers' cosine; torchtune's recipes warm up for 100 steps by default.",
        traps=("num_cycles_are_waves",),
    ),
    Kind(
        "litgpt-finetune",
        "litgpt finetune",
        "litgpt",
        "litgpt",
        litgpt_finetune,
        typed="--train.lr_warmup_steps {W}{options}",
        note="Without warmup it divides by 0; past the end the rate rises again.",
    ),
    Kind(
        "litgpt-pretrain",
        "litgpt pretrain",
        "litgpt",
        "litgpt",
        litgpt_pretrain,
        (Option("min_lr", "number", 4e-5, "Lowest rate."),),
        typed="--train.lr_warmup_steps {W}{options}",
    ),
    Kind(
        "noam",
        "Noam",
        "OpenNMT-py",
        "opennmt",
        noam,
        (Option("model_size", "integer", 512, "Width of the model."),),
        length="ignored",
        typed="-decay_method noam -warmup_steps {W} -learning_rate {lr}{options}",
        note="learning_rate only multiplies: the peak is learning_rate / √(model_size · W).",
    ),
    Kind(
        "timm-cosine",
        "timm cosine",
        "timm",
        "timm",
        timm_cosine,
        (
            Option("t_initial", "integer", None, "Steps of the first cycle; left out, the run."),
            Option("lr_min", "number", 0.0, "Lowest rate."),
            Option("cycle_mul", "number", 1.0, "How much longer each cycle is."),
            Option("cycle_decay", "number", 1.0, "Factor of each cycle's peak."),
            Option("cycle_limit", "integer", 1, "Cycles."),
            Option("warmup_lr_init", "number", 0.0, "First rate."),
            Option("warmup_prefix", "flag", False, "Start the cosine after the warmup."),
            Option("k_decay", "number", 1.0, "Exponent of the progress."),
        ),
        typed="timm.scheduler.CosineLRScheduler(optimizer, t_initial={T}, warmup_t={W}, t_in_epochs=False{options})",
        note="Without warmup_prefix the cosine has been running during the warmup, so the rate drops where the "
        "warmup ends.",
        traps=("timm_drop",),
    ),
)
