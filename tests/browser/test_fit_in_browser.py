"""The Fit page as a visitor uses it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from conftest import app, settled
from playwright.sync_api import Page, expect

QLORA = "/?v=1&model=meta-llama/Llama-3.1-8B&method=qlora&rank=16&batch=2&ckpt=full&gpu=rtx-4090"
SMALL = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 1024, "intermediate_size": 2816,
    "num_hidden_layers": 12, "num_attention_heads": 16, "num_key_value_heads": 4, "vocab_size": 32000,
    "rms_norm_eps": 1e-5, "tie_word_embeddings": False, "_name_or_path": "my/experiment",
}  # fmt: skip
ALICE = "hf_AliceMayReadEverything0000000001"


def figures(page: Page) -> list[str]:
    values = page.locator(".figure")
    values.nth(3).wait_for()
    return values.all_inner_texts()[:4]


def choose_model(page: Page, text: str) -> None:
    box = page.locator(".st-key-model input").first
    box.click()
    box.fill(text)
    box.press("Enter")


def choose_method(page: Page, name: str) -> None:
    page.locator(".st-key-method").get_by_text(name, exact=True).click()


def test_the_first_page_opens_with_a_whole_answer(visit):
    """Verdict, figures, both charts and every line, with no question asked first."""
    page = visit("/")

    expect(page.locator("h1")).to_contain_text("Does not fit")
    expect(page.get_by_text("CUDA out of memory")).to_be_visible()
    assert 4 == len(figures(page))
    for chart in ("load", "timeline"):
        expect(page.locator(f".st-key-{chart} .js-plotly-plot")).to_be_visible()
    assert page.locator(".st-key-lines details").count() >= 4
    expect(page.locator(".st-key-lines .total")).to_contain_text("GiB")


def test_the_verdict_stays_in_view_while_scrolling(visit):
    """At the bottom of the window stands what the heading says."""
    page = visit("/")
    page.mouse.wheel(0, 4000)

    expect(page.locator(".st-key-bottom_verdict")).to_be_in_viewport()
    expect(page.locator(".st-key-bottom_verdict")).to_contain_text("Does not fit")


def test_picking_a_model_changes_the_verdict(visit):
    """Type a part of a name, press Enter: the catalogue's model is taken."""
    page = visit("/")
    choose_model(page, "meta-llama/Llama-3.2-1B")

    expect(page.locator("h1")).to_contain_text("Fits")
    expect(page).to_have_url(re.compile("model=meta-llama%2FLlama-3.2-1B"))


def test_moving_a_slider_changes_the_figures_and_the_address(visit):
    """One step of the batch slider by keyboard."""
    page = visit(QLORA)
    before = figures(page)

    page.locator(".st-key-batch input[type=range]").focus()
    page.keyboard.press("ArrowRight")

    expect(page).to_have_url(re.compile(r"batch=3\b"))
    expect(page.locator(".figure").first).not_to_have_text(before[0])
    expect(page.locator(".st-key-batch_exact input")).to_have_value("3")


def test_a_number_between_the_slider_stops_can_be_typed(visit):
    """A length of 3,000 tokens is nobody's stop, and allowed."""
    page = visit(QLORA)

    page.locator(".st-key-seq_exact input").fill("3000")
    page.keyboard.press("Enter")

    expect(page).to_have_url(re.compile(r"seq=3000\b"))
    expect(page.locator(".st-key-seq input[type=range]")).to_have_attribute("aria-valuetext", "3,000")


def test_what_a_method_does_not_use_is_kept_for_the_one_that_does(visit):
    """Rank 16 is still there after a look at full fine-tuning."""
    page = visit(QLORA)
    choose_method(page, "Full")
    expect(page.locator(".st-key-rank")).to_have_count(0)
    expect(page).not_to_have_url(re.compile("rank="))

    choose_method(page, "LoRA")

    expect(page.locator(".st-key-rank_exact input")).to_have_value("16")
    expect(page).to_have_url(re.compile("method=lora&rank=16"))


def test_a_line_opens_to_its_formula_and_source_by_keyboard(visit):
    """Enter on a row shows what the number is made of and where it comes from."""
    page = visit(QLORA)
    row = page.locator(".st-key-lines details").first

    row.locator("summary").focus()
    page.keyboard.press("Enter")

    expect(row.get_by_text("Formula")).to_be_visible()
    expect(row.get_by_text("This run")).to_be_visible()
    expect(row.locator("a")).to_have_attribute("href", re.compile("^https://"))
    page.locator(".st-key-batch input[type=range]").press("ArrowRight")
    expect(page).to_have_url(re.compile(r"batch=3\b"))
    settled(page)
    expect(row.get_by_text("Formula")).to_be_visible()


HUB_SENTENCES = {
    "acme/gated": "is gated: accept its licence",
    "acme/tyni": "does not exist on the Hub or is private",
    "acme/gguf": "GGUF files, which are made for running and not for training",
    "qwen3:8b": "Ollama",
    "acme/no-config": "has no config.json",
}


