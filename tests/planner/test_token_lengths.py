"""The lengths of a data set: read from what people paste, counted as collators pad them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calc.planner.lengths import BadLengths, lengths, padding
from calc.schedule.packing import packed_rows

SIZES = st.lists(st.integers(1, 3000), min_size=1, max_size=60)


@given(sizes=SIZES, batch=st.integers(1, 9), seq_len=st.integers(1, 4096))
def test_padding_is_what_filling_each_batch_to_its_longest_adds(sizes: list[int], batch: int, seq_len: int) -> None:
    """By laying every batch out."""
    kept = [min(size, seq_len) for size in sizes]

    found = padding(sizes, micro_batch_size=batch, seq_len=seq_len)

    def laid_out(order: list[int]) -> int:
        rows = [order[start : start + batch] for start in range(0, len(order), batch)]
        return sum(max(row) for row in rows for _ in row)

    assert sum(kept) == found.tokens
    assert laid_out(kept) == found.padded
    assert laid_out(sorted(kept, reverse=True)) == found.grouped
    assert found.tokens <= found.grouped
    assert max(kept) == found.longest_batch
    assert len([size for size in sizes if size > seq_len]) == found.cut
    assert packed_rows(sizes, seq_len=seq_len) * seq_len == found.packed
    assert 0 <= found.grouped_share < 1
    assert 0 <= found.share < 1
    assert 0 <= found.packed_share < 1


def test_equal_lengths_need_no_padding() -> None:
    """And one long sample pads its whole batch."""
    assert 0 == padding([7] * 8, micro_batch_size=4, seq_len=99).share
    found = padding([1000, 10, 10, 10], micro_batch_size=4, seq_len=4096)
    assert 4000 == found.padded
    assert 1 - 1030 / 4000 == found.share
    assert 0 == found.cut


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12 7\n30", (12, 7, 30)),
        ("12, 7; 30", (12, 7, 30)),
        ("[12, 7, 30]", (12, 7, 30)),
        ("length\n12\n7\n30\n", (12, 7, 30)),
        ('{"length": 12}\n{"length": 7}\n\n{"input_ids": [1, 2, 3]}', (12, 7, 3)),
    ],
)
def test_lengths_are_read_as_people_paste_them(text: str, expected: tuple[int, ...]) -> None:
    """Columns, lists, JSON Lines of a tokenised data set."""
    assert expected == lengths(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no length in it"),
        ("12 -7", "-7 is no length"),
        ("12 7.5", "'7.5' is no whole number"),
        ("12 abc", "'abc' is no whole number"),
        ("0", "0 is no length"),
        ('{"length": 12}\n{"text": "x"}', "line 2 has neither"),
        ('{"length": true}', "line 1 has neither"),
        ("{not json}", "line 1 is not JSON"),
        ("99999999999", "99999999999 is no length"),
        ("length", "no length in it"),
    ],
)
def test_what_is_no_length_is_named(text: str, says: str) -> None:
    """The first thing that cannot be read, in one sentence."""
    with pytest.raises(BadLengths, match=says):
        lengths(text)
