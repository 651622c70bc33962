"""The Batch and sequence page: the map answers a click, the solvers a button, the visitor's lengths stay his own."""

from __future__ import annotations

import csv
import io
import re

import pytest
from conftest import settled
from playwright.sync_api import Page, expect

from calc.planner.fit_map import stops

PLAN = (
    "/batch?v=1&model=meta-llama/Llama-3.1-8B&method=qlora&rank=16&precision=bf16-autocast&optim=paged_adamw_8bit&batch=2"
    "&ckpt=full&gpu=rtx-4090"
)
BATCHES = stops(1, 128, 40, including=(2,))
LENGTHS = stops(128, 131_072, 40, multiple=128, including=(2048,))


def drawn(page: Page) -> Page:
    page.locator(".st-key-fit_map .main-svg").first.wait_for()
    return settled(page)


def click_cell(page: Page, batch: int, length: int) -> None:
    """Click the middle of a cell of the map."""
    plot = page.locator(".st-key-fit_map .nsewdrag").first
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    assert box is not None
    x = box["x"] + box["width"] * (LENGTHS.index(length) + 0.5) / len(LENGTHS)
    y = box["y"] + box["height"] * (1 - (BATCHES.index(batch) + 0.5) / len(BATCHES))
    page.mouse.move(x, y)
    page.wait_for_timeout(200)
    page.mouse.click(x, y)


def test_a_click_on_a_cell_moves_the_sliders(visit):
    """The cell's micro-batch and length become the scenario's; Back brings the old ones."""
    page = drawn(visit(PLAN))

    click_cell(page, 8, 1024)

    expect(page).to_have_url(re.compile(r"batch=8\b.*seq=1024\b|seq=1024\b.*batch=8\b|seq=1024"))
    expect(page.locator(".st-key-seq_exact input").first).to_have_value("1024")
    expect(page.locator(".st-key-batch_exact input").first).to_have_value("8")
    settled(page)
    page.go_back()
    expect(page.locator(".st-key-batch_exact input").first).to_have_value("2")


def test_hovering_shows_what_the_peak_is_made_of(visit):
    """Sizes, verdict, instant and components."""
    page = drawn(visit(PLAN))
    plot = page.locator(".st-key-fit_map .nsewdrag").first
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    assert box is not None

    page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + box["height"] * 0.7)

    label = page.locator(".st-key-fit_map .hoverlayer")
    expect(label).to_contain_text("needs")
    expect(label).to_contain_text("Weights")


def test_more_cards_bring_their_frontiers(visit):
    """A card chosen beside the plan's own is drawn and named."""
    page = drawn(visit(PLAN))

    box = page.locator(".st-key-map_cards input")
    box.click()
    box.fill("A100 SXM4 80GB")
    box.press("Enter")

    expect(page.locator(".st-key-fit_map .legend").first).to_contain_text("A100 SXM4 80GB")


def test_the_longest_sequence_is_taken_by_a_button(visit):
    """The heading's figure, set and shown to fit."""
    page = visit(PLAN)
    settled(page)
    shown = page.locator("h1").inner_text()
    longest = int(re.search(r"or ([\d,]+) tokens", shown)[1].replace(",", ""))

    page.locator(".st-key-solve_length button").first.click()

    expect(page.locator(".st-key-seq_exact input").first).to_have_value(str(longest))
    expect(page.locator(".st-key-bottom_verdict")).not_to_contain_text("Does not fit")


def test_lengths_of_ones_own_say_what_padding_costs(visit):
    """Pasted counts become figures, and none of them enters the address."""
    page = visit(PLAN)
    settled(page)
    page.get_by_text("Your data's lengths").click()

    page.get_by_label("Token counts").fill("1000 10 10 10")
    page.keyboard.press("Control+Enter")

    expect(page.get_by_text("Padding, in order")).to_be_visible()
    expect(page.get_by_text("49.0%").first).to_be_visible()
    assert "1000" not in page.url
    page.get_by_role("button", name="Use 1,000 tokens").click()
    expect(page.locator(".st-key-seq_exact input").first).to_have_value("1000")


@pytest.mark.parametrize(("text", "says"), [("12 abc", "'abc' is no whole number"), ("0", "0 is no length")])
def test_what_is_no_length_gets_its_sentence(visit, text, says):
    """The first thing that cannot be read."""
    page = visit(PLAN)
    settled(page)
    page.get_by_text("Your data's lengths").click()

    page.get_by_label("Token counts").fill(text)
    page.keyboard.press("Control+Enter")

    expect(page.get_by_text(says)).to_be_visible()


def test_every_kept_tensor_has_its_row(visit):
    """Name, shape, bytes per token, reason and what removes it."""
    page = visit(PLAN.replace("&ckpt=full", ""))
    settled(page)

    table = page.get_by_role("table").last
    expect(table).to_contain_text("q_proj")
    expect(table).to_contain_text("Gradient checkpointing")


def test_the_map_is_a_sheet_too(visit):
    """Each cell a row, its components summing to its peak."""
    page = drawn(visit(PLAN))

    with page.expect_download() as started:
        page.get_by_role("button", name="The map as CSV").click()
    rows = list(csv.DictReader(io.StringIO(started.value.path().read_text())))

    assert len(BATCHES) * len(LENGTHS) == len(rows)
    for row in rows[::97]:
        held = [int(row[name]) for name in list(row)[7:]]
        assert int(row["allocated"]) == sum(held)
