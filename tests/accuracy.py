"""Predicted against published measurements, row by row: `python tests/accuracy.py`, or `make accuracy`.

Prints every row of tests/golden/measured.jsonl, scored or not with the reason, the medians by source, the verdicts on plans that are known to
have run out of memory (tests/golden/out_of_memory.jsonl), and how the steps recorded by the oracle are met, by family and by recipe.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import oracle_rows

from calc import Breakdown, Scenario, estimate
from calc.catalog.allowances import workspace
from calc.catalog.gpus import GPUS
from calc.units import Bytes

GOLDEN = Path(__file__).parent / "golden"
GROUPS = {
    "FMS": "Foundation Model Stack benchmarks, A100 80 GB",
    "FITCHECK": "fitcheck-llm, T4",
    "LITGPT": "LitGPT resource tables",
    "TTLADDER": "torchtune's ladder of optimisations",
}
BLOCK = 512
"""What PyTorch's allocator rounds each allocation up to."""
THREADS = 2
"""The forward's and the backward's: each gets a workspace of the matrix library, and torch's counters hold both."""


@dataclass(frozen=True, slots=True)
class Row:
    """A published reading of the memory of one run."""

    id: str
    source: str
    location: str
    metric: str
    measured: Bytes
    precise_to: Bytes
    """Half of the last digit that was published."""
    scenario: Scenario | None
    """None where a scenario cannot say what was run."""
    reason: str
    """Why it is not scored."""
    summary: str
    note: str

    @property
    def group(self) -> str:
        """Whose reading it is."""
        return self.id.partition("-")[0]


@dataclass(frozen=True, slots=True)
class Score:
    """What we say about a row."""

    row: Row
    predicted: Bytes
    instant: str

    @property
    def error(self) -> float:
        """Predicted over measured, less one."""
        return int(self.predicted) / int(self.row.measured) - 1


def lines(name: str) -> Iterator[dict[str, Any]]:
    """The objects of a golden file."""
    with (GOLDEN / name).open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def rows() -> tuple[Row, ...]:
    """Every published reading, scored or not."""
    return tuple(
        Row(
            id=line["id"],
            source=line["source"],
            location=line["location"],
            metric=line["metric"],
            measured=Bytes(line["measured_bytes"]),
            precise_to=Bytes(line["precise_to"]),
            scenario=Scenario.model_validate(line["scenario"]) if "scenario" in line else None,
            reason=line.get("not_scored", ""),
            summary=line.get("summary") or summary(Scenario.model_validate(line["scenario"])),
            note=line["note"],
        )
        for line in lines("measured.jsonl")
    )


def summary(scenario: Scenario) -> str:
    """A scenario in one short line."""
    plan = scenario.plan
    name = scenario.model.rpartition("/")[2] if isinstance(scenario.model, str) else "given config"
    kernels = [word for word in (plan.kernels, plan.loss) if word != "eager"]
    words = [name, plan.method, f"{plan.micro_batch_size} x {plan.seq_len}", plan.precision, plan.attention, *kernels]
    return " ".join(words)


def score(row: Row) -> Score:
    """Ours for one row, counted as a card counts: rounded allocations, scratch of kernels, workspaces."""
    assert row.scenario is not None
    answer = estimate(row.scenario, granularity=BLOCK)
    own = workspace(GPUS[row.scenario.hardware.gpu]).size * THREADS
    return Score(row, answer.peak.allocated + own, answer.peak.instant)


def scores() -> tuple[Score, ...]:
    """Ours for every row that a scenario can say."""
    return tuple(score(row) for row in rows() if row.scenario is not None)


def out_of_memory() -> tuple[tuple[str, Scenario, Breakdown], ...]:
    """Plans that ran out of memory, with our answer."""
    scenarios = [(line["id"], Scenario.model_validate(line["scenario"])) for line in lines("out_of_memory.jsonl")]
    return tuple((name, scenario, estimate(scenario)) for name, scenario in scenarios)


@dataclass(slots=True)
class Met:
    """How recorded steps of one kind are met."""

    rows: int = 0
    exact: int = 0
    worst: float = 0.0

    def add(self, differences: dict[str, tuple[int, int]]) -> None:
        """Count a row."""
        self.rows += 1
        self.exact += not differences
        self.worst = max([self.worst, *(abs(ours - theirs) / theirs for ours, theirs in differences.values())])


def print_recorded() -> None:
    """The oracle's steps: rows, those met to the byte, and the worst difference of any instant, by family and by recipe."""
    families: dict[str, Met] = {}
    recipes: dict[str, Met] = {}
    explained: dict[str, int] = {}
    for truth in oracle_rows.TRUTHS:
        for row in oracle_rows.rows(truth):
            differences = row.differences()
            families.setdefault(row.model.partition("@")[0], Met()).add(differences)
            recipes.setdefault(row.recipe, Met()).add(differences)
            if differences:
                reason = row.explained.reason if row.explained else "not explained"
                explained[reason] = explained.get(reason, 0) + 1
    for title, table in (("family", families), ("recipe", recipes)):
        print(f"\nRecorded steps by {title:40}  rows  to the byte   worst")
        for name, met in sorted(table.items()):
            print(f"  {name:55} {met.rows:5} {met.exact:12} {met.worst:8.4%}")
    print("\nNot met to the byte:")
    for reason, count in explained.items():
        print(f"  {count:5} rows  {reason}")
    print("Not compared:")
    for reason, count in oracle_rows.not_compared().items():
        print(f"  {count:5} rows  {reason}")


def main() -> None:
    """Print the report."""
    found = scores()
    print(f"{'row':13} {'plan':86} {'peak at':16} {'ours':>8} {'theirs':>8}  error")
    for one in found:
        print(
            f"{one.row.id:13} {one.row.summary:86.86} {one.instant:16} {one.predicted.gib:8.3f} {one.row.measured.gib:8.3f} {one.error:+7.2%}"
        )
    print("\nGiB; theirs as torch counts allocated memory. Median of the absolute error:")
    for group, title in GROUPS.items():
        errors = [abs(one.error) for one in found if one.row.group == group]
        total = sum(row.group == group for row in rows())
        figure = f"{median(errors):.2%}, worst {max(errors):.2%}" if errors else "-"
        print(f"  {title:48} {len(errors):3} of {total:3} rows  {figure}")
    errors = [abs(one.error) for one in found]
    print(f"  {'all':48} {len(errors):3} of {len(rows()):3} rows  {median(errors):.2%}, worst {max(errors):.2%}")
    print("\nNot scored:")
    for row in rows():
        if row.scenario is None:
            print(f"  {row.id:13} {row.summary:44} {row.measured.gib:8.3f} GiB  {row.reason}")
    print("\nKnown to have run out of memory:")
    for name, scenario, answer in out_of_memory():
        print(
            f"  {name:22} {summary(scenario):86.86} {answer.verdict:13} {answer.peak.allocated.gib:7.2f} of {answer.capacity.gib:6.2f} GiB"
        )
    print_recorded()


if __name__ == "__main__":
    main()
