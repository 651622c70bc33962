"""Why the Hub's stored total is not the number of parameters."""

from __future__ import annotations

import pytest
from recordings import configurations

from calc.model import ConfigError, UnknownArchitecture
from calc.model.counting import counted
from calc.model.hub_total import explained

TIED = "the head, which is tied to the embeddings, is stored a second time"
MASKS = "causal masks are stored in every layer"
ROTARY = "rotary frequencies are stored in every layer"
BIASES = "the routers' correction biases, which are buffers, are stored"
FURTHER = "layers for tokens further ahead are stored"
FURTHER_WITH_HEAD = "layers for tokens further ahead are stored, each with embeddings and a head"
FP8 = "scales of the FP8 weights are stored beside them"
THEIR_BIASES, THEIR_SCALES = "their routers' correction biases", "their scales"

REASONS = {
    "openai-community/gpt2": {MASKS: 12 * 1024 * 1024},
    "meta-llama/Llama-2-70b-chat-hf": {ROTARY: 80 * 64},
    "EleutherAI/pythia-160m": {ROTARY: 12 * 8, MASKS: 12 * 2048 * 2048},
    "Qwen/Qwen3-0.6B": {TIED: 151936 * 1024},
    "google/flan-t5-xl": {TIED: 32128 * 2048},
    "MiniMaxAI/MiniMax-M2.7": {BIASES: 62 * 256},
    "Qwen/Qwen3-32B-FP8": {FP8: 1_904_640},
    "Qwen/Qwen3.5-27B": {FURTHER: 424_699_392},
    "deepseek-ai/DeepSeek-V3": {
        FP8: 40_838_232, BIASES: 58 * 256, FURTHER_WITH_HEAD: 13_463_426_048, THEIR_BIASES: 256, THEIR_SCALES: 702_264,
    },
    "Qwen/Qwen3-Next-80B-A3B-Instruct": {FURTHER: 1_650_471_424},
    "zai-org/GLM-5-FP8": {
        FP8: 45_282_240, BIASES: 75 * 256, FURTHER: 9_952_920_320, THEIR_BIASES: 256, THEIR_SCALES: 602_784,
    },
    "nvidia/Gemma-4-31B-IT-NVFP4": {"several 4-bit weights are packed into one element": -10_404_495_360},
}  # fmt: skip


@pytest.mark.parametrize("id", REASONS)
def test_the_reasons_of_published_models(id: str) -> None:
    """Each with its elements."""
    (row,) = (row for row in configurations() if row["id"] == id)
    found = explained(counted(row["config"]), row["config"], row["hub_total"])
    assert found is not None
    assert REASONS[id] == {reason.text: reason.elements for reason in found}


def test_how_many_repositories_are_explained() -> None:
    """Equal, explained to the element, and not explained; what is explained adds up."""
    numbers = {"equal": 0, "explained": 0, "not explained": 0}
    for row in configurations():
        try:
            model = counted(row["config"])
        except (ConfigError, UnknownArchitecture):
            continue
        if row["hub_total"] is None:
            continue
        found = explained(model, row["config"], row["hub_total"])
        numbers["equal" if found == () else "explained" if found else "not explained"] += 1
        assert found is None or sum(reason.elements for reason in found) == row["hub_total"] - model.total
    assert numbers == {"equal": 602, "explained": 95, "not explained": 42}


def test_an_arbitrary_difference_has_no_reason() -> None:
    """Rather none than one that does not add up."""
    assert explained(counted({"model_type": "llama"}), {"model_type": "llama"}, 6_738_415_617) is None
