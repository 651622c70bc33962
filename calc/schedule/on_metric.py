"""Schedules that follow a metric: the rate changes after an evaluation, so a list of metrics stands in for the run.

Trainer steps them once per evaluation; between evaluations the rate holds. Without metrics the rate stays where it
starts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from calc.schedule.kind import Kind, Option, Run
from calc.schedule.phases import Leg, ScheduleError


def plateau_rates(run: Run) -> Iterator[float]:
    """The rate after each metric, as torch's ReduceLROnPlateau sets it."""
    rate, best, bad, cooling = run.lr, math.inf, 0, 0
    sign = -1.0 if run.text("mode") == "max" else 1.0
    relative = run.text("threshold_mode") == "rel"
    for metric in _metrics(run):
        if _better(sign * metric, best, sign, relative, run.number("threshold")):
            best, bad = sign * metric, 0
        else:
            bad += 1
        if cooling > 0:
            cooling, bad = cooling - 1, 0
        if bad > run.number("patience"):
            lower = max(rate * run.number("factor"), run.number("min_lr"))
            rate = lower if rate - lower > run.number("eps") else rate
            cooling, bad = int(run.number("cooldown")), 0
        yield rate


def greedy_rates(run: Run) -> Iterator[float]:
    """The rate after each metric, as transformers' GreedyLR sets it.

    Up while the metric improves, down while it does not.
    """
    if run.number("factor") >= 1:
        raise ScheduleError("bad_option", "factor is below 1", "kwargs.factor")
    low, high, eps = run.number("min_lr"), run.number("max_lr"), run.number("eps")
    sign = -1.0 if run.text("mode") == "max" else 1.0
    relative = run.text("threshold_mode") == "rel"
    rate, best, bad, good, cooling, warming, patience_at_floor = run.lr, math.inf, 0, 0, 0, 0, run.number("reset_start")
    window: list[float] = []
    total = 0.0
    for metric in _metrics(run):
        seen = metric
        if run.options["smooth"]:
            window.append(metric)
            total += metric
            if len(window) > run.number("window_size"):
                total -= window.pop(0)
            seen = total / len(window)
        if cooling or warming:
            cooling, warming = (cooling - 1, warming) if cooling else (0, warming - 1)
            good = bad = 0
        else:
            better = _better(sign * seen, best, sign, relative, run.number("threshold"))
            best = sign * seen if better else best
            good, bad = (good + 1, 0) if better else (0, bad + 1)
            if good > run.number("patience"):
                higher = min(rate / run.number("factor"), high)
                rate = higher if higher - rate > eps else rate
                warming, good, patience_at_floor = int(run.number("warmup")), 0, run.number("reset_start")
            elif bad > run.number("patience"):
                lower = max(rate * run.number("factor"), low)
                rate = lower if rate - lower > eps else rate
                cooling, bad = int(run.number("cooldown")), 0
                if rate <= low:
                    patience_at_floor -= 1
                    if patience_at_floor <= 0:
                        rate, best, window, total = run.lr, math.inf, [], 0.0
                        cooling, patience_at_floor = int(run.number("cooldown")), run.number("reset_start")
        yield rate


def _metrics(run: Run) -> tuple[float, ...]:
    metrics = run.options["metrics"]
    return metrics if isinstance(metrics, tuple) else ()


def _better(metric: float, best: float, sign: float, relative: bool, threshold: float) -> bool:
    """Whether a metric, turned so that lower is better, beats the best one by the threshold."""
    if math.isinf(best):
        return metric < best
    return metric < (best * (1 - sign * threshold) if relative else best - threshold)


def _held(run: Run, rates: Iterator[float]) -> Iterator[Leg]:
    """One leg for each stretch at one rate."""
    every = run.number("eval_steps")
    if every < 1:
        raise ScheduleError("bad_option", "eval_steps is 1 or more", "kwargs.eval_steps")
    held = run.lr
    yield Leg("start", 0, "lr")
    for evaluation, rate in enumerate(rates, start=1):
        if rate != held:
            yield Leg(f"after evaluation {evaluation}", evaluation * every, "rate", inputs={"rate": rate})
            held = rate


def reduce_lr_on_plateau(run: Run) -> Iterator[Leg]:
    return _held(run, plateau_rates(run))


def greedy(run: Run) -> Iterator[Leg]:
    return _held(run, greedy_rates(run))


_FED = (
    Option("metrics", "numbers", (), "The metric at each evaluation, in order."),
    Option("eval_steps", "integer", 500, "Optimizer steps between evaluations (Trainer: eval_steps)."),
)


def _options(factor: float, threshold: float, threshold_mode: str, min_lr: float) -> tuple[Option, ...]:
    return (
        Option("mode", "choice", "min", "Whether lower or higher is better.", choices=("min", "max")),
        Option("factor", "number", factor, "What the rate is multiplied by."),
        Option("patience", "integer", 10, "Evaluations without improvement that are let pass."),
        Option("threshold", "number", threshold, "Smallest change that counts."),
        Option(
            "threshold_mode",
            "choice",
            threshold_mode,
            "Whether the threshold is a share or an amount.",
            choices=("rel", "abs"),
        ),
        Option("cooldown", "integer", 0, "Evaluations to wait after a change."),
        Option("min_lr", "number", min_lr, "Lowest rate."),
        Option("eps", "number", 1e-8, "Smaller changes of the rate are dropped."),
    )


KINDS = (
    Kind(
        "reduce_lr_on_plateau",
        "Reduce on plateau",
        "transformers",
        "torch-schedules",
        reduce_lr_on_plateau,
        (*_options(0.1, 1e-4, "rel", 0), *_FED),
        warmup="ignored",
        length="ignored",
        note="Steps once per evaluation and needs an eval strategy; warmup has no effect.",
        traps=("needs_evaluation",),
    ),
    Kind(
        "greedy",
        "GreedyLR",
        "transformers",
        "transformers-schedules",
        greedy,
        (
            *_options(0.95, 1e-6, "abs", 1e-3),
            Option("max_lr", "number", 1.0, "Highest rate."),
            Option("warmup", "integer", 0, "Evaluations to wait after a rise."),
            Option("smooth", "flag", False, "Average the metric over a window."),
            Option("window_size", "integer", 50, "Evaluations in the window."),
            Option("reset_start", "integer", 500, "Times it may fail at the floor before starting over."),
            *_FED,
        ),
        warmup="ignored",
        length="ignored",
        since=(5, 8),
        note="Its default floor is 1e-3, above usual rates, so it only ever raises them; pass min_lr.",
        traps=("needs_evaluation", "greedy_floor"),
    ),
)
