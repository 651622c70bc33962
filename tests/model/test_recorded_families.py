"""Encoder-decoders, encoders and further decoders against recorded steps of the real classes (tests/golden/oracle)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from typing import Any

import pytest
from recordings import GOLDEN, saved

from calc import Refused, Scenario, estimate
from calc.autograd.storage import SIZE
from calc.autograd.symbol import evaluate, merged
from calc.catalog.gpus import GPUS
from calc.memory.closed_form import symbolic
from calc.memory.recipes import recipe
from calc.memory.step import run
from calc.model import Architecture, architecture, selective_scan
from calc.model.recipe import Adapters, Recipe

FILES = ("steps_seq2seq", "steps_encoders", "steps_decoders", "steps_recurrent", "steps_published")


def golden(name: str) -> list[dict[str, Any]]:
    """The rows of a recording."""
    return json.loads((GOLDEN / "oracle" / f"{name}.json").read_text())["rows"]


@cache
def models() -> dict[str, dict[str, Any]]:
    """Config and parameters of each model, by its name."""
    return {row["case"]["model"]: row["measured"] for row in golden("parameters_more")}


@cache
def built(name: str) -> Architecture:
    """The architecture of a recorded model, with the head of its class."""
    known = models()[name]
    return architecture({**known["config"], "architectures": [known["class"]]})


def differences(row: dict[str, Any]) -> Iterator[tuple[str, str, int, int]]:
    """Where our step differs from a recorded one: the case, what, ours and theirs.

    Theirs counts what blocks are given as saved when they are checkpointed, and labels of their own; ours does neither.
    """
    case, theirs = row["case"], row["measured"]
    plan = Scenario.model_validate({"model": case["model"], "plan": case["plan"]}).plan
    model, how = built(case["model"]), recipe(plan, GPUS["a100-sxm-80gb"])
    step = run(model, how)
    standing, peaks = theirs["standing_bytes"], theirs["peaks"]
    expected = {
        "parameters": theirs["parameters"],
        "trainable": theirs["trainable"] - theirs.get("without_gradient", 0),
        "buffers": theirs["buffer_bytes"],
        "alive after the forward pass": theirs["live_after_forward"],
        "peak of the forward pass": max(peaks["forward"], peaks["loss forward"]) - standing,
        "peak of the backward pass": max(
            peaks[phase] for phase in ("loss backward", "backward", "end of backward") if phase in peaks
        )
        - standing,
        "alive after the backward pass": theirs["live_after_backward"],
    }
    ours = {
        "parameters": sum(p.numel * p.count for p in step.parameters),
        "trainable": sum(p.numel * p.count for p in step.parameters if p.trainable),
        "buffers": model.family.buffers(model.dims, SIZE[how.dtype]),
        "alive after the forward pass": step.live.total,
        "peak of the forward pass": step.forward.total,
        "peak of the backward pass": max(step.loss.total, step.backward.total, step.end.total),
        "alive after the backward pass": step.after.total,
    }
    if plan.method == "full" and plan.gradient_checkpointing == "none":
        labels = 8 * plan.micro_batch_size if "SequenceClassification" in models()[case["model"]]["class"] else 0
        expected["saved"], ours["saved"] = theirs["saved"]["bytes"], saved(step) + labels
    for name, found in ours.items():
        if found != expected[name]:
            yield f"{case['model']} {case['plan']}", name, found, expected[name]


@pytest.mark.parametrize("name", FILES)
def test_every_recorded_step_of_these_families_is_met_to_the_byte(name: str) -> None:
    """Both attentions, four precisions, checkpointing, padding, adapters: parameters, what is saved and alive, and both peaks."""
    assert [] == [difference for row in golden(name) for difference in differences(row)]


def test_adapters_that_peft_refuses_are_refused() -> None:
    """On layers that the kernels of a recurrence would read past, and dropout on experts that are parameters."""
    refused = json.loads((GOLDEN / "oracle" / "steps_recurrent.json").read_text())["refused"]
    assert len(refused) > 15
    for row in refused:
        known, case = models()[row["case"]["model"]], row["case"]
        config = {**known["config"], "architectures": [known["class"]]}
        asked = Scenario.model_validate({"model": {"config": config}, "plan": case["plan"]})
        why = "PEFT adapts the experts themselves" if "minimax" in case["model"] else "PEFT puts no adapter on"
        with pytest.raises(Refused, match=why):
            estimate(asked)


@pytest.mark.parametrize("lora", [None, Adapters(rank=4, targets=("x_proj",), dropout=0.1)])
@pytest.mark.parametrize("checkpointing", ["none", "full"])
@pytest.mark.parametrize("autocast", [None, "bf16"])
def test_steps_of_a_loop_that_are_alike_are_counted_as_if_they_were_run(
    monkeypatch: pytest.MonkeyPatch, autocast: str | None, checkpointing: Any, lora: Adapters | None
) -> None:
    """A loop along the sequence is run step by step only at its ends; each instant is that of the whole loop, also in the allocator's blocks."""
    model = built("mamba@2")
    recipes = [
        Recipe(
            batch=batch, length=23, attention="eager", autocast=autocast, checkpointing=checkpointing, reentrant=old, adapters=lora
        )
        for batch in (1, 3)
        for old in (False, True)
    ]  # fmt: skip
    short = [run(model, how, granularity=size) for how in recipes for size in (1, 512)]
    monkeypatch.setattr(selective_scan, "LAST_STEPS", 100)
    whole = [run(model, how, granularity=size) for how in recipes for size in (1, 512)]
    for ours, theirs in zip(short, whole, strict=True):
        for instant in ("forward", "live", "loss", "backward", "end", "after"):
            assert getattr(theirs, instant).kinds == getattr(ours, instant).kinds


def test_parameters_have_the_names_and_shapes_of_the_classes() -> None:
    """Each tensor of each recorded model, blocks alike folded, tied ones once."""
    off = {}
    for name, known in models().items():
        step = run(built(name), Recipe(batch=1, length=16, attention="eager"))
        theirs = {(pattern, tuple(shape)) for pattern, shape, _ in known["shapes"]}
        ours = {(folded(p.name), p.shape) for p in step.parameters}
        if missing := theirs ^ ours:
            off[name] = sorted(missing)
    assert {} == off


@pytest.mark.parametrize("name", sorted(models()))
def test_formulas_of_these_families_come_to_their_bytes(name: str) -> None:
    """Run on sizes that remember their formula, with adapters and without."""
    model = built(name)
    for adapters in (None, Adapters(rank=4, targets="all-linear", dropout=0.1)):
        how = Recipe(batch=2, length=24, attention="eager", adapters=adapters)
        numbers = run(model, how)
        formulas, table = symbolic(model, how)
        for instant in ("forward", "live", "backward"):
            expected = [Fraction(size) for size in getattr(numbers, instant).kinds]
            assert expected == [evaluate(merged(size), table) for size in getattr(formulas, instant).kinds]


def folded(name: str) -> str:
    """A name with a * for its first number, as the recording has it."""
    return name if "*" in name else re.sub(r"\.\d+\.", ".*.", name, count=1)
