"""A schedule plan as a whole: the command's answer, the traps it is in, resuming, and what to type."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from calc.catalog.sources import SOURCES
from calc.schedule.answer import answer
from calc.schedule.flags import flags, training_arguments
from calc.schedule.kinds import SCHEDULES
from calc.schedule.phases import ScheduleError
from calc.schedule.plan import Planned, SchedulePlan
from calc.schedule.resume import RESUME_TRAPS, Resumed
from calc.schedule.traps import TRAPS, traps

RESUMED: list[dict[str, Any]] = json.loads((Path(__file__).parents[1] / "golden" / "steps.json").read_text())["resumed"]


def planned(**given: Any) -> Planned:
    return Planned(SchedulePlan.model_validate(given))


def test_the_answer_has_the_contracts_shape() -> None:
    """steps, warmup_steps, steps_per_epoch and a pair for every step from 0 to T − 1."""
    got = answer(
        {
            "schedule": {
                "type": "linear",
                "learning_rate": 1e-3,
                "warmup_steps": 3,
                "num_samples": 20,
                "num_train_epochs": 1,
                "per_device_train_batch_size": 2,
            }
        }
    )
    assert ["steps", "warmup_steps", "steps_per_epoch", "learning_rates"] == list(got)
    assert (10, 3, 10) == (got["steps"], got["warmup_steps"], got["steps_per_epoch"])
    assert [0, 0.0] == got["learning_rates"][0]
    assert [9, 1e-3 * (1 / 7)] == got["learning_rates"][-1]
    assert list(range(10)) == [step for step, _ in got["learning_rates"]]
    assert got == json.loads(json.dumps(got))


def test_steps_asked_for_are_answered_in_their_order() -> None:
    """`at` picks; without a dataset the steps per epoch are unknown."""
    got = answer(
        {
            "schedule": {
                "type": "cosine",
                "max_steps": 584,
                "warmup_steps": 0.03,
                "learning_rate": 2e-6,
                "at": [583, 0, 18],
            }
        }
    )
    assert (584, 18, None) == (got["steps"], got["warmup_steps"], got["steps_per_epoch"])
    assert [583, 0, 18] == [step for step, _ in got["learning_rates"]]
    assert 2e-6 == got["learning_rates"][2][1]


def test_defaults_are_the_trainers() -> None:
    """Nothing said: linear from 5e-5, no warmup, 3 epochs at batch 8."""
    got = answer({"schedule": {"num_samples": 1000}})
    assert (375, 0, 5e-5) == (got["steps"], got["warmup_steps"], got["learning_rates"][0][1])


@pytest.mark.parametrize(
    ("given", "code", "field"),
    [
        ({"typ": "linear", "max_steps": 5}, "extra_forbidden", "schedule.typ"),
        ({"type": "lineal", "max_steps": 5}, "value_error", "schedule.type"),
        ({"type": "greedy", "max_steps": 5, "framework": "transformers-4.44"}, "unknown_name", "schedule.type"),
        ({"max_steps": 5, "framework": "transformers-6"}, "value_error", "schedule.framework"),
        ({"learning_rate": "fast", "max_steps": 5}, "float_parsing", "schedule.learning_rate"),
        ({"learning_rate": float("nan"), "max_steps": 5}, "finite_number", "schedule.learning_rate"),
        ({"type": "cosine", "max_steps": 5, "kwargs": {"num_cycle": 1}}, "unknown_option", "kwargs.num_cycle"),
        ({"type": "warmup_stable_decay", "max_steps": 5}, "missing_option", "kwargs.num_decay_steps"),
        ({"type": "cosine_with_min_lr", "max_steps": 5}, "min_lr", "kwargs.min_lr"),
        ({"max_steps": 5, "warmup_ratio": 0.1}, "no_warmup_ratio", "warmup_ratio"),
        ({}, "max_steps_needed", "max_steps"),
        ({"max_steps": 10**9}, "too_many_steps", "schedule.at"),
        ({"type": "polynomial", "learning_rate": 1e-7, "max_steps": 5}, "lr_end_above_lr", "kwargs.lr_end"),
        ({"num_samples": 3, "dataloader_drop_last": True}, "no_batch", "num_samples"),
    ],
)
def test_everything_wrong_is_one_error_with_its_field(given: dict[str, Any], code: str, field: str) -> None:
    """A code, a sentence and the field at fault."""
    with pytest.raises(ScheduleError) as caught:
        answer({"schedule": given})
    assert (code, field) == (caught.value.code, caught.value.field)
    assert caught.value.message


def test_a_scenario_without_schedule_or_with_more_is_an_error() -> None:
    """The line's own keys are checked too."""
    for wrong in ({}, {"schedule": {"max_steps": 3}, "model": "x"}):
        with pytest.raises(ScheduleError):
            answer(wrong)


