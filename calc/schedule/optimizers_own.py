"""Rates that an optimizer sets for itself: schedule-free AdamW and Adafactor's relative step."""

from __future__ import annotations

from collections.abc import Iterator

from calc.schedule.kind import Kind, Option, Run
from calc.schedule.phases import Leg


def schedule_free(run: Run) -> Iterator[Leg]:
    # A fraction of a step is let through, and divides: 0.03 makes the first step's rate 33 times the one asked for.
    yield Leg("warmup", 0, "lr * ((s + 1) / W)")
    yield Leg("constant", run.W, "lr")


def relative_step(run: Run) -> Iterator[Leg]:
    ceiling = "1e-6 * t" if run.options["warmup_init"] else "0.01"
    scale = " * max(eps2, rms)" if run.options["scale_parameter"] else ""
    # Both ceilings meet 1 / √t at t = 10,000.
    yield Leg(
        "warmup" if run.options["warmup_init"] else "constant", 0, f"min({ceiling}, 1 / sqrt(t)){scale}", {"t": "s + 1"}
    )
    yield Leg("inverse square root", 10_000, f"min({ceiling}, 1 / sqrt(t)){scale}", {"t": "s + 1"})


KINDS = (
    Kind(
        "schedule-free",
        "Schedule-free AdamW",
        "schedulefree",
        "schedulefree",
        schedule_free,
        takes_typed_warmup=True,
        length="ignored",
        typed="schedulefree.AdamWScheduleFree(params, lr={lr}, warmup_steps={W}{options})",
        note="No decay by design: pair it with transformers' constant. Warmup must be a whole number of steps "
        "from 1, or 0.",
        traps=("schedule_free_fraction",),
    ),
    Kind(
        "adafactor-relative-step",
        "Adafactor, relative step",
        "transformers",
        "transformers-schedules",
        relative_step,
        (
            Option("warmup_init", "flag", False, "Start at 1e-6 and rise."),
            Option("scale_parameter", "flag", True, "Multiply by the size of each parameter."),
            Option(
                "rms", "number", 0.05, "Root mean square of a parameter's elements, which the rate is multiplied by."
            ),
            Option("eps2", "number", 1e-3, "Smallest such size."),
        ),
        warmup="ignored",
        length="ignored",
        typed="Adafactor(params, lr=None, relative_step=True{options})",
        note="The learning rate has no effect here. Trainer's --optim adafactor turns relative_step off and uses "
        "it as it is.",
        traps=("rate_ignored",),
    ),
)
