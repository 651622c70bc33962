"""The Hub's tests run the real client against a fake Hub on the loopback address."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fake_hub import FakeHub, populate

from calc import hub as calc_hub


@pytest.fixture(scope="module")
def _populated() -> Iterator[FakeHub]:
    with populate(FakeHub()) as server:
        yield server


@pytest.fixture
def cast(_populated: FakeHub) -> FakeHub:
    """The whole cast, for tests that only ask."""
    calc_hub.forget()
    _populated.seen.clear()
    _populated.seen_by_cdn.clear()
    return _populated


@pytest.fixture
def server() -> Iterator[FakeHub]:
    """An empty Hub, for tests that fill or break it."""
    calc_hub.forget()
    with FakeHub() as server:
        yield server


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> float:
    """A time limit that tests can sit through, in seconds."""
    monkeypatch.setattr(calc_hub, "TIME_LIMIT", 0.5)
    return 0.5
