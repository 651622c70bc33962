"""BERT and the encoders built like it: RoBERTa, XLM-RoBERTa, CamemBERT, ELECTRA, DistilBERT. Every token sees every token; a norm stands
behind each half of a layer; on top a masked-language head, or a classifier of sequences or tokens, as `architectures` says.

Mirrors transformers 5.24.0 models/bert, models/roberta, models/electra and models/distilbert.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

from calc.autograd.elementwise import add, add_broadcast, cast, dropout, from_output
from calc.autograd.loss import log_softmax, nll_loss
from calc.autograd.shapes import part, reshape
from calc.autograd.storage import LOGITS, Standing, active
from calc.autograd.tensor import Tensor, empty, view
from calc.model.activations import activated, activation_name
from calc.model.attention import Eager, attention, bidirectional_mask, split
from calc.model.config import Config, ConfigError
from calc.model.family import Dims, Family
from calc.model.modules import Modules
from calc.model.norms import layer_norm

Task = Literal["masked-lm", "sequence-classification", "token-classification"]


class Names(NamedTuple):
    """How the modules of a class are called."""

    stem: str
    layers: str = "encoder.layer"
    query: str = "attention.self.query"
    key: str = "attention.self.key"
    value: str = "attention.self.value"
    attended: str = "attention.output.dense"
    attended_norm: str = "attention.output.LayerNorm"
    up: str = "intermediate.dense"
    down: str = "output.dense"
    down_norm: str = "output.LayerNorm"


BERT = Names("bert")


@dataclass(frozen=True)
class EncoderDims(Dims):
    """Sizes of an encoder, and which head is on it."""

    names: Names = BERT
    embedding_size: int = 0
    """Width of the embeddings; a matrix widens them if it is not `hidden_size`."""
    max_position_embeddings: int = 0
    type_vocab_size: int = 0
    """Kinds of segment; 0 for a model that has none."""
    counted_positions: bool = False
    """Positions are counted from the tokens that are no padding, as in RoBERTa."""
    hidden_dropout: float = 0.0
    attended_dropout: float = 0.0
    """Dropout behind the projection after attention."""
    classifier_dropout: float = 0.0
    task: Task = "masked-lm"
    num_labels: int = 2


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    c = m.c
    x = embeddings(m, ids)
    mask = bidirectional_mask(m, x.dtype)
    if c.embedding_size != c.hidden_size:
        x = m.linear(f"{c.names.stem}.embeddings_project", x, c.hidden_size, True)
    embedded = x
    for layer in m.layers(f"{c.names.stem}.{c.names.layers}", c.kinds):
        x = layer(block, x, mask)
    del embedded  # the model's frame holds them until the layers are done
    return x


def embeddings(m: Modules, ids: Tensor) -> Tensor:
    """Words, kinds of segment and positions, added, normed and dropped out."""
    c = m.c
    stem, width, rows = f"{c.names.stem}.embeddings", c.embedding_size, m.rows if c.counted_positions else m.length
    positions = (
        counted_positions(m)
        if c.counted_positions
        else Tensor((m.length,), "i64", Standing((m.length,), "i64", "positions"))
    )
    segments = empty((rows,), "i64", "gather") if c.type_vocab_size else None
    words = m.embedding(f"{stem}.word_embeddings", ids, c.vocab_size, width)
    x = words
    if segments is not None:
        # looked up for one sequence if all have the same positions, then laid out for each
        kinds = m.embedding(
            f"{stem}.token_type_embeddings", view(segments, (m.rows,)), c.type_vocab_size, width, "other"
        )
        x = add(words, kinds)
    places = m.embedding(f"{stem}.position_embeddings", positions, c.max_position_embeddings, width, "other")
    x = add(x, places) if places.shape == x.shape else add_broadcast(x, places)
    x = layer_norm(m, f"{stem}.LayerNorm", x)
    return dropout(x, c.hidden_dropout)


def counted_positions(m: Modules) -> Tensor:
    """The number of each token among those that are no padding."""
    kept = empty((m.rows,), "bool", "ne")
    mask = empty((m.rows,), "i32", "_to_copy")
    del kept
    sums = empty((m.rows,), "i64", "cumsum")
    lowered = empty((m.rows,), "i32", "_to_copy")
    del sums
    shifted = empty((m.rows,), "i32", "add")
    del lowered
    counted = empty((m.rows,), "i32", "mul")
    del mask, shifted
    raised = empty((m.rows,), "i64", "_to_copy")
    del counted
    places = empty((m.rows,), "i64", "add")
    del raised
    return places


def block(m: Modules, x: Tensor, mask: Tensor | None) -> Tensor:
    """One layer."""
    c = m.c
    names = c.names
    y = self_attention(m, x, mask)
    y = dropout(m.linear(names.attended, y, c.hidden_size, True), c.attended_dropout)
    attended = layer_norm(m, names.attended_norm, add(y, x))
    del y
    wide = activated(m, m.linear(names.up, attended, c.intermediate_size, True), c.hidden_act)
    y = m.linear(names.down, wide, c.hidden_size, True)
    if names.stem == "distilbert":
        del wide  # its feed-forward is one function that names every step alike
    y = dropout(y, c.hidden_dropout)
    return layer_norm(m, names.down_norm, add(y, attended))


def self_attention(m: Modules, x: Tensor, mask: Tensor | None) -> Tensor:
    """Every token with every token."""
    c = m.c
    heads, width = c.num_attention_heads, c.num_attention_heads * c.head_dim
    q = split(m, m.linear(c.names.query, x, width, True), heads, c.head_dim)
    k = split(m, m.linear(c.names.key, x, width, True), heads, c.head_dim)
    v = split(m, m.linear(c.names.value, x, width, True), heads, c.head_dim)
    return attention(m, q, k, v, mask, dropout_p=c.attention_dropout, eager=Eager(wide_softmax=False, lowered=False))


def loss(m: Modules, x: Tensor) -> tuple[Tensor, Tensor]:
    """Hidden states to the loss of the task and the logits."""
    active.ledger.kind = LOGITS
    logits = LOGITS_OF[m.c.task](m, x)
    return cross_entropy_of(m, logits), logits


def cross_entropy_of(m: Modules, logits: Tensor) -> Tensor:
    """CrossEntropyLoss in the dtype of the logits, under autocast its second half in fp32."""
    rows = (logits.shape[0],)
    labels = Tensor(rows, "i64", Standing(rows, "i64", "labels"))  # an input of the step, like the token ids
    shares = log_softmax(logits)
    return nll_loss(shares if m.recipe.autocast is None else cast(shares, "fp32"), labels)


def masked_lm_logits(m: Modules, x: Tensor) -> Tensor:
    """A transformation, and the input embeddings once more, with a bias."""
    c = m.c
    dense, norm, decoder, bias = MASKED_LM_HEADS[c.names.stem]
    x = activated(
        m,
        m.linear(dense, x, c.embedding_size, True),
        "gelu" if c.names.stem in ("roberta", "data2vec_text", "electra") else c.hidden_act,
    )
    x = layer_norm(m, norm, x)
    rows = (c.vocab_size,)
    if c.tie_word_embeddings:
        return m.product(x, m.tied(), m.weight(bias, rows, "bias"))
    table = m.weight(f"{decoder}.weight", (c.vocab_size, c.embedding_size), "head")
    if c.names.stem not in ("albert", "deberta"):
        return m.product(x, table, m.weight(bias, rows, "bias"))
    m.apart = True  # the bias that would be tied too
    m.weight(bias, rows, "bias")
    m.apart = False
    return m.product(x, table, m.weight(f"{decoder}.bias", rows, "bias"))


MASKED_LM_HEADS: Mapping[str, tuple[str, str, str, str]] = {
    "deberta": (
        "cls.predictions.transform.dense",
        "cls.predictions.transform.LayerNorm",
        "cls.predictions.decoder",
        "cls.predictions.bias",
    ),
    "bert": (
        "cls.predictions.transform.dense",
        "cls.predictions.transform.LayerNorm",
        "cls.predictions.decoder",
        "cls.predictions.bias",
    ),
    "roberta": ("lm_head.dense", "lm_head.layer_norm", "lm_head.decoder", "lm_head.bias"),
    "data2vec_text": ("lm_head.dense", "lm_head.layer_norm", "lm_head.decoder", "lm_head.bias"),
    "electra": (
        "generator_predictions.dense",
        "generator_predictions.LayerNorm",
        "generator_lm_head",
        "generator_lm_head.bias",
    ),
    "albert": ("predictions.dense", "predictions.LayerNorm", "predictions.decoder", "predictions.bias"),
    "distilbert": ("vocab_transform", "vocab_layer_norm", "vocab_projector", "vocab_projector.bias"),
}
"""Transformation, norm, product and bias of the masked-language head, by the class's stem."""


