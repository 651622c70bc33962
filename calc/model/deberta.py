"""DeBERTa V2 and V3: BERT whose scores also ask how far tokens are apart, by tables of distances that all layers share.

Mirrors transformers 5.24.0 models/deberta_v2/modeling_deberta_v2.py. Where the tables of distances are made, before the layers, only what stays
is counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from calc.autograd.elementwise import (
    add,
    add_broadcast,
    add_constant,
    add_in_place,
    cast,
    dropout,
    masked_fill,
    mul,
    scale,
    softmax,
)
from calc.autograd.linear import bmm
from calc.autograd.routing import gathered
from calc.autograd.shapes import contiguous, folded, heads, part, repeated, reshape
from calc.autograd.storage import LOGITS, Standing, active
from calc.autograd.tensor import Tensor, empty
from calc.model.activations import activated, activation_name
from calc.model.attention import lowered, split
from calc.model.bert import EncoderDims, Names, cross_entropy_of, masked_lm_logits, task, token_logits
from calc.model.config import Config, ConfigError
from calc.model.decoder import share
from calc.model.family import Dims, Family
from calc.model.modules import Modules
from calc.model.norms import layer_norm
from calc.model.sequence import sharing_kinds

NAMES = Names(
    "deberta", query="attention.self.query_proj", key="attention.self.key_proj", value="attention.self.value_proj"
)


@dataclass(frozen=True)
class DebertaDims(EncoderDims):
    """Sizes, and how distances enter the scores."""

    relative: bool = False
    span: int = 0
    """Distances to one side that have a row of their own."""
    asks: tuple[str, ...] = ()
    """Content to position (c2p), position to content (p2c), or both."""
    share_att_key: bool = False
    normed_distances: bool = False
    position_biased_input: bool = True
    legacy: bool = True
    """The masked-language head has a matrix of its own, tied to the embeddings, as in BERT."""
    pooler_dropout: float = 0.0
    pooler_hidden_act: str = "gelu"


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    c = m.c
    shape = (m.rows, 1)
    given = Tensor(shape, "i64", Standing(shape, "i64", "mask")) if m.recipe.padded else empty(shape, "fp32", "ones")
    segments = empty((m.rows,), "i64", "zeros")
    x = embeddings(m, ids, segments, given)
    mask = empty((m.batch, 1, m.length, m.length), "i64" if m.recipe.padded else "fp32", "mul")
    places = empty((m.length, m.length), "i64", "_to_copy") if c.relative else None
    table = distances(m) if c.relative else None
    states = [x]  # every layer's result is handed back
    for layer in m.layers("deberta.encoder.layer", c.kinds):
        x = layer(block, x, mask, places, table)
        states.append(x)
    del given, segments, mask, places, table
    m.let_go(states)
    return x


Norm = Callable[[Modules, str, Tensor], Tensor]


def embeddings(m: Modules, ids: Tensor, segments: Tensor, given: Tensor, norm: Norm = layer_norm) -> Tensor:
    """Words, perhaps positions and kinds of segment, normed, zero where there is padding, and dropped out."""
    c = m.c
    stem, width = "deberta.embeddings", c.hidden_size
    words = m.embedding(f"{stem}.word_embeddings", ids, c.vocab_size, width)
    x = words
    if c.position_biased_input:
        counted = Tensor((m.length,), "i64", Standing((m.length,), "i64", "positions"))
        positions = m.embedding(f"{stem}.position_embeddings", counted, c.max_position_embeddings, width, "other")
        x = add_broadcast(x, positions) if m.batch > 1 else add(x, positions)
    else:
        positions = empty((m.rows, width), x.dtype, "zeros_like")
    if c.type_vocab_size:
        kinds = m.embedding(f"{stem}.token_type_embeddings", segments, c.type_vocab_size, width, "other")
        x = add(x, kinds)
    x = norm(m, f"{stem}.LayerNorm", x)
    x = mul(x, cast(given, x.dtype))
    x = dropout(x, c.hidden_dropout)
    del words, positions
    return x


def distances(m: Modules) -> Tensor:
    """A row for each distance (2·span, hidden_size), normed or not."""
    c = m.c
    table = m.weight("deberta.encoder.rel_embeddings.weight", (2 * c.span, c.hidden_size), "embedding")
    return layer_norm(m, "deberta.encoder.LayerNorm", table) if c.normed_distances else table


def block(m: Modules, x: Tensor, mask: Tensor, places: Tensor | None, table: Tensor | None) -> Tensor:
    """One layer."""
    return layer(m, x, mask, places, table, self_attention, layer_norm)


def layer(
    m: Modules,
    x: Tensor,
    mask: Tensor,
    places: Tensor | None,
    table: Tensor | None,
    attend: Callable[..., Tensor],
    norm: Norm,
) -> Tensor:
    """Attention and feed-forward, each with a norm behind it."""
    c = m.c
    y = attend(m, x, mask, places, table)
    attended = joined(m, "attention.output", y, x, norm)
    del y
    wide = activated(m, m.linear("intermediate.dense", attended, c.intermediate_size, True), c.hidden_act)
    return joined(m, "output", wide, attended, norm)


def joined(m: Modules, name: str, x: Tensor, residual: Tensor, norm: Norm) -> Tensor:
    """A projection, a dropout, the sum and a norm."""
    x = m.linear(f"{name}.dense", x, m.c.hidden_size, True)
    x = dropout(x, m.c.hidden_dropout)
    return norm(m, f"{name}.LayerNorm", add(x, residual))


def self_attention(m: Modules, x: Tensor, mask: Tensor, places: Tensor | None, table: Tensor | None) -> Tensor:
    """Every token with every token, and with their distance."""
    c = m.c
    width, d = c.num_attention_heads * c.head_dim, c.head_dim
    all_heads = (m.batch, c.num_attention_heads, m.length)
    q = contiguous(split(m, m.linear(c.names.query, x, width, True), c.num_attention_heads, d))
    k = contiguous(split(m, m.linear(c.names.key, x, width, True), c.num_attention_heads, d))
    v = contiguous(split(m, m.linear(c.names.value, x, width, True), c.num_attention_heads, d))
    scores = bmm(lowered(m, q), lowered(m, scale(k)), (*all_heads, m.length))
    bias = None
    if table is not None and places is not None:
        table = dropout(table, c.hidden_dropout)
        bias = distance_scores(m, q, k, places, table)
        scores = add(scores, bias)
    seen = empty(mask.shape, "bool", "_to_copy")
    scores = masked_fill(scores, empty(mask.shape, "bool", "bitwise_not"))
    shares = softmax(scores, None if m.recipe.autocast is None else "fp32")
    shares = dropout(shares, c.attention_dropout)
    out = folded(bmm(lowered(m, shares), lowered(m, v), (*all_heads, d)), (m.rows, width))
    del q, k, v, seen, bias, scores
    return out


def distance_scores(m: Modules, q: Tensor, k: Tensor, places: Tensor, table: Tensor) -> Tensor:
    """What queries make of the distances, and distances of keys: (batch, heads, length, length)."""
    c = m.c
    far_q: Tensor | None
    far_k: Tensor | None
    if c.share_att_key:
        far_q, far_k = far(m, c.names.query, table), far(m, c.names.key, table)
    else:
        far_k = far(m, "attention.self.pos_key_proj", table) if "c2p" in c.asks else None
        far_q = far(m, "attention.self.pos_query_proj", table) if "p2c" in c.asks else None
    by_distance = (*q.shape[:3], 2 * c.span)
    by_token = (*q.shape[:3], m.length)
    score: Tensor | None = None
    first = second = None
    if "c2p" in c.asks and far_k is not None:
        first = bmm(lowered(m, q), lowered(m, far_k), by_distance)
        moved = empty(places.shape, "i64", "add")
        within = empty(places.shape, "i64", "clamp")
        del moved
        first = gathered(first, by_token, within)
        score = add_constant(scale(first))
    if "p2c" in c.asks and far_q is not None:
        turned = empty(places.shape, "i64", "neg")
        moved = empty(places.shape, "i64", "add")
        del turned
        within_too = empty(places.shape, "i64", "clamp")
        del moved
        second = bmm(lowered(m, k), lowered(m, far_q), by_distance)
        second = gathered(second, by_token, within_too)
        term = scale(second)
        score = add_constant(term) if score is None else add_in_place(score, term)
        del term
    assert score is not None
    del far_q, far_k, first, second
    return score


def far(m: Modules, name: str, table: Tensor) -> Tensor:
    """The distances, projected, head by head, for each sequence: (batch, heads, 2·span, head_dim)."""
    c = m.c
    count, d = c.num_attention_heads, c.head_dim
    x = contiguous(heads(m.linear(name, table, count * d, True), 1, 2 * c.span, count, d))
    return repeated(x, (m.batch, count, 2 * c.span, d))


def loss(m: Modules, x: Tensor) -> tuple[Tensor, Tensor]:
    """Hidden states to the loss of the task and the logits."""
    c = m.c
    active.ledger.kind = LOGITS
    if c.task == "masked-lm":
        logits = masked_lm_logits(m, x)
    elif c.task == "token-classification":
        logits = token_logits(m, x)
    else:
        y = part(reshape(x, (m.rows, c.hidden_size)), (m.batch, c.hidden_size))
        y = m.linear("pooler.dense", dropout(y, c.pooler_dropout), c.hidden_size, True, role="other")
        y = dropout(activated(m, y, c.pooler_hidden_act), c.classifier_dropout)
        logits = m.linear("classifier", y, c.num_labels, True, role="head")
    return cross_entropy_of(m, logits), logits


def dims(config: Config) -> Dims:
    """DebertaV2Config's fields and defaults, and those that the class reads beside them."""
    hidden = config.integer("hidden_size", default=1536)
    count = config.integer("num_attention_heads", default=24, high=4096)
    if hidden // count * count != hidden:
        raise ConfigError("num_attention_heads", f"should divide hidden_size ({hidden}), not {count}")
    for field, usual in (("embedding_size", hidden), ("conv_kernel_size", 0), ("attention_head_size", hidden // count)):
        if config.integer(field, default=usual, low=0) != usual:
            raise ConfigError(field, f"should be {usual}: another is not modelled")
    if not config.boolean("legacy", default=True):
        raise ConfigError("legacy", "should be true: the newer masked-language head is not modelled")
    depth = config.integer("num_hidden_layers", default=24, high=2000)
    found: dict[str, Any] = task(config)
    common = encoder_sizes(config, hidden, count, vocab_size=128100, intermediate_size=6144)
    dropped = common["hidden_dropout"]
    return DebertaDims(
        **common,
        num_hidden_layers=depth,
        kinds=sharing_kinds("layer", depth),
        names=NAMES,
        classifier_dropout=dropped if config.given("cls_dropout") is None else share(config, "cls_dropout"),
        **found,
    )


def encoder_sizes(
    config: Config, hidden: int, heads: int, *, vocab_size: int, intermediate_size: int
) -> dict[str, Any]:
    """What both versions read alike, with the defaults of one."""
    return {
        "vocab_size": config.integer("vocab_size", default=vocab_size),
        "hidden_size": hidden,
        "intermediate_size": config.integer("intermediate_size", default=intermediate_size),
        "num_attention_heads": heads,
        "num_key_value_heads": heads,
        "head_dim": hidden // heads,
        "tie_word_embeddings": config.boolean("tie_word_embeddings", default=True),
        "hidden_act": activation_name(config, "hidden_act", default="gelu"),
        "attention_dropout": share(config, "attention_probs_dropout_prob", default=0.1),
        "embedding_size": hidden,
        "max_position_embeddings": config.integer("max_position_embeddings", default=512),
        "type_vocab_size": config.integer("type_vocab_size", default=0, low=0, high=10**6),
        "hidden_dropout": share(config, "hidden_dropout_prob", default=0.1),
        "pooler_dropout": share(config, "pooler_dropout"),
        "pooler_hidden_act": activation_name(config, "pooler_hidden_act", default="gelu"),
        "position_biased_input": config.boolean("position_biased_input", default=True),
        **distance_sizes(config),
    }


def distance_sizes(config: Config) -> dict[str, Any]:
    """How distances enter the scores."""
    limit = config.integer("max_relative_positions", default=-1, low=-(10**6), high=10**6)
    limit = config.integer("max_position_embeddings", default=512) if limit < 1 else limit
    buckets = config.integer("position_buckets", default=-1, low=-(10**6), high=10**6)
    asks = config.given("pos_att_type")
    named = tuple(asks.lower().split("|")) if isinstance(asks, str) else config.texts("pos_att_type", default=None)
    relative = config.boolean("relative_attention", default=False)
    asked = tuple([name.strip() for name in named if name.strip() in ("c2p", "p2c")])
    if relative and not asked:
        raise ConfigError("pos_att_type", "should hold c2p, p2c or both where relative_attention is true")
    norms = config.text("norm_rel_ebd", default="none").lower().split("|")
    return {
        "relative": relative,
        "span": buckets if buckets > 0 else limit,
        "asks": asked,
        "share_att_key": config.boolean("share_att_key", default=False),
        "normed_distances": "layer_norm" in [name.strip() for name in norms],
    }


GAPS = frozenset(("releases before 5", "other losses"))
"""What is not modelled of these classes."""

FAMILIES = (
    Family(
        id="deberta-v2",
        types={"deberta-v2": "DeBERTa V2 and V3"},
        dims=dims,
        body=body,
        loss=loss,
        gaps=GAPS,
        attentions=("eager",),
        buffers=lambda dims, size: 8 * dims.max_position_embeddings,
        source="transformers 5.24.0, models/deberta_v2/modeling_deberta_v2.py",
    ),
)
