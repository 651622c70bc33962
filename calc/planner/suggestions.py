"""What to change so that it fits, or fits better: every lever tried on a scenario, alone and in pairs, by `estimate`.

A suggestion promises what it was seen to do: the bytes are the difference of two answers, never a formula of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from math import prod
from typing import Any

from calc.memory.breakdown import Breakdown, InstantName
from calc.memory.estimate import estimate
from calc.memory.problems import Refused
from calc.planner.levers import LEVERS, RISKS, Lever, Risk
from calc.planner.room import fits
from calc.scenario import Scenario
from calc.units import Bytes

UNFELT = 1.1
"""Factor on the time up to which a change counts as free when levers are ranked."""
WORTH_IT = 0.01
"""Share of the peak that a second lever must save beyond the first to be worth naming."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """One lever or a pair of them, applied."""

    levers: tuple[Lever, ...]
    scenario: Scenario
    """The changed scenario."""
    answer: Breakdown
    """Its answer."""
    saved: Bytes
    """Bytes that the peak of torch's allocator falls by."""
    turns: bool
    """It does not fit before, and does after."""

    @property
    def id(self) -> str:
        """Stable name: the levers' ids."""
        return "+".join(lever.id for lever in self.levers)

    @property
    def risk(self) -> Risk:
        """The larger of the levers' risks."""
        return max((lever.risk for lever in self.levers), key=RISKS.index)

    @property
    def time(self) -> tuple[float, float | None] | None:
        """Factor on the time per token, low and high; None where nothing is published, no high where that is not."""
        return factor(self.levers)


@dataclass(frozen=True, slots=True)
class WithoutEffect:
    """A lever that does not lower the peak, and why."""

    lever: Lever
    instant: InstantName
    """What sets the peak with the change."""
    raised: Bytes
    """Bytes that the peak rises by."""
    lowered: tuple[tuple[InstantName, Bytes], ...]
    """Instants below the peak that it does lower, the most lowered first."""
    problem: str = ""
    """Why the changed plan cannot run; empty where it can."""

    @property
    def reason(self) -> str:
        """One sentence."""
        if self.problem:
            return self.problem
        if self.raised:
            return f"It raises the peak by {self.raised}."
        beside = f" It lowers the {self.lowered[0][0]} by {self.lowered[0][1]}." if self.lowered else ""
        return f"No effect: the peak is the {self.instant}.{beside}"


def factor(levers: Sequence[Lever]) -> tuple[float, float | None] | None:
    """Factor on the time per token of levers together, low and high; no high where that is not published of all, None where nothing is."""
    times = [lever.time for lever in levers]
    known = [time for time in times if time is not None]
    if not known:
        return None
    highs = [time.high for time in known if time.high is not None]
    return prod(time.low for time in known), prod(highs) if len(highs) == len(times) else None


@dataclass(frozen=True, slots=True)
class Advice:
    """A scenario's answer and every lever tried on it."""

    scenario: Scenario
    before: Breakdown
    helpful: tuple[Suggestion, ...]
    """Best first: those that make it fit, then by risk, then by bytes saved."""
    useless: tuple[WithoutEffect, ...]
    """In the table's order."""


def advice(scenario: Scenario, *, config: Mapping[str, Any] | None = None, margin: float = 0.0) -> Advice:
    """Every lever tried on the scenario alone.

    A lever whose plan is not modelled is left out. Raises what `estimate` raises for the scenario itself.
    """
    before = estimate(scenario, config=config)
    helpful: list[Suggestion] = []
    useless: list[WithoutEffect] = []
    for lever in LEVERS.values():
        changed = lever.change(scenario)
        after = answered(changed, config)
        if changed is None or after is None:
            continue
        if blocked(after) or after.peak.allocated >= before.peak.allocated:
            useless.append(_without_effect(lever, before, after))
        else:
            helpful.append(_suggestion((lever,), before, changed, after, margin))
    return Advice(scenario, before, tuple(sorted(helpful, key=rank)), tuple(useless))


def pairs(
    given: Advice, *, config: Mapping[str, Any] | None = None, margin: float = 0.0, limit: int | None = 5
) -> tuple[Suggestion, ...]:
    """The best pairs of levers of two kinds, each saving noticeably more than either of them alone."""
    alone = {found.levers[0].id: int(found.saved) for found in given.helpful}
    more = int(given.before.peak.allocated) * WORTH_IT
    levers = [lever for lever in LEVERS.values() if _may_count(lever, given)]
    found: dict[frozenset[str], Suggestion] = {}
    for first, second in permutations(levers, 2):
        # Either order, where the other one has no place: an adapter is thinned after it was added.
        if first.kind == second.kind or frozenset((first.id, second.id)) in found:
            continue
        changed = applied((first, second), given.scenario)
        if changed is None:
            continue
        after = answered(changed, config)
        if after is None or blocked(after):
            continue
        pair = _suggestion((first, second), given.before, changed, after, margin)
        if int(pair.saved) > max(alone.get(first.id, 0), alone.get(second.id, 0)) + more:
            found[frozenset((first.id, second.id))] = pair
    return tuple(sorted(found.values(), key=rank)[:limit])


def _may_count(lever: Lever, given: Advice) -> bool:
    """Whether a lever may help beside another one: it lowers an instant, under the peak perhaps, or has no place before the other."""
    useless = next((one for one in given.useless if one.lever is lever), None)
    return useless is None or (bool(useless.lowered) and not useless.problem)


def applied(levers: Sequence[Lever], scenario: Scenario) -> Scenario | None:
    """One lever after the other; None where one of them has no place."""
    changed: Scenario | None = scenario
    for lever in levers:
        if changed is None:
            return None
        changed = lever.change(changed)
    return changed


def answered(scenario: Scenario | None, config: Mapping[str, Any] | None) -> Breakdown | None:
    """The answer; None where there is none."""
    if scenario is None:
        return None
    try:
        return estimate(scenario, config=config)
    except Refused:
        return None


def blocked(answer: Breakdown) -> str:
    """Why a plan cannot run; empty where it can."""
    return next((problem.message for problem in answer.problems if problem.blocking), "")


def rank(suggestion: Suggestion) -> tuple[bool, int, bool, int]:
    """Order of suggestions: what makes it fit, the least risk, then, of those, what is known to cost no time; most bytes."""
    time = suggestion.time
    slower = suggestion.turns and (time is None or time[1] is None or time[1] > UNFELT)
    return (not suggestion.turns, RISKS.index(suggestion.risk), slower, -int(suggestion.saved))


def _suggestion(
    levers: tuple[Lever, ...], before: Breakdown, scenario: Scenario, after: Breakdown, margin: float
) -> Suggestion:
    return Suggestion(
        levers=levers,
        scenario=scenario,
        answer=after,
        saved=before.peak.allocated - after.peak.allocated,
        turns=fits(after, margin=margin) and not fits(before, margin=margin),
    )


def _without_effect(lever: Lever, before: Breakdown, after: Breakdown) -> WithoutEffect:
    was = {instant.name: instant.allocated for instant in before.instants}
    lower = [(i.name, was[i.name] - i.allocated) for i in after.instants if i.allocated < was[i.name]]
    raised = after.peak.allocated - before.peak.allocated
    return WithoutEffect(
        lever=lever,
        instant=after.peak.instant,
        raised=max(raised, Bytes(0)),
        lowered=tuple(sorted(lower, key=lambda one: -int(one[1]))),
        problem=blocked(after),
    )