LR = {"learning_rate": 1e-3}
IN_A_TRAP: dict[str, dict[str, Any]] = {
    "crash": {"type": "polynomial", "max_steps": 10, "warmup_steps": 10},
    "warmup_ignored": {"type": "constant", "max_steps": 100, "warmup_steps": 0.03},
    "warmup_past_end": {"max_steps": 10, "warmup_steps": 20},
    "only_step_is_zero": {"max_steps": 1, "warmup_steps": 0.03},
    "first_step_is_zero": {"max_steps": 10, "warmup_steps": 3},
    "schedule_free_fraction": {"type": "schedule-free", "max_steps": 100, "warmup_steps": 0.03},
    "num_cycles_are_waves": {"type": "cosine", "max_steps": 100, "kwargs": {"num_cycles": 1}},
    "no_restart": {"type": "cosine_with_restarts", "max_steps": 100},
    "unfinished_cycle": {"type": "cosine_with_restarts", "max_steps": 100, "kwargs": {"num_cycles": 2.5}},
    "prepared": {"max_steps": 40, "warmup_steps": 8, "prepared_num_processes": 4},
    "flat_inverse_sqrt": {"type": "inverse_sqrt", "max_steps": 500},
    "greedy_floor": {"type": "greedy", "learning_rate": 5e-5, "max_steps": 100},
    "needs_evaluation": {"type": "reduce_lr_on_plateau", "max_steps": 100},
    "epochs_cut": {
        "num_samples": 10,
        "per_device_train_batch_size": 2,
        "gradient_accumulation_steps": 2,
        "framework": "transformers-4.51",
    },
    "logs_next_rate": {"max_steps": 10, "framework": "transformers-4.44"},
    "both_warmups": {"max_steps": 100, "warmup_steps": 10, "warmup_ratio": 0.5, "framework": "transformers-5.14"},
    "ratio_of_one": {"max_steps": 100, "warmup_ratio": 1.0, "framework": "transformers-5.14"},
    "stable_negative": {
        "type": "warmup_stable_decay",
        "max_steps": 100,
        "warmup_steps": 30,
        "kwargs": {"num_decay_steps": 80},
    },
    "deepspeed_log_warmup": {"type": "deepspeed-warmup", "max_steps": 100, "warmup_steps": 10},
    "deepspeed_peak": {"type": "deepspeed-warmup-decay", "max_steps": 100, "warmup_steps": 10},
    "timm_drop": {"type": "timm-cosine", "max_steps": 100, "warmup_steps": 20},
    "last_step_is_zero": {"type": "axolotl-rex", "max_steps": 100, "warmup_steps": 10},
    "rate_ignored": {"type": "adafactor-relative-step", "max_steps": 100},
    "completions_counted": {"num_samples": 1000, "completions": {"num_generations": 8}},
    "options_dropped": {"type": "constant_with_warmup", "max_steps": 10, "kwargs": {"num_cycles": 2}},
    "momentum_moves": {"type": "torch-one-cycle", "max_steps": 100},
    "rises_past_end": {"type": "cosine", "max_steps": 100, "prepared_num_processes": 2},
}


@pytest.mark.parametrize("name", TRAPS)
def test_each_trap_is_found_with_its_texts_and_a_source(name: str) -> None:
    """Every row of the table has a plan that falls into it."""
    found = {trap.id: trap for trap in traps(planned(**IN_A_TRAP[name]))}
    assert name in found
    assert "{" not in found[name].message + found[name].remedy
    assert SOURCES[found[name].source].url.startswith("https://")


def test_a_plain_plan_is_in_no_trap() -> None:
    """Linear with a floorless decay and no warmup: nothing to say."""
    assert () == traps(planned(max_steps=100))


def test_notes_that_say_nothing_new_stay_away() -> None:
    """A zero first step of a long run, and what lies past the end of a Trainer run."""
    assert () == traps(planned(type="cosine", max_steps=10_000, warmup_steps=0.03))


def test_traps_named_by_a_schedule_exist() -> None:
    """And each that belongs to schedules alone is named by one."""
    named = {trap for row in SCHEDULES.values() for trap in row.traps}
    assert {row.id for row in TRAPS.values() if row.of_kinds} == named


def test_the_traps_say_the_measured_numbers() -> None:
    """33 times the rate; over after step 10 of 40; 2 of 3 epochs; waves that end at the peak."""
    texts = {
        name: next(trap.message for trap in traps(planned(**IN_A_TRAP[name])) if trap.id == name) for name in IN_A_TRAP
    }
    assert "the first step runs at 0.00166667, 33 times the rate" in texts["schedule_free_fraction"]
    assert "over after step 10 of 40" in texts["prepared"]
    assert "stops after 2 epochs of 3" in texts["epochs_cut"]
    assert "the rate never gets past 2.25e-05" in texts["warmup_past_end"]
    assert "crashes at scheduler step 10" in texts["crash"]
    assert "min_lr 0.001 is not below the rate 5e-05" in texts["greedy_floor"]


