"""Every schedule against what its own library did, and the laws that all of them keep."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calc.catalog.sources import SOURCES
from calc.catalog.table import UnknownName
from calc.schedule.kinds import SCHEDULES, kind
from calc.schedule.phases import Schedule, ScheduleError

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parents[1] / "golden" / "schedules.json").read_text())["cases"]
SPECIAL: dict[str, dict[str, object]] = {
    "cosine_with_min_lr": {"min_lr_rate": 0.1},
    "cosine_warmup_with_min_lr": {"min_lr_rate": 0.1},
    "warmup_stable_decay": {"num_decay_steps": 20},
    "early-wsd": {"num_decay_steps": 20, "num_stable_steps": 70},
    "torch-cosine-warm-restarts": {"T_0": 13},
    "torch-exponential": {"gamma": 0.99},
    "torch-step": {"step_size": 7},
    "deepspeed-one-cycle": {"cycle_min_lr": 1e-6},
    "axolotl-cosine-min-lr": {"cosine_min_lr_ratio": 0.1},
    "axolotl-jagged-restart": {"jagged_restart_steps": 20},
    "reduce_lr_on_plateau": {"metrics": [1.0] * 30, "eval_steps": 3},
    "greedy": {"metrics": [1.0] * 30, "eval_steps": 3, "min_lr": 1e-6},
}


def ours(case: dict[str, Any]) -> Schedule:
    return SCHEDULES[case["kind"]].schedule(
        learning_rate=case["learning_rate"],
        warmup_steps=case["warmup_steps"],
        steps=case["steps"],
        options=case["options"],
        ticks=case.get("ticks", 1),
    )


def example(name: str, *, steps: int = 100, warmup: int = 10) -> Schedule:
    return SCHEDULES[name].schedule(learning_rate=1e-4, warmup_steps=warmup, steps=steps, options=SPECIAL.get(name, {}))


def named(case: dict[str, Any]) -> str:
    return f"{case['kind']}-W{case['warmup_steps']}-T{case['steps']}"


@pytest.mark.parametrize("case", CASES, ids=named)
def test_every_recorded_rate_is_reproduced(case: dict[str, Any]) -> None:
    """Where the recording holds doubles, to the last bit; elsewhere to all of its twelve digits.

    Refusals are refused, crashes crash.
    """
    if "error" in case and "fails_at" not in case:
        with pytest.raises(ScheduleError):
            ours(case)
        return
    schedule = ours(case)
    rates = [schedule.at(step) for step in case["at"]]
    assert case["rates"] == (rates if "doubles" in case else [float(f"{rate:.12g}") for rate in rates])
    if "error" in case:
        with pytest.raises(ScheduleError):
            schedule.at(case["fails_at"])


def test_the_recordings_cover_every_schedule() -> None:
    """A row without a recording is not in the table, but for the one that refills another's options."""
    assert set(SCHEDULES) - {"early-wsd", "llamafactory-wsd"} == {case["kind"] for case in CASES}
    assert 6_800 < sum(len(case["at"]) for case in CASES)


def test_four_hundred_recordings_hold_doubles() -> None:
    """The exact comparison is not vacuous."""
    assert 3_900 < sum(len(case["at"]) for case in CASES if "doubles" in case)


@pytest.mark.parametrize("name", SCHEDULES)
def test_phases_cover_the_run_once(name: str) -> None:
    """Every step of the run lies in exactly one phase, and the phase's formula is the one that gives its rate."""
    schedule = example(name)
    assert 0 == schedule.phases[0].first
    assert schedule.steps == schedule.phases[-1].last + 1
    assert all(a.last + 1 == b.first for a, b in pairwise(schedule.phases))
    assert all(phase.formula and phase.numbers and phase.name for phase in schedule.phases)
    assert all(schedule.phase_at(step) is not None for step in range(schedule.steps))
    assert schedule.phase_at(schedule.steps) is None


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_row_has_an_openable_source_and_says_what_its_options_do(name: str) -> None:
    """A visitor can check the row and read each option."""
    row = SCHEDULES[name]
    assert SOURCES[row.source].url.startswith("https://")
    assert all(option.about.endswith(".") for option in row.options)
    assert row.tool == "transformers" or row.typed


