"""Steps, warmup, packing, completions and resuming against what the frameworks did."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calc.catalog.frameworks import FRAMEWORKS
from calc.catalog.sources import SOURCES
from calc.schedule.completions import completion_steps
from calc.schedule.kinds import kind
from calc.schedule.packing import packed_rows
from calc.schedule.phases import ScheduleError
from calc.schedule.steps import (
    STEP_RULES,
    StepPlan,
    data_parallel_size,
    estimated_axolotl_steps,
    interval,
    packed_axolotl_steps,
    planned_steps,
)
from calc.schedule.warmup import resolved_warmup

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parents[1] / "golden" / "steps.json").read_text())


def planned(row: dict[str, Any]) -> StepPlan:
    args = {name: value for name, value in row["args"].items() if not name.startswith("warmup")}
    return planned_steps(
        STEP_RULES[row["framework"]],
        num_samples=row["num_samples"],
        world_size=row["world_size"],
        iterable=row["iterable"],
        **args,
    )


@pytest.mark.parametrize(
    "row", GOLDEN["plans"], ids=lambda row: f"{row['framework']}-{row['num_samples']}-{row['world_size']}"
)
def test_every_recorded_plan_is_reproduced(row: dict[str, Any]) -> None:
    """Steps, steps per epoch, epochs, batches and samples of every version, and its refusals."""
    result = dict(row["result"])
    if "unrecorded" in result:
        assert 50 == planned(row).steps
        return
    if "error" in result:
        with pytest.raises(ScheduleError):
            planned(row)
        return
    plan = planned(row)
    warmup = {name: value for name, value in row["args"].items() if name.startswith("warmup")}
    ours = {
        "max_steps": plan.steps,
        "num_update_steps_per_epoch": plan.steps_per_epoch,
        "num_train_epochs": "sys.maxsize" if plan.num_train_epochs is None else plan.num_train_epochs,
        "num_examples": plan.num_examples,
        "num_train_samples": plan.num_train_samples,
        "total_train_batch_size": plan.total_batch_size,
        "steps_in_epoch": plan.batches_per_epoch,
        "warmup_steps_resolved": resolved_warmup(STEP_RULES[row["framework"]], steps=plan.steps, **warmup).value,
    }
    if row["num_samples"] is None:  # versions differ in what they put for "unknown"
        assert result.pop("steps_in_epoch") in (None, plan.steps * plan.gradient_accumulation_steps)
    assert result == {name: ours[name] for name in result}


def test_every_recorded_warmup_is_resolved_as_its_version_does() -> None:
    """1,105 resolutions and refusals, over five versions."""
    counted = Counter[str]()
    for framework, argument, value, steps, result in GOLDEN["warmups"]:
        both = {"warmup_steps": 10, "warmup_ratio": 0.1}
        given = both if argument.startswith("both") else {argument: value}
        if isinstance(result, str):
            with pytest.raises(ScheduleError):
                resolved_warmup(STEP_RULES[framework], steps=steps, **given)
        else:
            assert result == resolved_warmup(STEP_RULES[framework], steps=steps, **given).value, (
                framework,
                argument,
                value,
                steps,
            )
        counted["refused" if isinstance(result, str) else "resolved"] += 1
    assert 1105 == counted.total()
    assert 600 < counted["resolved"]


def windows(run: dict[str, Any], plan: StepPlan) -> list[int]:
    """Steps done when each accumulation window begins, which is when the recorder read the rate."""
    ga, batches, done, drawn, read = run["ga"], math.ceil(run["N"] / run["b"]), 0, 0, []
    while done < run["global_step_at_end"]:
        for batch in range(batches):
            if batch % ga == 0:
                read.append(done)
            drawn += 1
            last = batch + 1 == batches and not run["iterable"]
            due = (
                drawn % ga == 0 or (last and batches <= ga)
                if plan.border == "carries over"
                else (batch + 1) % ga == 0 or last
            )
            done += due
            if done == run["global_step_at_end"] and due:
                return read
    return read


@pytest.mark.parametrize(
    "run", GOLDEN["runs"], ids=lambda run: f"{run['framework']}-{run['lr_scheduler_type']}-N{run['N']}-ga{run['ga']}"
)
def test_every_real_run_is_followed_step_by_step(run: dict[str, Any]) -> None:
    """Planned steps, the rate of each step, the rate and the epoch that were logged, and where the run ended."""
    rules = STEP_RULES[run["framework"]]
    plan = planned_steps(
        rules,
        num_samples=None if run["iterable"] else run["N"],
        per_device_train_batch_size=run["b"],
        gradient_accumulation_steps=run["ga"],
        num_train_epochs=run["epochs"],
        max_steps=run["max_steps_arg"],
    )
    assert run["max_steps_planned"] == plan.steps
    given = run["warmup_steps"]
    if rules.warmup == "steps win" and isinstance(given, float):
        warmup = resolved_warmup(rules, steps=plan.steps, warmup_ratio=given)
    else:
        warmup = resolved_warmup(rules, steps=plan.steps, warmup_steps=given)
    schedule = kind(run["lr_scheduler_type"], rules.version).schedule(
        learning_rate=run["base_lr"], warmup_steps=warmup.value, steps=plan.steps, options=run["lr_scheduler_kwargs"]
    )
    used = [schedule.at(step) for step in windows(run, plan)]
    if "error" in run:
        assert schedule.halts_at is not None
        assert run["lr_used_per_step"] == [pytest.approx(schedule.at(step), rel=1e-9) for step in range(plan.steps)]
        return
    assert run["lr_used_per_step"] == pytest.approx(used, rel=1e-9, abs=1e-15)
    ahead = 1 if rules.logs == "next" else 0
    assert run["lr_logged"] == [
        [k, pytest.approx(schedule.at(k - 1 + ahead), rel=1e-9)] for k in range(1, plan.steps + 1)
    ]
    stream = math.ceil(run["N"] / run["b"]) if run["iterable"] else None
    epochs = [plan.epoch_after(k, stream_batches=stream) for k in range(1, plan.steps + 1)]
    assert run["epoch_logged"] == pytest.approx(epochs, rel=1e-9)
    assert run["epoch_at_end"] == pytest.approx(epochs[-1])


def lengths(described: object) -> list[int]:
    if isinstance(described, list):
        return [int(length) for length in described]
    shape, count, seed = str(described).split()[:3]
    n, draw = int(count.removeprefix("n=")), Random(int(seed.removeprefix("seed=")))
    if shape.startswith("const"):
        return [int(shape.removeprefix("const"))] * n
    if shape == "lognormal":
        return [max(1, int(draw.lognormvariate(5.5, 0.8))) for _ in range(n)]
    return [draw.randint(1, 2048) for _ in range(n)]


@pytest.mark.parametrize("row", GOLDEN["packing"], ids=lambda row: f"L{row['seq_length']}-{str(row['lengths'])[:18]}")
def test_every_recorded_packing_is_reproduced(row: dict[str, Any]) -> None:
    """Rows of the three strategies, from the lengths themselves."""
    samples = lengths(row["lengths"])
    if "total_tokens" in row:
        assert row["total_tokens"] == sum(samples)
    ours = {name: packed_rows(samples, seq_len=row["seq_length"], strategy=name) for name in row["rows"]}
    assert row["rows"] == ours


@given(st.lists(st.integers(1, 3000), min_size=1, max_size=200), st.integers(1, 2048))
def test_packing_never_needs_fewer_rows_than_tokens_or_more_than_samples(samples: list[int], seq_len: int) -> None:
    """Wrapped is the floor of any packing without cuts; best fit never opens a row for nothing."""
    rows = packed_rows(samples, seq_len=seq_len, strategy="bfd")
    assert math.ceil(sum(min(length, seq_len) for length in samples) / seq_len) <= rows <= len(samples)
    split = packed_rows(samples, seq_len=seq_len, strategy="bfd_split")
    assert packed_rows(samples, seq_len=seq_len, strategy="wrapped") <= split


@pytest.mark.parametrize(
    "row", GOLDEN["completions"], ids=lambda row: f"N{row['num_prompts']}-mu{row['num_iterations']}"
)
def test_every_recorded_completion_plan_is_reproduced(row: dict[str, Any]) -> None:
    """The batch counts completions, so 1,000 prompts with 8 each at batch 8 and accumulation 4 are 250 steps."""
    names = (
        "num_prompts",
        "per_device_train_batch_size",
        "gradient_accumulation_steps",
        "world_size",
        "num_generations",
        "steps_per_generation",
        "num_iterations",
    )
    arguments = {name: row[name] for name in names} | {"num_train_epochs": row["epochs"]}
    if row["max_steps"] is None:
        with pytest.raises(ScheduleError, match="fewer than"):
            completion_steps(**arguments)
        return
    plan = completion_steps(**arguments)
    ours = (
        plan.generation_batch_size,
        plan.prompts_per_generation,
        plan.completions_per_epoch,
        plan.batches_per_epoch,
        plan.steps_per_epoch,
        plan.steps,
    )
    assert (
        tuple(
            row[name]
            for name in (
                "generation_batch_size",
                "prompts_per_generation_batch",
                "len_sampler",
                "len_dataloader",
                "update_steps_per_epoch",
                "max_steps",
            )
        )
        == ours
    )


@pytest.mark.parametrize("row", GOLDEN["schedule_free"], ids=lambda row: f"warmup {row['warmup_steps']}")
def test_schedule_free_divides_by_a_fraction_of_a_step(row: dict[str, Any]) -> None:
    """Trainer 5.24 hands warmup_steps on as it is: 0.03 makes the first step 33 times too large."""
    schedule = kind("schedule-free", (5, 24)).schedule(
        learning_rate=row["learning_rate"], warmup_steps=row["warmup_steps"], steps=4
    )
    assert row["scheduled_lr_first_4_steps"] == pytest.approx(list(schedule), rel=2e-6)


@pytest.mark.parametrize("row", GOLDEN["warmup_ignored"], ids=lambda row: row["lr_scheduler_type"])
def test_three_schedules_ignore_the_warmup(row: dict[str, Any]) -> None:
    """constant, reduce_lr_on_plateau and greedy start at the full rate."""
    schedule = kind(row["lr_scheduler_type"], (5, 24)).schedule(
        learning_rate=row["learning_rate"], warmup_steps=row["warmup_steps"], steps=10
    )
    assert row["lr_used"] == list(schedule)


def test_koalpaca_on_one_gpu() -> None:
    """The seed's example: 21,200 samples, 3 epochs, batch 8 in two accumulated halves of 4."""
    plan = planned_steps(
        STEP_RULES["transformers-5.24"],
        num_samples=21_200,
        per_device_train_batch_size=4,
        gradient_accumulation_steps=2,
    )
    assert (2650, 7950, 5300, 3.0) == (plan.steps_per_epoch, plan.steps, plan.batches_per_epoch, plan.epochs_trained)
    assert ["ceil(21,200 / 4)", "ceil(5,300 / 1)", "max(1, ceil(5,300 / 2))", "ceil(3 · 2,650)"] == [
        line.numbers for line in plan.workings
    ]


