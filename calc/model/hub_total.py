"""Why the Hub's stored total is not the number of parameters: what repositories hold beside the weights, or hold twice, or pack.

Each reason is an amount of elements computed from config.json; a difference is explained when some of them add up to it exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from calc.model import NotModelled, UnknownArchitecture, architecture
from calc.model.config import Config, ConfigError
from calc.model.counting import Counted, checkpoint_of, counted
from calc.model.family import Dims
from calc.model.inventory import Sizes, inventory
from calc.model.parameters import Parameter
from calc.model.quantized_checkpoint import stored

_BIASES = "the routers' correction biases, which are buffers, are stored"


@dataclass(frozen=True, slots=True)
class Reason:
    """Elements that the Hub counts and the model does not have, or the other way round (below zero)."""

    text: str
    elements: int


def explained(model: Counted, config: Mapping[str, Any], hub_total: int) -> tuple[Reason, ...] | None:
    """The reasons that add up to the difference between the Hub's stored total and the parameters; () if they are equal, None if none do."""
    difference = hub_total - model.total
    if not difference:
        return ()
    reasons = list(_reasons(model, config))
    for size in range(1, min(5, len(reasons)) + 1):
        for chosen in combinations(reasons, size):
            if sum(reason.elements for reason in chosen) == difference:
                return chosen
    return None


def _reasons(model: Counted, config: Mapping[str, Any]) -> Iterator[Reason]:
    reader = Config(config)
    table = max((p.numel for p in model.parameters if p.role == "embedding"), default=0)
    if not model.head and table:
        yield Reason("the head, which is tied to the embeddings, is stored a second time", table)
        yield Reason("the embeddings are stored once more", table)
    yield from _quantized(model, config)
    yield from _encoder_heads(model, config)
    try:
        dims = architecture(config).dims
    except NotModelled:
        yield from _of_tables(model, config)
        return
    except (UnknownArchitecture, ConfigError):
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
        yield Reason(_BIASES, experts * sparse)
    yield from _of_families(model, reader, dims, experts)


def _quantized(model: Counted, config: Mapping[str, Any]) -> Iterator[Reason]:
    """Scales beside quantised weights, and packed numbers that count as one."""
    checkpoint = checkpoint_of(model, config)
    if checkpoint is None or checkpoint.format is None:
        return
    held = checkpoint.split(model.parameters)[0]
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


def _encoder_heads(model: Counted, config: Mapping[str, Any]) -> Iterator[Reason]:
    """A pooler and a next-sentence head that the masked-language class does not have, or its own head that the repository lacks."""
    if model.model_type not in ("bert", "distilbert"):
        return
    hidden = Config(config).integer("hidden_size", "dim", default=768)
    vocabulary = Config(config).integer("vocab_size", default=30522)
    pooler = hidden * hidden + hidden
    yield Reason("a pooler is stored", pooler)
    yield Reason("a next-sentence head is stored", 2 * hidden + 2)
    yield Reason("the masked-language head is not stored", -(pooler + 2 * hidden + vocabulary))


def _of_tables(model: Counted, config: Mapping[str, Any]) -> Iterator[Reason]:
    """What a model that is known by its table has beside its parameters."""
    text = config.get("text_config")
    within = text if isinstance(text, Mapping) else config
    experts = 0 if model.experts is None else model.experts[0]
    if experts:
        sparse = sum(p.count for p in model.parameters if p.role == "router")
        yield Reason(_BIASES, experts * sparse)
    try:
        reader = Config(within)
        sizes = Sizes(inventory(model.model_type), Config(config))
        prefix = "text_config." if within is text else ""
        more_layers = _longer(within, sizes, prefix)
        longer = counted({**config, "text_config": more_layers} if prefix else more_layers)
        hidden, vocabulary = reader.integer("hidden_size"), reader.integer("vocab_size")
    except (ConfigError, UnknownArchitecture):
        return
    before = {(p.name, p.shape): p.count for p in model.parameters}
    more = [replace(p, count=p.count - before.get((p.name, p.shape), 0)) for p in longer.parameters]
    block = [p for p in more if p.count > 0]
    yield from _next_token_layers(model, block, reader, hidden, vocabulary, experts)


def _longer(config: Mapping[str, Any], sizes: Sizes, prefix: str) -> Mapping[str, Any]:
    """A config with one layer more, of the kinds that layers for tokens further ahead have."""
    longer = {**config, "num_hidden_layers": Config(config).integer("num_hidden_layers") + 1}
    for field, kind in (("layer_types", "full_attention"), ("mlp_layer_types", "sparse"), ("indexer_types", "full")):
        by_rule = f"{prefix}{field}" in sizes.table.layers
        kinds = sizes.kinds(f"{prefix}{field}") if by_rule else Config(config).texts(field, default=None)
        if kinds:
            longer[field] = [*kinds, kind if kind in kinds else kinds[-1]]
    return longer


def _of_families(model: Counted, reader: Config, dims: Dims, experts: int) -> Iterator[Reason]:
    last = dims.kinds[-1]
    alike = sum(kind == last for kind in dims.kinds)
    rows = [replace(p, count=1) for p in model.parameters if ".layers.*." in p.name and p.count >= alike]
    yield from _next_token_layers(model, rows, reader, dims.hidden_size, dims.vocab_size, experts)


def _next_token_layers(
    model: Counted, block: Sequence[Parameter], reader: Config, hidden: int, vocabulary: int, experts: int
) -> Iterator[Reason]:
    """Layers that predict tokens further ahead: a block, two norms, a matrix that joins them, a norm, embeddings and head."""
    number = reader.integer(
        "num_nextn_predict_layers", "num_mtp_layers", "mtp_num_hidden_layers", default=1, low=0, high=64
    )
    if not number:
        return
    elements = sum(p.numel * p.count for p in block)
    joined = elements + 2 * hidden * hidden + 3 * hidden
    yield Reason("layers for tokens further ahead are stored", number * joined)
    yield Reason(
        "layers for tokens further ahead are stored, each with embeddings and a head",
        number * (joined + 2 * vocabulary * hidden),
    )
    if experts:
        yield Reason("their routers' correction biases", number * experts)
    checkpoint = checkpoint_of(model, reader.values)
    if checkpoint is not None and checkpoint.format is not None:
        held = checkpoint.split(block)[0]
        yield Reason(
            "their scales", number * (stored(held, checkpoint).elements - sum(p.numel * p.count for p in held))
        )
