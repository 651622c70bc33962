"""Ours against published readings of real runs. `python tests/accuracy.py` prints the table."""

from __future__ import annotations

from statistics import median

import accuracy
import pytest

ROWS = accuracy.rows()
SCORED = [row for row in ROWS if row.scenario is not None]
# The allocator leaves up to 1 MiB of a block uncut, and what lies where after loading varies between runs of one script by some 10 MiB.
UNCUT = accuracy.Bytes(30 * 2**20)
LOOSE = {"router": 0.009, "nearest word": 0.008}
"""Where a row's note says so: how a mixture shared its tokens out was not published; a scenario has no word for fp16 without autocast."""


@pytest.mark.parametrize("row", SCORED, ids=lambda row: row.id)
def test_a_published_peak_is_met(row: accuracy.Row) -> None:
    """Within what the allocator itself adds, and half the last digit that was published."""
    predicted = int(accuracy.score(row).predicted)
    measured = int(row.measured)

    slack = int(UNCUT) + int(row.precise_to)
    slack += sum(round(share * measured) for word, share in LOOSE.items() if word in row.note)
    assert abs(predicted - measured) <= slack


@pytest.mark.parametrize("group", [None, *accuracy.GROUPS])
def test_the_median_error_is_far_below_three_percent(group: str | None) -> None:
    """Over all scored rows, and over those of each source that has any."""
    errors = [abs(one.error) for one in accuracy.scores() if group in (None, one.row.group)]

    assert not errors or median(errors) <= 0.03


def test_every_row_is_scored_or_says_why_not() -> None:
    """Nothing is left out in silence."""
    assert 92 == len(ROWS)
    for row in ROWS:
        assert (row.scenario is None) == bool(row.reason)
        assert row.source.startswith("https://")
        assert row.group in accuracy.GROUPS


def test_no_plan_that_ran_out_of_memory_is_called_a_fit() -> None:
    """On one card each, at the smallest batch that the report allows."""
    answers = accuracy.out_of_memory()

    assert 39 == len(answers)
    assert [] == [name for name, _, answer in answers if answer.verdict == "fits"]


def test_the_report_prints(capsys: pytest.CaptureFixture[str]) -> None:
    """Each row has a line, scored or not."""
    accuracy.main()

    printed = capsys.readouterr().out
    assert all(row.id in printed for row in ROWS)
