"""The fit map: every cell is its estimate, and a card's frontier only falls."""

from __future__ import annotations

from itertools import pairwise

import pytest
from bench_planner import MAP
from plannable import scenarios

from calc import Scenario, estimate
from calc.planner.fit_map import fit_map, stops
from calc.planner.levers import with_values
from calc.planner.room import fits, need


def test_every_cell_of_a_large_map_equals_its_estimate() -> None:
    """1,600 cells of a 70B model: bytes, instant, components, what nvidia-smi shows, and the verdict."""
    scenario, batches, lengths = MAP

    made = fit_map(scenario, batches, lengths)

    assert 1600 == sum(map(len, made.cells))
    for row in made.cells:
        for cell in row:
            answer = estimate(with_values(scenario, {"plan.micro_batch_size": cell.batch, "plan.seq_len": cell.length}))
            assert cell.summit.allocated == answer.peak.allocated
            assert cell.summit.instant == answer.peak.instant
            assert cell.device == answer.peak.device.expected
            assert cell.needed == need(answer.peak.reserved, answer.peak.device)
            assert (cell.needed <= answer.capacity) == (cell.verdict in ("fits", "tight"))
            assert cell.verdict == answer.verdict


@pytest.mark.parametrize("place", range(0, 60, 7))
def test_a_frontier_is_exact_and_falls(place: int) -> None:
    """At each length the largest micro-batch fits and the next does not; longer sequences never allow more of them."""
    scenario = scenarios()[place][0]
    lengths = stops(64, 8192, 9, multiple=64)
    gpus = ("rtx-4090", "a100-sxm-80gb", "v100-sxm-16gb")

    made = fit_map(scenario, (1, 64), lengths, gpus=gpus)

    for gpu, frontier in zip(gpus, made.frontiers, strict=True):
        assert gpu == frontier.gpu.id
        for before, after in pairwise(frontier.batches):
            assert (after or 0) <= (before or 0)
        for length, batch in zip(lengths, frontier.batches, strict=True):

            def holds(size: int, at: int = length, card: str = gpu) -> bool:
                sizes = {"plan.micro_batch_size": size, "plan.seq_len": at, "hardware.gpu": card}
                return fits(estimate(with_values(scenario, sizes)))

            assert batch is None or holds(batch)
            assert batch == 64 or not holds((batch or 0) + 1)


def test_stops_are_spread_by_ratio_and_hold_what_they_must() -> None:
    """Ends, the values asked for, multiples where there is room for them."""
    assert (1, 2, 4, 8, 16, 32, 64) == stops(1, 64, 7)
    many = stops(1, 128, 40, including=(8, 37))
    assert 1 == many[0]
    assert 128 == many[-1]
    assert {8, 37} <= set(many)
    assert 40 <= len(many) <= 42
    lengths = stops(128, 131072, 40, multiple=128, including=(4096,))
    assert all(length % 128 == 0 for length in lengths)
    assert 131072 == lengths[-1]


def test_a_map_on_another_card_is_that_cards() -> None:
    """Runs are shared between cards, answers are not."""
    scenario = Scenario.model_validate({"model": "meta-llama/Llama-3.2-1B", "plan": {"seq_len": 512}})

    made = fit_map(scenario, (1, 2), (256, 512), gpus=("t4", "h100-sxm"))

    small, large = made.frontiers
    assert all((a or 0) <= (b or 0) for a, b in zip(small.batches, large.batches, strict=True))