@pytest.mark.parametrize("name", SCHEDULES)
@given(steps=st.integers(2, 3000), warmup=st.integers(1, 400), rate=st.floats(1e-7, 1e-2))
@settings(max_examples=15, deadline=None)
def test_rates_are_finite_and_never_negative_inside_the_run(name: str, steps: int, warmup: int, rate: float) -> None:
    """Whatever the run, a schedule is refused or gives finite rates of at least 0, but for rounding."""
    try:
        schedule = SCHEDULES[name].schedule(
            learning_rate=rate, warmup_steps=warmup, steps=steps, options=SPECIAL.get(name, {})
        )
        rates = [schedule.at(step) for step in schedule.sampled(60)]
    except ScheduleError:
        return
    assert all(-1e-20 <= value < 1 for value in rates)


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, row in SCHEDULES.items()
        if row.tool == "transformers"
        and row.warmup == "used"
        and name not in ("cosine_warmup_with_min_lr", "polynomial")
    ],
)
def test_zero_warmup_starts_at_the_peak(name: str) -> None:
    """A phase of no steps is no phase."""
    schedule = example(name, warmup=0)
    assert 1e-4 == schedule.at(0)
    assert "warmup" not in [phase.name for phase in schedule.phases]


def test_the_first_warmup_step_has_rate_zero_and_the_last_step_is_not_lr_of_t() -> None:
    """Optimizer step 1 moves nothing, the peak comes at step W + 1, and lr(T) = 0 is never used."""
    schedule = example("linear")
    assert 0.0 == schedule.at(0)
    assert 1e-4 == schedule.at(10)
    assert 1e-4 * (1 / 90) == schedule.at(99)
    assert 0.0 == schedule.at(100)


def test_a_million_steps_are_drawn_from_a_thousand_with_exact_boundaries() -> None:
    """Sampling keeps every phase's first and last step, so the drawing lies nowhere."""
    schedule = SCHEDULES["warmup_stable_decay"].schedule(
        learning_rate=1e-4, warmup_steps=12_345, steps=1_000_000, options={"num_decay_steps": 200_001}
    )
    steps = schedule.sampled(1000)
    rates = [schedule.at(step) for step in steps]
    assert {0, 12_344, 12_345, 799_998, 799_999, 999_999} <= set(steps)
    assert len(rates) < 1010
    assert 1e-4 == rates[steps.index(12_345)]


@pytest.mark.parametrize("name", ["linear", "cosine", "cosine_with_restarts", "inverse_sqrt", "nanogpt", "axolotl-rex"])
def test_the_area_of_a_long_run_is_the_sum_of_its_rates(name: str) -> None:
    """The trapezoid between samples agrees with the sum to five figures."""
    schedule = example(name, steps=30_000, warmup=900)
    assert sum(schedule) == pytest.approx(schedule.area, rel=1e-5)


def test_the_formula_in_force_shows_its_numbers() -> None:
    """The page reads the text that was evaluated."""
    schedule = example("cosine")
    phase = schedule.phase_at(50)
    assert phase is not None
    assert ("cosine decay", 10, 90) == (phase.name, phase.first, phase.num_steps)
    assert "lr · max(0, 0.5 · (1 + cos(π · num_cycles · 2 · p))), p = (s − W) / max(1, T − W)" == phase.formula
    assert "0.0001 · max(0, 0.5 · (1 + cos(π · 0.5 · 2 · p))), p = (s − 10) / max(1, 100 − 10)" == phase.numbers
    assert "0.0001 · max(0, 0.5 · (1 + cos(π · 0.5 · 2 · p))), p = (50 − 10) / max(1, 100 − 10)" == schedule.working(50)


