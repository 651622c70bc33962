"""The scenario in the address: both ways, across pages, reload, back and forward."""

from __future__ import annotations

import csv
import io
import json
import re

from conftest import DESKTOP, settled
from playwright.sync_api import Page, expect

LINK = (
    "/?v=1&model=meta-llama/Llama-3.1-8B&method=qlora&rank=16&alpha=32&precision=bf16-autocast&optim=paged_adamw_8bit"
    "&batch=2&seq=4096&ckpt=full&gpu=rtx-4090"
)


def shown(page: Page) -> list[str]:
    """Heading, figures and every line of the answer."""
    settled(page)
    page.locator(".st-key-lines .total").wait_for()
    return [
        page.locator("h1").inner_text(),
        *page.locator(".figure").all_inner_texts()[:4],
        *page.locator(".st-key-lines .size").all_inner_texts(),
    ]


def batch(page: Page) -> str:
    return page.locator(".st-key-batch_exact input").input_value()


def set_batch(page: Page, value: int) -> None:
    page.locator(".st-key-batch_exact input").fill(str(value))
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(rf"batch={value}\b"))
    settled(page)


def test_a_shared_link_shows_the_same_numbers_in_a_fresh_browser(visit, chromium):
    """The address bar of one visitor, opened by another in a new profile."""
    page = visit(LINK)
    set_batch(page, 5)
    context = chromium.new_context(viewport=DESKTOP, locale="en-US")

    other = visit(page.url[page.url.index("/?") :], context=context)

    assert shown(page) == shown(other)
    assert "5" == batch(other)
    other.wait_for_timeout(300)
    assert page.url == other.url


def test_a_link_with_bad_parts_keeps_the_good_ones_and_says_which_were_bad(visit):
    """Batch 0 and a card that does not exist are named; rank and length stand."""
    page = visit("/?v=1&model=meta-llama/Llama-3.1-8B&method=lora&rank=32&seq=1024&batch=0&gpu=rtx-4091")

    note = page.locator('[data-testid="stAlert"]').filter(has_text="Some of this link could not be used")
    expect(note).to_contain_text("batch=0 was left out")
    expect(note).to_contain_text("rtx-4090")
    expect(page.locator(".st-key-rank_exact input")).to_have_value("32")
    expect(page).to_have_url(re.compile(r"\?v=1&model=meta-llama%2FLlama-3.1-8B&method=lora&rank=32&seq=1024$"))


HOSTILE = [
    "batch=9999999", "seq=1e400", "batch=inf", "model=" + "x" * 300, "model=%3Cscript%3Ealert(1)%3C/script%3E",
    "model=!%5Bx%5D(https://example.org/x.png)", "optim_args={", "config=AAAA", "lang=xx", "v=99", "%ff%fe=%00",
    "targets=" + "a," * 500, "batch=1&batch=2&batch=x",
]  # fmt: skip


def test_a_hostile_link_is_answered_calmly(visit, base):
    """No traceback, no request to anywhere, something to read."""
    page = visit("/")

    for query in HOSTILE:
        page.goto(f"{base}/?{query}")
        settled(page)

        expect(page.locator("h1")).not_to_be_empty()
        expect(page.locator('[data-testid="stException"]')).to_have_count(0)


def test_back_undoes_a_change_and_forward_makes_it_again(visit):
    """One history entry for one change, restored whole."""
    page = visit(LINK)
    first = shown(page)
    set_batch(page, 7)
    second = shown(page)
    assert first != second

    page.go_back()
    expect(page.locator(".st-key-batch_exact input")).to_have_value("2")
    expect(page.locator("h1")).to_have_text(first[0])
    page.go_forward()

    expect(page.locator(".st-key-batch_exact input")).to_have_value("7")
    expect(page.locator("h1")).to_have_text(second[0])


def test_going_back_to_the_bare_address_opens_the_example_again(visit):
    """Who has changed one thing on the first page gets back in one step."""
    page = visit("/")
    first = page.locator("h1").inner_text()
    set_batch(page, 2)

    page.go_back()

    expect(page.locator("h1")).to_have_text(first)
    expect(page.locator(".st-key-batch_exact input")).to_have_value("1")


