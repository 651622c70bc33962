"""Compare: scenarios pinned anywhere, side by side, explained line by line, all in one link."""

from __future__ import annotations

import csv
import io
import json
import re

from conftest import DESKTOP, settled
from playwright.sync_api import Page, expect

from calc import Scenario, estimate, link
from calc.planner.comparison import differences, pinned_text

FIRST, SECOND, THIRD = (
    Scenario.model_validate(
        {"model": model, "plan": {"seq_len": 2048, "gradient_checkpointing": "full", **plan}, "hardware": {"gpu": gpu}}
    )
    for model, plan, gpu in (
        ("meta-llama/Meta-Llama-3-8B", {"micro_batch_size": 8, "optimizer": "adamw_torch"}, "a100-sxm-80gb"),
        (
            "meta-llama/Meta-Llama-3-8B",
            {"micro_batch_size": 8, "optimizer": "adamw_torch", "loss": "liger"},
            "a100-sxm-80gb",
        ),
        (
            "meta-llama/Llama-3.1-8B",
            {"method": "qlora", "micro_batch_size": 2, "precision": "bf16-autocast"},
            "rtx-4090",
        ),
    )
)
QUERY = link.encoded(link.params(FIRST) | {"pins": pinned_text([SECOND, THIRD])})


def shown(page: Page) -> list[str]:
    """Every side and every table of the page."""
    page.get_by_role("table").nth(2).wait_for()
    sides = [page.locator(f".st-key-side_{place}").inner_text() for place in range(3)]
    return [*sides, *page.get_by_role("table").all_inner_texts()]


def test_three_scenarios_are_compared_by_a_link_in_a_fresh_browser(visit, chromium):
    """Verdicts and differences are those of the library, and another browser shows the same."""
    page = visit(f"/compare?{QUERY}")
    there = shown(page)

    for scenario, text in zip((FIRST, SECOND, THIRD), there, strict=False):
        assert str(estimate(scenario).peak.allocated) in text
    changes = differences(estimate(FIRST), estimate(SECOND))
    for one in changes:
        assert str(abs(one.change)) in there[4].replace("\N{NO-BREAK SPACE}", " ")
    expect(page.locator(".st-key-compare .main-svg").first).to_be_visible()
    context = chromium.new_context(viewport=DESKTOP, locale="en-US")
    other = visit(page.url[page.url.index("/compare") :], context=context)
    assert there == shown(other)
    assert len(page.url) < 2000


def test_a_scenario_is_pinned_from_any_page_and_goes_along(visit):
    """Pinned on the Fit page, changed, compared; opened again it is the plan."""
    page = visit(f"/?{link.query(FIRST)}")
    page.get_by_role("button", name="This visit").click()
    page.locator(".st-key-pin button").first.click()
    expect(page).to_have_url(re.compile("pins="))
    settled(page)
    page.keyboard.press("Escape")
    page.locator(".st-key-batch_exact input").fill("1")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"batch=1\b"))
    settled(page)

    page.get_by_role("link", name="Compare").click()

    expect(page.locator(".st-key-side_1")).to_contain_text("8 × 2,048")
    expect(page.locator(".st-key-side_0")).to_contain_text("1 × 2,048")
    page.locator(".st-key-open_1 button").first.click()
    expect(page.locator(".st-key-batch_exact input").first).to_have_value("8")
    expect(page.get_by_text("the same peak to the byte")).to_be_visible()


def test_back_and_forward_go_through_pins(visit):
    """Removing one is a step that Back undoes."""
    page = visit(f"/compare?{QUERY}")
    shown(page)

    page.locator(".st-key-remove_1 button").first.click()
    expect(page.locator(".st-key-side_2")).to_have_count(0)
    settled(page)
    page.go_back()
    expect(page.locator(".st-key-side_2")).to_have_count(1)
    page.go_forward()

    expect(page.locator(".st-key-side_2")).to_have_count(0)


def test_three_pins_are_the_most(visit):
    """The button says why it is off."""
    whole = link.encoded(link.params(FIRST) | {"pins": pinned_text([SECOND, THIRD, SECOND])})
    page = visit(f"/compare?{whole}")
    page.locator(".st-key-side_3").wait_for()

    expect(page.locator(".st-key-pin_here button").first).to_be_disabled()
    expect(page.get_by_text("Three are pinned").first).to_be_visible()


def test_the_comparison_can_be_taken_along(visit):
    """Markdown for a pull request with the link, CSV whose columns sum to the peaks, JSON with every answer."""
    page = visit(f"/compare?{QUERY}")
    shown(page)

    def taken(kind: str) -> str:
        with page.expect_download() as started:
            page.locator(f".st-key-compare_{kind} button").first.click()
        return started.value.path().read_text()

    markdown = taken("markdown")
    assert "pins=v:1,model:meta-llama/Meta-Llama-3-8B" in markdown
    assert str(estimate(THIRD).peak.allocated) in markdown
    rows = list(csv.reader(io.StringIO(taken("csv"))))
    for place, scenario in enumerate((FIRST, SECOND, THIRD), 2):
        assert int(estimate(scenario).peak.allocated) == int(rows[-1][place])
        assert int(rows[-1][place]) == sum(int(row[place]) for row in rows[1:-1])
    read = json.loads(taken("json"))
    assert [s.model_dump(mode="json") for s in (FIRST, SECOND, THIRD)] == [one["scenario"] for one in read["scenarios"]]


def test_damaged_pins_are_said_and_the_plan_stands(visit):
    """A link cut by a mail program still opens."""
    page = visit(f"/compare?{link.query(FIRST)}&pins=z/AAAA")

    expect(page.get_by_text("the pinned scenarios in this link are damaged")).to_be_visible()
    expect(page.locator(".st-key-side_0")).to_contain_text("8 × 2,048")
