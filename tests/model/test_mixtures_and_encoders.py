"""Mixtures of experts and encoders against recorded steps of the real classes."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import pytest
from recordings import Recorded, contents, model, recorded, rows, saved

from calc.autograd.storage import SIZE
from calc.autograd.symbol import evaluate, merged
from calc.memory.closed_form import symbolic
from calc.memory.step import Saved, run
from calc.model.recipe import Adapters, Recipe

FILES = ("mixtures", "mixtures_real_sizes", "encoders")


def found(r: Recorded) -> dict[str, int]:
    """What our step says to every column that was measured."""
    step = r.step()
    return {
        "parameters": sum(p.numel * p.count for p in step.parameters),
        "trainable": sum(p.numel * p.count for p in step.parameters if p.trainable),
        "buffer bytes": r.model.family.buffers(r.model.dims, SIZE[r.recipe.dtype]),
        "saved bytes": saved(step),
        "live after forward": step.live.total,
        "forward peak": step.forward.total,
        "backward peak": max(step.loss.total, step.backward.total, step.end.total),
        "after backward": step.after.total,
    }


@pytest.mark.parametrize("file", FILES)
def test_every_recorded_step_is_met(file: str) -> None:
    """Parameters, buffers, what is saved and alive, both peaks and the gradients: every family, attention, checkpointing and padding."""
    off = []
    for r in recorded(file):
        off += [
            (r.title, name, n, r.row[name])
            for name, n in found(r).items()
            if r.row[name] is not None and n != r.row[name]
        ]
    assert [] == off


@pytest.mark.parametrize("row", rows("mixtures_forms"), ids=lambda r: f"{r['model']} {r['attention']}")
def test_a_layer_of_experts_saves_the_recorded_tensors(row: dict) -> None:
    """Dtype and elements of each tensor of a layer; what the first layer saves beyond it; what lies outside the layers."""
    file = contents("mixtures_forms")
    step = run(
        model("mixtures_forms", row["model"], None),
        Recipe(batch=file["batch"], length=file["length"], attention=row["attention"]),
    )
    by_block: dict[int | None, list[Saved]] = {}
    for tensor in step.saved:
        by_block.setdefault(tensor.block, []).append(tensor)
    layer, first, outside = (sum(t.size for t in by_block[block]) for block in (1, 0, None))
    assert (row["layer"], row["first layer extra"], row["outside"]) == (layer, first - layer, outside)
    assert Counter({(dtype, n): count for dtype, n, count in row["tensors"]}) == Counter(
        (t.dtype, t.size // SIZE[t.dtype]) for t in by_block[1]
    )


@pytest.mark.parametrize(
    "name", [(file, name) for file in ("mixtures", "encoders") for name in contents(file)["configs"]], ids=str
)
def test_formulas_of_every_family_come_to_its_bytes(name: tuple[str, str]) -> None:
    """Run on sizes that remember their formula, with and without adapters."""
    net = model(*name, None)
    for adapters, attention in (
        (None, net.family.attentions[0]),
        (Adapters(rank=4, targets="all-linear", dropout=0.1), "eager"),
    ):
        recipe = Recipe(batch=2, length=24, attention=attention, adapters=adapters)
        numbers = run(net, recipe)
        formulas, table = symbolic(net, recipe)
        for instant in ("forward", "live", "backward"):
            expected = [Fraction(size) for size in getattr(numbers, instant).kinds]
            assert expected == [evaluate(merged(size), table) for size in getattr(formulas, instant).kinds]
