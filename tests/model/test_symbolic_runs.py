"""Every family runs on sizes that remember their formula."""

from __future__ import annotations

from fractions import Fraction

import pytest
from recordings import contents

from calc.autograd.symbol import evaluate, merged
from calc.memory.closed_form import symbolic
from calc.memory.step import run
from calc.model import architecture
from calc.model.recipe import Adapters, Recipe

CONFIGS = contents("blocks")["configs"]
LORA = Adapters(rank=4, targets="all-linear", dropout=0.1)


@pytest.mark.parametrize("name", CONFIGS)
def test_its_formulas_come_to_its_bytes(name: str) -> None:
    """At the instants that set the peaks, with adapters too."""
    model = architecture(CONFIGS[name])
    for adapters, attention in ((None, "sdpa" if "sdpa" in model.family.attentions else "eager"), (LORA, "eager")):
        recipe = Recipe(batch=2, length=24, attention=attention, adapters=adapters)
        numbers = run(model, recipe)
        formulas, table = symbolic(model, recipe)
        for instant in ("forward", "live", "backward"):
            expected = [Fraction(size) for size in getattr(numbers, instant).kinds]
            assert expected == [evaluate(merged(size), table) for size in getattr(formulas, instant).kinds]
