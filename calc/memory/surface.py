"""The peak as a function of batch and length, from few runs.

The step runs once with these sizes left open. Every total that may be the highest is then a polynomial in them, and the run notes
what it decided by comparing sizes (one sequence or several, a window shorter than the sequence, a length that fills its padding). Wherever
the decisions are the same, the polynomials give exactly what a run would; where they differ, the step runs once more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from fractions import Fraction
from math import lcm, prod
from typing import Any

from calc.autograd.symbol import Decision, Dim, Symbols, polynomial, undominated
from calc.catalog.dtypes import DTYPES
from calc.catalog.gpus import GPUS
from calc.memory import in_backward, step
from calc.memory.breakdown import Component, InstantName, Line, Verdict
from calc.memory.estimate import (
    KINDS,
    Standing,
    built,
    config_of,
    on_the_card,
    standing,
    verdict,
)
from calc.memory.problems import problems
from calc.memory.recipes import micro_batches, recipe
from calc.scenario import Scenario
from calc.units import Bytes

Terms = tuple[tuple[tuple[str, ...], int], ...]
"""A polynomial with whole factors."""


def amount(terms: Terms, values: Mapping[str, int]) -> int:
    """What a polynomial comes to."""
    total = 0
    for monomial, factor in terms:
        for symbol in monomial:
            factor *= values[symbol]
        total += factor
    return total


def whole(poly: Mapping[tuple[str, ...], Fraction]) -> Terms:
    """A polynomial over its common denominator: the same sign and the same zeros."""
    by = lcm(*(f.denominator for f in poly.values())) if poly else 1
    return tuple((monomial, int(factor * by)) for monomial, factor in poly.items())


ANSWERS: Mapping[str, Callable[[int, int], bool | int]] = {
    ">": lambda size, by: size > 0,
    "=": lambda size, by: size == 0,
    "%": lambda size, by: size % by,
    "|": lambda size, by: size % by == 0,
}
"""What a run decides by a size."""


@dataclass(frozen=True, slots=True)
class Height:
    """A total that may be the peak, and what it is made of, as polynomials in bytes."""

    instant: InstantName
    total: Terms
    held: tuple[tuple[Component, Terms], ...]


@dataclass(frozen=True, slots=True)
class Summit:
    """The peak at one batch and length."""

    allocated: Bytes
    instant: InstantName
    held: Mapping[Component, Bytes]
    """The components that hold something then; they sum to `allocated`."""


@dataclass(frozen=True)
class Region:
    """One run with open sizes: where it holds, and the totals that may be the highest there."""

    symbols: Symbols
    decisions: tuple[tuple[Terms, str, int, bool | int], ...]
    """Polynomial, question, number, outcome."""
    heights: tuple[Height, ...]

    def has(self, values: Mapping[str, int]) -> bool:
        """Whether the run would have decided the same at these sizes."""
        for terms, question, by, outcome in self.decisions:
            if ANSWERS[question](amount(terms, values), by) != outcome:
                return False
        return True

    def peak(self, values: Mapping[str, int]) -> int:
        """Peak allocated bytes."""
        return max([amount(height.total, values) for height in self.heights])

    def summit(self, values: Mapping[str, int]) -> Summit:
        """The peak and what it is made of."""
        highest = max(self.heights, key=lambda height: amount(height.total, values))
        held = {component: Bytes(amount(terms, values)) for component, terms in highest.held}
        return Summit(Bytes(amount(highest.total, values)), highest.instant, {c: b for c, b in held.items() if b})


class Surface:
    """Peak bytes and verdict of a scenario for any batch and length. Raises what `estimate` raises."""

    def __init__(self, scenario: Scenario, *, config: Mapping[str, Any] | None = None) -> None:
        self.scenario = scenario
        self.model = built(config if config is not None else config_of(scenario))
        self.gpu = GPUS[scenario.hardware.gpu]
        self.regions: list[Region] = []

    def on(self, gpu: str) -> Surface:
        """The same plan on another card. Runs are shared where both cards take the same kernels."""
        other = copy(self)
        other.gpu = GPUS[gpu]
        hardware = self.scenario.hardware.model_copy(update={"gpu": other.gpu.id})
        other.scenario = self.scenario.model_copy(update={"hardware": hardware})
        if recipe(self.scenario.plan, self.gpu) != recipe(self.scenario.plan, other.gpu):
            other.regions = []
        return other

    def at(self, batch: int, length: int) -> Scenario:
        """The scenario with another batch and length."""
        sizes = {"micro_batch_size": batch, "seq_len": length}
        return self.scenario.model_copy(update={"plan": self.scenario.plan.model_copy(update=sizes)})

    def allocated(self, batch: int, length: int) -> Bytes:
        """Peak allocated bytes, equal to `estimate`'s."""
        region, values = self._found(batch, length)
        return Bytes(region.peak(values))

    def summit(self, batch: int, length: int) -> Summit:
        """The peak with its instant and components, equal to `estimate`'s."""
        region, values = self._found(batch, length)
        return region.summit(values)

    def verdict(self, batch: int, length: int) -> Verdict:
        """Verdict, equal to `estimate`'s."""
        scenario = self.at(batch, length)
        _, device = on_the_card(scenario, self.allocated(batch, length))
        return verdict(device, self.gpu.capacity, problems(scenario, self.model, self.gpu))

    def _found(self, batch: int, length: int) -> tuple[Region, Mapping[str, int]]:
        """The run that holds at these sizes, made where there is none yet."""
        for region in self.regions:
            values = region.symbols.at(B=batch, S=length)
            if region.has(values):
                return region, values
        region = self._region(batch, length)
        self.regions.append(region)
        return region, region.symbols.at(B=batch, S=length)

    def _region(self, batch: int, length: int) -> Region:
        """The step with open sizes, run at these."""
        scenario = self.at(batch, length)
        decisions: dict[Decision, bool | int] = {}
        symbols = Symbols(decisions)
        how = recipe(scenario.plan, self.gpu)
        sequences: Any = Dim(batch, "B", symbols)
        tokens: Any = Dim(length, "S", symbols)
        opened = replace(how, batch=sequences, length=tokens)
        stepping = in_backward.stepping(scenario.plan)
        runs = [
            step.run(self.model, run, on_gradient=stepping, open_sizes=True)
            for run in micro_batches(opened, scenario.plan.gradient_accumulation_steps)
        ]
        candidates = [candidate for run in runs for candidate in run.candidates]
        stands = standing(scenario, self.model, runs[0].stored)
        # Token ids, positions and images stand beside the run and grow with the sizes.
        grows = 8 * (2 if how.padded else 1) * (sequences * tokens - batch * length)
        for wide, one in zip(*(self.model.family.given(self.model.dims, run) for run in (opened, how)), strict=True):
            grows += (prod(wide.shape) - prod(one.shape)) * int(DTYPES[one.dtype].size)
        asked = tuple((whole(dict(poly)), question, by, outcome) for (poly, question, by), outcome in decisions.items())
        return Region(symbols, asked, _highest(list(_totals(stands, candidates, grows))))


