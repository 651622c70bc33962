"""Advice: every figure a range with a source, disagreements kept, the rules for batch and start."""

from __future__ import annotations

import math

import pytest

from calc.catalog.guidance import GUIDANCE, advice, rescaled, starting_rate, step_law, warmup_rule
from calc.catalog.sources import SOURCES


@pytest.mark.parametrize("name", GUIDANCE)
def test_each_advice_is_a_range_or_words_with_an_openable_source(name: str) -> None:
    """low ≤ start ≤ high, or none of them; a sentence; a link."""
    row = GUIDANCE[name]
    if row.start is not None:
        assert row.low is not None
        assert row.high is not None
        assert row.low <= row.start <= row.high
        assert row.unit
    assert row.text.endswith(".")
    assert SOURCES[row.source].url.startswith("https://")


def test_the_seeds_advice_is_there() -> None:
    """Search 1e-3 to 1e-6 from 1e-4; warmup 5 and 10 %; constant not recommended; optimizers in order; LOMO's rates."""
    search = GUIDANCE["any-devocean"]
    assert (1e-6, 1e-4, 1e-3) == (search.low, search.start, search.high)
    assert [0.05, 0.1] == [GUIDANCE[f"warmup-devocean-{size}"].start for size in ("small", "large")]
    assert "constant is not recommended" in GUIDANCE["schedule-devocean"].text
    assert "AdamW if memory allows, then adamw_8bit, then paged_adamw_8bit" in GUIDANCE["optimizer-devocean"].text
    assert "Adafactor may be unstable" in GUIDANCE["optimizer-devocean"].text
    assert "Plain AdamW with LoRA" in GUIDANCE["optimizer-lora"].text
    assert "bf16 rather than fp16" in GUIDANCE["precision-devocean"].text
    assert [0.03, 0.005] == [GUIDANCE[f"lomo-{method}"].start for method in ("full", "lora")]


def test_disagreeing_sources_are_both_shown() -> None:
    """On constant schedules, and on LoRA's rate for DPO, where recipes are a hundredfold apart."""
    schedules = [row.id for row in advice("schedule", method="qlora", parameters=7e9)]
    assert {"schedule-devocean", "schedule-qlora"} <= set(schedules)
    rates = [row.start for row in advice("learning rate", method="lora", parameters=7e9, objective="dpo") if row.start]
    assert {5e-6, 5e-4} <= set(rates)


def test_advice_is_for_the_size_method_and_optimizer_asked_about() -> None:
    """A 70B full run is not told of 7B recipes, QLoRA hears of LoRA, LOMO's rates are for LOMO."""
    large = {row.id for row in advice("learning rate", method="full", parameters=70e9)}
    assert "full-tulu3-70b" in large
    assert "full-alpaca" not in large
    quantised = {row.id for row in advice("learning rate", method="qlora", parameters=7e9)}
    assert {"qlora-small", "lora-unsloth"} <= quantised
    assert "lomo-full" not in {row.id for row in advice("learning rate", method="full", parameters=7e9)}
    assert "lomo-full" in {row.id for row in advice("learning rate", method="full", parameters=7e9, optimizer="lomo")}


@pytest.mark.parametrize(
    ("method", "size", "objective", "rate"),
    [
        ("full", 1.5e9, "sft", 2e-5),
        ("full", 7e9, "sft", 1e-5),
        ("full", 70e9, "sft", 5e-6),
        ("lora", 8e9, "sft", 2e-4),
        ("qlora", 70e9, "sft", 1e-4),
        ("full", 7e9, "dpo", 5e-7),
        ("qlora", 7e9, "dpo", 5e-6),
    ],
)
def test_the_starting_rule_has_a_grid_of_thirds(method: str, size: float, objective: str, rate: float) -> None:
    """A third, one and three times the start."""
    row = starting_rate(method=method, parameters=size, objective=objective)  # type: ignore[arg-type]
    assert (rate, pytest.approx(rate / 3), pytest.approx(3 * rate)) == (row.start, row.low, row.high)


def test_the_starting_rule_says_where_it_does_not_speak() -> None:
    """Reinforcement has recipes but no rule."""
    with pytest.raises(LookupError, match="no starting rule for rl"):
        starting_rate(method="lora", parameters=8e9, objective="rl")


def test_three_rules_for_another_batch() -> None:
    """From 16 to 64: four times, twice, and by the surge rule up to the noise batch and down past it."""
    rules = {row.rule: row.rate for row in rescaled(1e-4, batch=16, new_batch=64, noise_batch=64)}
    assert {"linear": 4e-4, "square root": 2e-4, "surge": pytest.approx(1e-4 * 2.5 / 2)} == rules
    past = rescaled(1e-4, batch=64, new_batch=1024, noise_batch=64)[2].rate
    assert 1e-4 > past
    assert 2 == len(rescaled(1e-4, batch=16, new_batch=64))


def test_the_warmup_rule_is_three_percent_within_bounds() -> None:
    """Ten steps at least, a tenth of the run at most."""
    assert [2, 10, 18, 300] == [warmup_rule(steps) for steps in (20, 100, 584, 10_000)]


def test_step_law_gives_its_published_values() -> None:
    """N = 3.65e9, D = 10e9: 3.2e-4; N = 0.44e9: 1.4e-3."""
    assert 3.2e-4 == pytest.approx(step_law(parameters=3.65e9, tokens=10e9)[0], rel=0.05)
    assert 1.4e-3 == pytest.approx(step_law(parameters=0.44e9, tokens=10e9)[0], rel=0.05)
    assert math.isfinite(step_law(parameters=1e9, tokens=1e9)[1])
