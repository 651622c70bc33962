"""The embedded catalogue: complete, in step with the recording, and quick to search."""

from __future__ import annotations

import subprocess
import sys

import pytest
from catalogue_asset import ASSET, FIRST, NOISE, catalogue, recorded
from hypothesis import given
from hypothesis import strategies as st

from calc.catalog.models import MODELS, search
from calc.catalog.table import UnknownName
from calc.model import ConfigError, UnknownArchitecture, typed
from calc.model.counting import counted


def test_the_catalogue_is_what_the_recording_makes() -> None:
    """assets/catalogue.json was built from tests/golden/configs.jsonl.gz and from nothing else."""
    assert catalogue() == ASSET.read_text(encoding="utf-8")


def test_it_holds_hundreds_of_models_in_under_a_megabyte() -> None:
    """841 models, 678 of them with a total verified to the element."""
    assert 841 == len(MODELS) == len(recorded())
    assert 678 == sum(model.check == "verified" for model in MODELS.values())
    assert ASSET.stat().st_size < 1_000_000


def test_every_model_is_whole() -> None:
    """An id of two parts, a configuration without noise, a source; a total wherever it is not marked as not counted."""
    for model in MODELS.values():
        assert model.organisation
        assert model.label
        assert model.source
        assert model.config
        assert not NOISE & model.config.keys()
        assert (model.total is None) == (model.check == "not counted")
        assert model.check != "differs" or model.hub_total not in (None, model.total)


OTHER_CLASS = {
    "microsoft/deberta-v3-base": "recorded with a head for answers, counted with the one for masked words",
    "openbmb/MiniCPM-2B-dpo-bf16": "recorded with a tied head, which its config.json says it is not",
    "Snowflake/snowflake-arctic-embed-m": "recorded without a head, counted with the one for masked words",
    "XiaomiMiMo/MiMo-7B-Base": "recorded without the layers for further tokens that it stores and loads",
}
"""Models whose recorded total, which nothing verifies, is of another class than is trained."""


def test_every_total_of_the_catalogue_is_counted_again_from_its_configuration() -> None:
    """To the element, but for the few of an architecture that is refused, and of another class."""
    off, refused = [], []
    for model in MODELS.values():
        try:
            found = counted(typed(model.config, model.id)).total
        except (ConfigError, UnknownArchitecture):
            refused.append(model.id)
        else:
            off += [model.id] if model.total not in (None, found) else []
    assert set() == set(off) - set(OTHER_CLASS)
    assert len(refused) <= 12


@pytest.mark.parametrize(
    ("name", "total"),
    [
        ("mistralai/Mistral-7B-v0.1", 7_241_732_096),
        ("meta-llama/Llama-3.1-8B", 8_030_261_248),
        ("Qwen/Qwen3-0.6B", 596_049_920),
        ("google/gemma-2-9b", 9_241_705_984),
    ],
)
def test_known_models_have_their_known_totals(name: str, total: int) -> None:
    """Tied heads count once: Qwen3-0.6B stores 751,632,384 elements and has 596,049,920 parameters."""
    assert total == MODELS[name].total
    assert "verified" == MODELS[name].check


def test_what_is_shown_first_exists() -> None:
    """Every model of the opening list is in the catalogue, each once, and leads it in that order."""
    assert list(FIRST) == list(MODELS)[: len(FIRST)]


@pytest.mark.parametrize(
    ("typed", "first"),
    [
        ("", "mistralai/Mistral-7B-v0.1"),
        ("Qwen/Qwen3-8B", "Qwen/Qwen3-8B"),
        ("qwen3-8b", "Qwen/Qwen3-8B"),
        ("mistral", "mistralai/Mistral-7B-v0.1"),
        ("meta-llama/", "meta-llama/Llama-3.1-8B"),
        ("llama3 8b", "meta-llama/Meta-Llama-3-8B"),
        ("  Qwen 2.5 7B ", "Qwen/Qwen2.5-7B-Instruct"),
        ("phi4", "microsoft/phi-4"),
        ("gemma", "google/gemma-2-9b"),
        ("r1 distill 7b", "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B"),
        ("lama", "meta-llama/Llama-3.1-8B"),
    ],
)
def test_search_puts_first_what_is_meant(typed: str, first: str) -> None:
    """However it is cut, spaced or capitalised."""
    assert first == search(typed)[0].id


@given(st.text(max_size=40), st.integers(1, 20))
def test_any_text_is_answered_within_the_limit(typed: str, limit: int) -> None:
    """No text breaks the search, and no model is shown twice."""
    found = [model.id for model in search(typed, limit)]
    assert len(found) == len(set(found)) <= limit


@pytest.mark.parametrize("typed", ["!!!", "no-such-model-anywhere", "o" * 5000])
def test_search_finds_nothing_where_nothing_fits(typed: str) -> None:
    """It does not guess."""
    assert [] == search(typed)


@given(st.sampled_from(sorted(MODELS)))
def test_every_model_is_found_by_its_id_in_any_case(name: str) -> None:
    """Typing an id in capitals finds it; looking it up so is an error that names it."""
    assert name in {model.id for model in search(name.upper())}
    if name.upper() not in MODELS:
        with pytest.raises(UnknownName) as caught:
            MODELS[name.upper()]
        assert name.casefold() in {near.casefold() for near in caught.value.near}


def test_importing_it_does_not_read_the_file() -> None:
    """The catalogue is read at the first question."""
    program = """
import sys
opened = []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
from calc.catalog.models import MODELS
assert not any("catalogue.json" in name for name in opened), opened
assert "mistralai/Mistral-7B-v0.1" in MODELS
assert any("catalogue.json" in name for name in opened)
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
