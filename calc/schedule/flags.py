"""What to type to get a schedule: the Trainer's flags, TrainingArguments, or another library's call."""

from __future__ import annotations

import json
from collections.abc import Mapping

from calc.schedule.plan import Planned


def arguments(planned: Planned) -> dict[str, object]:
    """The TrainingArguments of a plan, those that differ from nothing said.

    The batch is spelled out because steps follow from it.
    """
    plan = planned.plan
    chosen: dict[str, object] = {"learning_rate": plan.learning_rate, "lr_scheduler_type": plan.type}
    if plan.kwargs:
        chosen["lr_scheduler_kwargs"] = {name: value for name, value in plan.kwargs.items() if name not in _FED}
    if any(option.name == "eval_steps" for option in planned.kind.options):
        chosen |= {"eval_strategy": "steps", "eval_steps": planned.kind.checked(plan.kwargs)["eval_steps"]}
    if plan.warmup_steps is not None:
        chosen["warmup_steps"] = plan.warmup_steps
    if plan.warmup_ratio is not None:
        chosen["warmup_ratio"] = plan.warmup_ratio
    chosen |= {"max_steps": plan.max_steps} if plan.max_steps > 0 else {"num_train_epochs": plan.num_train_epochs}
    chosen |= {
        "per_device_train_batch_size": plan.per_device_train_batch_size,
        "gradient_accumulation_steps": plan.gradient_accumulation_steps,
    }
    if plan.dataloader_drop_last:
        chosen["dataloader_drop_last"] = True
    if plan.completions is not None:
        chosen |= {k: v for k, v in plan.completions.model_dump().items() if v is not None}
    return {name: value for name, value in chosen.items() if value != {}}


def flags(planned: Planned) -> str:
    """The plan as command-line flags, or as another library's own call."""
    if planned.kind.typed:
        return typed(planned)
    words = []
    for name, value in arguments(planned).items():
        text = f"'{json.dumps(value)}'" if isinstance(value, dict) else "True" if value is True else str(value)
        words.append(f"--{name} {text}")
    return " \\\n  ".join(words)


def training_arguments(planned: Planned) -> str:
    """The plan as Python."""
    lines = [f"    {name}={value!r}," for name, value in arguments(planned).items()]
    return "\n".join(["TrainingArguments(", *lines, ")"])


def typed(planned: Planned) -> str:
    """Another library's call, its options spelled as its language does."""
    template = planned.kind.typed
    options = {name: value for name, value in planned.plan.kwargs.items() if name not in _FED}
    return template.format(
        lr=repr(planned.plan.learning_rate),
        W=planned.warmup.value,
        T=planned.steps,
        options=_spelled(options, template),
    )


def _spelled(options: Mapping[str, object], template: str) -> str:
    if template.startswith("{{"):  # a JSON file
        return "".join(f", {json.dumps(name)}: {json.dumps(value)}" for name, value in options.items())
    if "(" in template:  # a Python call
        return "".join(f", {name}={value!r}" for name, value in options.items())
    if template.startswith("-"):  # flags
        return "".join(f" --{name.replace('_', '-')} {value}" for name, value in options.items())
    return "".join(f"\n{name}: {json.dumps(value)}" for name, value in options.items())  # YAML


# What stands in for the run's metrics is not an argument of the scheduler.
_FED = ("metrics", "eval_steps")