Total = tuple[InstantName, Any, Sequence[Line], Any, step.Candidate | None]
"""Instant, total, the standing lines in it, what they grow by, and what the run holds beside them."""


def _totals(stands: Standing, candidates: Sequence[step.Candidate], grows: Any) -> Iterator[Total]:
    """Every total that may be the highest, in the order of the step."""
    yield "load", int(stands.load), stands.loaded, 0, None
    beside, during = (*stands.lines, *stands.earlier), int(stands.during) + grows
    for one in candidates:
        if one.instant == "optimizer step":  # outputs that the loop holds
            yield one.instant, int(stands.stepping) + grows + one.total, stands.stepped, grows, one
        else:
            yield one.instant, during + one.total, beside, grows, one
    yield "optimizer step", int(stands.stepping) + grows, stands.stepped, grows, None


def _highest(totals: list[Total]) -> tuple[Height, ...]:
    """The totals that no other one exceeds in every factor; sizes are positive, so the others are never higher."""
    found = []
    for place in undominated([total[1] for total in totals]):
        poly = polynomial(totals[place][1])
        assert all(factor.denominator == 1 for factor in poly.values())
        found.append(Height(totals[place][0], whole(poly), _held(totals[place])))
    return tuple(found)


def _held(total: Total) -> tuple[tuple[Component, Terms], ...]:
    """A total by component."""
    _, _, lines, grows, run = total
    held: dict[Component, Any] = {}
    for line in lines:
        held[line.component] = held.get(line.component, 0) + int(line.bytes)
    held["buffers"] = held.get("buffers", 0) + grows
    if run is not None:
        kinds = run.kinds
        for kind, component, _ in KINDS:
            held[component] = held.get(component, 0) + kinds[kind]
    return tuple((component, whole(polynomial(size))) for component, size in held.items())
