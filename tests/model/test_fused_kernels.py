"""What fused kernels keep of a block, and where they write: closed forms worked out from the libraries' own text."""

from __future__ import annotations

from typing import Any

import pytest

from calc.catalog.kernels import KERNELS
from calc.memory.step import Step, run
from calc.model import architecture
from calc.model.recipe import Adapters, QuantizedBase, Recipe

B, S, H, K, D, HIDDEN, INNER, RANK = 2, 96, 6, 2, 40, 360, 616, 8
N, Q, KV = B * S, H * D, K * D


def step(model_type: str = "llama", layers: int = 3, more: dict[str, Any] | None = None, **given: Any) -> Step:
    """A small step; sizes pairwise distinct, so that no two terms can stand for each other."""
    config = {
        "model_type": model_type, "vocab_size": 500, "hidden_size": HIDDEN, "intermediate_size": INNER, "num_hidden_layers": layers,
        "num_attention_heads": H, "num_key_value_heads": K, "head_dim": D, **(more or {}),
    }  # fmt: skip
    return run(architecture(config), Recipe(**{"batch": B, "length": S, **given}))


def kept_by_a_layer(**given: Any) -> int:
    """Bytes that each further layer keeps for the backward pass."""
    return step(layers=4, **given).live.total - step(layers=3, **given).live.total


def test_liger_keeps_no_normalised_or_rotated_copies() -> None:
    """Norms keep their input as it is and 4 bytes a row; the rotation is in place; of the gated product only its factors are kept."""
    norms = 2 * (2 * HIDDEN + 4) + 2 * (2 * HIDDEN)  # the stream twice, and what goes into the products
    attention = 2 * Q + 4 * KV + 2 * Q + 4 * H
    gated = 3 * 2 * INNER

    assert N * (norms + attention + gated) + 24 == kept_by_a_layer(kernels=KERNELS["liger"])


def test_foak_replaces_norms_and_rotation_only() -> None:
    """The feed-forward keeps the activated gate as well."""
    liger, foak = kept_by_a_layer(kernels=KERNELS["liger"]), kept_by_a_layer(kernels=KERNELS["foak"])

    assert 2 * INNER * N == foak - liger


def test_foak_does_not_train_norms() -> None:
    """Its backward makes no gradient of their weights, so no optimizer state ever exists for them."""
    assert not [p for p in step(kernels=KERNELS["foak"]).parameters if p.role == "norm" and p.trainable]
    assert not [p for p in step(kernels=KERNELS["liger"]).parameters if not p.trainable]


def test_kernels_never_need_more_than_the_plain_operations() -> None:
    """At any instant."""
    plain = step()
    for name in ("liger", "foak"):
        fused = step(kernels=KERNELS[name])
        for instant in ("forward", "live", "loss", "backward"):
            assert getattr(fused, instant).total <= getattr(plain, instant).total


@pytest.mark.parametrize(("dropout", "copies"), [(0.0, 0), (0.1, 3)])
def test_fused_adapters_keep_the_input_and_each_dropped_copy_of_it(dropout: float, copies: int) -> None:
    """q, k and v are one function; without dropout they share the input that the norm made."""
    given = {
        "quantized": QuantizedBase("nf4"), "autocast": "bf16", "kernels": KERNELS["foak"],
        "adapters": Adapters(RANK, ("q_proj", "k_proj", "v_proj"), dropout),
    }  # fmt: skip
    frozen_norm, second_norm = 2 * HIDDEN + 4, 2 * HIDDEN + 4
    attention = 2 * Q + 4 * KV + 2 * Q + 4 * H
    expected = N * (frozen_norm + 2 * HIDDEN * (1 + copies) + attention + second_norm + 3 * 2 * INNER) + 24

    # Neither the output projection's base nor the feed-forward's keeps an input: they are frozen.
    assert expected == kept_by_a_layer(**given)


def test_experts_of_transformers_4_are_linear_layers() -> None:
    """So a 4-bit base quantises them and the router, and all-linear finds them."""
    more = {"num_local_experts": 4, "num_experts_per_tok": 2}
    given = {"quantized": QuantizedBase("nf4"), "autocast": "bf16", "adapters": Adapters(RANK, "all-linear")}
    old = step("mixtral", more=more, grouped_experts=False, **given)
    new = step("mixtral", more=more, **given)

    def weights(of: Step) -> int:
        return sum(p.numel * p.count for p in of.parameters if p.role != "adapter")

    assert weights(old) == weights(new)
    assert not [p for p in old.parameters if p.role in ("expert", "router")]
    assert {"nf4", "bf16", "fp32"} == {p.dtype for p in old.parameters}
    assert 3 * 4 == len([p for p in old.parameters if ".w1." in p.name])  # base, A and B of each expert


def test_few_key_heads_are_repeated_where_a_class_did_so() -> None:
    """Flash-attention 2 of Mistral in transformers 4.44, not of Llama."""
    given = {"attention": "flash_attention_2", "flash_repeats": ("mistral",)}
    llama, mistral = (
        kept_by_a_layer(**given),
        kept_by_a_layer(model_type="mistral", more={"sliding_window": None}, **given),
    )

    assert 2 * N * 2 * (Q - KV) == mistral - llama


def test_scratch_of_kernels_is_counted_only_when_asked_for() -> None:
    """As a card holds it: q's gradient in fp32 inside flash attention, the product inside softmax."""
    for attention in ("sdpa", "eager"):
        plain, card = step(attention=attention), step(attention=attention, scratch=True)
        assert plain.live == card.live
        assert plain.backward.total <= card.backward.total
    long = [step(layers=1, attention="eager", length=1024, scratch=counted).backward.total for counted in (False, True)]
    assert 4 * B * H * 1024 * 1024 == long[1] - long[0]