def test_a_model_that_cannot_be_had_gets_its_sentence_and_nothing_is_lost(visit):
    """One sentence says why and what to do; the answer before stays on the page."""
    page = visit(QLORA)
    before = figures(page)

    for typed, sentence in HUB_SENTENCES.items():
        choose_model(page, typed)

        expect(page.get_by_text(sentence)).to_be_visible()
        assert before == figures(page)
        expect(page).to_have_url(re.compile("model=meta-llama(/|%2F)Llama-3.1-8B"))


def test_a_gguf_repository_names_the_model_that_it_was_made_from(visit):
    """The base is one click away."""
    page = visit(QLORA)
    choose_model(page, "acme/gguf")

    page.get_by_role("button", name="acme/tiny").click()

    expect(page).to_have_url(re.compile("model=acme%2Ftiny"))


def test_the_hub_can_be_searched_while_typing(visit):
    """What the catalogue does not have is found on the Hub, and taken by a click."""
    page = visit(QLORA)
    page.get_by_role("button", name="Hub, config.json, token").click()

    page.get_by_role("searchbox", name="Search the Hub").press_sequentially("acme tiny")
    page.get_by_role("button", name="acme/tiny").first.click()

    expect(page).to_have_url(re.compile("model=acme%2Ftiny"))
    expect(page.get_by_text("From the Hub, commit")).to_be_visible()


def test_a_config_of_three_megabytes_is_answered_and_said_to_be_too_long_for_a_link(visit, tmp_path: Path):
    """Some files carry tables of a hundred thousand names; they are read, and the link says what it leaves out."""
    config = tmp_path / "config.json"
    names = {str(place): f"label number {place * 7919 % 100_003}" for place in range(100_000)}
    config.write_text(json.dumps(SMALL | {"id2label": names}))
    assert config.stat().st_size > 3_000_000
    page = visit(QLORA)
    page.get_by_role("button", name="Hub, config.json, token").click()

    page.locator(".st-key-config_file input[type=file]").set_input_files(config)
    page.get_by_role("button", name="Use this config.json").click()

    expect(page.get_by_text("The link cannot carry the model")).to_be_visible()
    expect(page.locator("h1")).to_contain_text("Fits")
    expect(page).not_to_have_url(re.compile("model="))


def test_a_token_opens_a_gated_model_and_stays_out_of_the_address(visit):
    """The token is asked for where the sentence sends the visitor, and goes nowhere else."""
    page = visit(QLORA)
    choose_model(page, "acme/gated")
    expect(page.get_by_text(HUB_SENTENCES["acme/gated"])).to_be_visible()

    page.get_by_role("button", name="Hub, config.json, token").click()
    page.get_by_role("textbox", name="Your Hub token").fill(ALICE)
    page.keyboard.press("Enter")

    expect(page).to_have_url(re.compile("model=acme%2Fgated"))
    assert ALICE not in page.url
    assert ALICE not in page.evaluate(
        "JSON.stringify([...Object.entries(localStorage), ...Object.entries(sessionStorage)])"
    )


def test_an_access_token_in_the_model_box_is_not_taken_into_the_address(visit):
    """Whoever pastes a token into the wrong box is told so before anything is kept."""
    page = visit(QLORA)
    choose_model(page, ALICE)

    expect(page.get_by_text("This holds an access token")).to_be_visible()
    assert ALICE not in page.url


def test_a_pasted_config_is_answered_and_travels_in_the_link(visit):
    """The link of a small config.json opens the same numbers in another session."""
    page = visit(QLORA)
    page.get_by_role("button", name="Hub, config.json, token").click()
    page.get_by_role("textbox", name="Paste a config.json").fill(json.dumps(SMALL))
    page.keyboard.press("Control+Enter")
    page.get_by_role("button", name="Use this config.json").click()
    expect(page).to_have_url(re.compile("config="))
    settled(page)
    shown = figures(page)

    other = visit(page.url[page.url.index("/?") :])

    assert shown == figures(other)
    expect(other.locator(".st-key-model input")).to_have_value("my/experiment")


@pytest.mark.parametrize(("text", "says"), [("{'a': 1}", "This is not JSON"), ("[1, 2]", "not a config.json")])
def test_what_is_no_config_gets_its_sentence(visit, text, says):
    """Python's quotes and a list are the usual mistakes."""
    page = visit(QLORA)
    page.get_by_role("button", name="Hub, config.json, token").click()

    page.get_by_role("textbox", name="Paste a config.json").fill(text)
    page.keyboard.press("Control+Enter")

    expect(page.get_by_text(says)).to_be_visible()


def test_a_dead_hub_is_said_and_a_deep_link_opens_in_its_frame(visit, tmp_path: Path):
    """On a fresh server the first visitor follows a deep link; with no Hub behind it, the catalogue still answers."""
    with app(tmp_path / "log.txt", "http://127.0.0.1:9") as address:
        page = visit(f"/optimizers{QLORA[1:]}", address=address)
        expect(page.locator(".st-key-model input")).to_have_value("meta-llama/Llama-3.1-8B")
        page.get_by_role("link", name="Fit").click()
        expect(page.locator("h1")).to_contain_text("RTX 4090")

        choose_model(page, "acme/tiny")

        expect(page.get_by_text("The Hub cannot be reached from this server")).to_be_visible()
        page.close()
