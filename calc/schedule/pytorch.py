"""Schedulers of torch.optim.lr_scheduler, in closed form.

torch computes some of them from the step before, which differs in the last digits.
"""

from __future__ import annotations

from collections.abc import Iterator

from calc.schedule.kind import Kind, Option, Run, cycles
from calc.schedule.phases import Halt, Leg, ScheduleError

_ANNEALS = {"cos": "b + (a - b) / 2 * (1 + cos(pi * p))", "linear": "(b - a) * p + a"}


def one_cycle(run: Run) -> Iterator[Leg | Halt]:
    pct, T = run.number("pct_start"), run.T
    first = run.lr / run.number("div_factor")
    final = first / run.number("final_div_factor")
    pieces = [("rise", pct * T - 1, first, run.lr)]
    if run.options["three_phase"]:
        pieces += [("fall", 2 * pct * T - 2, run.lr, first), ("annihilation", T - 1, first, final)]
    else:
        pieces += [("fall", T - 1, run.lr, final)]
    start = 0.0
    for index, (name, end, a, b) in enumerate(pieces):
        # A phase holds up to its end, which need not be whole; the last one holds to the end of the run.
        opens = 0 if index == 0 else pieces[index - 1][1] // 1 + 1
        if end == start and (index == len(pieces) - 1 or opens <= end):
            yield Halt(
                opens, f"the {name} has no length (pct_start · T − 1 = {pieces[0][1]:g}), and OneCycleLR divides by it"
            )
        else:
            yield Leg(
                name,
                opens,
                _ANNEALS[run.text("anneal_strategy")],
                {"p": "(s - start) / (end - start)"},
                {"a": a, "b": b, "start": start, "end": end},
            )
        start = end
    yield Halt(T + 1, f"OneCycleLR refuses more than {T:,} steps")


def cosine_annealing(run: Run) -> Iterator[Leg]:
    T_max = run.number("T_max") if run.options["T_max"] is not None else run.T
    if T_max <= 0:
        raise ScheduleError("bad_option", "T_max is more than 0", "kwargs.T_max")
    yield Leg(
        "cosine annealing", 0, "eta_min + (lr - eta_min) * (1 + cos(pi * s / T_max)) / 2", inputs={"T_max": T_max}
    )


def cosine_annealing_warm_restarts(run: Run) -> Iterator[Leg]:
    T_0, growth = run.number("T_0"), run.number("T_mult")
    if T_0 < 1 or growth < 1:
        raise ScheduleError("bad_option", "T_0 and T_mult are whole numbers from 1", "kwargs.T_0")
    found = cycles(0, T_0, growth, run.T + 1)
    if growth == 1:  # every cycle alike, so the remainder says it all, also past the end
        for number, (first, _) in enumerate(found if len(found) < 64 else found[:1], start=1):
            yield Leg(
                f"cycle {number}" if len(found) < 64 else "cycles",
                first,
                "eta_min + (lr - eta_min) * (1 + cos(pi * (s % T_0) / T_0)) / 2",
            )
        return
    for number, (first, length) in enumerate(found, start=1):
        yield Leg(
            f"cycle {number}",
            first,
            "eta_min + (lr - eta_min) * (1 + cos(pi * (s - start) / length)) / 2",
            inputs={"start": first, "length": length},
        )


def linear(run: Run) -> Iterator[Leg]:
    yield Leg("linear", 0, "lr * (start_factor + (end_factor - start_factor) * s / total_iters)")
    yield Leg("constant", run.number("total_iters"), "lr * end_factor")


def polynomial(run: Run) -> Iterator[Leg]:
    total = run.number("total_iters") if run.options["total_iters"] is not None else run.T
    yield Leg("polynomial decay", 0, "lr * (1 - s / total_iters) ** power", inputs={"total_iters": total})
    yield Leg("zero", total, "lr * 0")


def exponential(run: Run) -> Iterator[Leg]:
    yield Leg("exponential decay", 0, "lr * gamma ** s")


def step(run: Run) -> Iterator[Leg]:
    found = cycles(0, run.number("step_size"), 1, run.T + 1)
    for number, (first, _) in enumerate(found if len(found) < 64 else found[:1], start=1):
        yield Leg(f"stair {number}" if len(found) < 64 else "stairs", first, "lr * gamma ** (s // step_size)")


