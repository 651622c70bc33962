"""What bf16 and fp16 do to weights, updates, decay and averages, against torch."""

from __future__ import annotations

import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calc.catalog.dtypes import DTYPES, FLOAT_FORMATS, INTEGER_FORMATS
from calc.catalog.sources import SOURCES
from calc.schedule.kinds import SCHEDULES
from calc.schedule.rounding import (
    LOSS_SCALERS,
    REMEDIES,
    average_is_stuck,
    average_share_moved,
    decay_moves_from,
    decays_below,
    frozen_from,
    moved_share,
    rounded,
    ulp,
    walked,
)

BF16, FP16 = FLOAT_FORMATS["bf16"], FLOAT_FORMATS["fp16"]


@pytest.mark.parametrize(
    ("name", "largest", "smallest_normal", "epsilon"),
    [
        ("fp32", 3.4028234663852886e38, 1.1754943508222875e-38, 1.1920928955078125e-07),
        ("fp16", 65504.0, 6.103515625e-05, 0.0009765625),
        ("bf16", 3.3895313892515355e38, 1.1754943508222875e-38, 0.0078125),
        ("fp8-e4m3", 448.0, 0.015625, 0.125),
        ("fp8-e5m2", 57344.0, 6.103515625e-05, 0.25),
        ("fp8-e4m3fnuz", 240.0, 0.0078125, 0.125),
    ],
)
def test_formats_follow_from_their_bits_as_torch_finfo_has_them(
    name: str, largest: float, smallest_normal: float, epsilon: float
) -> None:
    """max, tiny and eps of torch 2.13's finfo, exactly."""
    row = FLOAT_FORMATS[name]
    assert (largest, smallest_normal, epsilon) == (row.largest, row.smallest_normal, row.epsilon)


def test_smallest_values_above_zero() -> None:
    """Subnormals: fp16 5.96e-8, bf16 9.18e-41, e4m3 2^-9, e5m2 2^-16."""
    assert [2.0**-24, 2.0**-133, 2.0**-9, 2.0**-16] == [
        FLOAT_FORMATS[name].smallest for name in ("fp16", "bf16", "fp8-e4m3", "fp8-e5m2")
    ]


def test_every_format_has_an_openable_source() -> None:
    """And those of the dtype table have as many bits as their dtype has bytes."""
    rows = [*FLOAT_FORMATS.values(), *INTEGER_FORMATS.values(), *REMEDIES.values(), *LOSS_SCALERS.values()]
    assert all(row.source in SOURCES for row in rows)
    assert all(8 * DTYPES[name].size == FLOAT_FORMATS[name].bits for name in ("fp32", "bf16", "fp16"))


@given(st.floats(-6e4, 6e4, width=32))
def test_rounding_to_fp16_is_the_machines(value: float) -> None:
    """Python's own half-precision packing agrees, subnormals and ties included."""
    assert struct.unpack("e", struct.pack("e", value))[0] == rounded(value, FP16)


@given(st.floats(-(2.0**126), 2.0**126, width=32))
def test_rounding_to_bf16_is_the_upper_half_of_fp32(value: float) -> None:
    """Nearest, ties to even, on the bits themselves."""
    bits = struct.unpack("I", struct.pack("f", value))[0]
    kept = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16 << 16
    assert struct.unpack("f", struct.pack("I", kept))[0] == rounded(value, BF16)


def test_fp16_overflows_at_65520() -> None:
    """65,519 rounds to the largest, 65,520 to infinity."""
    assert [65504.0, math.inf, -math.inf] == [rounded(value, FP16) for value in (65519.0, 65520.0, -1e6)]
    assert 65520.0 == FP16.overflow


def test_adams_epsilon_is_zero_in_fp16() -> None:
    """1e-8 rounds to 0, so a gradient of 0 divides by it; 1e-7 is kept."""
    assert 0.0 == rounded(1e-8, FP16)
    assert 0.0 < rounded(1e-7, FP16)
    assert 0.0 < rounded(1e-8, BF16)


@pytest.mark.parametrize(
    ("rate", "threshold"),
    [
        (1e-3, 0.5),
        (2e-4, 0.0625),
        (1e-4, 0.03125),
        (5e-5, 0.015625),
        (2e-5, 2**-7),
        (1e-5, 2**-8),
        (5e-6, 2**-9),
        (1e-6, 2**-11),
    ],
)
def test_weights_freeze_from_a_power_of_two(rate: float, threshold: float) -> None:
    """|w| at least 2^(floor(log2 lr) + 9) does not move in bf16."""
    assert threshold == frozen_from(rate, BF16)
    below = rounded(threshold * 0.99, BF16)
    assert threshold == rounded(threshold + rate, BF16)
    assert below != rounded(below + rate, BF16)


