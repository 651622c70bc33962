"""The Optimizers page as a visitor uses it."""

from __future__ import annotations

import re

from playwright.sync_api import expect

MISTRAL = "/optimizers?v=1&model=mistralai/Mistral-7B-v0.1&optim=adamw_torch&batch=1&ckpt=full&gpu=a100-sxm-80gb"


def test_all_optimizers_are_compared_and_the_chosen_one_is_opened(visit):
    """How many fit, the table, the bytes by state tensor and the tree that PyTorch prints."""
    page = visit(MISTRAL)

    expect(page.get_by_text(re.compile(r"\d+ of 53 fit this plan"))).to_be_visible()
    expect(page.get_by_test_id("stDataFrame")).to_be_visible()
    expect(page.locator(".st-key-state_tensors details")).to_have_count(2)
    for word in ("exp_avg_sq", "param_groups", "weight_decay"):
        expect(page.locator("code").filter(has_text=word).first).to_be_visible()


def test_a_row_is_opened_and_taken_into_the_plan(visit):
    """Choose the first row of the table, use it, and every page has it."""
    page = visit(MISTRAL)
    table = page.get_by_test_id("stDataFrame").bounding_box()
    page.wait_for_timeout(500)  # the grid paints its cells after it has its size

    page.mouse.click(table["x"] + 16, table["y"] + 50)

    page.get_by_role("button", name=re.compile("^Use ")).click()

    expect(page).not_to_have_url(re.compile("optim=adamw_torch&"))
    expect(page.get_by_text("The plan uses this one.")).to_be_visible()
