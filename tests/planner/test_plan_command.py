"""`python -m calc plan` and `schema`: what other programs read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from calc import Scenario, estimate
from calc.__main__ import answer_object, main
from calc.planner.levers import LEVERS
from calc.planner.room import need
from calc.schema import schema, schemas

PLAN = {
    "model": "meta-llama/Llama-3.1-8B",
    "plan": {"micro_batch_size": 8, "seq_len": 4096, "gradient_checkpointing": "full", "optimizer": "adamw_torch"},
    "hardware": {"gpu": "a100-sxm-80gb"},
}


def said(capsys: pytest.CaptureFixture[str], tmp_path: Any, *arguments: str, lines: list[Any]) -> tuple[int, list[Any]]:
    path = tmp_path / "scenarios.jsonl"
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    status = main([arguments[0], str(path), *arguments[1:]])
    return status, [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def changed(scenario: dict[str, Any], changes: dict[str, Any]) -> Scenario:
    """The scenario with the changes that a suggestion prints, as a program would make them."""
    whole = json.loads(json.dumps(scenario))
    for path, value in changes.items():
        inside = whole
        *parents, name = path.split(".")
        for parent in parents:
            inside = inside.setdefault(parent, {})
        inside[name] = value
    return Scenario.model_validate(whole)


def test_levers_solvers_and_plans_come_as_one_object(capsys: pytest.CaptureFixture[str], tmp_path: Any) -> None:
    """The changes printed with a lever, made by hand, give the bytes printed with it."""
    status, (answer,) = said(capsys, tmp_path, "plan", lines=[PLAN])

    assert 0 == status
    assert "does_not_fit" == answer["now"]["verdict"]
    assert "loss-liger" == answer["levers"][0]["id"]
    for one in (*answer["levers"], *answer["pairs"]):
        after = estimate(changed(PLAN, one["changes"]))
        assert answer["now"]["allocated"] - one["saved"] == one["allocated"] == after.peak.allocated
        assert set(one["id"].split("+")) <= set(LEVERS)
    for name, field in (("largest_micro_batch", "plan.micro_batch_size"), ("longest_sequence", "plan.seq_len")):
        assert field == answer[name]["field"]
        assert answer[name]["device"] <= answer[name]["capacity"]
        assert answer[name]["allocated"] == estimate(changed(PLAN, {field: answer[name]["value"]})).peak.allocated
    assert answer["highest_rank"] is None
    assert answer["smallest_card"]["capacity"] > answer["now"]["capacity"]
    assert ["full", "lora", "qlora"] == [plan["method"] for plan in answer["plans"]]
    assert all(one["reason"] for one in answer["without_effect"])


def test_constraints_are_given_as_options(capsys: pytest.CaptureFixture[str], tmp_path: Any) -> None:
    """Only full fine-tuning, no 8-bit states, a global batch of 128; a bad line is an error among the answers."""
    status, (answer, bad) = said(
        capsys, tmp_path, "plan", "--method", "full", "--no-8bit", "--global-batch", "128", lines=[PLAN, "{"]
    )

    assert 2 == status
    assert "not_json" == bad["error"]["code"]
    (plan,) = answer["plans"]
    made = changed(PLAN, plan["changes"]).plan
    assert 128 == made.micro_batch_size * made.gradient_accumulation_steps
    assert "full" == made.method


def holds(value: Any, described: dict[str, Any]) -> bool:
    """Whether a value is what a schema says, of the parts of JSON Schema that ours is made of."""
    if "anyOf" in described:
        return any(holds(value, one) for one in described["anyOf"])
    match described["type"]:
        case "object":
            parts = described["properties"]
            return set(value) == set(parts) == set(described["required"]) and all(
                holds(value[name], parts[name]) for name in parts
            )
        case "array":
            return isinstance(value, list) and all(holds(one, described["items"]) for one in value)
        case "string":
            return isinstance(value, str) and value in described.get("enum", [value])
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
    raise AssertionError(described)


@pytest.mark.parametrize("plan", [{}, {"method": "qlora"}, {"attention": "flash_attention_2", "seq_len": 100_000}])
def test_the_schema_of_the_answer_is_what_the_answer_is(plan: dict[str, Any]) -> None:
    """Every key, every type, every word of a choice; nothing more and nothing less."""
    scenario = Scenario.model_validate({"model": "Qwen/Qwen2.5-7B", "plan": plan, "hardware": {"gpu": "t4"}})
    answer = json.loads(json.dumps(answer_object(estimate(scenario))))

    assert holds(answer, schemas()["answer"])
    assert not holds(answer | {"verdict": "perhaps"}, schemas()["answer"])
    assert not holds({k: v for k, v in answer.items() if k != "host"}, schemas()["answer"])


def test_the_schemas_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """Scenario and answer, with the bounds of the fields."""
    assert 0 == main(["schema"])

    printed = json.loads(capsys.readouterr().out)
    assert {"scenario", "answer"} == set(printed)
    rank = printed["scenario"]["$defs"]["LoraAdapter"]["properties"]["rank"]
    assert (1, 4096) == (rank["minimum"], rank["maximum"])
    with pytest.raises(TypeError, match="an answer holds no"):
        schema(object())


def test_a_margin_is_room_beside_what_the_peak_needs(capsys: pytest.CaptureFixture[str], tmp_path: Any) -> None:
    """A plan whose cache fills the card passes as long as what it needs leaves the margin; the reason is one line."""
    plan = {"model": "meta-llama/Llama-3.2-1B", "plan": {"micro_batch_size": 2},
            "hardware": {"gpu": "rtx-4090"}}  # fmt: skip
    answer = estimate(Scenario.model_validate(plan))
    needed = need(answer.peak.reserved, answer.peak.device)
    free = 1 - int(needed) / int(answer.capacity)
    assert 0.01 < free < 0.9
    path = tmp_path / "one.jsonl"
    path.write_text(json.dumps(plan))

    assert 0 == main(["estimate", str(path), "--assert-fits", "--margin", f"{free - 0.005:.3f}"])
    assert 1 == main(["estimate", str(path), "--assert-fits", "--margin", f"{free + 0.005:.3f}"])

    reason = capsys.readouterr().err.strip()
    assert f"needs {needed} of {answer.capacity} less" in reason
    assert 1 == len(reason.splitlines())
