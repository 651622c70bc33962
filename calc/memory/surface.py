"""The peak as a function of batch and length, from few runs.

The step runs once with these sizes left open. Every total that may be the highest is then a polynomial in them, and the run notes
what it decided by comparing sizes (one sequence or several, a window shorter than the sequence, a length that fills its padding). Wherever
the decisions are the same, the polynomials give exactly what a run would; where they differ, the step runs once more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import lcm
from typing import Any

from calc.autograd.symbol import Decision, Dim, Symbols, polynomial
from calc.catalog.gpus import GPUS
from calc.memory import step
from calc.memory.breakdown import Verdict
from calc.memory.estimate import built, config_of, on_the_card, standing, stepping_in_backward, verdict
from calc.memory.problems import problems
from calc.memory.recipes import recipe
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


@dataclass(frozen=True)
class Region:
    """One run with open sizes: where it holds, and the polynomials that may be the highest there."""

    symbols: Symbols
    decisions: tuple[tuple[Terms, str, int, bool | int], ...]
    """Polynomial, question, number, outcome."""
    polynomials: tuple[Terms, ...]
    """In bytes, standing ones included."""
    constant: int
    """The highest instant that does not depend on the open sizes."""

    def has(self, values: Mapping[str, int]) -> bool:
        """Whether the run would have decided the same at these sizes."""
        for terms, question, by, outcome in self.decisions:
            size = amount(terms, values)
            if (size % by if question == "%" else size > 0 if question == ">" else size == 0) != outcome:
                return False
        return True

    def peak(self, values: Mapping[str, int]) -> int:
        """Peak allocated bytes."""
        return max(self.constant, *[amount(terms, values) for terms in self.polynomials])


class Surface:
    """Peak bytes and verdict of a scenario for any batch and length. Raises what `estimate` raises."""

    def __init__(self, scenario: Scenario, *, config: Mapping[str, Any] | None = None) -> None:
        self.scenario = scenario
        self.model = built(config if config is not None else config_of(scenario))
        self.gpu = GPUS[scenario.hardware.gpu]
        self.regions: list[Region] = []

    def at(self, batch: int, length: int) -> Scenario:
        """The scenario with another batch and length."""
        sizes = {"micro_batch_size": batch, "seq_len": length}
        return self.scenario.model_copy(update={"plan": self.scenario.plan.model_copy(update=sizes)})

    def allocated(self, batch: int, length: int) -> Bytes:
        """Peak allocated bytes, equal to `estimate`'s."""
        for region in self.regions:
            values = region.symbols.at(B=batch, S=length)
            if region.has(values):
                return Bytes(region.peak(values))
        region = self._region(batch, length)
        self.regions.append(region)
        return Bytes(region.peak(region.symbols.at(B=batch, S=length)))

    def verdict(self, batch: int, length: int) -> Verdict:
        """Verdict, equal to `estimate`'s."""
        scenario = self.at(batch, length)
        _, device = on_the_card(scenario, self.allocated(batch, length))
        return verdict(device, self.gpu.capacity, problems(scenario, self.model, self.gpu))

    def _region(self, batch: int, length: int) -> Region:
        """The step with open sizes, run at these."""
        scenario = self.at(batch, length)
        decisions: dict[Decision, bool | int] = {}
        symbols = Symbols(decisions)
        how = recipe(scenario.plan, self.gpu)
        sequences: Any = Dim(batch, "B", symbols)
        tokens: Any = Dim(length, "S", symbols)
        opened = replace(how, batch=sequences, length=tokens)
        result = step.run(self.model, opened, on_gradient=stepping_in_backward(scenario), open_sizes=True)
        stands = standing(scenario, self.model, result.parameters)
        grows = 8 * (2 if how.padded else 1) * (sequences * tokens - batch * length)
        during = int(stands.during) + grows
        totals = [during + total for _, total in result.candidates]
        totals.append(int(stands.stepping) + grows)
        asked = tuple((whole(dict(poly)), question, by, outcome) for (poly, question, by), outcome in decisions.items())
        return Region(symbols, asked, _highest(totals), int(stands.load))


def _highest(totals: list[int]) -> tuple[Terms, ...]:
    """The polynomials that no other one exceeds in every factor; sizes are positive, so the others are never higher."""
    distinct = {frozenset(polynomial(total).items()) for total in totals}
    kept: list[dict[tuple[str, ...], Fraction]] = []
    for poly in (dict(p) for p in sorted(distinct, key=lambda p: -sum(factor for _, factor in p))):
        if not any(all(other.get(m, 0) >= poly.get(m, 0) for m in {*poly, *other}) for other in kept):
            kept.append(poly)
    assert all(factor.denominator == 1 for poly in kept for factor in poly.values())
    return tuple(whole(poly) for poly in kept)
