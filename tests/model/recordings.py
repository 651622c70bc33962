"""Recorded steps of the real libraries (tests/golden/activations), as the runs on shapes that should come to the same bytes."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from calc.memory.step import Step, run
from calc.model import Architecture, architecture
from calc.model.recipe import Adapters, Recipe

GOLDEN = Path(__file__).parent.parent / "golden"


class Recorded(NamedTuple):
    """A row of a recording: the run that it is of, and what was measured."""

    file: str
    number: int
    model: Architecture
    recipe: Recipe
    granularity: int
    row: dict[str, Any]

    @property
    def title(self) -> str:
        """What the row is of, for a message."""
        return " ".join(f"{key}={self.row[key]}" for key in list(self.row)[:10])

    def step(self) -> Step:
        """Our step, run once for all tests."""
        return _step(self.file, self.number)


@cache
def contents(name: str) -> dict[str, Any]:
    """A recording as it lies in the file."""
    return json.loads((GOLDEN / "activations" / f"{name}.json").read_text())


def rows(name: str) -> list[dict[str, Any]]:
    """Rows of a recording by the names of its columns."""
    file = contents(name)
    return [dict(zip(file["columns"], row, strict=True)) for row in file["rows"]]


@cache
def model(file: str, name: str, layers: int | None) -> Architecture:
    """The architecture of a row."""
    config = dict(contents(file)["configs"][name])
    if layers is not None:
        config["n_layer" if config["model_type"] in ("gpt2", "gptj", "bloom") else "num_hidden_layers"] = layers
    return architecture(config)


@cache
def recorded(file: str) -> list[Recorded]:
    """Every row of a recording of steps."""
    lora = contents(file)["lora"]
    return [
        Recorded(file, i, model(file, row["model"], row["layers"]), recipe(row, lora), row["granularity"], row)
        for i, row in enumerate(rows(file))
    ]


@cache
def _step(file: str, number: int) -> Step:
    r = recorded(file)[number]
    return run(r.model, r.recipe, granularity=r.granularity)


def recipe(row: dict[str, Any], lora: list[dict[str, Any]] | None = None) -> Recipe:
    """How a row was run."""
    mixed = row["precision"] == "bf16-mixed"
    adapters = None
    if row.get("lora") is not None:
        how = lora[row["lora"]]  # type: ignore[index]
        targets = how["targets"] if isinstance(how["targets"], str) else tuple(how["targets"])
        dtype = "fp32" if mixed else how["adapter dtype"]
        adapters = Adapters(rank=how["rank"], targets=targets, dropout=how["dropout"], dtype=dtype)
    checkpointing = row.get("checkpointing", "none")
    return Recipe(
        batch=row["batch"],
        length=row["length"],
        dtype="fp32" if mixed else "bf16",
        autocast="bf16" if mixed else None,
        attention=row["attention"],
        checkpointing="none" if checkpointing == "none" else "full",
        reentrant=checkpointing == "reentrant",
        padded=row.get("padded", False),
        adapters=adapters,
    )


def saved(step: Step) -> int:
    """Bytes that all layers and everything else save."""
    return sum(s.size * (1 if s.block is None else step.represents[s.block]) for s in step.saved)


def configurations() -> list[dict[str, Any]]:
    """The recorded configurations of the Hub."""
    with gzip.open(GOLDEN / "configs.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]
