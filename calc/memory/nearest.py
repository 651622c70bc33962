"""What a step probably takes where a model's forward pass is not modelled: the activations of known blocks of its sizes, as a range.

Counts      what is exact (floor.py), and beside it the activations, logits and scratch of known architectures built with the same width, depth,
            heads, feed-forward and vocabulary.
Leaves out  whatever the model has that none of them has: an estimate with its range, never a count.
Sources     the modelled families; config.json for the sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from calc.memory.breakdown import Breakdown, Line
from calc.memory.estimate import estimate
from calc.memory.floor import Floor, Likely
from calc.memory.refused import Refused
from calc.model.config import Config, ConfigError
from calc.model.counting import Counted
from calc.model.parameter_adapters import OLD_NAMES
from calc.scenario import Scenario
from calc.units import Bytes

DENSE = (
    "llama", "qwen3", "olmo2", "phi", "gpt_neox", "starcoder2", "stablelm", "gemma2", "gemma3_text", "cohere", "falcon", "opt", "nemotron",
    "granite", "bloom",
)  # fmt: skip
"""Dense blocks to compare with: gated and not, normed before and after, with biases and without, in fp32 and not."""
MIXED = ("mixtral", "qwen3_moe", "olmoe")
"""Blocks with experts that PEFT adapts where all linear layers are meant."""
APART = ("phimoe", "granitemoe", "qwen2_moe")
"""Blocks with experts that it leaves alone."""
DECAY = "A_log"
"""How the parameter is called by which a state fades."""
RUNNING = ("activations", "logits and loss", "temporaries")
"""What the forward and backward pass hold beside what stands."""


def likely(
    scenario: Scenario, least: Floor, model: Counted, config: Mapping[str, Any], *, without: str = ""
) -> Likely | None:
    """The peak by the nearest known block, in bytes; None where the model has no attention heads to build one with, or carries a state along
    the sequence, or none takes the plan.

    `without` leaves out one model type, to see what would be said if it were not known.
    """
    standing = sum(int(line.bytes) for line in _standing(least.instants[1].lines))
    gradients = sum(int(line.bytes) for line in least.instants[1].lines if line.component == "gradients")
    found: list[tuple[int, Bytes, str]] = []
    for model_type, built in _built(model, config):
        if model_type == without:
            continue
        try:
            answer = estimate(scenario.model_copy(update={"model": "", "plan": scenario.plan}), config=built)
        except (Refused, ConfigError):
            continue
        peak = max(int(least.peak.allocated), standing + _running(answer, gradients))
        found.append((abs(answer.parameters.total - model.total), Bytes(peak), model_type))
    if not found:
        return None
    _, expected, nearest = min(found)
    return Likely(
        low=min(peak for _, peak, _ in found),
        expected=expected,
        high=max(peak for _, peak, _ in found),
        nearest=nearest,
        compared=tuple(model_type for _, _, model_type in found),
    )


def _standing(lines: tuple[Line, ...]) -> Iterator[Line]:
    """What is alive the whole step long."""
    return (line for line in lines if line.component not in ("gradients", "temporaries"))


def _running(answer: Breakdown, gradients: int) -> int:
    """The most that a known model's passes hold beside what stands, with its gradients at this model's size."""
    step = next(instant for instant in answer.instants if instant.name == "optimizer step")
    whole = sum(int(line.bytes) for line in step.lines if line.component == "gradients")
    highest = 0
    for instant in answer.instants:
        if instant.name in ("load", "optimizer step"):
            continue
        running = sum(int(line.bytes) for line in instant.lines if line.component in RUNNING)
        made = sum(int(line.bytes) for line in instant.lines if line.component == "gradients")
        highest = max(highest, running + (made * gradients // whole if whole else 0))
    return highest


def _built(model: Counted, config: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """config.json of each known block with this model's sizes; nothing for one without attention heads, or with a state space or a gated delta
    rule beside them, which holds far more than attention does."""
    if any(p.name.endswith(DECAY) for p in model.parameters):
        return
    text = config.get("text_config")
    reader = Config(text if isinstance(text, Mapping) else config)
    try:
        heads = reader.integer("num_attention_heads", "n_head", "n_heads", "num_heads", default=None)
        hidden = reader.integer("hidden_size", "n_embd", "d_model", "dim", default=None)
        layers = reader.integer("num_hidden_layers", "n_layer", "n_layers", "num_layers", default=None, high=10_000)
        if heads is None or hidden is None or layers is None or hidden < heads:
            return
        few = reader.integer("num_key_value_heads", "num_kv_heads", default=None) or heads
        wide = reader.integer("intermediate_size", "ffn_dim", "d_ff", "ffn_hidden_size", "n_inner", default=None)
        narrow = reader.integer("moe_intermediate_size", default=None)
        vocabulary = reader.integer("vocab_size", default=None) or _rows(model)
        head = reader.integer("head_dim", "d_kv", default=None) or hidden // heads
    except ConfigError:
        return
    sizes = {
        "hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": heads,
        "num_key_value_heads": few if heads % few == 0 else heads, "head_dim": head, "vocab_size": vocabulary,
        "intermediate_size": wide or 4 * hidden, "tie_word_embeddings": not model.head, "max_position_embeddings": 1_000_000,
    }  # fmt: skip
    if model.experts is None:
        for model_type in DENSE:
            yield model_type, {"model_type": model_type, **sizes}
        return
    count, chosen = model.experts
    expert = narrow or sizes["intermediate_size"]
    for model_type in MIXED if model.model_type in OLD_NAMES else APART:
        yield model_type, {
            "model_type": model_type, **sizes, "intermediate_size": expert, "moe_intermediate_size": expert, "num_local_experts": count,
            "num_experts": count, "num_experts_per_tok": chosen,
        }  # fmt: skip


def _rows(model: Counted) -> int:
    """Rows of the largest table of embeddings."""
    return max((p.shape[0] for p in model.parameters if p.role == "embedding"), default=1)
