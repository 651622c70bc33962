"""DeBERTa's first version: one matrix for queries, keys and values, and distances projected anew in each layer.

Its class only runs in fp32: two of its biases are fp32 whatever the rest is, so a product in 16 bits meets two dtypes, and under autocast the
number that stands for masked scores is larger than a 16-bit number can be. Mirrors transformers 5.24.0 models/deberta/modeling_deberta.py.
Where the places of distances are made, before the layers, only what stays is counted.
"""

from __future__ import annotations

from calc.autograd.elementwise import (
    add,
    add_broadcast,
    add_constant,
    add_in_place,
    dropout,
    masked_fill,
    scale,
    softmax,
)
from calc.autograd.linear import mm
from calc.autograd.routing import gathered
from calc.autograd.shapes import expand, folded, heads, part, scaled_view
from calc.autograd.shapes import split as split_last
from calc.autograd.storage import LOGITS, Standing, active
from calc.autograd.tensor import Tensor, empty
from calc.model import deberta
from calc.model.activations import activated
from calc.model.attention import matmul, split
from calc.model.bert import Names, cross_entropy_of, task
from calc.model.config import Config, ConfigError
from calc.model.deberta import DebertaDims
from calc.model.decoder import share
from calc.model.family import Dims, Family
from calc.model.modules import Modules
from calc.model.norms import layer_norm, written_layer_norm
from calc.model.sequence import sharing_kinds


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    c = m.c
    shape = (m.rows, 1)
    given = Tensor(shape, "i64", Standing(shape, "i64", "mask")) if m.recipe.padded else empty(shape, "fp32", "ones")
    segments = empty((m.rows,), "i64", "zeros")
    x = deberta.embeddings(m, ids, segments, given, written_layer_norm)
    mask = empty((m.batch, 1, m.length, m.length), "i64" if m.recipe.padded else "fp32", "mul")
    places = empty((m.length, m.length), "i64", "sub") if c.relative else None
    table = (
        m.weight("deberta.encoder.rel_embeddings.weight", (2 * c.span, c.hidden_size), "embedding")
        if c.relative
        else None
    )
    states = [x]  # every layer's result is handed back
    for layer in m.layers("deberta.encoder.layer", c.kinds):
        x = layer(block, x, mask, places, table)
        states.append(x)
    del given, segments, mask, places, table
    m.let_go(states)
    return x


def block(m: Modules, x: Tensor, mask: Tensor, places: Tensor | None, table: Tensor | None) -> Tensor:
    """One layer."""
    return deberta.layer(m, x, mask, places, table, self_attention, written_layer_norm)


def self_attention(m: Modules, x: Tensor, mask: Tensor, places: Tensor | None, table: Tensor | None) -> Tensor:
    """Every token with every token, and with their distance."""
    c = m.c
    name, count, d = "attention.self", c.num_attention_heads, c.head_dim
    width, scores_shape = count * d, (m.batch, count, m.length, m.length)
    both = m.linear(f"{name}.in_proj", x, 3 * width)
    q, k, v = split_last(split(m, both, count, 3 * d), (d, d, d))
    q = add_broadcast(q, _bias(m, f"{name}.q_bias", width))
    v = add_broadcast(v, _bias(m, f"{name}.v_bias", width))
    q = scale(q)
    scores = matmul(m, q, k, scores_shape)
    by_distance = None
    if table is not None and places is not None:
        table = dropout(table, c.hidden_dropout)
        by_distance = distance_scores(m, q, k, places, table)
    scores = add_constant(scores) if by_distance is None else add(scores, by_distance)
    seen = empty(mask.shape, "bool", "_to_copy")
    scores = masked_fill(scores, empty(mask.shape, "bool", "bitwise_not"))
    shares = softmax(scores, None if m.recipe.autocast is None else "fp32")
    shares = dropout(shares, c.attention_dropout)
    out = folded(matmul(m, shares, v, (m.batch, count, m.length, d)), (m.rows, width))
    del both, q, k, v, seen, by_distance, scores, shares
    return out


def _bias(m: Modules, name: str, width: int) -> Tensor:
    """A bias that is fp32 in a model of any dtype."""
    return m.weight(name, (width,), "bias", dtype="fp32")


