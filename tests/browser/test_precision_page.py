"""The Precision page as a visitor uses it."""

from __future__ import annotations

import re

from conftest import settled
from playwright.sync_api import expect

MISTRAL = "/precision?v=1&model=mistralai/Mistral-7B-v0.1&run=steps:584&curve=linear/2e-06/0"
LLAMA = "/precision?v=1&model=meta-llama/Meta-Llama-3-8B&batch=8&seq=2048"


def test_the_mistral_seed_is_told_what_part_of_the_weights_moves(visit):
    """lr 2e-6, betas (0.9, 0.999), eps 1e-8, weight decay 0.01, 584 steps."""
    page = visit(MISTRAL)

    expect(page.locator("h1")).to_have_text("At 2e-06, a step moves 3.89 % of weights stored in bf16")
    values = page.locator(".figure")
    assert ["3.89 %", "30.4 %", "1.42 %"] == values.all_inner_texts()
    expect(page.get_by_text("584 steps")).to_be_visible()
    expect(page.get_by_text("2^(floor(log2(2e-06)) + 7 + 2)")).to_be_visible()
    alerts = page.locator('[data-testid="stAlert"]')
    expect(alerts.filter(has_text="Weight decay does nothing to bf16 weights")).to_be_visible()
    expect(alerts.filter(has_text="beta2 = 0.999 is 1 in bf16")).to_be_visible()
    expect(alerts.filter(has_text="epsilon = 1e-08 is 0 in fp16")).to_be_visible()


def test_a_higher_rate_moves_more_and_stays_in_the_link(visit):
    """The rate is the Schedule page's first curve."""
    page = visit(MISTRAL)
    box = page.locator(".st-key-curve1_learning_rate input")
    box.fill("1e-3")
    box.press("Enter")

    expect(page.locator("h1")).to_contain_text("100 %")
    expect(page).to_have_url(re.compile(r"curve=linear(/|%2F)0.001(/|%2F)0"))
    settled(page)
    page.get_by_role("link", name="Schedule").click()
    expect(page.locator("h1")).to_contain_text("Linear: 584 steps")


def test_llama_3_8b_in_fp32_fp16_and_bf16(visit):
    """The seeds' table: the same plan in every precision, with every component."""
    page = visit(LLAMA)
    table = page.locator('[data-testid="stTable"]').filter(has_text="fp32 throughout")

    expect(table).to_contain_text("Optimizer states")
    row = table.locator("tr").filter(has_text="fp32 throughout")
    expect(row).to_contain_text("29.92 GiB")
    expect(table.locator("tr").filter(has_text="bf16 throughout")).to_contain_text("14.96 GiB")


def test_formats_say_what_they_can_hold(visit):
    """Largest, smallest and epsilon of each, with a source."""
    page = visit(MISTRAL)
    row = page.locator('[data-testid="stTable"] tr').filter(has_text="float16").filter(has_text="65,504")

    expect(row).to_contain_text("0.000977")
    assert row.get_by_role("link", name="source").get_attribute("href").startswith("https://")


def test_a_card_without_bf16_is_warned_about(visit):
    """T4 accepts bf16=True and emulates it."""
    page = visit(MISTRAL + "&gpu=t4")

    expect(page.locator('[data-testid="stAlert"]').filter(has_text="T4 has no bf16 unit")).to_be_visible()


def test_korean_readers_get_korean(visit):
    """The same numbers in other words."""
    page = visit(MISTRAL + "&lang=ko")

    expect(page.locator("h1")).to_contain_text("bf16으로 저장된 가중치의 3.89 %")
