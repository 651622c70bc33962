"""The table of schedules, one row each, and the way to a schedule by name and framework version."""

from __future__ import annotations

from calc.catalog.table import Table, UnknownName
from calc.schedule import axolotl, deepspeed, hugging_face, on_metric, optimizers_own, pretraining, pytorch
from calc.schedule.kind import Kind, Version

SCHEDULES: Table[Kind] = Table(
    "schedule",
    *hugging_face.KINDS,
    *on_metric.KINDS,
    *pytorch.KINDS,
    *deepspeed.KINDS,
    *pretraining.KINDS,
    *axolotl.KINDS,
    *optimizers_own.KINDS,
)


def kind(name: str, version: Version) -> Kind:
    """The row that `lr_scheduler_type=name` means in a version of transformers.

    Unknown there is an error that lists what is known.
    """
    row = SCHEDULES[name]
    if row.since > version:
        known = [other.id for other in SCHEDULES.values() if other.listed and other.since <= version]
        raise UnknownName(f"transformers {version[0]}.{version[1]} schedule", name, known)
    return SCHEDULES[row.before[1]] if row.before and version < row.before[0] else row