def distance_scores(m: Modules, q: Tensor, k: Tensor, places: Tensor, table: Tensor) -> Tensor | None:
    """What queries make of the distances, and distances of keys: (batch, heads, length, length)."""
    c = m.c
    span = min(m.length, c.span)
    by_distance, by_token = (*q.shape[:3], 2 * span), (*q.shape[:3], m.length)
    table = part(table, (2 * span, c.hidden_size))
    score: Tensor | None = None
    far_k = far_q = first = second = within = within_too = None
    if "c2p" in c.asks:
        far_k = _far(m, m.linear("attention.self.pos_proj", table, q.shape[1] * q.shape[3]), span)
        first = matmul(m, q, _for_each(m, far_k), by_distance)
        within = _within(places)
        first = gathered(first, by_token, within)
        score = add_constant(first)
    if "p2c" in c.asks:
        made = m.linear("attention.self.pos_q_proj", table, q.shape[1] * q.shape[3], True)
        far_q = _far(m, scaled_view(made), span)
        within_too = _within(places, turned=True)
        second = matmul(m, k, _for_each(m, far_q), by_distance)
        second = gathered(second, by_token, within_too)
        score = add_constant(second) if score is None else add_in_place(score, second)
    del far_k, far_q, first, second, within, within_too
    return score


def _far(m: Modules, x: Tensor, span: int) -> Tensor:
    """Projected distances, head by head: (1, heads, 2·span, head_dim)."""
    return heads(x, 1, 2 * span, m.c.num_attention_heads, m.c.head_dim)


def _for_each(m: Modules, x: Tensor) -> Tensor:
    """The distances for each sequence."""
    return x if m.batch == 1 else expand(x, (m.batch, *x.shape[1:]))


def _within(places: Tensor, *, turned: bool = False) -> Tensor:
    """Which row of the table stands for each pair of tokens."""
    start = empty(places.shape, "i64", "neg") if turned else places
    moved = empty(places.shape, "i64", "add")
    del start
    within = empty(places.shape, "i64", "clamp")
    del moved
    return within


def loss(m: Modules, x: Tensor) -> tuple[Tensor, Tensor]:
    """Hidden states to the loss of the task and the logits."""
    c = m.c
    if c.task == "masked-lm" and not c.legacy:
        active.ledger.kind = LOGITS
        logits = newer_logits(m, x)
        return cross_entropy_of(m, logits), logits
    return deberta.loss(m, x)


def newer_logits(m: Modules, x: Tensor) -> Tensor:
    """A transformation, the input embeddings once more, and a bias: with `legacy` false."""
    name = "lm_predictions.lm_head"
    x = activated(m, m.linear(f"{name}.dense", x, m.c.hidden_size, True), m.c.hidden_act)
    x = layer_norm(m, f"{name}.LayerNorm", x)
    assert m.table is not None
    return add_broadcast(mm(x, m.table), m.weight(f"{name}.bias", (m.c.vocab_size,), "bias"))


def dims(config: Config) -> Dims:
    """DebertaConfig's fields and defaults, and those that the class reads beside them."""
    hidden = config.integer("hidden_size", default=768)
    count = config.integer("num_attention_heads", default=12, high=4096)
    if hidden // count * count != hidden:
        raise ConfigError("num_attention_heads", f"should divide hidden_size ({hidden}), not {count}")
    if config.integer("embedding_size", default=hidden) != hidden:
        raise ConfigError("embedding_size", f"should be hidden_size ({hidden}): another is not modelled")
    if config.boolean("talking_head", default=False):
        raise ConfigError("talking_head", "should be false: heads that mix their scores are not modelled")
    depth = config.integer("num_hidden_layers", default=12, high=2000)
    found = task(config)
    common = deberta.encoder_sizes(config, hidden, count, vocab_size=50265, intermediate_size=3072)
    apart = found["task"] == "sequence-classification" and config.given("cls_dropout") is not None
    return DebertaDims(
        **common,
        num_hidden_layers=depth,
        kinds=sharing_kinds("layer", depth),
        names=Names("deberta"),
        classifier_dropout=share(config, "cls_dropout") if apart else common["hidden_dropout"],
        legacy=config.boolean("legacy", default=True),
        **found,
    )


FAMILIES = (
    Family(
        id="deberta",
        types={"deberta": "DeBERTa"},
        dims=dims,
        body=body,
        loss=loss,
        gaps=deberta.GAPS | {"16-bit arithmetic", "a quantised base"},
        attentions=("eager",),
        buffers=lambda dims, size: 8 * dims.max_position_embeddings,
        source="transformers 5.24.0, models/deberta/modeling_deberta.py",
    ),
)
