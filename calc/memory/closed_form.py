"""Closed forms: the step run once more on sizes that remember their formula.

The formula is that of the operation which sets the instant in this run; it holds as long as that one is the highest.
"""

from __future__ import annotations

from dataclasses import fields, replace
from functools import lru_cache
from typing import Any

from calc.autograd.storage import KINDS
from calc.autograd.symbol import Dim, Symbols, merged, number, typeset
from calc.memory import step
from calc.memory.step import Moment, Step
from calc.model.family import Architecture
from calc.model.recipe import Recipe

SYMBOLS = {
    "vocab_size": "V",
    "hidden_size": "h",
    "intermediate_size": "i",
    "num_attention_heads": "H",
    "num_key_value_heads": "K",
    "head_dim": "D",
    "num_experts": "E",
    "num_experts_per_tok": "k",
    "moe_intermediate_size": "m",
    "shared_expert_intermediate_size": "s",
}
"""Symbol of each size, by config.json's name."""


@lru_cache(maxsize=64)
def symbolic(
    architecture: Architecture, recipe: Recipe, on_gradient: step.OnGradient | None = None
) -> tuple[Step, Symbols]:
    """The step on sizes with formulas, and the number of each symbol. `on_gradient` as `step.run` takes it; its temporaries are plain numbers."""
    table = Symbols()
    dims = architecture.dims
    named: dict[str, Any] = {
        field.name: Dim(getattr(dims, field.name), SYMBOLS[field.name], table)
        for field in fields(dims)
        if field.name in SYMBOLS and isinstance(getattr(dims, field.name), int)
    }
    adapters = recipe.adapters
    if adapters is not None:
        rank: Any = Dim(adapters.rank, "r", table)
        adapters = replace(adapters, rank=rank)
    batch: Any = Dim(recipe.batch, "B", table)
    length: Any = Dim(recipe.length, "S", table)
    sized = replace(recipe, batch=batch, length=length, adapters=adapters)
    result = step.run(
        replace(architecture, dims=replace(dims, **named)),
        sized,
        counts=_counts(dims.kinds, table),
        on_gradient=on_gradient,
    )
    table["N"] = recipe.batch * recipe.length
    table["q"] = dims.num_attention_heads * dims.head_dim
    table["kv"] = dims.num_key_value_heads * dims.head_dim
    return result, table


def _counts(kinds: tuple[str, ...], table: Symbols) -> dict[str, Dim]:
    """How many layers of each kind there are, as symbols: L, or L and the kind's name."""
    distinct = dict.fromkeys(kinds)
    return {kind: Dim(kinds.count(kind), "L" if len(distinct) == 1 else f"L_{kind}", table) for kind in distinct}


def formula(
    architecture: Architecture, recipe: Recipe, instant: str, kind: int, on_gradient: step.OnGradient | None = None
) -> str:
    """The closed form of one kind of memory at one instant."""
    result, _ = symbolic(architecture, recipe, on_gradient)
    return typeset(merged(_moment(result, instant).kinds[kind]))


def numbers(
    architecture: Architecture, recipe: Recipe, instant: str, kind: int, on_gradient: step.OnGradient | None = None
) -> str:
    """The same with this run's numbers."""
    result, table = symbolic(architecture, recipe, on_gradient)
    return typeset(merged(_moment(result, instant).kinds[kind]), table)


def value(architecture: Architecture, recipe: Recipe, instant: str) -> tuple[int, ...]:
    """What the closed forms come to, by kind: equal to the run on numbers."""
    result, _ = symbolic(architecture, recipe)
    return tuple(number(_moment(result, instant).kinds[k]) for k in range(len(KINDS)))


def _moment(result: Step, instant: str) -> Moment:
    moment: Moment = getattr(result, instant)
    return moment
