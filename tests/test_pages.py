"""Pages without a browser: they run, they say what the calculator says, they hold no arithmetic, and every word is there."""

from __future__ import annotations

import ast
import json
import re
import string
import tomllib
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shown import figures
from streamlit.testing.v1 import AppTest

from calc import estimate, link
from calc import scenario as kinds
from calc.catalog.optimizers import OPTIMIZERS
from calc.examples import EXAMPLES, OPENING
from calc.memory.breakdown import COMPONENTS, Certainty, InstantName, Verdict
from pages.parts import charts, choices, downloads, texts
from pages.parts.frame import PAGES
from pages.parts.here import Here
from pages.parts.models import Known, read_config
from pages.parts.state import plain
from pages.parts.texts import FIELDS, LANGUAGES, TEXTS

ROOT = Path(__file__).parents[1]
SECONDS = 240
ANSWERED = list(EXAMPLES.values())


def opened(
    query: dict[str, str] | None = None, *, page: str = "", locale: str = "en-US", file: str = "app.py"
) -> AppTest:
    """The app with this query, as one run of the server sees it."""
    app = AppTest.from_file(str(ROOT / file), default_timeout=SECONDS)
    app.query_params.update(query or {})
    app.context["locale"] = locale
    app.run()
    if page:
        app.switch_page(f"pages/{page}.py").run()
    assert not app.exception
    return app


# ------------------------------------------------------------------------------------------------ running


@pytest.mark.parametrize("locale", ["en-US", "ko-KR"])
@pytest.mark.parametrize("entry", PAGES, ids=lambda entry: entry.id)
def test_every_page_runs_in_both_languages(entry, locale):
    """A heading, and no traceback."""
    app = opened(page="" if entry is PAGES[0] else entry.id, locale=locale)

    assert 1 == len(app.title)


@pytest.mark.parametrize("entry", PAGES, ids=lambda entry: entry.id)
def test_a_page_that_is_started_alone_brings_its_frame(entry):
    """Streamlit's own discovery of the folder starts page files; a deep link after a restart must not look different."""
    app = opened(file=f"pages/{entry.id}.py")

    assert app.get_by_key("model")
    assert 1 == len(app.title)


@pytest.mark.parametrize("example", ANSWERED, ids=lambda example: example.id)
def test_the_fit_page_says_what_the_calculator_says(example):
    """Every headline figure is the calculator's, unrounded by the page."""
    answer = estimate(example.scenario)

    app = opened(link.params(example.scenario))

    shown = figures(app)
    assert str(answer.peak.device.expected) in shown
    assert str(answer.peak.allocated) in shown
    assert str(answer.capacity) in shown
    assert texts.text(f"verdict.{answer.verdict}", "en") in app.title[0].value


def test_a_widget_changes_the_scenario_and_the_answer():
    """One control, one field: the answer is that of the changed scenario."""
    app = opened(link.params(OPENING))

    app.get_by_key("optim").set_value("adafactor").run()

    changed = OPENING.model_copy(update={"plan": OPENING.plan.model_copy(update={"optimizer": "adafactor"})})
    assert str(estimate(changed).peak.allocated) in figures(app)


def test_gpus_that_share_see_data_of_their_own():
    """The page asks how many GPUs and how they share; how many groups see other data follows."""
    app = opened(link.params(OPENING) | {"gpus": "4"})

    app.get_by_key("shard").set_value("ddp").run()

    sharding = kinds.Sharding(strategy="ddp", data_parallel=4)
    plan = OPENING.plan.model_copy(update={"sharding": sharding})
    hardware = OPENING.hardware.model_copy(update={"num_gpus": 4})
    spread = OPENING.model_copy(update={"plan": plan, "hardware": hardware})
    assert str(estimate(spread).peak.allocated) in figures(app)


def test_the_bare_address_shows_the_opening_example_and_stays_bare():
    """Nobody's back button is taken before he has done anything."""
    app = opened()

    assert {} == dict(app.query_params)
    assert str(estimate(OPENING).peak.allocated) in figures(app)


def test_a_repaired_link_is_written_once_and_said():
    """The bad part is named, the address tells the truth afterwards."""
    app = opened({"v": "1", "model": "google/gemma-2b", "batch": "0", "seq": "512"})

    assert "batch\\=0" in app.warning[0].value or "batch=0" in app.warning[0].value
    assert {"v": "1", "model": "google/gemma-2b", "seq": "512"} == dict(app.query_params)


