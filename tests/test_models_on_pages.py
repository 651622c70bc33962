"""Models on the Fit page: what is said of each, also where only its parameters are known, and the ways to bring one's own."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from calc import link
from calc.catalog.models import MODELS
from calc.memory.floor import floor
from calc.model.counting import counted
from pages.parts import texts

ROOT = Path(__file__).parents[1]
MAMBA = "state-spaces/mamba-2.8b-hf"


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
    app = opened({"model": MAMBA, "method": method, "gpu": "h100-sxm"}, locale)

    scenario = link.scenario(f"v=1&model={MAMBA}&method={method}&gpu=h100-sxm")[0]
    least = floor(scenario, counted(MODELS[MAMBA].config))
    language = "ko" if locale == "ko-KR" else "en"
    assert str(least.peak.allocated) in [metric.value for metric in app.metric]
    assert texts.text("floor.missing", language) in said(app)
    assert texts.text("verdict.unknown", language) in app.title[0].value


def test_what_is_known_not_to_fit_is_said_in_the_heading() -> None:
    """Weights and states alone are too much: nobody needs the activations to know."""
    app = opened({"model": MAMBA, "method": "full", "gpu": "rtx-4090", "precision": "fp32"})

    assert texts.text("verdict.does_not_fit", "en") in app.title[0].value


def test_a_plan_that_is_refused_is_refused_there_too() -> None:
    """No figures for what cannot run."""
    app = opened({"model": MAMBA, "gpus": "2"})

    assert 0 == len(app.metric)


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
