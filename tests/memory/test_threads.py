"""Visitors are answered in threads of their own: what is noted of one run is nothing to another."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from calc.memory.step import run
from calc.model import architecture
from calc.model.counting import of_architecture
from calc.model.recipe import Adapters, Recipe

LLAMA = {"model_type": "llama", "vocab_size": 1000, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 4,
         "num_attention_heads": 4, "num_key_value_heads": 2}  # fmt: skip


@pytest.fixture
def hasty() -> Iterator[None]:
    """Threads that take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("hasty")
def test_runs_and_counts_side_by_side_are_what_each_is_alone() -> None:
    """Plans of several kinds, and the counting of a model, which records no graph."""
    model = architecture(LLAMA)
    recipes = [
        Recipe(batch=1, length=64),
        Recipe(batch=1, length=64, checkpointing="full"),
        Recipe(batch=1, length=64, adapters=Adapters(rank=4, targets="all-linear", dropout=0.1)),
    ]
    alone = [run(model, how) for how in recipes]
    total = of_architecture(model).total

    with ThreadPoolExecutor(4) as threads:
        counts = [threads.submit(lambda: of_architecture(model).total) for _ in range(150)]
        runs = [threads.submit(run, model, how) for _ in range(20) for how in recipes]
        counts += [threads.submit(lambda: of_architecture(model).total) for _ in range(150)]

    assert alone * 20 == [one.result() for one in runs]
    assert {total} == {one.result() for one in counts}