def sequence_logits(m: Modules, x: Tensor) -> Tensor:
    """The first token of each sequence, through the class's own classifier."""
    c = m.c
    x = part(reshape(x, (m.rows, c.hidden_size)), (m.batch, c.hidden_size))
    dense, act, classifier, dropped = CLASSIFIERS[c.names.stem]
    if dropped:
        x = dropout(x, c.classifier_dropout)
    x = m.linear(dense, x, c.hidden_size, True, role="other")
    x = from_output(x, act) if act in ("tanh", "relu") else activated(m, x, act)
    x = dropout(x, c.classifier_dropout)
    return m.linear(classifier, x, c.num_labels, True, role="head")


CLASSIFIERS: Mapping[str, tuple[str, str, str, bool]] = {
    "bert": ("bert.pooler.dense", "tanh", "classifier", False),
    "roberta": ("classifier.dense", "tanh", "classifier.out_proj", True),
    "data2vec_text": ("classifier.dense", "tanh", "classifier.out_proj", True),
    "electra": ("classifier.dense", "gelu", "classifier.out_proj", True),
    "albert": ("albert.pooler", "tanh", "classifier", False),
    "distilbert": ("pre_classifier", "relu", "classifier", False),
}
"""First matrix, activation and last matrix of the classifier of sequences, and whether it drops out first, by the class's stem."""


