"""Why the Hub's stored total is not the number of parameters: what repositories hold beside the weights, or hold twice, or pack.

Each reason is an amount of elements computed from config.json; a difference is explained when some of them add up to it exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from calc.model import NotModelled, architecture
from calc.model.config import Config, ConfigError
from calc.model.counting import Counted
from calc.model.family import Dims
from calc.model.parameters import Parameter
from calc.model.quantized_checkpoint import quantized_checkpoint, stored


@dataclass(frozen=True, slots=True)
class Reason:
    """Elements that the Hub counts and the model does not have, or the other way round (below zero)."""

    text: str
    elements: int


def explained(counted: Counted, config: Mapping[str, Any], hub_total: int) -> tuple[Reason, ...] | None:
    """The reasons that add up to the difference between the Hub's stored total and the parameters; () if they are equal, None if none do."""
    difference = hub_total - counted.total
    if not difference:
        return ()
    reasons = list(_reasons(counted, config))
    for size in range(1, min(5, len(reasons)) + 1):
        for chosen in combinations(reasons, size):
            if sum(reason.elements for reason in chosen) == difference:
                return chosen
    return None


def _reasons(counted: Counted, config: Mapping[str, Any]) -> Iterator[Reason]:
    reader = Config(config)
    table = max((p.numel for p in counted.parameters if p.role == "embedding"), default=0)
    if not counted.head and table:
        yield Reason("the head, which is tied to the embeddings, is stored a second time", table)
        yield Reason("the embeddings are stored once more", table)
    yield from _quantized(counted, config)
    yield from _encoder_heads(counted, config)
    try:
        dims = architecture(config).dims
    except (NotModelled, ConfigError):
        return
    layers = len(dims.kinds)
    rotary = getattr(dims, "rotary_dim", None) or dims.head_dim
    yield Reason("rotary frequencies are stored in every layer", layers * (rotary // 2))
    context = reader.integer("max_position_embeddings", "n_positions", "max_sequence_length", default=None, high=10**9)
    if context:
        yield Reason("causal masks are stored in every layer", layers * context * context)
        yield Reason("causal masks are stored in every second layer", layers // 2 * context * context)
        yield Reason(
            "causal masks and the number that stands for masked scores are stored in every layer",
            layers * (context * context + 1),
        )
    sparse = sum(not kind.endswith("dense") for kind in dims.kinds)
    experts = getattr(dims, "num_experts", 0)
    if experts:
        yield Reason("the routers' correction biases, which are buffers, are stored", experts * sparse)
    yield from _next_token_layers(counted, reader, dims, experts)


def _quantized(counted: Counted, config: Mapping[str, Any]) -> Iterator[Reason]:
    """Scales beside quantised weights, and packed numbers that count as one."""
    checkpoint = quantized_checkpoint(config)
    if checkpoint is None or checkpoint.format is None:
        return
    held = [p for p in counted.parameters if checkpoint.holds(p)]
    numbers = sum(p.numel * p.count for p in held)
    beside = stored(held, checkpoint).elements
    if beside > numbers:
        yield Reason(f"scales of the {checkpoint.method.label} weights are stored beside them", beside - numbers)
    elif beside < numbers:
        yield Reason(
            f"several {checkpoint.format.bits}-bit weights are packed into one element, with scales beside them",
            beside - numbers,
        )
        yield Reason(
            f"several {checkpoint.format.bits}-bit weights are packed into one element",
            -(numbers - numbers * checkpoint.format.bits // 8),
        )


def _encoder_heads(counted: Counted, config: Mapping[str, Any]) -> Iterator[Reason]:
    """A pooler and a next-sentence head that the masked-language class does not have, or its own head that the repository lacks."""
    if counted.model_type not in ("bert", "distilbert"):
        return
    hidden = Config(config).integer("hidden_size", "dim", default=768)
    vocabulary = Config(config).integer("vocab_size", default=30522)
    pooler = hidden * hidden + hidden
    yield Reason("a pooler is stored", pooler)
    yield Reason("a next-sentence head is stored", 2 * hidden + 2)
    yield Reason("the masked-language head is not stored", -(pooler + 2 * hidden + vocabulary))


def _next_token_layers(counted: Counted, reader: Config, dims: Dims, experts: int) -> Iterator[Reason]:
    """Layers that predict tokens further ahead: a block of the last kind, two norms, a matrix that joins them, a norm, embeddings and head."""
    number = reader.integer(
        "num_nextn_predict_layers", "num_mtp_layers", "mtp_num_hidden_layers", default=None, low=0, high=64
    )
    if not number:
        return
    last = dims.kinds[-1]
    sparse = sum(kind == last for kind in dims.kinds)
    rows = [replace(p, count=1) for p in counted.parameters if _in_layers(p) and p.count >= sparse]
    block = sum(p.numel for p in rows)
    hidden = dims.hidden_size
    joined = block + 2 * hidden * hidden + 3 * hidden
    yield Reason("layers for tokens further ahead are stored", number * joined)
    yield Reason(
        "layers for tokens further ahead are stored, each with embeddings and a head",
        number * (joined + 2 * dims.vocab_size * hidden),
    )
    if experts:
        yield Reason("their routers' correction biases", number * experts)
    checkpoint = quantized_checkpoint(reader.values)
    if checkpoint is not None and checkpoint.format is not None:
        held = [p for p in rows if checkpoint.holds(p)]
        yield Reason("their scales", number * (stored(held, checkpoint).elements - sum(p.numel for p in held)))


def _in_layers(parameter: Parameter) -> bool:
    return ".layers.*." in parameter.name
