"""The command line is a contract that other programs rely on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

CONFIG = {
    "model_type": "llama", "vocab_size": 512, "hidden_size": 64, "intermediate_size": 176, "num_hidden_layers": 3,
    "num_attention_heads": 8, "num_key_value_heads": 2,
}  # fmt: skip


def calc(*arguments: str, lines: list[Any] | None = None) -> subprocess.CompletedProcess[str]:
    text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines or [])
    return subprocess.run(
        [sys.executable, "-m", "calc", *arguments],
        input=text,
        text=True,
        capture_output=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )


def test_answers_come_in_order_and_a_bad_line_is_an_error_object_among_them() -> None:
    """Exit status 2 when a line was bad; the rest go on."""
    good = {"model": {"config": CONFIG}}
    lines = [
        good,
        "{",
        {"model": "no/such-model"},
        {"model": {"config": CONFIG}, "plan": {"seq_len": 0}},
        {"model": {"config": CONFIG}, "x": 1},
        good,
    ]

    done = calc("estimate", "-", lines=lines)

    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [set(a) == {"error"} for a in answers] == [False, True, True, True, True, False]
    assert all(set(a["error"]) == {"code", "message", "field"} for a in answers[1:5])
    assert answers[3]["error"]["field"] == "plan.seq_len"
    assert answers[4]["error"]["field"] == "x"
    assert answers[0] == answers[5]
    assert done.returncode == 2
    assert done.stderr == ""


def test_the_answer_has_the_contracts_fields() -> None:
    """Integers of bytes, lines that sum to the peak, each with its reason."""
    done = calc("estimate", "-", lines=[{"model": {"config": CONFIG}, "plan": {"method": "full"}}])

    answer = json.loads(done.stdout)
    assert done.returncode == 0
    assert set(answer) == {
        "parameters",
        "peak",
        "instants",
        "lines",
        "host",
        "capacity",
        "verdict",
        "headroom",
        "problems",
    }
    assert set(answer["peak"]) == {"allocated", "instant", "reserved", "device"}
    assert sum(line["bytes"] for line in answer["lines"]) == answer["peak"]["allocated"]
    assert all(
        {"component", "label", "bytes", "certainty", "formula", "source"} <= set(line) for line in answer["lines"]
    )
    assert all(sum(line["bytes"] for line in i["lines"]) == i["allocated"] for i in answer["instants"])
    assert isinstance(answer["capacity"], int)


def test_a_plan_that_does_not_fit_fails_a_pipeline() -> None:
    """--assert-fits exits 1 and says in one line why; a margin asks for more room."""
    large = {
        **CONFIG,
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "vocab_size": 128256,
    }
    plan = {"model": {"config": large}, "plan": {"method": "full"}, "hardware": {"gpu": "rtx-4090"}}

    done = calc("estimate", "-", "--assert-fits", "--table", lines=[plan])

    assert done.returncode == 1
    assert len(done.stderr.strip().splitlines()) == 1
    assert (
        calc(
            "estimate",
            "-",
            "--assert-fits",
            "--margin",
            "8%",
            lines=[{"model": {"config": CONFIG}, "plan": {"seq_len": 64}}],
        ).returncode
        == 0
    )


def test_parameters_of_a_config_on_disk(tmp_path: Path) -> None:
    """Total, trainable, embedding and active."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG))

    counted = json.loads(calc("params", str(path)).stdout)

    attention = 64 * 64 * 2 + 2 * 64 * 16
    block = attention + 3 * 64 * 176 + 2 * 64
    assert counted == {
        "total": 3 * block + 2 * 512 * 64 + 64,
        "trainable": counted["total"],
        "embedding": 512 * 64,
        "active": counted["total"],
    }


def test_parameters_of_a_model_whose_activations_are_not_modelled(tmp_path: Path) -> None:
    """A mixture with a vision tower: every part, what one token passes, and that only the activations are missing."""
    done = calc("params", "--all", "moonshotai/Kimi-K2.5")

    answer = json.loads(done.stdout)
    assert done.returncode == 0
    assert answer["total"] == sum(answer["parts"].values())
    assert set(answer["parts"]) == {"text", "vision", "projector"}
    assert answer["active"] < answer["total"] // 20
    assert answer["activations_modelled"] is False


def test_parameters_say_why_the_hub_stores_another_number() -> None:
    """The reasons add up; a quantised repository says what can be trained on it."""
    answer = json.loads(calc("params", "--all", "deepseek-ai/DeepSeek-V3").stdout)

    assert answer["hub_total"] - answer["total"] == sum(row["elements"] for row in answer["difference"])
    assert answer["quantized"]["method"] == "fp8"
    assert answer["total"] < answer["stored_bytes"] < answer["total"] * 1.01 + 4 * answer["head"]
    assert answer["head"] == answer["embedding"] == 129280 * 7168


def test_unsupported_types_are_listed_with_what_is_missing() -> None:
    """One a line."""
    lines = calc("params", "--unsupported").stdout.splitlines()

    assert "gemma3n: missing is the parameters of its vision tower, which timm builds" in lines
    assert all(": " in line and "missing is" in line for line in lines)


def test_parameters_of_nonsense_are_an_error_object(tmp_path: Path) -> None:
    """With a code, a sentence and the field."""
    path = tmp_path / "config.json"
    for content, code in ((CONFIG | {"hidden_size": -1}, "bad_config"), ({"model_type": "??"}, "unknown_architecture")):
        path.write_text(json.dumps(content))
        done = calc("params", str(path))
        assert done.returncode == 2
        assert json.loads(done.stdout)["error"]["code"] == code


def test_a_scenario_survives_the_way_through_its_link() -> None:
    """link, then open, is the identity."""
    scenario = {
        "model": "mistralai/Mistral-7B-v0.1",
        "plan": {"method": "qlora", "seq_len": 4096, "lora": {"rank": 32}},
        "hardware": {"gpu": "rtx-4090"},
    }

    query = calc("link", "-", lines=[scenario]).stdout.strip()
    opened = json.loads(calc("open", query).stdout)

    assert opened["model"] == scenario["model"]
    assert opened["plan"]["lora"]["rank"] == 32
    assert opened["plan"]["seq_len"] == 4096
    assert json.loads(calc("estimate", "-", lines=[opened]).stdout) == json.loads(
        calc("estimate", "-", lines=[scenario]).stdout
    )


def test_a_reader_that_has_enough_is_no_error() -> None:
    """`| head` closes the pipe: nothing is said of it."""
    command = [sys.executable, "-m", "calc", "params", "--unsupported"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()

        assert "" == process.stderr.read()
