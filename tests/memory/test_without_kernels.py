"""Types whose layers real runs often leave to the kernels of a package: the answer says that it is of the path without them."""

from __future__ import annotations

import pytest

from calc import Scenario, estimate
from calc.model import families

WITH_PACKAGES = sorted(model_type for model_type, family in families().items() if family.packages)


@pytest.mark.parametrize("model_type", WITH_PACKAGES)
def test_the_answer_says_that_it_is_of_the_path_without_kernels(model_type: str) -> None:
    """It names the packages, and lets the plan run all the same."""
    family = families()[model_type]
    asked = {
        "model": {"config": {"model_type": model_type, **NEEDED.get(model_type, {})}},
        "plan": {"seq_len": 64, "attention": "eager"},
    }
    (note,) = [p for p in estimate(Scenario.model_validate(asked)).problems if p.code == "without_kernels"]
    assert not note.blocking
    assert all(package in note.message for package in family.packages)
    assert family.types[model_type] in note.message


NEEDED = {"lfm2_moe": {"num_hidden_layers": 2, "layer_types": ["conv", "full_attention"]}}
"""Fields without which a type's class makes no model."""