def token_logits(m: Modules, x: Tensor) -> Tensor:
    """Every token, classified."""
    return m.linear("classifier", dropout(x, m.c.classifier_dropout), m.c.num_labels, True, role="head")


LOGITS_OF: Mapping[Task, Callable[[Modules, Tensor], Tensor]] = {
    "masked-lm": masked_lm_logits,
    "sequence-classification": sequence_logits,
    "token-classification": token_logits,
}


def task(config: Config) -> dict[str, Any]:
    """Which head the config's `architectures` name, and how many labels it tells apart."""
    named = " ".join(config.texts("architectures", default=None))
    kind: Task = "masked-lm"
    if "ForSequenceClassification" in named:
        kind = "sequence-classification"
    elif "ForTokenClassification" in named:
        kind = "token-classification"
    elif "ForMaskedLM" not in named and named:
        config.notes.append(f"architectures names {named[:60]}; the masked-language head is taken")
    labels = config.given("id2label")
    return {
        "task": kind,
        "num_labels": len(labels)
        if isinstance(labels, dict) and labels
        else config.integer("num_labels", default=2, high=10**6),
    }


def _dims(
    config: Config,
    *,
    names: Names,
    vocab_size: int,
    hidden_size: int,
    layers: int,
    heads: int,
    inner: int,
    counted: bool = False,
    embedding_size: int | None = None,
) -> Dims:
    hidden = config.integer("hidden_size", default=hidden_size)
    count = config.integer("num_attention_heads", default=heads, high=4096)
    if hidden // count * count != hidden:
        raise ConfigError("num_attention_heads", f"should divide hidden_size ({hidden}), not {count}")
    depth = config.integer("num_hidden_layers", default=layers, high=2000)
    if config.boolean("is_decoder", default=False):
        raise ConfigError("is_decoder", "should be false: the encoder as a decoder is not modelled")
    dropped = config.number("hidden_dropout_prob", default=0.1, low=0.0, high=1.0)
    last = config.given("classifier_dropout")
    return EncoderDims(
        vocab_size=config.integer("vocab_size", default=vocab_size),
        hidden_size=hidden,
        intermediate_size=config.integer("intermediate_size", default=inner),
        num_hidden_layers=depth,
        num_attention_heads=count,
        num_key_value_heads=count,
        head_dim=hidden // count,
        tie_word_embeddings=config.boolean("tie_word_embeddings", default=True),
        hidden_act=activation_name(config, "hidden_act", default="gelu"),
        attention_dropout=config.number("attention_probs_dropout_prob", default=0.1, low=0.0, high=1.0),
        kinds=("full",) * depth,
        names=names,
        embedding_size=hidden if embedding_size is None else config.integer("embedding_size", default=embedding_size),
        max_position_embeddings=config.integer("max_position_embeddings", default=512),
        type_vocab_size=config.integer("type_vocab_size", default=2, high=10**6),
        counted_positions=counted,
        hidden_dropout=dropped,
        attended_dropout=dropped,
        classifier_dropout=dropped if last is None else config.number("classifier_dropout", low=0.0, high=1.0),
        **task(config),
    )


