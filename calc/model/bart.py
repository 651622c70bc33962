"""BART and the encoder-decoders built like it: mBART, PEGASUS, Marian, PLBART, Blenderbot, M2M100 (NLLB). They differ in where the norms stand and
in how positions are made.

Source and target have `seq_len` tokens each. A layer that layerdrop may skip is taken to run. Mirrors transformers 5.24.0 models/bart/modeling_bart.py
and the others of that name.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

from calc.autograd.elementwise import add, add_broadcast, dropout, scale
from calc.autograd.lookup import embedding
from calc.autograd.storage import LOGITS, Standing, active
from calc.autograd.tensor import Tensor, empty
from calc.model.activations import activated, activation_name
from calc.model.attention import Eager, attention, bidirectional_mask, split
from calc.model.bert import counted_positions, cross_entropy_of
from calc.model.config import Config, ConfigError
from calc.model.decoder import share
from calc.model.family import Dims, Family
from calc.model.gpt2 import with_positions
from calc.model.modules import Modules
from calc.model.norms import layer_norm
from calc.model.sequence import own_mask, shifted_right, stack_kinds


class Dialect(NamedTuple):
    """How a class differs from BART."""

    positions: Literal["offset", "learned", "frozen", "computed"] = "offset"
    """A trained table with two rows in front, a trained table, a fixed table that counts as parameters, or a buffer."""
    pre_norm: bool = False
    """Norms stand before each half of a layer, and one behind each stack."""
    normed_embeddings: bool = True
    words_normed_alone: bool = False
    """In the decoder the norm of the embeddings stands before positions are added, and in place of their factor."""
    scaled_outside: bool = False
    """The stack, and not the embedding module, multiplies the embeddings."""
    keeps_ids: bool = True
    """The decoder's frame holds the numbers of its positions."""
    keeps_ones: bool = True
    """It holds the mask of ones, too, that it makes where it is given none."""
    logits_bias: bool = True
    """A buffer is added to the logits."""


BART = Dialect(keeps_ones=False)


@dataclass(frozen=True)
class BartDims(Dims):
    """Sizes of both stacks: those of `Dims` are the encoder's."""

    dialect: Dialect = BART
    decoder_attention_heads: int = 0
    decoder_ffn_dim: int = 0
    max_position_embeddings: int = 0
    dropout: float = 0.1
    activation_dropout: float = 0.0


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) of the source to the decoder's hidden states (rows, hidden_size)."""
    target = shifted_right(m)
    if not m.c.tie_word_embeddings:
        m.apart = True  # a table that nothing looks up
        m.weight("model.shared.weight", (m.c.vocab_size, m.c.hidden_size), "embedding")
        m.apart = False
    source = stack(m, "encoder", ids, None)
    x = stack(m, "decoder", target, source)
    m.seen[:] = [source]
    m.returned[:] = [target]
    return x


def stack(m: Modules, name: str, ids: Tensor, source: Tensor | None) -> Tensor:
    """Encoder, or decoder beside the encoder's result."""
    c = m.c
    how: Dialect = c.dialect
    kinds = [kind for kind in c.kinds if kind.startswith(name)]
    table = "model.shared" if c.tie_word_embeddings else f"model.{name}.embed_tokens"
    x = m.asked(m.embedding(table, ids, c.vocab_size, c.hidden_size, scaled=not how.scaled_outside))
    alone = how.words_normed_alone and source is not None
    if how.scaled_outside and not alone:
        x = scale(x)
    inputs_embeds = x
    counted = ones = mask = cross_mask = None
    if source is not None:
        counted = _counted(m)
        ones = empty((m.rows,), "fp32", "ones")
        mask, cross_mask = own_mask(m, x.dtype), bidirectional_mask(m, x.dtype)
        if not how.keeps_ones:
            ones = None
    positions = placed(m, f"model.{name}.embed_positions", counted)
    if not how.keeps_ids:
        counted = None
    if alone:
        x = inputs_embeds = layer_norm(m, f"model.{name}.layernorm_embedding", x)
    x = add(x, positions) if positions.shape == x.shape else with_positions(m, x, positions)
    if how.normed_embeddings and not alone:
        x = layer_norm(m, f"model.{name}.layernorm_embedding", x)
    x = dropout(x, c.dropout)
    if source is None:
        mask = bidirectional_mask(m, inputs_embeds.dtype)
    for layer in m.layers(f"model.{name}.layers", kinds):
        x = layer(block, x, mask, source, cross_mask)
    if how.pre_norm:
        x = layer_norm(m, f"model.{name}.layer_norm", x)
    del inputs_embeds, positions, counted, ones
    return x


