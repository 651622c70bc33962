"""How many steps warm up: what each version makes of `warmup_steps` and `warmup_ratio`.

A share is multiplied as doubles and rounded up, as Python does: 0.07 of 100 steps is 8, because 100 · 0.07 is
7.000000000000001.
"""

from __future__ import annotations

import math
from typing import TypeGuard

from calc.schedule.expression import number
from calc.schedule.phases import ScheduleError
from calc.schedule.steps import StepRules, Working


def resolved_warmup(
    rules: StepRules, *, steps: int, warmup_steps: object = None, warmup_ratio: object = None
) -> Working:
    """W for a run of `steps` steps. Left-out values are None.

    Raises `ScheduleError` where the version refuses the value.
    """
    match rules.warmup:
        case "steps win":
            return _steps_win(steps, warmup_steps, warmup_ratio)
        case "axolotl":
            return _axolotl(steps, warmup_steps, warmup_ratio)
        case "steps only" if warmup_ratio is not None:
            raise ScheduleError(
                "no_warmup_ratio",
                f"{rules.label} has no warmup_ratio: write warmup_steps={warmup_ratio}",
                "warmup_ratio",
            )
        case _:
            given, field = (warmup_steps, "warmup_steps") if warmup_ratio is None else (warmup_ratio, "warmup_ratio")
            return _one_value(steps, 0 if given is None else given, field)


def _steps_win(steps: int, given: object, ratio: object) -> Working:
    """Up to 4.57: whole warmup_steps above 0 win over the ratio."""
    given, ratio = 0 if given is None else given, 0.0 if ratio is None else ratio
    if not isinstance(given, int) or isinstance(given, bool) or given < 0:
        raise ScheduleError(
            "whole_warmup_steps",
            f"this version takes warmup_steps as a whole number from 0, not {given!r}",
            "warmup_steps",
        )
    if not _is_number(ratio) or not 0 <= ratio <= 1:
        raise ScheduleError("warmup_ratio", "warmup_ratio lies between 0 and 1", "warmup_ratio")
    return _share(steps, ratio, "warmup_ratio") if given == 0 else _count(given)


def _one_value(steps: int, given: object, field: str) -> Working:
    """From 5.0: one number, a share below 1 and a count from 1, so a ratio of 1.0 is one step."""
    if not _is_number(given) or given < 0:
        raise ScheduleError("warmup", f"{field} is a number from 0, not {given!r}", field)
    return _count(given) if given >= 1 else _share(steps, given, field)


def _axolotl(steps: int, given: object, ratio: object) -> Working:
    """axolotl rounds the share down, warms up 3 % but 100 steps at most when told nothing, and makes 1 step 2."""
    if given is not None and ratio is not None:
        raise ScheduleError("both_warmups", "axolotl takes warmup_steps or warmup_ratio, not both", "warmup_ratio")
    if given is not None:
        if not isinstance(given, int) or isinstance(given, bool) or given < 0:
            raise ScheduleError(
                "whole_warmup_steps",
                f"axolotl takes warmup_steps as a whole number from 0, not {given!r}",
                "warmup_steps",
            )
        found = _count(given)
    elif ratio is not None:
        if not _is_number(ratio) or not 0 <= ratio <= 1:
            raise ScheduleError("warmup_ratio", "warmup_ratio lies between 0 and 1", "warmup_ratio")
        found = Working(
            "warmup steps",
            "W",
            int(ratio * steps),
            "floor(warmup_ratio · T)",
            f"floor({number(ratio)} · {number(steps)})",
        )
    else:
        found = Working(
            "warmup steps",
            "W",
            min(int(0.03 * steps), 100),
            "min(floor(0.03 · T), 100)",
            f"min(floor(0.03 · {number(steps)}), 100)",
        )
    return (
        Working(found.label, "W", 2, f"{found.formula}, and 1 becomes 2", f"{found.numbers}, and 1 becomes 2")
        if found.value == 1
        else found
    )


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _count(given: float) -> Working:
    return Working("warmup steps", "W", int(given), "warmup_steps", number(int(given)))


def _share(steps: int, ratio: float, field: str) -> Working:
    return Working(
        "warmup steps", "W", math.ceil(steps * ratio), f"ceil(T · {field})", f"ceil({number(steps)} · {number(ratio)})"
    )
