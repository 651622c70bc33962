"""What each loss kernel makes of the logits, in each framework version: bytes per vocabulary entry, from the libraries' own text."""

from __future__ import annotations

from typing import Any

import pytest

from calc import Refused, Scenario, estimate
from calc.autograd.fused import chunk_of, power_of_two
from calc.memory.breakdown import Breakdown

BATCH, LENGTH = 3, 64
TOKENS, SHIFTED = BATCH * LENGTH, BATCH * (LENGTH - 1)
WIDE, NARROW = 40_000, 30_000


def answer(vocab_size: int, model_type: str = "llama", **plan: Any) -> Breakdown:
    """A model that is nearly all vocabulary, with adapters, so that no gradient or state grows with it."""
    config = {
        "model_type": model_type, "vocab_size": vocab_size, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 1,
        "num_attention_heads": 4, "num_key_value_heads": 4,
    }  # fmt: skip
    lora = {"target_modules": ["q_proj"], "rank": 1}
    usual = {"method": "lora", "lora": lora, "micro_batch_size": BATCH, "seq_len": LENGTH, "precision": "bf16"}
    return estimate(Scenario.model_validate({"model": {"config": config}, "plan": {**usual, **plan}}))


def per_entry(instant: str, **plan: Any) -> float:
    """Bytes at an instant for each further vocabulary entry, weights left out."""
    sizes = []
    for vocab_size in (WIDE, NARROW):
        at = next(i for i in answer(vocab_size, **plan).instants if i.name == instant)
        sizes.append(sum(int(line.bytes) for line in at.lines if line.component != "weights"))
    return (sizes[0] - sizes[1]) / (WIDE - NARROW)


@pytest.mark.parametrize(
    ("plan", "forward"),
    [
        ({"framework": "transformers-4.44"}, 4 * TOKENS + 8 * SHIFTED),
        ({"framework": "transformers-4.48"}, 6 * TOKENS + 8 * SHIFTED),
        ({"framework": "transformers-4.51"}, 10 * TOKENS),
        ({"framework": "transformers-5.24"}, 10 * TOKENS),
        ({"framework": "transformers-4.44", "kernels": "foak", "loss": "triton"}, 4 * TOKENS + 4 * SHIFTED),
        ({"framework": "transformers-4.48", "kernels": "foak", "loss": "triton"}, 6 * TOKENS + 4 * SHIFTED),
        ({"framework": "transformers-5.24", "kernels": "foak", "loss": "triton"}, 6 * TOKENS + 4 * SHIFTED),
        ({"framework": "transformers-5.24", "loss": "triton"}, 6 * TOKENS),
        # Under a trainer's mixed precision the logits are upcast once more on their way out of the model.
        ({"framework": "transformers-5.24", "loss": "triton", "precision": "bf16-autocast"}, 10 * TOKENS),
    ],
    ids=str,
)
def test_the_forward_pass_holds_so_many_bytes_of_logits(plan: dict[str, Any], forward: int) -> None:
    """Casts, copies and the log-softmax, all at once."""
    assert forward == per_entry("forward", **plan)


@pytest.mark.parametrize(
    ("plan", "backward"),
    [
        ({"framework": "transformers-4.44"}, 12 * SHIFTED),
        ({"framework": "transformers-5.24"}, 12 * TOKENS),
        ({"framework": "own-loop"}, 14 * TOKENS),
        ({"framework": "transformers-4.48", "kernels": "foak", "loss": "triton"}, 4 * SHIFTED + 4 * TOKENS),
        ({"framework": "transformers-5.24", "loss": "triton"}, 6 * TOKENS),
    ],
    ids=str,
)
def test_the_backward_pass_holds_so_many_bytes_of_logits(plan: dict[str, Any], backward: int) -> None:
    """Gradients are made beside what was kept, or over it; a loop that names its outputs holds those too."""
    assert backward == per_entry("loss", **plan)


def test_a_loop_that_names_its_outputs_holds_the_logits_at_the_step_too() -> None:
    """In the dtype that the model returned them in."""
    assert 2 * TOKENS == per_entry("optimizer step", framework="own-loop")
    assert 0 == per_entry("optimizer step", framework="transformers-5.24")


@pytest.mark.parametrize(
    "plan", [{"loss": "liger"}, {"loss": "liger", "kernels": "foak", "framework": "transformers-4.44"}], ids=str
)
def test_a_fused_head_never_holds_the_logits_of_all_tokens(plan: dict[str, Any]) -> None:
    """It takes chunks whose logits are about as large as the hidden states, whatever the vocabulary."""
    assert 64 > per_entry("forward", **plan)
    assert 0 == per_entry("loss", **plan)


@pytest.mark.parametrize(
    ("rows", "vocab_size", "hidden_size", "chunk"),
    [(16384, 32000, 4096, 2048), (16380, 128256, 4096, 512), (100, 512, 4096, 100), (1, 32000, 64, 1)],
)
def test_the_fused_head_takes_so_many_tokens_at_once(rows: int, vocab_size: int, hidden_size: int, chunk: int) -> None:
    """The first is the example in Liger's own text."""
    assert chunk == chunk_of(rows, vocab_size, hidden_size)


def test_powers_of_two() -> None:
    """The first that is no smaller."""
    assert [1, 2, 4, 4, 8] == [power_of_two(n) for n in (1, 2, 3, 4, 5)]


def test_the_tiled_loss_holds_one_tile() -> None:
    """Its logits do not grow with the vocabulary."""
    assert 0 == per_entry("forward", loss="chunked")
    assert 0 == per_entry("loss", loss="chunked")


def test_cut_cross_entropy_holds_no_logits() -> None:
    """Each entry of the vocabulary has a mean logit, and in the backward pass those are sorted, whatever the number of tokens."""
    assert 3 < per_entry("forward", loss="cce") <= 4
    assert 4 + 4 + 8 == per_entry("loss", loss="cce")


@pytest.mark.parametrize(
    ("plan", "model_type", "field", "says"),
    [
        ({"kernels": "unsloth"}, "llama", "plan.kernels", "unsloth"),
        ({"kernels": "foak"}, "qwen2", "plan.kernels", "qwen2"),
        ({"kernels": "liger"}, "stablelm", "plan.kernels", "stablelm"),
        ({"loss": "liger"}, "granite", "plan.loss", "granite"),
        ({"loss": "chunked", "framework": "transformers-4.57"}, "llama", "plan.loss", "4.57"),
        ({"loss": "cce", "framework": "transformers-4.57"}, "llama", "plan.framework", "4.57"),
        ({"loss": "cce"}, "granite", "plan.loss", "granite"),
        ({"loss": "cce", "precision": "bf16-mixed"}, "llama", "plan.loss", "16 bits"),
    ],
    ids=str,
)
def test_what_is_not_modelled_is_refused_with_the_field_and_the_reason(
    plan: dict[str, Any], model_type: str, field: str, says: str
) -> None:
    """No kernel or loss is taken for another in silence."""
    with pytest.raises(Refused) as refusal:
        answer(NARROW, model_type, **plan)

    assert field == refusal.value.field
    assert says in refusal.value.message