def _counted(m: Modules) -> Tensor:
    """0, 1, 2, ... plus the length of a cache that is not there."""
    first = empty((m.length,), "i64", "arange")
    counted = empty((m.length,), "i64", "add")
    del first
    return counted


def placed(m: Modules, name: str, counted: Tensor | None) -> Tensor:
    """What stands for the positions: (length, hidden_size), or one for each token where each sequence is counted for itself."""
    c = m.c
    width, rows = c.hidden_size, c.max_position_embeddings
    if c.dialect.positions == "computed":
        ids = counted_positions(m)
        result = empty((m.rows, width), m.recipe.dtype, "index_select")
        del ids
        return result
    if c.dialect.positions == "offset":
        first = empty((m.length,), "i64", "arange") if counted is None else counted
        moved = empty((m.rows if counted is None else m.length,), "i64", "add")
        result = m.embedding(name, moved, rows + 2, width, "other")
        del first
        return result
    if counted is None:
        counted = empty((m.length,), "i64", "arange")
    if c.dialect.positions == "learned":
        return m.embedding(name, counted, rows, width, "other")
    return embedding(m.weight(f"{name}.weight", (rows, width), "other", trainable=False), counted)


def block(m: Modules, x: Tensor, mask: Tensor | None, source: Tensor | None, cross_mask: Tensor | None) -> Tensor:
    """One layer: attention to its own stack, in a decoder attention to the encoder, feed-forward."""
    c = m.c
    x = attended(m, x, "self_attn", None, mask)
    if source is not None:
        x = attended(m, x, "encoder_attn", source, cross_mask)
        m.held[:] = m.held[-1:]
    width = c.intermediate_size if m.prefix.startswith("model.encoder") else c.decoder_ffn_dim
    residual = x
    if c.dialect.pre_norm:
        x = layer_norm(m, "final_layer_norm", x)
    x = activated(m, m.linear("fc1", x, width, True), c.hidden_act)
    x = dropout(x, c.activation_dropout)
    x = m.linear("fc2", x, c.hidden_size, True)
    x = dropout(x, c.dropout)
    x = add(residual, x)
    return x if c.dialect.pre_norm else layer_norm(m, "final_layer_norm", x)


def attended(m: Modules, x: Tensor, name: str, source: Tensor | None, mask: Tensor | None) -> Tensor:
    """Attention, a dropout and the sum, with a norm before or behind."""
    residual = x
    if m.c.dialect.pre_norm:
        x = layer_norm(m, f"{name}_layer_norm", x)
    x = attend(m, name, x, source, mask)
    x = dropout(x, m.c.dropout)
    x = add(residual, x)
    return x if m.c.dialect.pre_norm else layer_norm(m, f"{name}_layer_norm", x)


def attend(m: Modules, name: str, x: Tensor, source: Tensor | None, mask: Tensor | None) -> Tensor:
    """Attention with a bias on every projection; its softmax keeps the dtype."""
    c = m.c
    h = c.hidden_size
    heads = c.num_attention_heads if m.prefix.startswith("model.encoder") else c.decoder_attention_heads
    d = h // heads
    states = x if source is None else source
    q = split(m, m.linear(f"{name}.q_proj", x, h, True), heads, d)
    k = split(m, m.linear(f"{name}.k_proj", states, h, True), heads, d)
    v = split(m, m.linear(f"{name}.v_proj", states, h, True), heads, d)
    out = attention(m, q, k, v, mask, dropout_p=c.attention_dropout, eager=Eager(wide_softmax=False, lowered=False))
    return m.linear(f"{name}.out_proj", out, h, True)


def loss(m: Modules, x: Tensor) -> tuple[Tensor, Tensor]:
    """The decoder's hidden states to the loss and the logits."""
    c = m.c
    active.ledger.kind = LOGITS
    logits = m.product(x, m.tied()) if c.tie_word_embeddings else m.linear("lm_head", x, c.vocab_size, role="head")
    if c.dialect.logits_bias:
        shape = (1, c.vocab_size)
        logits = add_broadcast(logits, Tensor(shape, m.recipe.dtype, Standing(shape, m.recipe.dtype, "buffer")))
    result = cross_entropy_of(m, logits)
    m.returned.clear()
    return result, logits


def buffers(dims: BartDims, size: int) -> int:
    """The bias of the logits, and computed positions of both stacks."""
    computed = 2 * (dims.max_position_embeddings + 2) * dims.hidden_size if dims.dialect.positions == "computed" else 0
    return size * ((dims.vocab_size if dims.dialect.logits_bias else 0) + computed)


