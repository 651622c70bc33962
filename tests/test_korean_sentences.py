"""What calc says is English; a Korean reader gets all of it in Korean."""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calc import Scenario, estimate, link
from calc.catalog.optimizers import OPTIMIZERS
from calc.hub import SENTENCES as FAILURES
from calc.memory.estimate import KINDS
from calc.model.quantized_checkpoint import METHODS
from calc.model.unsupported import UNSUPPORTED
from calc.schedule import link as schedule
from pages.parts import texts
from pages.parts.texts.calc_says import AREAS, korean, pattern

ROOT = Path(__file__).parents[1]
SPOKEN = {
    "Problem",
    "Refused",
    "ConfigError",
    "Reason",
    "BadLengths",
    "ScheduleError",
    "Halt",
    "ValueError",
    "_problem",
}
"""Calls whose text a visitor reads."""
READ_BY_MACHINES = {"calc/__main__.py", "calc/catalog/table.py", "calc/model/__init__.py", "calc/model/inventory.py"}
HANGUL = re.compile("[가-힣]")
ENGLISH = re.compile(r"[A-Za-z']{2,} [a-z']{2,} [a-z']{2,}")
"""Three words in a row: more than names and flags."""


def spoken() -> Iterator[str]:
    """Every sentence that is written in calc, with {} where a value stands."""
    for file in sorted((ROOT / "calc").rglob("*.py")):
        if str(file.relative_to(ROOT)) in READ_BY_MACHINES or "exchange" in file.parts:
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in SPOKEN:
                for said in node.args:
                    text = _template(said)
                    if " " in text.strip() and text.replace("{}", "").strip(" .:"):
                        yield text


def _template(node: ast.expr) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def filled(text: str) -> str:
    """The sentence with a number for each value; what follows a last full stop may be left out."""
    values = (str(number) for number in range(71, 99))
    named: dict[str, str] = {}
    return re.sub(
        r"\{(\w*)\}",
        lambda gap: named.setdefault(gap[1], next(values)) if gap[1] else next(values),
        text.replace(".{}", "."),
    )


def speaks_korean(sentence: str) -> bool:
    """Korean letters in it, and no run of English words left."""
    said = korean(sentence)
    return bool(HANGUL.search(said)) and not ENGLISH.search(said)


@pytest.mark.parametrize("sentence", sorted({filled(text) for text in spoken()}))
def test_what_calc_says_of_a_plan_and_a_model_is_said_in_korean(sentence):
    """Each refusal, note and reason, whatever values stand in it."""
    assert speaks_korean(sentence), korean(sentence)


@pytest.mark.parametrize("row", OPTIMIZERS.values(), ids=lambda row: row.id)
def test_what_an_optimizer_costs_is_said_in_korean(row):
    """Its cost, its note and why it cannot run."""
    for sentence in filter(None, (row.cost, row.note, row.blocked)):
        assert speaks_korean(sentence), korean(sentence)


def test_the_hub_the_stored_formats_and_the_unsupported_types_speak_korean_too():
    """Failures, advice, what is missing, and the labels of the run's lines."""
    sentences = [
        *(filled(text) for text in FAILURES.values()),
        *(method.advice for method in METHODS.values()),
        *(f"the architecture 'x' is not modelled yet; missing is {missing}" for missing in UNSUPPORTED.values()),
        *(label for _, _, label in KINDS),
    ]

    assert [] == [sentence for sentence in sentences if not speaks_korean(sentence)]


def test_every_line_of_an_answer_is_labelled_in_korean():
    """Labels and notes of a plan with many kinds of lines."""
    scenario = Scenario.model_validate(
        {
            "model": "meta-llama/Llama-3.1-8B",
            "plan": {"method": "full", "precision": "bf16-master", "optimizer": "adamw_torch"},
        }
    )

    for instant in estimate(scenario).instants:
        for line in instant.lines:
            if line.component != "optimizer states":  # named by the optimizer's own words, exp_avg and the like
                assert HANGUL.search(korean(line.label)) or line.label == "GradScaler"
                assert not line.note or speaks_korean(line.note), line.note


@pytest.mark.parametrize(
    "bad",
    ["batch=x", "batch=0", "batch=1e12", "len=2.5", "method=qlora&nest=maybe", "optim=adan", "gpu=h1000", "cfg=AAAA"],
)
def test_a_bad_part_of_a_link_is_named_in_korean(bad):
    """Whatever the type or the table says of it."""
    _, problems = link.scenario(f"v=1&model=meta-llama/Llama-3.1-8B&{bad}")

    assert problems
    for problem in problems:
        assert speaks_korean(problem.message), problem.message


@pytest.mark.parametrize(
    "bad",
    [
        {"run": "epochs:many"},
        {"run": "steps:-4"},
        {"run": "made:1"},
        {"curve": "cosin"},
        {"curve": "cosine/fast"},
        {"curve": "cosine/1e-5/0/x"},
    ],
)
def test_a_bad_part_of_a_schedule_link_is_named_in_korean(bad):
    """As above, for the curves and the run."""
    _, problems = schedule.read(bad, schedule.Drawn())

    assert problems
    for problem in problems:
        assert speaks_korean(problem), problem


@pytest.mark.parametrize(
    ("english", "words"), [(english, words) for area in AREAS for english, words in area.SENTENCES.items()]
)
def test_a_row_has_the_same_values_in_both_languages(english, words):
    """No value is lost or made up on the way, and the sentence ends as it did."""
    places = [gap for _, gap, _, _ in string.Formatter().parse(english) if gap is not None]
    said = [gap for _, gap, _, _ in string.Formatter().parse(words) if gap is not None]
    numbered = [gap or str(place) for place, gap in enumerate(said)]
    expected = set(places) if any(places) else {str(place) for place in range(len(places))}

    assert expected == set(numbered)
    assert english.endswith(".") == words.endswith(".")
    assert pattern(english).fullmatch(english)


@given(st.text(max_size=200))
def test_other_words_are_left_as_they_are(text):
    """Names of models and whatever a stranger wrote come through unharmed, and quickly."""
    assert texts.said(text, "en") == text
    assert texts.said(text, "ko") == text or any(
        pattern(row).fullmatch(text) for area in AREAS for row in area.SENTENCES
    )