def test_the_scenario_goes_along_to_another_page_and_back(visit, base):
    """A page's link carries the scenario, and Back needs one step."""
    page = visit(LINK)
    set_batch(page, 3)
    fit = page.url

    page.get_by_role("link", name="Optimizers").click()
    expect(page.locator("h1")).to_contain_text("optimizer")
    expect(page).to_have_url(re.compile(r"/optimizers\?.*batch=3\b"))
    assert "3" == batch(page)
    page.go_back()

    expect(page).to_have_url(fit)
    expect(page.locator("h1")).to_contain_text("RTX 4090")
    assert "3" == batch(page)


def test_a_change_made_on_another_page_is_there_on_return(visit):
    """The controls beside every page are the same ones."""
    page = visit(LINK)
    page.get_by_role("link", name="Optimizers").click()
    expect(page.locator("h1")).to_contain_text("optimizer")
    set_batch(page, 6)

    page.get_by_role("link", name="Fit").click()

    expect(page.locator("h1")).to_contain_text("RTX 4090")
    assert "6" == batch(page)


def test_a_reload_keeps_the_scenario(visit):
    """A new session of the server, the same numbers."""
    page = visit(LINK)
    set_batch(page, 4)
    before = shown(page)

    page.reload()
    settled(page)

    assert before == shown(page)


def test_fast_changes_end_with_the_last_one(visit):
    """Five steps of the keyboard in a row: nothing jumps back."""
    page = visit(LINK)
    page.locator(".st-key-batch input[type=range]").focus()

    for _ in range(5):
        page.keyboard.press("ArrowRight")

    expect(page).to_have_url(re.compile(r"batch=12\b"))
    settled(page)
    page.wait_for_timeout(500)
    assert "12" == batch(page)


def test_a_drag_answers_on_the_way_and_is_one_step(visit):
    """The verdict follows the thumb; the address waits until it is let go, and Back undoes the whole drag."""
    page = visit(LINK)
    settled(page)
    before, steps = page.url, page.evaluate("history.length")
    track = page.locator(".st-key-batch input[type=range]").bounding_box()
    middle = track["y"] + track["height"] / 2

    page.mouse.move(track["x"] + 30, middle)
    page.mouse.down()
    page.mouse.move(track["x"] + track["width"] - 20, middle, steps=4)
    expect(page.locator(".st-key-bottom_verdict")).to_contain_text("Does not fit")
    assert before == page.url
    page.mouse.up()

    expect(page).to_have_url(re.compile(r"batch=(64|96|128)\b"))
    assert steps + 1 == page.evaluate("history.length")
    page.go_back()
    expect(page.locator(".st-key-batch_exact input")).to_have_value("2")


def test_an_example_is_one_step(visit):
    """A preset sets many fields and Back undoes them together."""
    page = visit(LINK)
    page.get_by_role("button", name="Examples").click()
    page.get_by_role("button", name="Gemma 2B, full in fp32").click()
    expect(page).to_have_url(re.compile("model=google%2Fgemma-2b&precision=fp32"))
    settled(page)

    page.go_back()

    expect(page.locator("h1")).to_contain_text("RTX 4090")
    expect(page.locator(".st-key-rank_exact input")).to_have_value("16")


def test_the_copy_button_copies_the_whole_link(visit, base):
    """Also where the address bar is still bare."""
    page = visit("/")

    page.get_by_role("button", name="Copy link").click()

    expect(page.get_by_role("status").filter(has_text="Copied")).to_be_visible()
    assert re.match(rf"{base}/\?v=1&model=google/gemma-2-9b&", page.evaluate("navigator.clipboard.readText()"))


def test_the_answer_can_be_taken_along(visit):
    """Three formats, each with the sum of the peak, the last two with the link."""
    page = visit(LINK)
    page.get_by_role("button", name="Download", exact=True).click()

    def taken(kind: str) -> str:
        with page.expect_download() as started:
            page.get_by_role("button", name=kind, exact=True).click()
        return str(started.value.path().read_text())

    rows = list(csv.DictReader(io.StringIO(taken("CSV"))))
    answer = json.loads(taken("JSON"))
    report = taken("Markdown")

    assert int(rows[-1]["bytes"]) == sum(int(row["bytes"]) for row in rows[:-1])
    assert int(rows[-1]["bytes"]) == answer["answer"]["peak"]["allocated"]
    assert "rtx-4090" == answer["scenario"]["hardware"]["gpu"]
    assert page.locator(".st-key-lines .total .size").inner_text() in report
    for text in (answer["link"], report):
        assert "v=1&model=meta-llama/Llama-3.1-8B&method=qlora" in text