class Sizes(NamedTuple):
    """A class's own defaults."""

    vocab_size: int = 50265
    width: int = 1024
    inner: int = 4096
    layers: int = 12
    decoder_layers: int = 12
    heads: int = 16
    positions: int = 1024
    act: str = "gelu"
    attention_dropout: float = 0.0


def dims(config: Config, *, own: Sizes, dialect: Dialect) -> Dims:
    """BartConfig's fields, and those of the classes like it."""
    h = config.integer("d_model", "hidden_size", default=own.width)
    heads = config.integer("encoder_attention_heads", "num_attention_heads", default=own.heads, high=4096)
    decoder_heads = config.integer("decoder_attention_heads", default=own.heads, high=4096)
    for field, count in (("encoder_attention_heads", heads), ("decoder_attention_heads", decoder_heads)):
        if h // count * count != h:
            raise ConfigError(field, f"should divide d_model ({h}), not {count}")
    layers = config.integer("encoder_layers", default=own.layers, high=2000)
    decoder_layers = config.integer("decoder_layers", default=own.decoder_layers, high=2000)
    if not config.boolean("share_encoder_decoder_embeddings", default=True):
        raise ConfigError("share_encoder_decoder_embeddings", "should be true: two vocabularies are not modelled")
    return BartDims(
        vocab_size=config.integer("vocab_size", default=own.vocab_size),
        hidden_size=h,
        intermediate_size=config.integer("encoder_ffn_dim", default=own.inner),
        num_hidden_layers=layers + decoder_layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        head_dim=h // heads,
        tie_word_embeddings=config.boolean("tie_word_embeddings", default=True),
        hidden_act=activation_name(config, "activation_function", default=own.act),
        attention_dropout=share(config, "attention_dropout", default=own.attention_dropout),
        kinds=stack_kinds(layers, decoder_layers),
        dialect=dialect,
        decoder_attention_heads=decoder_heads,
        decoder_ffn_dim=config.integer("decoder_ffn_dim", default=own.inner),
        max_position_embeddings=config.integer("max_position_embeddings", default=own.positions),
        dropout=share(config, "dropout", default=0.1),
        activation_dropout=share(config, "activation_dropout", default=0.0),
    )


_CLASSES: tuple[tuple[str, str, Sizes, Dialect], ...] = (
    ("bart", "BART", Sizes(), BART),
    ("mbart", "mBART", Sizes(), Dialect(pre_norm=True, keeps_ids=False)),
    (
        "plbart",
        "PLBART",
        Sizes(50005, 768, 3072, 6, 6, 12, attention_dropout=0.1),
        BART,
    ),
    (
        "pegasus",
        "PEGASUS",
        Sizes(),
        Dialect("frozen", pre_norm=True, normed_embeddings=False, scaled_outside=True),
    ),
    (
        "marian",
        "Marian",
        Sizes(58101),
        Dialect("frozen", normed_embeddings=False, scaled_outside=True, keeps_ids=False),
    ),
    (
        "blenderbot",
        "Blenderbot",
        Sizes(8008, 2560, 10240, 2, 24, 32, 128),
        Dialect("learned", pre_norm=True, normed_embeddings=False, keeps_ids=False),
    ),
    (
        "blenderbot-small",
        "BlenderbotSmall",
        Sizes(width=512, inner=2048, layers=8, decoder_layers=8, positions=512),
        Dialect("learned", words_normed_alone=True, scaled_outside=True, keeps_ids=False),
    ),
    (
        "m2m_100",
        "M2M100",
        Sizes(128112, act="relu", attention_dropout=0.1),
        Dialect(
            "computed", pre_norm=True, normed_embeddings=False, keeps_ids=False, keeps_ones=False, logits_bias=False
        ),
    ),
)
"""Model type, the name that people know, the class's defaults, and how it differs from BART."""

GAPS = frozenset(("fp16 weights", "releases before 5", "other losses"))
"""What is not modelled of these classes."""

FAMILIES = tuple(
    Family(
        id=model_type,
        types={model_type: name},
        dims=partial(dims, own=own, dialect=dialect),
        body=body,
        loss=loss,
        gaps=GAPS,
        buffers=buffers,
        source=f"transformers 5.24.0, models/{model_type.replace('-', '_')}/modeling_{model_type.replace('-', '_')}.py",
    )
    for model_type, name, own, dialect in _CLASSES
)