def test_rounding_down_trains_less_than_the_epochs_asked_for() -> None:
    """N = 10, b = 2, ga = 2, 3 epochs: 2.4 epochs on 4.44, 2.0 on 4.51, 3.0 since 4.52."""
    trained = {
        name: planned_steps(
            STEP_RULES[name], num_samples=10, per_device_train_batch_size=2, gradient_accumulation_steps=2
        ).epochs_trained
        for name in ("transformers-4.44", "transformers-4.51", "transformers-4.57")
    }
    assert {"transformers-4.44": 2.4, "transformers-4.51": 2.0, "transformers-4.57": 3.0} == trained


@given(st.integers(1, 10_000), st.integers(1, 40), st.integers(1, 40), st.integers(1, 40))
def test_three_ceilings_are_one_but_floors_under_a_ceiling_are_not(N: int, b: int, R: int, ga: int) -> None:
    """Since 4.52 an epoch is ceil(N / (b · R · ga)) steps; with drop_last two floors come under the ceiling."""
    rules = STEP_RULES["transformers-5.24"]
    plan = planned_steps(
        rules, num_samples=N, per_device_train_batch_size=b, gradient_accumulation_steps=ga, world_size=R
    )
    assert -(-N // (b * R * ga)) == plan.steps_per_epoch


def test_dropping_the_last_batch_keeps_the_last_accumulation() -> None:
    """1,001 samples at 8 · 4 · 4: 31 batches a rank are 8 steps, where batch_rebalance with one floor has 7."""
    counted = [
        planned_steps(
            STEP_RULES["transformers-5.24"],
            num_samples=1001,
            per_device_train_batch_size=8,
            gradient_accumulation_steps=4,
            world_size=4,
            dataloader_drop_last=True,
            batch_rebalance=balanced,
        ).steps_per_epoch
        for balanced in (False, True)
    ]
    assert [8, 7] == counted


def test_axolotl_rounds_once_over_all_epochs_and_its_warmup_down() -> None:
    """1,000 samples at 24 a step for 3 epochs: 125 steps, where Trainer has 126; a ratio of 0.05 is 6 steps, not 7."""
    rules = STEP_RULES["axolotl-0.19"]
    plan = planned_steps(rules, num_samples=1000, per_device_train_batch_size=8, gradient_accumulation_steps=3)
    assert 125 == plan.steps
    assert 6 == resolved_warmup(rules, steps=125, warmup_ratio=0.05).value
    assert 3 == resolved_warmup(rules, steps=125).value
    assert 100 == resolved_warmup(rules, steps=125_000).value
    assert 2 == resolved_warmup(rules, steps=125, warmup_steps=1).value
    assert 24 == packed_axolotl_steps(packed_batches=101, micro_batch_size=2, total_batch_size=24, num_train_epochs=3)
    assert 69 == estimated_axolotl_steps(
        tokens=1_000_000, packing_efficiency=1.0, seq_len=2048, total_batch_size=20, num_train_epochs=3
    )


def test_one_step_runs_train_at_rate_zero_with_any_warmup_ratio() -> None:
    """ceil(1 · 0.03) = 1, so the only step is the warmup's first."""
    assert 1 == resolved_warmup(STEP_RULES["transformers-5.24"], steps=1, warmup_steps=0.03).value
    assert [0.0] == list(kind("linear", (5, 24)).schedule(learning_rate=1e-4, warmup_steps=1, steps=1))


def test_both_given_steps_win_until_5_and_the_ratio_after() -> None:
    """The same two arguments mean 10 steps on 4.57, 50 on 5.14, and an error on 5.24.

    A ratio of 1.0 is T, one step, an error.
    """
    both = {"warmup_steps": 10, "warmup_ratio": 0.5}
    assert 10 == resolved_warmup(STEP_RULES["transformers-4.57"], steps=100, **both).value
    assert 50 == resolved_warmup(STEP_RULES["transformers-5.14"], steps=100, **both).value
    with pytest.raises(ScheduleError, match=r"write warmup_steps=0\.5"):
        resolved_warmup(STEP_RULES["transformers-5.24"], steps=100, **both)
    assert [100, 1] == [
        resolved_warmup(STEP_RULES[f"transformers-{v}"], steps=100, warmup_ratio=1.0).value for v in ("4.57", "5.14")
    ]


def test_a_share_is_rounded_up_after_the_product_of_doubles() -> None:
    """100 · 0.07 is 7.000000000000001, so 8."""
    found = resolved_warmup(STEP_RULES["transformers-5.24"], steps=100, warmup_steps=0.07)
    assert (8, "ceil(T · warmup_steps)", "ceil(100 · 0.07)") == (found.value, found.formula, found.numbers)


def test_every_framework_of_the_catalogue_has_rules_with_a_source() -> None:
    """A scenario's framework can always be counted."""
    assert set(FRAMEWORKS) <= set(STEP_RULES)
    assert all(rules.source in SOURCES for rules in STEP_RULES.values())


def test_ranks_that_share_samples_do_not_count() -> None:
    """Eight GPUs in tensor-parallel pairs draw four different batches; sequence parallel makes the loader longer."""
    assert 4 == data_parallel_size(8, tensor_parallel=2)
    with pytest.raises(ScheduleError, match="groups of 3"):
        data_parallel_size(8, context_parallel=3)
    plan = planned_steps(
        STEP_RULES["transformers-5.24"],
        num_samples=100,
        per_device_train_batch_size=1,
        world_size=4,
        sequence_parallel=2,
    )
    assert 50 == plan.batches_per_epoch


def test_intervals_below_one_are_shares_of_the_run() -> None:
    """save_steps=0.1 of 375 is every 38th step."""
    assert [38, 500] == [interval(375, 0.1), interval(375, 500)]


def test_short_epochs_of_4_44_end_early() -> None:
    """Three batches an epoch under accumulation of four: it steps at each end and at every fourth batch."""
    plan = planned_steps(
        STEP_RULES["transformers-4.44"],
        num_samples=3,
        per_device_train_batch_size=1,
        gradient_accumulation_steps=4,
        num_train_epochs=4,
    )
    assert (4, pytest.approx(8 / 3)) == (plan.steps, plan.epochs_trained)
