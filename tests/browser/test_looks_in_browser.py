"""What every page owes everyone: screen readers, both themes, a phone's width, both languages."""

from __future__ import annotations

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from conftest import DESKTOP, PHONE, settled
from playwright.sync_api import expect

from pages.parts.frame import PAGES

ANDROID = "Mozilla/5.0 (Linux; Android 16) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/150.0.0.0 Mobile Safari/537.36"
PATHS = [f"/{'' if entry is PAGES[0] else entry.id}" for entry in PAGES]


@pytest.fixture(scope="module", params=["light", "dark"])
def themed(request, chromium):
    context = chromium.new_context(viewport=DESKTOP, locale="en-US", color_scheme=request.param)
    yield context
    context.close()


@pytest.fixture(scope="module")
def phone(chromium):
    context = chromium.new_context(viewport=PHONE, locale="en-US", is_mobile=True, has_touch=True, user_agent=ANDROID)
    yield context
    context.close()


@pytest.mark.parametrize("path", PATHS)
def test_axe_finds_nothing(visit, themed, path):
    """Zero violations, on every page, in both themes."""
    page = visit(path, context=themed)
    page.wait_for_timeout(400)

    found = Axe().run(page).response["violations"]

    assert [] == [(one["id"], [node["html"][:120] for node in one["nodes"]][:3]) for one in found]


@pytest.mark.parametrize("path", PATHS)
def test_a_phone_needs_no_sideways_scroll_and_keeps_the_verdict(visit, phone, path):
    """390 px wide: the answer stands at the bottom while one turns the controls at the top."""
    page = visit(path, context=phone)

    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    expect(page.locator(".st-key-bottom_verdict")).to_be_in_viewport()
    page.mouse.wheel(0, 900)
    expect(page.locator(".st-key-bottom_verdict")).to_be_in_viewport()


def test_a_desktop_shows_the_verdict_without_scrolling(visit):
    """1280 x 800: heading, figures and the load chart are on the first screen."""
    page = visit("/")

    for seen in ("h1", ".figure >> nth=3", ".st-key-load .main-svg >> nth=0"):
        expect(page.locator(seen)).to_be_in_viewport(ratio=1)


def test_a_korean_browser_is_answered_in_korean_and_may_change(visit, chromium):
    """Numbers, option words and links stay the same; the choice is in the address only where it differs."""
    context = chromium.new_context(viewport=DESKTOP, locale="ko-KR")
    page = visit("/", context=context)
    expect(page.locator("h1")).to_contain_text("들어가지 않습니다")
    expect(page.locator("html")).to_have_attribute("lang", "ko")
    settled(page)
    figures = page.locator(".figure").all_inner_texts()[:4]

    page.get_by_role("button", name="English").click()

    expect(page.locator("h1")).to_contain_text("Does not fit")
    expect(page).to_have_url(re.compile("lang=en"))
    settled(page)
    assert figures == page.locator(".figure").all_inner_texts()[:4]


def test_the_theme_can_be_turned_over(visit, chromium):
    """Light or dark is a button, holds on every page and loses nothing."""
    context = chromium.new_context(viewport=DESKTOP, locale="en-US", color_scheme="light")
    page = visit("/?v=1&model=google/gemma-2b&batch=3", context=context)
    colour = "getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor"
    light = page.evaluate(colour)

    page.get_by_role("button", name="Light or dark").click()
    page.wait_for_function(f"{colour} !== '{light}'")

    settled(page)
    expect(page.locator(".st-key-batch_exact input")).to_have_value("3")
    other = visit("/optimizers", context=context)
    assert light != other.evaluate(colour)
