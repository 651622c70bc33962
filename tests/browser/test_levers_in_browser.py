"""What to change, applied by a click: the verdict turns, Back undoes it, and the history of the visit remembers."""

from __future__ import annotations

import re

import pytest
from conftest import settled
from playwright.sync_api import Page, expect

FULL = (
    "/?v=1&model=meta-llama/Meta-Llama-3-8B&optim=adamw_torch&batch=8&seq=4096&ckpt=full&attn=flash_attention_2"
    "&gpu=a100-sxm-80gb"
)
HOPELESS = "/?v=1&model=meta-llama/Llama-3.1-70B&batch=8&seq=8192&gpu=rtx-4090"


def first_lever(page: Page) -> str:
    return page.locator(".st-key-lever_best_0").inner_text()


def test_applying_a_lever_turns_the_verdict(visit):
    """Liger's loss is the first to be named, and with it the plan fits."""
    page = visit(FULL)
    expect(page.locator("h1")).to_contain_text("Does not fit")
    assert "Liger's fused loss" in first_lever(page)

    page.locator(".st-key-apply_best_0 button").first.click()

    expect(page).to_have_url(re.compile("loss=liger"))
    expect(page.locator("h1")).not_to_contain_text("Does not fit")
    expect(page.get_by_text("It fits. These single changes lower the peak further.")).to_be_visible()


def test_back_takes_a_lever_off_and_forward_applies_it_again(visit):
    """One entry of the browser's history for one lever."""
    page = visit(FULL)
    page.locator(".st-key-apply_best_0 button").first.click()
    expect(page).to_have_url(re.compile("loss=liger"))
    settled(page)

    page.go_back()
    expect(page.locator("h1")).to_contain_text("Does not fit")
    page.go_forward()

    expect(page.locator("h1")).not_to_contain_text("Does not fit")
    expect(page).to_have_url(re.compile("loss=liger"))


def test_undo_and_history_bring_scenarios_back(visit):
    """The menu of this visit undoes the last step, and opens any earlier one."""
    page = visit(FULL)
    page.locator(".st-key-apply_best_0 button").first.click()
    expect(page).to_have_url(re.compile("loss=liger"))
    settled(page)
    page.locator(".st-key-batch_exact input").fill("2")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"batch=2\b"))
    settled(page)

    page.get_by_role("button", name="This visit").click()
    page.locator(".st-key-undo button").first.click()

    expect(page.locator(".st-key-batch_exact input").first).to_have_value("8")
    expect(page).to_have_url(re.compile("loss=liger"))
    settled(page)
    page.locator(".st-key-seen_0 button").first.click()
    expect(page.locator("h1")).to_contain_text("Does not fit")


def test_a_plan_that_nothing_single_mends_gets_pairs(visit):
    """Whole 70B on 24 GB: the page says so and names what saves most; the search for a plan finds none of full fine-tuning."""
    page = visit(HOPELESS)

    expect(page.get_by_text(re.compile("Neither one change nor two|Pairs of changes that do"))).to_be_visible()
    assert "GiB" in first_lever(page)
    page.get_by_text("The best plan that fits").click()
    page.get_by_text("Must be full fine-tuning").click()
    expect(page.get_by_text("No plan fits under these constraints.")).to_be_visible()


def test_all_levers_stand_behind_a_click_with_their_chart(visit):
    """The list opens to every single change, drawn by what it saves; what does not help has its reason."""
    page = visit(FULL)

    page.get_by_text(re.compile(r"All single changes \(\d+\)")).click()

    expect(page.locator(".st-key-savings .main-svg").first).to_be_visible()
    page.get_by_text(re.compile(r"Without effect here \(\d+\)")).click()
    expect(page.get_by_text(re.compile("It raises the peak by|No effect: the peak is")).first).to_be_visible()


def test_the_largest_micro_batch_can_be_taken(visit):
    """What the solver found is one click away, and fits."""
    page = visit(FULL)
    box = page.locator(".st-key-solve_batch")
    expect(box).to_be_visible()

    box.get_by_role("button").first.click()

    expect(page).to_have_url(re.compile(r"batch=4\b"))
    expect(page.locator("h1")).not_to_contain_text("Does not fit")


def test_the_best_plan_is_applied_as_one_step(visit):
    """Several settings at once, undone together."""
    page = visit(FULL.replace("&ckpt=full", ""))
    page.get_by_text("The best plan that fits").click()
    button = page.locator(".st-key-plan_apply_0 button").first
    expect(button).to_be_visible()

    button.click()

    expect(page.locator("h1")).not_to_contain_text("Does not fit")
    settled(page)
    page.go_back()
    expect(page.locator("h1")).to_contain_text("Does not fit")


def test_a_lever_can_be_found_and_applied_by_keyboard_alone(visit):
    """Tab from the heading to the first Apply, Enter, and the verdict turns."""
    page = visit(FULL)
    page.locator(".st-key-lever_best_0").wait_for()
    for _ in range(120):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.closest('.st-key-apply_best_0') !== null"):
            break
    else:
        pytest.fail("no Apply button is reached by Tab")

    page.keyboard.press("Enter")

    expect(page.locator("h1")).not_to_contain_text("Does not fit")


def test_levers_are_said_in_korean(visit, chromium):
    """Names, reasons and terms; numbers and option words stay."""
    context = chromium.new_context(viewport={"width": 1280, "height": 800}, locale="ko-KR")
    page = visit(FULL, context=context)

    expect(page.locator(".st-key-lever_best_0")).to_contain_text("Liger 융합 손실")
    expect(page.locator(".st-key-lever_best_0")).to_contain_text("같은 결과")
    context.close()