def constant(run: Run) -> Iterator[Leg]:
    yield Leg("reduced", 0, "lr * factor")
    yield Leg("constant", run.number("total_iters"), "lr")


_MODULE = "torch.optim.lr_scheduler."
_TOTAL = Option("total_iters", "integer", 5, "Steps until the end value.")
_FLOOR = Option("eta_min", "number", 0, "Lowest rate.")

KINDS = (
    Kind(
        "torch-one-cycle",
        "OneCycleLR",
        "PyTorch",
        "torch-schedules",
        one_cycle,
        (
            Option("pct_start", "number", 0.3, "Share of the run that rises."),
            Option("anneal_strategy", "choice", "cos", "Shape of both ways.", choices=("cos", "linear")),
            Option("div_factor", "number", 25.0, "Peak over first rate."),
            Option("final_div_factor", "number", 1e4, "First over last rate."),
            Option("three_phase", "flag", False, "Fall as symmetrically as it rose, then to the last rate."),
        ),
        warmup="ignored",
        refuses_past_end=True,
        typed=_MODULE + "OneCycleLR(optimizer, max_lr={lr}, total_steps={T}{options})",
        note="The last step uses exactly the final rate; one step more raises ValueError. By default it also "
        "moves beta1 (cycle_momentum).",
        traps=("momentum_moves",),
    ),
    Kind(
        "torch-cosine-annealing",
        "CosineAnnealingLR",
        "PyTorch",
        "torch-schedules",
        cosine_annealing,
        (Option("T_max", "integer", None, "Steps of one descent; left out, the run."), _FLOOR),
        warmup="ignored",
        typed=_MODULE + "CosineAnnealingLR(optimizer, T_max={T}{options})",
        note="Past T_max the rate rises again.",
    ),
    Kind(
        "torch-cosine-warm-restarts",
        "CosineAnnealingWarmRestarts",
        "PyTorch",
        "torch-schedules",
        cosine_annealing_warm_restarts,
        (
            Option("T_0", "integer", None, "Steps of the first cycle.", required=True),
            Option("T_mult", "integer", 1, "How much longer each cycle is than the one before."),
            _FLOOR,
        ),
        warmup="ignored",
        length="ignored",
        typed=_MODULE + "CosineAnnealingWarmRestarts(optimizer{options})",
    ),
    Kind(
        "torch-linear",
        "LinearLR",
        "PyTorch",
        "torch-schedules",
        linear,
        (
            Option("start_factor", "number", 1 / 3, "First factor."),
            Option("end_factor", "number", 1.0, "Last factor."),
            _TOTAL,
        ),
        warmup="ignored",
        length="ignored",
        typed=_MODULE + "LinearLR(optimizer{options})",
    ),
    Kind(
        "torch-polynomial",
        "PolynomialLR",
        "PyTorch",
        "torch-schedules",
        polynomial,
        (
            Option("total_iters", "integer", None, "Steps until 0; left out, the run (torch's own default is 5)."),
            Option("power", "number", 1.0, "1 is a straight line."),
        ),
        warmup="ignored",
        typed=_MODULE + "PolynomialLR(optimizer, total_iters={T}{options})",
    ),
    Kind(
        "torch-exponential",
        "ExponentialLR",
        "PyTorch",
        "torch-schedules",
        exponential,
        (Option("gamma", "number", None, "Factor of every step.", required=True),),
        warmup="ignored",
        length="ignored",
        typed=_MODULE + "ExponentialLR(optimizer{options})",
    ),
    Kind(
        "torch-step",
        "StepLR",
        "PyTorch",
        "torch-schedules",
        step,
        (
            Option("step_size", "integer", None, "Steps of one stair.", required=True),
            Option("gamma", "number", 0.1, "Factor of every stair."),
        ),
        warmup="ignored",
        length="ignored",
        typed=_MODULE + "StepLR(optimizer{options})",
    ),
    Kind(
        "torch-constant",
        "ConstantLR",
        "PyTorch",
        "torch-schedules",
        constant,
        (Option("factor", "number", 1 / 3, "Factor at first."), _TOTAL),
        warmup="ignored",
        length="ignored",
        typed=_MODULE + "ConstantLR(optimizer{options})",
    ),
)
