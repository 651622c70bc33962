"""Scenarios side by side: the differences sum to the difference, and four of them travel in one link."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, get_args
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import settings as profile
from hypothesis import strategies as st
from plannable import scenarios

from calc import Scenario, estimate, link
from calc import scenario as kinds
from calc.catalog.frameworks import FRAMEWORKS
from calc.catalog.gpus import GPUS
from calc.catalog.models import MODELS
from calc.catalog.optimizers import OPTIMIZERS
from calc.planner.comparison import LONGEST, differences, pinned, pinned_text, settings
from calc.units import Bytes


def whole(first: Scenario, others: tuple[Scenario, ...]) -> str:
    """The query string of a scenario with others pinned beside it."""
    return link.encoded(link.params(first) | {"pins": pinned_text(others)})


def test_the_differences_sum_to_the_difference_of_the_peaks() -> None:
    """Each line with what it was and is; what is the same in both is left out."""
    for (a, _), (b, _) in pairwise(scenarios()[:20]):
        before, after = estimate(a), estimate(b)

        found = differences(before, after)

        assert after.peak.allocated - before.peak.allocated == sum((one.change for one in found), Bytes(0))
        assert all(one.change for one in found)
        sizes = [abs(int(one.change)) for one in found]
        assert sorted(sizes, reverse=True) == sizes
        assert () == differences(before, before)


def test_the_settings_that_differ_are_named_with_both_values() -> None:
    """Also those that one of the methods does not have."""
    before = Scenario.model_validate({"model": "a", "plan": {"method": "full", "seq_len": 512}})
    after = Scenario.model_validate({"model": "a", "plan": {"method": "lora", "seq_len": 1024, "lora": {"rank": 4}}})

    found = {one.path: (one.before, one.after) for one in settings(before, after)}

    assert ("full", "lora") == found["plan.method"]
    assert (512, 1024) == found["plan.seq_len"]
    assert (None, 4) == found["plan.lora.rank"]
    assert "plan.loss" not in found


def words(kind: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from(get_args(kind))


PLANS = st.fixed_dictionaries(
    {
        "method": st.just("qlora"),
        "precision": words(kinds.Precision),
        "optimizer": st.sampled_from(list(OPTIMIZERS)),
        "micro_batch_size": st.integers(1, 65536),
        "seq_len": st.integers(1, 16_777_216),
        "gradient_accumulation_steps": st.integers(1, 1_000_000),
        "gradient_checkpointing": words(kinds.Checkpointing),
        "attention": words(kinds.Attention),
        "loss": words(kinds.Loss),
        "kernels": words(kinds.Kernels),
        "padded": st.booleans(),
        "framework": st.sampled_from(list(FRAMEWORKS)),
        "lora": st.fixed_dictionaries(
            {
                "rank": st.integers(1, 4096),
                "alpha": st.sampled_from([1, 16, 32.5]),
                "dropout": st.sampled_from([0.0, 0.05]),
                "target_modules": st.sampled_from(
                    [
                        "all-linear",
                        "attention",
                        ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"),
                    ]
                ),
                "modules_to_save": st.sampled_from([(), ("embed_tokens", "lm_head")]),
                "adapter_dtype": words(kinds.AdapterDType),
                "use_dora": st.booleans(),
            }
        ),
        "quantization": st.fixed_dictionaries(
            {
                "format": words(kinds.QuantizedFormat),
                "double_quant": st.booleans(),
                "upcast_for_training": st.booleans(),
            }
        ),
    }
)
SCENARIOS = st.builds(
    lambda model, plan, gpu, number: Scenario.model_validate(
        {"model": model, "plan": plan, "hardware": {"gpu": gpu, "num_gpus": number}}
    ),
    st.sampled_from(sorted(MODELS)),
    PLANS,
    st.sampled_from(list(GPUS)),
    st.integers(1, 65536),
)


@profile(max_examples=100, deadline=None)
@given(first=SCENARIOS, others=st.lists(SCENARIOS, min_size=3, max_size=3))
def test_four_scenarios_travel_in_one_short_link(first: Scenario, others: list[Scenario]) -> None:
    """Under 2,000 characters with almost every setting off its default, and the same when opened."""
    query = whole(first, tuple(others))

    assert len(query) < 2000
    values = dict(parse_qsl(query, keep_blank_values=True))
    assert (tuple(others), ()) == pinned(values.pop("pins"))
    assert (first, ()) == link.scenario(link.encoded(values))


def test_a_link_of_plain_scenarios_stays_readable() -> None:
    """Nothing is packed while it is short; signs of a query string are written as others that need no escape."""
    text = pinned_text([scenario for scenario, _ in scenarios()[:3]])

    assert len(text) < LONGEST
    assert text.startswith("v:1,model:")
    assert text.count(",,v:1,model:") == 2
    assert "%" not in link.encoded({"pins": text})


@pytest.mark.parametrize("name", ["~", ":,", "a~3Ab", "%41", "q_proj,", "z/é한", "=&"])
def test_signs_in_names_survive(name: str) -> None:
    """Whatever a layer is called."""
    scenario = Scenario.model_validate(
        {"model": "x/y", "plan": {"method": "lora", "lora": {"target_modules": [name, "b"]}}}
    )

    assert ((scenario, scenario), ()) == pinned(pinned_text([scenario, scenario]))


@pytest.mark.parametrize("text", ["z/", "z/AAAA", "z/!!", ",,", "~", "v:1,,x:2", "~ff~fe", "z/" + "A" * 5000])
def test_damaged_pins_never_fail(text: str) -> None:
    """What cannot be read is said; nothing more than three scenarios comes of it."""
    found, problems = pinned(text)

    assert len(found) <= 3
    assert all(problem.message and not problem.blocking for problem in problems)