CHANGES: dict[str, dict[str, Any]] = {
    "same args": {},
    "num_train_epochs 1->2": {"max_steps": 20},
    "learning_rate 1e-3->5e-4": {"learning_rate": 5e-4},
    "lr_scheduler_type linear->cosine": {"type": "cosine"},
    "warmup_steps 0->8": {"warmup_steps": 8},
    "finished 10-step run extended to 2 epochs from checkpoint-10": {"max_steps": 20},
}
TRAPPED = {
    "same args": [],
    "num_train_epochs 1->2": ["resumed_jump"],
    "learning_rate 1e-3->5e-4": ["resumed_rate_kept"],
    "lr_scheduler_type linear->cosine": ["resumed_jump"],
    "warmup_steps 0->8": ["resumed_jump"],
    "finished 10-step run extended to 2 epochs from checkpoint-10": ["resumed_after_the_end"],
}


@pytest.mark.parametrize("row", RESUMED, ids=lambda row: row["resumed_with"])
def test_every_resumed_run_is_followed(row: dict[str, Any]) -> None:
    """The first resumed step keeps the checkpoint's rate.

    Base rate from the checkpoint, shape from the new arguments.
    """
    saved = {"learning_rate": 1e-3, "max_steps": 10}
    resumed = Resumed(
        planned(**saved),
        planned(**saved | CHANGES[row["resumed_with"]]),
        10 if "finished" in row["resumed_with"] else 5,
    )
    assert row["lr"] == [[k, pytest.approx(resumed.at(k - 1), rel=2e-4)] for k, _ in row["lr"]]
    assert TRAPPED[row["resumed_with"]] == [trap.id for trap in resumed.traps]
    assert all(trap.source in SOURCES for trap in resumed.traps)


def test_resuming_at_the_end_trains_nothing_and_nonsense_is_refused() -> None:
    """A checkpoint at the new end, and one past the old run."""
    run = planned(max_steps=10)
    assert ["resumed_at_the_end"] == [trap.id for trap in Resumed(run, run, 10).traps]
    assert set(RESUME_TRAPS) == {"resumed_rate_kept", "resumed_jump", "resumed_after_the_end", "resumed_at_the_end"}
    with pytest.raises(ScheduleError, match="between step 1 and 10"):
        Resumed(run, run, 11)


def test_the_flags_of_a_trainer_schedule() -> None:
    """What to type, with the options as JSON."""
    run = planned(
        type="cosine_with_min_lr", learning_rate=2e-5, warmup_steps=0.03, num_samples=1000, kwargs={"min_lr_rate": 0.1}
    )
    assert (
        "--learning_rate 2e-05 \\\n  --lr_scheduler_type cosine_with_min_lr \\\n  --lr_scheduler_kwargs "
        "'{\"min_lr_rate\": 0.1}' \\\n"
        "  --warmup_steps 0.03 \\\n  --num_train_epochs 3.0 \\\n  --per_device_train_batch_size 8 \\\n"
        "  --gradient_accumulation_steps 1"
    ) == flags(run)
    assert "    lr_scheduler_kwargs={'min_lr_rate': 0.1}," in training_arguments(run)


@pytest.mark.parametrize("name", [name for name, row in SCHEDULES.items() if row.typed])
def test_every_other_schedule_has_a_call_to_type(name: str) -> None:
    """The call is complete: no placeholder is left."""
    text = flags(planned(type=name, max_steps=100, warmup_steps=10))
    assert "{lr}" not in text
    assert "options" not in text
    assert text.count("{") == text.count("}")


def test_a_deepspeed_schedule_is_json() -> None:
    """It can be pasted into the file."""
    text = flags(
        planned(type="deepspeed-warmup-decay", max_steps=100, warmup_steps=10, kwargs={"warmup_type": "linear"})
    )
    assert {
        "type": "WarmupDecayLR",
        "params": {"total_num_steps": 100, "warmup_max_lr": 5e-5, "warmup_num_steps": 10, "warmup_type": "linear"},
    } == json.loads(text)


def test_axes_of_the_curve() -> None:
    """Samples and epochs after a step."""
    run = planned(num_samples=1000, per_device_train_batch_size=8, gradient_accumulation_steps=4, world_size=2)
    assert (64, 1.0) == (run.samples_after(1), run.epoch_after(16))
    assert planned(max_steps=10).epoch_after(5) is None
    grpo = planned(
        num_samples=1000, completions={"num_generations": 8}, gradient_accumulation_steps=4, num_train_epochs=2
    )
    assert (500, 250, 1.0) == (grpo.steps, grpo.steps_per_epoch, grpo.epoch_after(250))