@pytest.mark.parametrize(
    ("rate", "measured"),
    [
        (1e-3, 1.0),
        (1e-4, 0.88207),
        (2e-5, 0.304544),
        (1e-5, 0.154823),
        (2e-6, 0.038808),
        (1e-6, 0.01925),
    ],
)
def test_the_share_that_moves_is_the_one_measured(rate: float, measured: float) -> None:
    """One step of torch's AdamW on a million bf16 weights of standard deviation 0.02 (torch 2.13)."""
    assert measured == pytest.approx(moved_share(rate, sigma=0.02, held=BF16).share, abs=2e-3)


def test_the_mistral_seed_moves_four_in_a_hundred_weights() -> None:
    """lr 2e-6, 584 steps.

    At the peak 3.9 % of bf16 weights move in a step; on a linear decay to 0, 1.4 % on average.
    """
    found = moved_share(2e-6, sigma=0.02, held=BF16)
    assert (0.0389, 2**-10) == (pytest.approx(found.share, abs=1e-4), found.threshold)
    assert "erf(t / (σ · √(2))), t = 2^(floor(log2(lr)) + m + 2)" == found.formula
    assert "erf(t / (0.02 · √(2))), t = 2^(floor(log2(2e-06)) + 7 + 2)" == found.numbers
    schedule = SCHEDULES["linear"].schedule(learning_rate=2e-6, warmup_steps=0, steps=584)
    assert 0.0142 == pytest.approx(average_share_moved(schedule, sigma=0.02, held=BF16), abs=0.0001)


@pytest.mark.parametrize(
    ("rate", "exact", "nearest", "kahan"),
    [
        (1e-4, 0.0000195, -0.00193, 0.0000198),
        (5e-5, 0.0100195, 0.0200195, 0.0100098),
        (2e-5, 0.0160195, 0.0200195, 0.0159912),
        (1e-6, 0.0198195, 0.0200195, 0.0197754),
    ],
)
def test_two_hundred_steps_of_one_weight(rate: float, exact: float, nearest: float, kahan: float) -> None:
    """0.02 in bf16.

    Stuck at small rates, twice as fast at 1e-4, nearly exact with Kahan summation (recorded with torch).
    """
    assert exact == pytest.approx(walked(0.02, rate, 200, held=BF16, store="fp32 master"), abs=6e-8)
    assert nearest == pytest.approx(walked(0.02, rate, 200, held=BF16, store="nearest"), abs=6e-6)
    assert kahan == pytest.approx(walked(0.02, rate, 200, held=BF16, store="kahan"), abs=6e-8)


@given(st.floats(2**-20, 1.0), st.floats(1e-8, 0.1))
def test_decay_moves_nothing_below_and_everything_above(weight: float, decay: float) -> None:
    """lr · wd under 2^-9 leaves every bf16 weight where it is; from 2^-8 on it moves every one."""
    none, every = decay_moves_from(BF16)
    assert (2**-9, 2**-8) == (none, every)
    held = rounded(weight, BF16)
    moved = rounded(held * (1 - decay), BF16) != held
    if decay < none:
        assert not moved
    if decay > every:
        assert moved


def test_beta2_of_0_999_never_decays_in_bf16() -> None:
    """0.999 rounds to 1, and an average of 1 fed zeros is still 1 after 1,000 steps; 0.98 decays."""
    average = 1.0
    for _ in range(1000):
        average = rounded(average * 0.999, BF16)
    assert 1.0 == average
    assert average_is_stuck(0.999, BF16)
    assert not average_is_stuck(0.98, BF16)
    assert not average_is_stuck(0.999, FLOAT_FORMATS["fp32"])
    assert 1 - 2**-8 == decays_below(BF16)


def test_loss_scale_doubles_after_good_steps_and_halves_at_overflow() -> None:
    """torch: 65,536, doubled after 2,000 good steps, halved at once; DeepSpeed waits for the second overflow."""
    torch, deepspeed = LOSS_SCALERS["torch"], LOSS_SCALERS["deepspeed"]
    assert 131072.0 == torch.scale_after([False] * 2000)
    assert 65536.0 == torch.scale_after([False] * 1999)
    assert 32768.0 == torch.scale_after([True])
    assert [65536.0, 32768.0] == [deepspeed.scale_after([True] * n) for n in (1, 2)]
    assert 2.0**-41 == torch.smallest_kept(FP16)


def test_neighbours_of_a_weight() -> None:
    """0.02 lies between multiples of 2^-13 in bf16."""
    assert 2.0**-13 == ulp(0.02, BF16)
    assert BF16.smallest == ulp(0.0, BF16)