@pytest.mark.parametrize("query", [{"gpus": "2"}, {"precision": "fp16-autocast"}, {"optim_args": '{"nonsense":1}'}])
def test_a_plan_that_is_refused_gets_a_sentence_instead_of_figures(query):
    """What cannot be answered is said, never approximated in silence."""
    app = opened({"v": "1", "model": "google/gemma-2b"} | query)

    assert 0 == len(figures(app))
    assert len(app.title[0].value) > 30


# ------------------------------------------------------------------------------------------------ words


def placeholders(words: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(words) if name is not None}


@pytest.mark.parametrize("key", TEXTS)
def test_a_text_has_the_same_gaps_in_every_language(key):
    """A figure that one language shows is not lost in the other."""
    row = TEXTS[key]

    assert placeholders(row.en) == placeholders(row.ko)
    assert row.en.strip()
    assert row.ko.strip()


def test_every_field_of_the_scenario_has_a_label_and_help_in_both_languages():
    """The controls, the notes and the exports name fields by these."""
    assert set(link.PATHS) == set(FIELDS)
    for path in FIELDS:
        for language in LANGUAGES:
            assert texts.label(path, language)
            assert len(texts.help_of(path, language)) > 3


WORDS = {
    "component": COMPONENTS,
    "instant": get_args(InstantName),
    "instant.the": get_args(InstantName),
    "verdict": (*get_args(Verdict), "unknown"),
    "certainty": get_args(Certainty),
    "nav": [entry.id for entry in PAGES],
    "example": list(EXAMPLES),
    "flags": get_args(kinds.Precision),
    "option.precision": get_args(kinds.Precision),
    "option.gradient_checkpointing": get_args(kinds.Checkpointing),
    "option.attention": get_args(kinds.Attention),
    "option.loss": get_args(kinds.Loss),
    "option.kernels": get_args(kinds.Kernels),
    "option.strategy": get_args(kinds.Strategy),
    "option.adapter_dtype": get_args(kinds.AdapterDType),
    "option.format": get_args(kinds.QuantizedFormat),
    "option.method": ("full", "lora", "qlora"),
}


@pytest.mark.parametrize("prefix", WORDS)
def test_every_word_that_a_page_puts_together_has_its_text(prefix):
    """Keys that are made of a value, such as option.loss.liger, exist for every value."""
    assert [] == [word for word in WORDS[prefix] if f"{prefix}.{word}" not in TEXTS]


def test_no_text_is_left_over():
    """Each key is written somewhere under pages/, whole or as the beginning of one that is put together."""
    code = "\n".join(
        path.read_text()
        for path in ROOT.glob("pages/**/*.py")
        if path.parent.name != "texts" or path.stem == "__init__"
    )
    named = set(re.findall(r"""["']([\w\-]+(?:\.[\w\- ]+)*)["']""", code))
    begun = tuple(re.findall(r"""f["']([\w\-]+(?:\.[\w\- ]+)*\.)\{""", code))

    assert [] == [key for key in TEXTS if key not in named and not key.startswith(begun)]


# ------------------------------------------------------------------------------------------------ rules of the house


@pytest.mark.parametrize("entry", PAGES, ids=lambda entry: entry.id)
def test_a_page_holds_no_arithmetic_and_formats_no_number(entry):
    """What is counted is counted in calc; what is written is written by its units and texts."""
    code = ast.parse((ROOT / "pages" / f"{entry.id}.py").read_text())

    sums = [node for node in ast.walk(code) if isinstance(node, ast.BinOp | ast.AugAssign)]
    formats = [node for node in ast.walk(code) if isinstance(node, ast.FormattedValue) and node.format_spec is not None]
    rounding = [node for node in ast.walk(code) if isinstance(node, ast.Name) and node.id in ("round", "format", "sum")]

    assert not sums
    assert not formats
    assert not rounding


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_there_are_exactly_ten_chart_colours_a_mode(mode):
    """With fewer, Plotly's own palette comes in without a word."""
    theme = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text())["theme"]

    assert 10 == len(set(theme[mode]["chartCategoricalColors"]))


