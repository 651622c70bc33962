"""A shared link opens the same curves."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calc.schedule.kinds import SCHEDULES
from calc.schedule.link import CURVES, Curve, Drawn, Length, options, options_text, plan, read, written
from calc.schedule.plan import Planned

numbers = st.one_of(st.integers(-(10**6), 10**6), st.floats(-1e6, 1e6).map(float))
words = st.text("abcdefgh-", min_size=2, max_size=8).filter(lambda word: word[0] != "-")
kwargs = st.dictionaries(
    st.text("abcdef_", min_size=1, max_size=10),
    st.one_of(numbers, st.booleans(), words, st.lists(st.floats(0, 10), min_size=2, max_size=4)),
    max_size=4,
)
curves = st.builds(
    Curve,
    type=st.sampled_from(list(SCHEDULES)),
    learning_rate=st.floats(1e-9, 999),
    warmup=st.one_of(st.integers(0, 10**6), st.floats(0, 0.999)),
    kwargs=kwargs,
)
lengths = st.builds(
    Length,
    samples=st.integers(1, 10**9),
    epochs=st.floats(0, 1000),
    steps=st.integers(0, 10**9),
    drop=st.booleans(),
    framework=st.sampled_from(["", "axolotl-0.19", "transformers-4.51"]),
    prepared=st.integers(1, 64),
    generations=st.integers(0, 64),
)


@settings(max_examples=40, deadline=None)
@given(st.builds(Drawn, length=lengths, curves=st.lists(curves, min_size=1, max_size=4).map(tuple)))
def test_what_is_written_is_read_back(drawn: Drawn) -> None:
    """Every curve, option and length survives the link."""
    assert (drawn, ()) == read(written(drawn, Drawn()), Drawn())


def test_the_default_writes_nothing() -> None:
    """A bare link stays bare."""
    assert {} == written(Drawn(), Drawn())


def test_a_link_of_four_curves_is_readable() -> None:
    """The words are the field's."""
    link = {
        "run": "samples:1000,epochs:1",
        "curve": "cosine/0.0002/0.03",
        "curve2": "linear/0.0002/10",
        "curve3": "warmup_stable_decay/0.0002/0.03/num_decay_steps:20",
        "curve4": "constant/0.0001/0",
    }
    drawn, problems = read(link, Drawn())
    assert () == problems
    assert (1000, 1.0) == (drawn.length.samples, drawn.length.epochs)
    assert ["cosine", "linear", "warmup_stable_decay", "constant"] == [curve.type for curve in drawn.curves]
    assert {"num_decay_steps": 20} == drawn.curves[2].kwargs
    assert link == written(drawn, Drawn())


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(st.sampled_from(["run", *CURVES]), st.text(max_size=500)))
def test_hostile_links_are_reported_not_raised(values: dict[str, str]) -> None:
    """Whatever stands in the keys, something is drawn."""
    drawn, _ = read(values, Drawn())
    assert 1 <= len(drawn.curves) <= 4


def test_what_cannot_be_used_is_said() -> None:
    """The key, the text and the reason; the rest is kept."""
    drawn, problems = read(
        {"run": "samples:-5,epochs:2,x:1", "curve": "cosin/1e-4", "curve2": "linear/1e-4/0"}, Drawn()
    )
    assert (21_200, 2.0) == (drawn.length.samples, drawn.length.epochs)
    assert ["linear"] == [curve.type for curve in drawn.curves]
    assert 3 == len(problems)
    assert "run=samples:-5 was left out" in problems[0]
    assert "did you mean cosine" in problems[2]


def test_options_are_typed_as_they_look() -> None:
    """Numbers, flags, words, lists; an equals sign is taken for a colon."""
    assert {"a": 2, "b": 1e-6, "c": True, "d": "1-sqrt", "e": [1.0, 0.5]} == options(
        "a=2, b:1e-6, c:true,d:1-sqrt,e:1;0.5"
    )
    assert "a:2,c:true" == options_text({"a": 2, "c": True})
    with pytest.raises(ValueError, match="name:value"):
        options("num_cycles")


def test_a_share_of_warmup_is_given_as_the_version_takes_it() -> None:
    """warmup_steps=0.03 from 5.0, warmup_ratio=0.03 before and in axolotl: 13, 13 and 12 steps of 417."""
    counted = {}
    for framework in ("transformers-5.24", "transformers-4.57", "axolotl-0.19"):
        made = plan(Length(samples=417, epochs=1), Curve(), batch=1, accumulation=1, ranks=1, framework=framework)
        counted[framework] = Planned(made).warmup.value
    assert {"transformers-5.24": 13, "transformers-4.57": 13, "axolotl-0.19": 12} == counted
