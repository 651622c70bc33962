"""What PEFT does with adapters on a mixture of experts whose experts are bare parameters."""

from __future__ import annotations

import pytest

from calc import Scenario, estimate
from calc.memory.problems import Refused

MIXTRAL = {
    "model_type": "mixtral", "num_hidden_layers": 2, "hidden_size": 64, "intermediate_size": 96, "vocab_size": 1000,
    "num_attention_heads": 4, "num_key_value_heads": 2,
}  # fmt: skip


def asked(**lora: object) -> Scenario:
    """A small mixture with adapters."""
    return Scenario.model_validate({"model": {"config": MIXTRAL}, "plan": {"method": "lora", "lora": lora}})


def test_all_linear_means_the_experts_too_and_says_so() -> None:
    """The experts' adapters are most of what is trained; the attention's layers alone leave the experts as they are."""
    everything, attention = estimate(asked()), estimate(asked(target_modules="attention"))
    assert [problem.code for problem in everything.problems] == ["adapted_experts"]
    assert attention.problems == ()
    assert everything.parameters.trainable > 10 * attention.parameters.trainable


@pytest.mark.parametrize(
    ("lora", "code"),
    [
        ({"dropout": 0.1}, "parameter_adapters"),
        ({"use_dora": True}, "parameter_adapters"),
        ({"target_modules": ("w1", "q_proj")}, "half_of_a_pair"),
    ],
)
def test_what_peft_refuses_is_refused(lora: dict[str, object], code: str) -> None:
    """Dropout and DoRA on a parameter, and half of two layers that became one parameter."""
    with pytest.raises(Refused) as refused:
        estimate(asked(**lora))
    assert refused.value.code == code


def test_older_releases_adapt_each_expert_s_layers() -> None:
    """Before version 5 an expert is a module of linear layers, each with an adapter of its own and none twice as wide."""
    plan = {"method": "lora", "framework": "transformers-4.57"}
    older = estimate(Scenario.model_validate({"model": {"config": MIXTRAL}, "plan": plan}))
    assert older.problems == ()
    experts, rank, hidden, wide = 8, 8, 64, 96
    attention = estimate(asked(target_modules="attention")).parameters.trainable
    router = 2 * rank * (hidden + experts)
    assert older.parameters.trainable == attention + router + 2 * experts * 3 * rank * (hidden + wide)


@pytest.mark.parametrize("method", ["full", "lora"])
def test_a_token_passes_as_many_parameters_in_every_release(method: str) -> None:
    """Two of eight experts in each layer, whether they lie in one parameter or are layers of their own."""
    found = {
        estimate(
            Scenario.model_validate({"model": {"config": MIXTRAL}, "plan": {"method": method, "framework": framework}})
        ).parameters.active
        for framework in ("transformers-4.44", "transformers-4.57", "transformers-5.24")
    }
    layers, experts, chosen, hidden, wide = 2, 8, 2, 64, 96
    total = estimate(asked()).parameters.total
    assert found == {total - layers * (experts - chosen) * 3 * hidden * wide}
