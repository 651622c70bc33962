"""The Schedule page as a visitor uses it, compared with the library's own values."""

from __future__ import annotations

import csv
import io
import re
from typing import Any

import pytest
from conftest import settled
from playwright.sync_api import Page, expect

from calc.schedule.answer import answer

RUN = "model=meta-llama/Llama-3.2-1B&batch=8&accum=2&ckpt=full"
FOUR = (
    "curve=cosine/0.0002/0.03&curve2=linear/0.0002/10"
    "&curve3=warmup_stable_decay/0.0002/0.03/num_decay_steps:40&curve4=axolotl-rex/0.0001/0.05"
)
LINK = f"/schedule?v=1&{RUN}&run=samples:1000,epochs:3&{FOUR}"
SCHEDULE: dict[str, Any] = {
    "num_samples": 1000,
    "num_train_epochs": 3,
    "per_device_train_batch_size": 8,
    "gradient_accumulation_steps": 2,
}
CURVES: list[dict[str, Any]] = [
    {"type": "cosine", "learning_rate": 2e-4, "warmup_steps": 0.03},
    {"type": "linear", "learning_rate": 2e-4, "warmup_steps": 10},
    {"type": "warmup_stable_decay", "learning_rate": 2e-4, "warmup_steps": 0.03, "kwargs": {"num_decay_steps": 40}},
    {"type": "axolotl-rex", "learning_rate": 1e-4, "warmup_steps": 0.05},
]


def theirs(**changed: Any) -> list[list[list[float]]]:
    return [answer({"schedule": SCHEDULE | curve | changed})["learning_rates"] for curve in CURVES]


def metric(page: Page, place: int) -> str:
    return page.locator(".figure").nth(place).inner_text()


def drawn(page: Page) -> dict[str, list[tuple[float, float]]]:
    """Points of each curve on the chart, joints left out."""
    plot = page.locator(".st-key-rates .js-plotly-plot")
    expect(plot).to_have_count(1)  # the old one stays until the new one is there
    plot.wait_for()
    lines = plot.evaluate(
        "e => e.data.filter(d => d.hoverinfo !== 'skip').map(d => [d.name, Array.from(d.x), Array.from(d.y)])"
    )
    found: dict[str, list[tuple[float, float]]] = {}
    for name, xs, ys in lines:
        found.setdefault(name, []).extend(zip(xs, ys, strict=True))
    return found


def fill(page: Page, key: str, text: str) -> None:
    box = page.locator(f".st-key-{key} input").first
    box.fill(text)
    box.press("Enter")
    settled(page)


def test_the_page_opens_with_steps_curves_and_a_sentence(visit):
    """KoAlpaca's 21,200 samples, cosine and linear, before anything is asked."""
    page = visit("/schedule")

    expect(page.locator("h1")).to_contain_text("Cosine: 63,600 steps, 1,908 of warmup")
    assert "63,600" == metric(page, 0)
    assert 2 == len(drawn(page))


def test_dataset_and_cards_change_steps_and_curve(visit):
    """Twice the samples are twice the steps; two cards halve them; the curve ends where the run does."""
    page = visit(f"/schedule?v=1&{RUN}&run=samples:1000,epochs:3")
    assert "189" == metric(page, 0)
    before = drawn(page)

    fill(page, "run_samples", "2000")
    expect(page.locator(".figure").first).to_have_text("375")
    expect(page).to_have_url(re.compile("run=samples(:|%3A)2000"))
    fill(page, "gpus", "2")

    expect(page.locator(".figure").first).to_have_text("189")
    after = drawn(page)
    assert {189.0} == {points[-1][0] for points in before.values()}
    assert {189.0} == {points[-1][0] for points in after.values()}
    fill(page, "run_epochs", "1")
    expect(page.locator("h1")).to_contain_text("63 steps")
    page.wait_for_function(
        "() => document.querySelector('.st-key-rates .js-plotly-plot')?.data.every(d => Math.max(...d.x) <= 63)"
    )


def test_a_shared_link_opens_four_overlaid_curves(visit):
    """Each with its name, every point the library's, and the address as it was."""
    page = visit(LINK)

    curves = drawn(page)

    assert 4 == len(curves)
    for (name, points), rates in zip(curves.items(), theirs(), strict=True):
        by_step = {step + 1: rate for step, rate in rates}
        assert 189 == len(points), name
        assert all(by_step[int(step)] == pytest.approx(rate, rel=1e-12) for step, rate in points)
    for words in ("curve=cosine", "curve2=linear", "curve3=warmup_stable_decay", "curve4=axolotl-rex"):
        assert words in page.url
    expect(page.locator(".st-key-curve3_kwargs input")).to_have_value("num_decay_steps:40")


def test_the_csv_is_the_librarys_values(visit):
    """Every step and all four curves, to the last bit."""
    page = visit(LINK)
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Curves as CSV").click()
    with open(waiting.value.path(), newline="") as file:
        rows = list(csv.reader(io.StringIO(file.read())))

    assert ["step", "epoch", "tokens"] == rows[0][:3]
    assert 189 == len(rows) - 1
    for place, rates in enumerate(theirs()):
        assert [rate for _, rate in rates] == [float(row[3 + place]) for row in rows[1:]]
    assert ["189", "3", str(189 * 16 * 2048)] == rows[-1][:3]