def distilbert_dims(config: Config) -> Dims:
    """DistilBertConfig's fields and defaults."""
    hidden = config.integer("dim", "hidden_size", default=768)
    heads = config.integer("n_heads", "num_attention_heads", default=12, high=4096)
    if hidden // heads * heads != hidden:
        raise ConfigError("n_heads", f"should divide dim ({hidden}), not {heads}")
    depth = config.integer("n_layers", "num_hidden_layers", default=6, high=2000)
    return EncoderDims(
        vocab_size=config.integer("vocab_size", default=30522),
        hidden_size=hidden,
        intermediate_size=config.integer("hidden_dim", default=3072),
        num_hidden_layers=depth,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        head_dim=hidden // heads,
        tie_word_embeddings=config.boolean("tie_word_embeddings", default=True),
        hidden_act=activation_name(config, "activation", default="gelu"),
        attention_dropout=config.number("attention_dropout", default=0.1, low=0.0, high=1.0),
        kinds=("full",) * depth,
        names=Names(
            "distilbert", "transformer.layer", "attention.q_lin", "attention.k_lin", "attention.v_lin", "attention.out_lin", "sa_layer_norm",
            "ffn.lin1", "ffn.lin2", "output_layer_norm",
        ),
        embedding_size=hidden,
        max_position_embeddings=config.integer("max_position_embeddings", default=512),
        hidden_dropout=config.number("dropout", default=0.1, low=0.0, high=1.0),
        classifier_dropout=config.number("seq_classif_dropout", default=0.2, low=0.0, high=1.0),
        **task(config),
    )  # fmt: skip


def id_buffers(dims: EncoderDims, size: int) -> int:
    """Numbers of the positions, and of the segments if there are any."""
    return 8 * dims.max_position_embeddings * (2 if dims.type_vocab_size else 1)


FAMILIES = (
    Family(
        id="bert",
        types={"bert": "BERT"},
        dims=partial(_dims, names=BERT, vocab_size=30522, hidden_size=768, layers=12, heads=12, inner=3072),
        body=body,
        loss=loss,
        buffers=id_buffers,
        source="transformers 5.24.0, models/bert/modeling_bert.py",
    ),
    Family(
        id="roberta",
        types={"roberta": "RoBERTa"},
        dims=partial(
            _dims,
            names=Names("roberta"),
            vocab_size=50265,
            hidden_size=768,
            layers=12,
            heads=12,
            inner=3072,
            counted=True,
        ),
        body=body,
        loss=loss,
        buffers=id_buffers,
        source="transformers 5.24.0, models/roberta/modeling_roberta.py",
    ),
    Family(
        id="xlm-roberta",
        types={"xlm-roberta": "XLM-RoBERTa", "camembert": "CamemBERT"},
        dims=partial(
            _dims,
            names=Names("roberta"),
            vocab_size=30522,
            hidden_size=768,
            layers=12,
            heads=12,
            inner=3072,
            counted=True,
        ),
        body=body,
        loss=loss,
        buffers=id_buffers,
        source="transformers 5.24.0, models/xlm_roberta/modeling_xlm_roberta.py",
    ),
    Family(
        id="data2vec-text",
        types={"data2vec-text": "data2vec"},
        dims=partial(
            _dims,
            names=Names("data2vec_text"),
            vocab_size=30522,
            hidden_size=768,
            layers=12,
            heads=12,
            inner=3072,
            counted=True,
        ),
        body=body,
        loss=loss,
        buffers=id_buffers,
        gaps=frozenset(("releases before 5", "other losses")),
        source="transformers 5.24.0, models/data2vec/modeling_data2vec_text.py",
    ),
    Family(
        id="electra",
        types={"electra": "ELECTRA"},
        dims=partial(
            _dims,
            names=Names("electra"),
            vocab_size=30522,
            hidden_size=256,
            layers=12,
            heads=4,
            inner=1024,
            embedding_size=128,
        ),
        body=body,
        loss=loss,
        buffers=id_buffers,
        source="transformers 5.24.0, models/electra/modeling_electra.py",
    ),
    Family(
        id="distilbert",
        types={"distilbert": "DistilBERT"},
        dims=distilbert_dims,
        body=body,
        loss=loss,
        buffers=id_buffers,
        source="transformers 5.24.0, models/distilbert/modeling_distilbert.py",
    ),
)
