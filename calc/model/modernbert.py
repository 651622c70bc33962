"""ModernBERT: an encoder with rotary positions, norms in front, gated feed-forwards, and windows around most tokens.

Mirrors transformers 5.24.0 models/modernbert/modeling_modernbert.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from calc.autograd.elementwise import add, cast, dropout, mul
from calc.autograd.shapes import part, reshape, unbound
from calc.autograd.shapes import split as pieces
from calc.autograd.storage import LOGITS, active
from calc.autograd.tensor import Tensor, empty
from calc.model.activations import activated, activation_name
from calc.model.attention import attention, bidirectional_mask
from calc.model.bert import Task, cross_entropy_of, task
from calc.model.config import Config, ConfigError
from calc.model.decoder import layer_kinds, share
from calc.model.family import Dims, Family, rotary_buffers
from calc.model.modules import Modules
from calc.model.norms import layer_norm
from calc.model.rotary import Rotation, rotate_half, rotation


@dataclass(frozen=True)
class ModernBertDims(Dims):
    """Sizes, dropouts, and which head is on it."""

    norm_bias: bool = False
    embedding_dropout: float = 0.0
    mlp_dropout: float = 0.0
    classifier_dropout: float = 0.0
    classifier_bias: bool = False
    classifier_activation: str = "gelu"
    decoder_bias: bool = True
    task: Task = "masked-lm"
    num_labels: int = 2


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    c = m.c
    norm = partial(layer_norm, m, bias=c.norm_bias)
    counted = empty((m.length,), "i64", "arange")
    x = m.embedding("model.embeddings.tok_embeddings", ids, c.vocab_size, c.hidden_size)
    x = dropout(norm("model.embeddings.norm", x), c.embedding_dropout)
    embedded = x
    masks = {"full": bidirectional_mask(m, x.dtype), "sliding": window_mask(m, x.dtype)}
    types = sorted({kind.partition(" ")[0] for kind in c.kinds})
    positions = {kind: rotation(m, x.dtype, c.head_dim, counted)._replace(position_ids=None) for kind in types}
    for layer, kind in zip(m.layers("model.layers", c.kinds), c.kinds, strict=True):
        seen, _, first = kind.partition(" ")
        x = layer(block, x, masks[seen], positions[seen], bool(first))
    x = norm("model.final_norm", x)
    del counted, embedded  # names of the model's frame
    return x


def window_mask(m: Modules, dtype: str) -> Tensor | None:
    """The mask of the layers that see a window: none if it is wider than the sequence and nothing is padding."""
    if m.recipe.attention.startswith("flash"):
        return None
    if m.length < m.c.sliding_window:
        return bidirectional_mask(m, dtype)
    shape = (m.batch, 1, m.length, m.length)
    if m.recipe.attention == "eager" or m.recipe.padded:
        return empty(shape, dtype if m.recipe.attention == "eager" else "bool", "mask")
    return reshape(empty((1, *shape[1:]), "bool", "mask"), shape)


def block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation, first: bool) -> Tensor:
    """One layer; the first has no norm before its attention."""
    c = m.c
    attended = self_attention(m, x if first else layer_norm(m, "attn_norm", x, bias=c.norm_bias), mask, positions)
    x = add(x, attended)
    x = add(x, mlp(m, layer_norm(m, "mlp_norm", x, bias=c.norm_bias)))
    del attended
    return x


def self_attention(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """Attention out of one product, rotated in fp32."""
    c = m.c
    heads, d = c.num_attention_heads, c.head_dim
    qkv = m.linear("attn.Wqkv", x, 3 * heads * d, c.attention_bias)
    q, k, v = unbound(qkv, 3, (m.batch, heads, m.length, d))
    q, k = turned(q, k, positions)
    out = attention(m, q, k, v, mask, dropout_p=c.attention_dropout)
    out = dropout(m.linear("attn.Wo", out, c.hidden_size, c.attention_bias), c.attention_dropout)
    del qkv
    return out


def turned(q: Tensor, k: Tensor, positions: Rotation) -> tuple[Tensor, Tensor]:
    """x·cos + rotate_half(x)·sin of queries and keys, in fp32."""
    wide_q, wide_k = _turned(q, positions), _turned(k, positions)
    return cast(wide_q, q.dtype), cast(wide_k, k.dtype)


def _turned(x: Tensor, positions: Rotation) -> Tensor:
    straight = mul(cast(x, "fp32"), positions.cos)
    return add(straight, mul(rotate_half(cast(x, "fp32")), positions.sin))


def mlp(m: Modules, x: Tensor) -> Tensor:
    """Gated feed-forward out of one product."""
    c = m.c
    i = c.intermediate_size
    x1, gate = pieces(m.linear("mlp.Wi", x, 2 * i, c.mlp_bias), (i, i))
    return m.linear(
        "mlp.Wo", dropout(mul(activated(m, x1, c.hidden_act), gate), c.mlp_dropout), c.hidden_size, c.mlp_bias
    )


def loss(m: Modules, x: Tensor) -> tuple[Tensor, Tensor]:
    """Hidden states to the loss of the task and the logits."""
    c = m.c
    active.ledger.kind = LOGITS
    if c.task == "masked-lm":
        table = m.tied() if c.tie_word_embeddings else m.weight("decoder.weight", (c.vocab_size, c.hidden_size), "head")
        bias = m.weight("decoder.bias", (c.vocab_size,), "bias") if c.decoder_bias else None
        logits = m.product(head(m, x), table, bias)
        return cross_entropy_of(m, cast(logits, "fp32")), logits
    if c.task == "sequence-classification":
        x = part(reshape(x, (m.rows, c.hidden_size)), (m.batch, c.hidden_size))
    x = dropout(head(m, x), c.classifier_dropout)
    logits = m.linear("classifier", x, c.num_labels, True, role="head")
    return cross_entropy_of(m, logits), logits


def head(m: Modules, x: Tensor) -> Tensor:
    """What stands in front of every task: a matrix, an activation and a norm."""
    c = m.c
    x = activated(m, m.linear("head.dense", x, c.hidden_size, c.classifier_bias), c.classifier_activation)
    return layer_norm(m, "head.norm", x, bias=c.norm_bias)


def dims(config: Config) -> Dims:
    """ModernBertConfig's fields and defaults."""
    hidden = config.integer("hidden_size", default=768)
    heads = config.integer("num_attention_heads", default=12, high=4096)
    if hidden // heads * heads != hidden:
        raise ConfigError("num_attention_heads", f"should divide hidden_size ({hidden}), not {heads}")
    depth = config.integer("num_hidden_layers", default=22, high=2000)
    if config.boolean("sparse_prediction", default=False):
        raise ConfigError("sparse_prediction", "should be false: a head over the masked tokens alone is not modelled")
    if config.text("classifier_pooling", default="cls") != "cls":
        raise ConfigError("classifier_pooling", "should be cls: the mean over tokens is not modelled")
    every = config.integer("global_attn_every_n_layers", default=3)
    kinds = layer_kinds(config, depth, lambda i: i % every != 0)
    bias = config.boolean("attention_bias", default=False)
    return ModernBertDims(
        vocab_size=config.integer("vocab_size", default=50368),
        hidden_size=hidden,
        intermediate_size=config.integer("intermediate_size", default=1152),
        num_hidden_layers=depth,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        head_dim=hidden // heads,
        tie_word_embeddings=config.boolean("tie_word_embeddings", default=True),
        hidden_act=activation_name(config, "hidden_activation", default="gelu"),
        attention_bias=bias,
        output_bias=bias,
        mlp_bias=config.boolean("mlp_bias", default=False),
        attention_dropout=share(config, "attention_dropout"),
        sliding_window=config.integer("local_attention", default=128, high=10**9) // 2,
        kinds=(f"{kinds[0]} first", *kinds[1:]),
        norm_bias=config.boolean("norm_bias", default=False),
        embedding_dropout=share(config, "embedding_dropout"),
        mlp_dropout=share(config, "mlp_dropout"),
        classifier_dropout=share(config, "classifier_dropout"),
        classifier_bias=config.boolean("classifier_bias", default=False),
        classifier_activation=activation_name(config, "classifier_activation", default="gelu"),
        decoder_bias=config.boolean("decoder_bias", default=True),
        **task(config),
    )


GAPS = frozenset(("releases before 5", "other losses"))
"""What is not modelled of these classes."""

FAMILIES = (
    Family(
        id="modernbert",
        types={"modernbert": "ModernBERT"},
        dims=dims,
        body=body,
        loss=loss,
        gaps=GAPS,
        buffers=lambda dims, size: len({kind.partition(" ")[0] for kind in dims.kinds}) * rotary_buffers(dims.head_dim),
        source="transformers 5.24.0, models/modernbert/modeling_modernbert.py",
    ),
)