def test_a_prepared_schedule_ends_early() -> None:
    """accelerate steps it once per process.

    With 4 processes the peak comes at step 3 and the rate is 0 from step 11.
    """
    schedule = SCHEDULES["linear"].schedule(learning_rate=1e-3, warmup_steps=8, steps=40, ticks=4)
    rates = list(schedule)
    assert 2 == rates.index(max(rates))
    assert 10 == rates.index(0.0, 1)
    assert [0, 2] == [phase.first for phase in schedule.phases][:2]


def test_a_version_has_only_the_schedules_it_had() -> None:
    """A name that came later is an error that lists what was there; a shape that changed is the version's own."""
    with pytest.raises(UnknownName, match=r"transformers 4\.44 schedule 'greedy'"):
        kind("greedy", (4, 44))
    assert "early-wsd" == kind("warmup_stable_decay", (4, 44)).id
    assert "warmup_stable_decay" == kind("warmup_stable_decay", (4, 51)).id
    with pytest.raises(UnknownName, match="did you mean cosine"):
        kind("cosin", (5, 24))


def test_early_stable_decay_warms_up_from_zero_and_needs_both_lengths() -> None:
    """Before 4.49 min_lr_ratio did not touch the warmup and the stable steps were asked for."""
    row = SCHEDULES["early-wsd"]
    schedule = row.schedule(
        learning_rate=1.0,
        warmup_steps=10,
        steps=100,
        options={"num_stable_steps": 50, "num_decay_steps": 40, "min_lr_ratio": 0.1},
    )
    assert 0.0 == schedule.at(0)
    assert [1.0, 1.0, 0.1 + 0.9 * 0.5, 0.1] == [
        schedule.at(10),
        schedule.at(60),
        pytest.approx(schedule.at(80)),
        schedule.at(100),
    ]
    with pytest.raises(ScheduleError, match="num_stable_steps"):
        row.schedule(learning_rate=1.0, warmup_steps=10, steps=100, options={"num_decay_steps": 40})


def test_llama_factory_fills_a_third_stable() -> None:
    """What warmup leaves is split one third to two thirds."""
    schedule = SCHEDULES["llamafactory-wsd"].schedule(learning_rate=1.0, warmup_steps=10, steps=100)
    assert [("warmup", 0), ("stable", 10), ("decay", 40)] == [(phase.name, phase.first) for phase in schedule.phases]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"num_cycle": 1}, "no option 'num_cycle'; it takes num_cycles"),
        ({"num_cycles": "x"}, "num_cycles is a number"),
        ({"num_cycles": True}, "num_cycles is a number"),
    ],
)
def test_wrong_options_are_errors_that_list_what_is_known(options: dict[str, object], complaint: str) -> None:
    """Unknown is never dropped in silence where the library would raise."""
    with pytest.raises(ScheduleError, match=complaint):
        SCHEDULES["cosine"].schedule(learning_rate=1e-4, warmup_steps=0, steps=10, options=options)


def test_what_the_library_drops_in_silence_is_accepted() -> None:
    """constant takes any keyword and uses none."""
    assert [1e-4] * 3 == list(
        SCHEDULES["constant"].schedule(learning_rate=1e-4, warmup_steps=2, steps=3, options={"num_cycles": 2})
    )


def walked(schedule: Schedule) -> Iterator[str]:
    for phase in schedule.phases:
        yield phase.name


def test_restarts_are_phases_of_their_own() -> None:
    """Three descents are three phases; the default of one is a plain cosine."""
    row = SCHEDULES["cosine_with_restarts"]
    three = row.schedule(learning_rate=1e-4, warmup_steps=10, steps=100, options={"num_cycles": 3})
    assert ["warmup", "descent 1", "descent 2", "descent 3"] == list(walked(three))
    assert 1e-4 == three.at(40)
    assert ["warmup", "cosine decay"] == list(walked(row.schedule(learning_rate=1e-4, warmup_steps=10, steps=100)))
