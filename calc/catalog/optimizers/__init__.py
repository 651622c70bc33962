"""Optimizers: what each keeps per parameter, what its step needs, what it costs and where it runs.

One row per name that `TrainingArguments(optim=...)` of transformers 5.24 knows, and others that people fine-tune with.
"""

from __future__ import annotations

from calc.catalog.optimizers import bitsandbytes, in_backward, low_rank, others, pytorch, torchao
from calc.catalog.optimizers.row import Argument, BadArgument, Optimizer
from calc.catalog.table import Table

__all__ = ["OPTIMIZERS", "Argument", "BadArgument", "Optimizer"]

OPTIMIZERS = Table(
    "optimizer",
    *pytorch.ROWS,
    *bitsandbytes.ROWS,
    *torchao.ROWS,
    *low_rank.ROWS,
    *in_backward.ROWS,
    *others.ROWS,
)
