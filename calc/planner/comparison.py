"""Scenarios side by side: which settings differ, and which lines of the peak.

Up to three scenarios travel beside the visitor's own in one link, as text that stays short: each is its own query string with other
signs in it, so that it can stand as a value in the whole one.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from calc.link import PATHS, by_path, encoded, params
from calc.link import scenario as opened
from calc.memory.breakdown import COMPONENTS, Breakdown, Component, Problem
from calc.scenario import Scenario
from calc.units import Bytes

MOST = 3
"""Scenarios pinned beside the visitor's own."""
BETWEEN = ",,"
"""Between two of them: no query string has an empty pair."""
LONGEST = 1_200
"""Characters of pinned scenarios as they are; longer ones are packed."""
PACKED = "z/"
"""What packed ones begin with: no key of a link has a slash."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A field in which two scenarios differ."""

    path: str
    before: Any
    """None where the method has no such field."""
    after: Any


@dataclass(frozen=True, slots=True)
class Difference:
    """What one line of the peak is in two answers."""

    component: Component
    label: str
    before: Bytes
    after: Bytes

    @property
    def change(self) -> Bytes:
        """Bytes more, or fewer."""
        return self.after - self.before


def settings(before: Scenario, after: Scenario) -> tuple[Setting, ...]:
    """The fields in which two scenarios differ, in the order of the link."""
    a = by_path({"model": before.model, "plan": before.plan, "hardware": before.hardware})
    b = by_path({"model": after.model, "plan": after.plan, "hardware": after.hardware})
    return tuple(Setting(path, a.get(path), b.get(path)) for path in PATHS if a.get(path) != b.get(path))


def differences(before: Breakdown, after: Breakdown) -> tuple[Difference, ...]:
    """The lines of both peaks, each peak at its own instant, that differ; the largest change first. They sum to the change of the peak."""
    a, b = lines(before), lines(after)
    found = [
        Difference(component, label, a.get((component, label), Bytes(0)), b.get((component, label), Bytes(0)))
        for component, label in dict.fromkeys([*a, *b])
    ]
    return tuple(sorted((one for one in found if one.change), key=lambda one: -abs(int(one.change))))


def lines(answer: Breakdown) -> dict[tuple[Component, str], Bytes]:
    """The lines of the peak by component and label."""
    held: dict[tuple[Component, str], Bytes] = {}
    for line in sorted(answer.lines, key=lambda line: COMPONENTS.index(line.component)):
        key = (line.component, line.label)
        held[key] = held.get(key, Bytes(0)) + line.bytes
    return held


def pinned_text(scenarios: Sequence[Scenario]) -> str:
    """Scenarios as one value of a link. Raises `NotLinkable` where one of them fits no link."""
    text = BETWEEN.join(_signs(encoded(params(one))) for one in scenarios)
    return text if len(text) <= LONGEST else f"{PACKED}{_packed(text)}"


def pinned(text: str) -> tuple[tuple[Scenario, ...], tuple[Problem, ...]]:
    """The scenarios that a link's value holds, and what in it could not be used. Never fails."""
    if text.startswith(PACKED):
        unpacked = _unpacked(text[len(PACKED) :])
        if unpacked is None:
            said = "the pinned scenarios in this link are damaged"
            return (), (Problem("link-pins", said, "", blocking=False),)
        text = unpacked
    read = [opened(_query(part)) for part in text.split(BETWEEN)[:MOST] if part]
    return tuple(one for one, _ in read), tuple(problem for _, problems in read for problem in problems)


_AS = {"=": ":", "&": ",", "%": "~"}
"""Signs of a query string that would be written as three characters inside another one, and those that stand for them."""


def _signs(query: str) -> str:
    for sign in "~:,":
        query = query.replace(sign, f"%{ord(sign):02X}")
    return "".join(_AS.get(sign, sign) for sign in query)


def _query(part: str) -> str:
    back = {other: sign for sign, other in _AS.items()}
    return "".join(back.get(sign, sign) for sign in part)


def _packed(text: str) -> str:
    return base64.urlsafe_b64encode(zlib.compress(text.encode(), 9)).decode().rstrip("=")


def _unpacked(packed: str) -> str | None:
    try:
        squeezed = base64.b64decode(packed + "=" * (-len(packed) % 4), altchars=b"-_", validate=True)
        unpacker = zlib.decompressobj()
        text = unpacker.decompress(squeezed, 64 * 1024)
    except (binascii.Error, zlib.error, ValueError):
        return None
    return text.decode(errors="replace") if unpacker.eof else None
