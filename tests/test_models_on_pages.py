"""Models on the Fit page: what is said of each, also where only its parameters are known, and the ways to bring one's own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from shown import figures
from streamlit.testing.v1 import AppTest

from calc import Scenario, estimate, link
from calc.catalog.models import MODELS
from calc.memory.floor import floor
from calc.model.counting import counted
from pages.parts import downloads, texts

ROOT = Path(__file__).parents[1]
ZAMBA = "Zyphra/Zamba-7B-v1"


def opened(query: dict[str, str], locale: str = "en-US") -> AppTest:
    """The Fit page with this query."""
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=240)
    app.query_params.update({"v": "1", **query})
    app.context["locale"] = locale
    app.run()
    assert not app.exception
    return app


def said(app: AppTest) -> str:
    """Everything that the page says in words."""
    return "\n".join(
        str(element.value)
        for kind in (app.title, app.header, app.markdown, app.info, app.warning, app.error, app.caption)
        for element in kind
    )


@pytest.mark.parametrize("locale", ["en-US", "ko-KR"])
@pytest.mark.parametrize("method", ["full", "lora", "qlora"])
def test_a_model_whose_activations_are_not_modelled_shows_what_is_known(method: str, locale: str) -> None:
    """Weights, gradients and optimizer states to the byte, and in plain words what is missing."""
    app = opened({"model": ZAMBA, "method": method, "gpu": "h100-sxm"}, locale)

    scenario = link.scenario(f"v=1&model={ZAMBA}&method={method}&gpu=h100-sxm")[0]
    least = floor(scenario, counted(MODELS[ZAMBA].config))
    language = "ko" if locale == "ko-KR" else "en"
    assert str(least.peak.allocated) in figures(app)
    assert texts.text("floor.missing", language) in said(app)
    assert texts.text("verdict.unknown", language) in app.title[0].value


@pytest.mark.parametrize("language", ["en", "ko"])
def test_what_is_known_can_be_taken_along(language: downloads.Language) -> None:
    """As CSV, JSON and Markdown: the same lines, which sum to the same bytes."""
    query = f"v=1&model={ZAMBA}&method=lora"
    scenario = link.scenario(query)[0]
    least = floor(scenario, counted(MODELS[ZAMBA].config))
    report = downloads.Report(scenario, least, query, ZAMBA, "?", "", language)

    *lines, total = downloads.to_csv(report).splitlines()[1:]
    assert len(least.lines) == len(lines)
    assert f"total,{least.peak.name},{int(least.peak.allocated)}," in total
    known = json.loads(downloads.to_json(report))["known"]
    assert sum(line["bytes"] for line in known["lines"]) == known["at_least"]["allocated"] == least.peak.allocated
    assert str(least.peak.allocated) in downloads.to_markdown(report)


def test_what_is_known_not_to_fit_is_said_in_the_heading() -> None:
    """Weights and states alone are too much: nobody needs the activations to know."""
    app = opened({"model": ZAMBA, "method": "full", "gpu": "rtx-4090", "precision": "fp32"})

    assert texts.text("verdict.does_not_fit", "en") in app.title[0].value


def test_a_plan_that_is_refused_is_refused_there_too() -> None:
    """No figures for what cannot run."""
    app = opened({"model": ZAMBA, "gpus": "2"})

    assert 0 == len(figures(app))


def test_the_parameters_of_a_mixture_are_shown_with_their_share() -> None:
    """All, those of one token, embeddings and head, and why the Hub stores another number."""
    app = opened({"model": "Qwen/Qwen3-30B-A3B", "method": "qlora", "gpu": "h100-sxm"})

    shown = "\n".join(str(frame.value) for frame in app.table)
    assert "30,532,122,624" in shown
    assert "3,353,032,704" in shown
    assert "8 of 128 experts a layer" in shown


def test_the_parts_of_a_vision_language_model_are_shown() -> None:
    """Text model, vision tower and projector."""
    app = opened({"model": "llava-hf/llava-1.5-7b-hf"})

    shown = "\n".join(str(frame.value) for frame in app.table)
    assert "303,507,456" in shown
    assert texts.text("parameters.part.projector", "en") in shown


def test_the_reason_of_another_stored_total_is_said() -> None:
    """The tied head of Qwen3 0.6B lies on the Hub a second time."""
    app = opened({"model": "Qwen/Qwen3-0.6B"})

    assert "stored a second time" in said(app).replace("\\", "")


# ------------------------------------------------------------------------------------------------ one's own model

SIZES = {
    "num_hidden_layers": 3, "hidden_size": 96, "intermediate_size": 320, "num_attention_heads": 6, "num_key_value_heads": 2,
    "vocab_size": 700,
}  # fmt: skip


def filled(app: AppTest, sizes: dict[str, int], *, tied: bool = False) -> AppTest:
    """The form filled in and sent."""
    for name, size in sizes.items():
        app.get_by_key(f"custom_{name}").set_value(size)
    app.get_by_key("custom_tied").set_value(tied)
    next(button for button in app.button if button.label == texts.text("custom.use", "en")).click().run()
    assert not app.exception
    return app


def test_a_model_that_exists_nowhere_is_answered_and_linked() -> None:
    """The figures are those of its config.json; the link opens the same model, sizes in their boxes."""
    app = filled(opened({"model": "google/gemma-2b", "method": "lora", "seq": "64"}), SIZES, tied=True)

    config = {"model_type": "llama", **SIZES, "tie_word_embeddings": True}
    plan = {"method": "lora", "seq_len": 64}
    asked = Scenario.model_validate({"model": {"config": config, "id": "custom-llama"}, "plan": plan})
    expected = str(estimate(asked).peak.allocated)
    assert expected in figures(app)
    again = opened(dict(app.query_params))
    assert expected in figures(again)
    assert SIZES == {name: again.get_by_key(f"custom_{name}").value for name in SIZES}
    assert again.get_by_key("custom_tied").value is True


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [({"num_key_value_heads": 4}, "should divide num_attention_heads"), ({"hidden_size": 97}, "should be a multiple of num_attention_heads")],
)  # fmt: skip
def test_sizes_that_cannot_be_are_said_and_stay(wrong: dict[str, int], sentence: str) -> None:
    """One sentence; the model before is still shown, and every box keeps what was typed."""
    app = filled(opened({"model": "google/gemma-2b"}), SIZES | wrong)

    assert sentence in said(app).replace("\\", "")
    assert "google/gemma-2b" == app.query_params["model"]
    assert SIZES | wrong == {name: app.get_by_key(f"custom_{name}").value for name in SIZES}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"model_type": "llama", "hidden_size": -4}', "hidden_size should lie between"),
        ('{"model_type": "emu3"}', "missing is a table of its parameters"),
        ('{"hidden_size": 4}', "model_type is missing"),
        ("[1, 2]", texts.text("config.not-object", "en")),
        ('{"model_type": ', "This is not JSON (line 1)"),
    ],
)
def test_a_pasted_config_that_is_no_model_is_said_and_stays(text: str, sentence: str) -> None:
    """Before it is used."""
    app = opened({"model": "google/gemma-2b"})
    app.get_by_key("config_text").set_value(text).run()

    assert sentence in said(app).replace("\\", "")
    assert text == app.get_by_key("config_text").value


def test_a_pasted_config_is_answered() -> None:
    """One click, and the link carries it."""
    config = {"model_type": "qwen2", "num_hidden_layers": 2}
    app = opened({"model": "google/gemma-2b", "seq": "64"})
    app.get_by_key("config_text").set_value(json.dumps(config)).run()
    app.get_by_key("config_use").click().run()

    asked = Scenario.model_validate({"model": {"config": config}, "plan": {"seq_len": 64}})
    assert str(estimate(asked).peak.allocated) in figures(app)
    assert "config" in app.query_params