@given(st.text(max_size=60))
def test_a_strangers_words_leave_markdown_alone(words):
    """Every sign that Markdown or Streamlit reads is escaped, and nothing else is lost."""
    written = plain(words)

    assert not re.search(r"(?<!\\)(?:\\\\)*[`*_\[\]<>$:|~#]", re.sub(r"\\.", "", written))
    assert " ".join(words.split()) == re.sub(r"\\(.)", r"\1", written)


# ------------------------------------------------------------------------------------------------ parts


@pytest.mark.parametrize("example", ANSWERED, ids=lambda example: example.id)
def test_the_charts_hold_every_byte_of_the_answer(example):
    """Nine bars in the answer's order, whatever is empty; they add up to the peak and to each instant."""
    answer = estimate(example.scenario)
    peak = next(instant for instant in answer.instants if instant.name == answer.peak.instant)

    held = charts.by_component(peak)

    assert COMPONENTS == tuple(held)
    assert answer.peak.allocated == sum(held.values())


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_files_to_take_along_hold_the_answer(language):
    """CSV sums to the peak, JSON is the command line's answer, Markdown carries the link."""
    answer = estimate(OPENING)
    report = downloads.Report(OPENING, answer, "https://example.org/?v=1", "a/b", "Fits: well", "Because.", language)

    rows = downloads.to_csv(report).splitlines()
    whole = json.loads(downloads.to_json(report))

    assert len(answer.lines) + 2 == len(rows)
    assert f",{int(answer.peak.allocated)}," in rows[-1]
    assert int(answer.peak.allocated) == whole["answer"]["peak"]["allocated"]
    assert "[a/b](https://example.org/?v=1)" in downloads.to_markdown(report)


MISTRAL = OPENING.model_copy(
    update={"model": "mistralai/Mistral-7B-v0.1", "plan": OPENING.plan.model_copy(update={"seq_len": 2048})}
)


def answered(scenario: kinds.Scenario) -> Here:
    answer = estimate(scenario)
    return Here(scenario, Known(None), answer, verdict=answer.verdict)


def test_every_optimizer_has_a_place_on_its_page_and_its_own_answer():
    """All of the catalogue, smallest peak first, each with the calculator's answer for it or the reason why not."""
    here = answered(MISTRAL)

    made = choices.choices(here)

    assert set(OPTIMIZERS) == {choice.optimizer.id for choice in made}
    own = next(choice for choice in made if choice.optimizer.id == MISTRAL.plan.optimizer)
    assert here.answer is not None
    assert own.answer is not None
    assert here.answer.peak == own.answer.peak
    running = [choice.answer.peak.allocated for choice in made if choice.runs and choice.answer]
    assert sorted(running) == running
    for choice in made:
        assert choice.optimizer.id == choice.scenario.plan.optimizer
        assert choice.refusal or (choice.answer and choice.answer.peak == estimate(choice.scenario).peak)
        assert choice.runs or choice.refusal or choice.optimizer.blocked


def test_adamw_on_mistral_keeps_two_moments_as_large_as_the_weights():
    """The example that people ask about, and its state_dict as PyTorch prints it."""
    here = answered(MISTRAL)
    own = next(choice for choice in choices.choices(here) if choice.optimizer.id == "adamw_torch")

    tree = choices.tree(own, None)

    assert 2 * own.held("weights") == own.held("optimizer states")
    for word in (
        "state",
        "0: model.embed_tokens.weight",
        "exp_avg_sq",
        "param_groups",
        "weight_decay",
        "amsgrad",
        "foreach",
    ):
        assert word in tree


BAD_CONFIGS = ["{", "[1]", "nonsense", "'{}'", "", "[" * 100_000, '{"a": ' * 5_000, "9" * 10_000, "{" + " " * 5_000_000]


@pytest.mark.parametrize("given", BAD_CONFIGS, ids=range(len(BAD_CONFIGS)))
def test_what_is_no_config_is_a_sentence(given):
    """Whatever is pasted: one sentence, no traceback."""
    config, sentence = read_config(given)

    assert config is None
    assert sentence


def test_a_config_is_read_whole():
    """Numbers that JSON does not have stay words; the calculator refuses them by name."""
    config: tuple[dict[str, Any] | None, str] = read_config('{"model_type": "llama", "rope": NaN}')

    assert ({"model_type": "llama", "rope": "NaN"}, "") == config
