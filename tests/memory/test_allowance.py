"""What the allocator holds and what nvidia-smi shows, against published runs."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calc.catalog.allowances import CACHINGS, CONTEXTS, WORKSPACES, context, fragmentation, workspace
from calc.catalog.gpus import GPUS
from calc.catalog.sources import SOURCES
from calc.memory.allowance import reserved_and_device
from calc.units import GIB, MIB, Bytes

GOLDEN = Path(__file__).parents[1] / "golden" / "allocator.jsonl"
RUNS: list[dict[str, Any]] = [json.loads(line) for line in GOLDEN.read_text(encoding="utf-8").splitlines()]
T4_RUNS = [run for run in RUNS if run["gpu"] == "t4"]

cards = st.sampled_from(list(GPUS.values()))
amounts = st.integers(0, 300 * GIB).map(Bytes)
circumstances = st.fixed_dictionaries(
    {
        "num_gpus": st.sampled_from([1, 2, 64]),
        "whole_logits": st.booleans(),
        "stack": st.sampled_from(["transformers", "megatron"]),
    }
)


def spans(run: dict[str, Any]) -> Any:
    allocated = Bytes(round(run["allocated_mib"] * MIB))
    return reserved_and_device(
        allocated, GPUS[run["gpu"]], num_gpus=run["gpus"], whole_logits=run["whole_logits"], stack=run["stack"]
    )


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run["id"])
def test_every_published_run_lies_within_the_span(run: dict[str, Any]) -> None:
    """All 160 runs: what was reserved and what the driver showed lie between low and high."""
    reserved, device = spans(run)
    if run["reserved_mib"] is not None:
        assert reserved.low.mib <= run["reserved_mib"] <= reserved.high.mib
    if run["device_mib"] is not None:
        assert device.low.mib <= run["device_mib"] <= device.high.mib


def test_a_t4_shows_the_context_on_top_of_what_is_reserved() -> None:
    """On all T4 runs nvidia-smi shows exactly 140.875 MiB more than the allocator holds."""
    assert {140.875} == {run["device_mib"] - run["reserved_mib"] for run in T4_RUNS}
    for run in T4_RUNS:
        reserved, device = spans(run)
        assert Bytes(144_256 * 1024) == device.expected - reserved.expected


def test_the_expected_figure_is_the_middle_of_what_was_read_on_a_t4() -> None:
    """Half of the T4 runs hold more than expected, half less: the median of read to expected is 1 within 1 %."""
    ratios = [run["reserved_mib"] / spans(run)[0].expected.mib for run in T4_RUNS]
    assert median(ratios) == pytest.approx(1, abs=0.01)


def test_a_run_that_filled_its_card_is_not_expected_to_exceed_it() -> None:
    """74.8 GiB allocated ran on an 80 GB A100 (device peak 75.87 GiB), so the cache is expected to give way."""
    card = GPUS["a100-sxm-80gb"]
    _, device = reserved_and_device(Bytes(int(74.8 * GIB)), card)
    assert device.expected <= card.capacity < device.high


def test_what_exceeds_the_card_even_without_a_cache_is_expected_to_exceed_it() -> None:
    """The cache gives way, the tensors do not."""
    card = GPUS["a100-sxm-80gb"]
    _, device = reserved_and_device(Bytes(int(79.0 * GIB)), card)
    assert device.expected > card.capacity


@given(allocated=amounts, more=amounts, card=cards, circumstance=circumstances)
def test_spans_are_ordered_and_never_fall(allocated: Bytes, more: Bytes, card: Any, circumstance: Any) -> None:
    """allocated <= low <= expected <= high, the device shows more than that, and more tensors never take less."""
    reserved, device = reserved_and_device(allocated, card, **circumstance)
    assert allocated <= reserved.low <= reserved.expected <= reserved.high
    assert device.low <= device.expected <= device.high
    assert reserved.low < device.low
    assert reserved.expected < device.expected
    larger, _ = reserved_and_device(allocated + more, card, **circumstance)
    assert reserved.low <= larger.low
    assert reserved.expected <= larger.expected
    assert reserved.high <= larger.high


@pytest.mark.parametrize(
    ("card", "size"),
    [
        ("t4", 8_519_680),
        ("a100-sxm-80gb", 8_519_680),
        ("h100-sxm", 32 * MIB),
        ("b200-sxm", 32 * MIB),
        ("rtx-5090", 32 * MIB),
        ("mi300x", 128 * MIB),
        ("mi210", 32 * MIB),
    ],
)
def test_a_cublas_handle_gets_pytorchs_workspace(card: str, size: int) -> None:
    """:4096:2:16:8 before Hopper, 32 MiB from Hopper on, AMD's own sizes on AMD."""
    assert Bytes(size) == workspace(GPUS[card]).size


def test_every_allowance_names_its_source() -> None:
    """No figure without a place to check it."""
    for row in (*CONTEXTS.values(), *WORKSPACES.values(), *CACHINGS.values()):
        assert row.source in SOURCES
    assert all(context(gpu).low <= context(gpu).expected <= context(gpu).high for gpu in GPUS.values())
    assert all(row.low <= row.expected <= row.high for row in CACHINGS.values())


# Allocated and reserved GiB at the moment an allocation failed, as the messages in public issues print them.
FAILED = {
    "alpaca-65": (35.54, 37.22), "llamax-12": (29.87, 30.29), "fastchat-256": (76.93, 77.38), "fastchat-1242": (73.14, 74.59),
    "hf-3360": (13.33, 13.38), "megatron-525": (28.82, 29.97), "colossal-3509": (22.00, 22.29), "llama-code-t4": (10.23, 12.92),
    "lf-257": (78.58, 78.58), "axolotl-998": (15.39, 15.46), "openinstruct-65": (75.10, 77.88), "firefly-33": (30.35, 30.55),
    "autotrain-376": (13.89, 15.20),
}  # fmt: skip


def test_fragmentation_is_what_full_cards_could_not_give_back() -> None:
    """Median and worst of 13 out-of-memory messages."""
    ratios = [reserved / allocated for allocated, reserved in FAILED.values()]

    assert fragmentation().readings == len(ratios)
    assert fragmentation().expected == pytest.approx(median(ratios), abs=0.001)
    assert fragmentation().high == pytest.approx(max(ratios), abs=0.001)


def test_a_plan_with_a_quarter_of_the_card_to_spare_is_no_close_call() -> None:
    """60.4 GiB on an 80 GB A100 fits even with fragments as bad as the worst that were read."""
    card = GPUS["a100-sxm-80gb"]

    _, device = reserved_and_device(Bytes(int(60.43 * GIB)), card)

    assert device.high <= card.capacity