def test_the_framework_changes_the_count(visit):
    """axolotl rounds once over all epochs: 188 steps where Trainer has 189."""
    page = visit(LINK.replace("epochs:3", "epochs:3,framework:axolotl-0.19"))

    expect(page.locator(".figure").first).to_have_text("188")


TRAPPED = {
    "constant/0.0001/0.05": "constant ignores the warmup",
    "polynomial/0.0001/189": "crashes at scheduler step 189",
    "schedule-free/0.0001/0.03": "33 times the rate",
    "cosine/0.0001/0/num_cycles:1": "num_cycles counts waves here",
    "cosine_with_restarts/0.0001/0": "never restarts",
}


@pytest.mark.parametrize("curve", TRAPPED)
def test_a_trap_is_said_with_its_source(visit, curve):
    """What happens, what to do, and a link to where it was seen."""
    page = visit(f"/schedule?v=1&{RUN}&run=samples:1000,epochs:3&curve={curve}")

    warning = page.locator('[data-testid="stAlert"]').filter(has_text=TRAPPED[curve])
    expect(warning).to_be_visible()
    assert warning.get_by_role("link", name="source").get_attribute("href").startswith("https://")


def test_a_prepared_scheduler_and_a_resumed_run_are_warned_about(visit):
    """Four processes end the curve at a quarter; resuming with another length jumps."""
    page = visit(LINK.replace("epochs:3", "epochs:3,prepared:4"))
    expect(page.get_by_text("over after step 48 of 189").first).to_be_visible()

    page = visit(LINK)
    box = page.get_by_label("Resumed with epochs")
    box.fill("6")
    box.press("Enter")

    expect(page.get_by_text("still runs at the saved")).to_be_visible()


def test_a_curve_is_added_changed_and_removed(visit):
    """The boxes, the chart and the address go together."""
    page = visit(f"/schedule?v=1&{RUN}&run=samples:1000,epochs:3&curve=cosine/0.0002/0.03")
    page.get_by_role("button", name="Add a curve").click()
    expect(page.locator(".st-key-curve2_learning_rate input")).to_be_visible()

    fill(page, "curve2_learning_rate", "1e-3")
    expect(page).to_have_url(re.compile(r"curve2=linear/0.001/0.03|curve2=linear%2F0.001%2F0.03"))
    fill(page, "curve2_learning_rate", "fast")
    expect(page.get_by_text("'fast' was left out")).to_be_visible()
    expect(page.locator(".st-key-curve2_learning_rate input")).to_have_value("0.001")
    page.locator(".st-key-remove_0 button").click()

    expect(page.locator("h1")).to_contain_text("Linear")
    page.wait_for_function(
        "() => document.querySelector('.st-key-rates .js-plotly-plot').data[0].name.startsWith('linear')"
    )


def test_a_million_steps_are_drawn(visit):
    """Sampled, with the boundaries exact."""
    page = visit(f"/schedule?v=1&{RUN}&run=steps:1000000&curve=warmup_stable_decay/0.0002/12345/num_decay_steps:200001")

    points = next(iter(drawn(page).values()))

    assert len(points) < 600
    assert {1.0, 12345.0, 12346.0, 799999.0, 800000.0, 1000000.0} <= {step for step, _ in points}


def test_the_formula_in_force_is_shown_with_its_numbers(visit):
    """In the table of phases, and worked out at the step that is asked for."""
    page = visit(LINK)
    box = page.get_by_label("Formula at optimizer step")
    box.fill("100")
    box.press("Enter")

    expect(page.get_by_text("p = (99 − 6) / max(1, 189 − 6)").first).to_be_visible()


def test_every_piece_of_guidance_has_a_source_that_opens(visit):
    """A link in every row of every topic."""
    page = visit(LINK)
    for topic in ("Learning rate", "Warmup", "Schedule", "Batch", "Clipping"):
        page.get_by_role("tab", name=topic, exact=True).click()
        rows = page.locator('[role="tabpanel"]:visible tbody tr').filter(has=page.locator("td"))
        expect(rows.first).to_be_visible()
    links = page.locator('[data-testid="stTable"] a')
    assert links.count() > 20
    assert all(href.startswith("https://") for href in links.evaluate_all("all => all.map(a => a.href)"))


HOSTILE = [
    "run=samples:-1,x,,:", "run=steps:1e400", "curve=%3Cscript%3E/1/1", "curve=cosine/inf/nan/num_cycles:1e999",
    "curve4=linear", "curve=" + "x" * 5000, "curve=warmup_stable_decay", "run=samples:1,epochs:0",
    "curve=cosine/1e-4/0/num_cycles:%22", "run=generations:7", "curve=greedy/1e-4/0/metrics:1;2;3",
]  # fmt: skip


@pytest.mark.parametrize("query", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_link_is_answered_calmly(visit, query):
    """No traceback; what cannot be used is said, the rest is drawn."""
    page = visit(f"/schedule?v=1&{RUN}&{query}")

    expect(page.locator("h1")).not_to_be_empty()
