"""ALBERT: BERT's attention and feed-forward, in groups whose weights every layer of the group uses again.

Mirrors transformers 5.24.0 models/albert/modeling_albert.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from calc.autograd.elementwise import add, dropout
from calc.autograd.tensor import Tensor
from calc.model.activations import activated, activation_name
from calc.model.attention import Eager, attention, bidirectional_mask, split
from calc.model.bert import EncoderDims, Names, embeddings, id_buffers, loss, task
from calc.model.config import Config, ConfigError
from calc.model.decoder import share
from calc.model.family import Dims, Family
from calc.model.modules import Modules
from calc.model.norms import layer_norm
from calc.model.sequence import sharing_kinds


@dataclass(frozen=True)
class AlbertDims(EncoderDims):
    """Sizes, and how many sets of weights a layer of a group has."""

    inner_group_num: int = 1


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    c = m.c
    embedded = embeddings(m, ids)
    mask = bidirectional_mask(m, embedded.dtype)
    x = m.linear("albert.encoder.embedding_hidden_mapping_in", embedded, c.hidden_size, True)
    for layer, kind in zip(m.layers("albert.encoder.layers", c.kinds), c.kinds, strict=True):
        x = layer(group, x, mask, kind.split()[1])
    del embedded
    return x


def group(m: Modules, x: Tensor, mask: Tensor | None, number: str) -> Tensor:
    """One layer, which runs all of its group's weights. They belong to no layer of their own."""
    before, m.block, m.prefix = (m.block, m.prefix), None, ""
    for inner in range(m.c.inner_group_num):
        x = block(m, x, mask, f"albert.encoder.albert_layer_groups.{number}.albert_layers.{inner}")
    m.block, m.prefix = before
    return x


def block(m: Modules, x: Tensor, mask: Tensor | None, name: str) -> Tensor:
    """Attention and feed-forward, with a norm behind each."""
    attended = self_attention(m, x, mask, f"{name}.attention")
    fed = mlp(m, attended, name)
    y = layer_norm(m, f"{name}.full_layer_layer_norm", add(fed, attended))
    del fed
    return y


def self_attention(m: Modules, x: Tensor, mask: Tensor | None, name: str) -> Tensor:
    """Every token with every token, and the sum with what came in."""
    c = m.c
    heads, width = c.num_attention_heads, c.num_attention_heads * c.head_dim
    q = split(m, m.linear(f"{name}.query", x, width, True), heads, c.head_dim)
    k = split(m, m.linear(f"{name}.key", x, width, True), heads, c.head_dim)
    v = split(m, m.linear(f"{name}.value", x, width, True), heads, c.head_dim)
    y = attention(m, q, k, v, mask, dropout_p=c.attention_dropout, eager=Eager(wide_softmax=False, lowered=False))
    y = m.linear(f"{name}.dense", y, c.hidden_size, True)
    y = dropout(y, c.hidden_dropout)
    y = layer_norm(m, f"{name}.LayerNorm", add(x, y))
    del q, k, v
    return y


def mlp(m: Modules, x: Tensor, name: str) -> Tensor:
    """Feed-forward without a gate."""
    y = m.linear(f"{name}.ffn", x, m.c.intermediate_size, True)
    y = activated(m, y, m.c.hidden_act)
    return m.linear(f"{name}.ffn_output", y, m.c.hidden_size, True)


def group_kinds(layers: int, groups: int) -> tuple[str, ...]:
    """The group of each layer, which shares its weights with the others of the group."""
    numbers = [i * groups // layers for i in range(layers)]
    return tuple([kind for n in range(groups) for kind in sharing_kinds(f"group {n}", numbers.count(n))])


def dims(config: Config) -> Dims:
    """AlbertConfig's fields and defaults."""
    hidden = config.integer("hidden_size", default=4096)
    heads = config.integer("num_attention_heads", default=64, high=4096)
    if hidden // heads * heads != hidden:
        raise ConfigError("num_attention_heads", f"should divide hidden_size ({hidden}), not {heads}")
    depth = config.integer("num_hidden_layers", default=12, high=2000)
    groups = config.integer("num_hidden_groups", default=1, high=2000)
    if groups > depth:
        raise ConfigError("num_hidden_groups", f"should not exceed num_hidden_layers ({depth}), not {groups}")
    return AlbertDims(
        vocab_size=config.integer("vocab_size", default=30000),
        hidden_size=hidden,
        intermediate_size=config.integer("intermediate_size", default=16384),
        num_hidden_layers=depth,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        head_dim=hidden // heads,
        tie_word_embeddings=config.boolean("tie_word_embeddings", default=True),
        hidden_act=activation_name(config, "hidden_act", default="gelu_new"),
        attention_dropout=share(config, "attention_probs_dropout_prob"),
        kinds=group_kinds(depth, groups),
        names=Names("albert"),
        embedding_size=config.integer("embedding_size", default=128),
        max_position_embeddings=config.integer("max_position_embeddings", default=512),
        type_vocab_size=config.integer("type_vocab_size", default=2, high=10**6),
        hidden_dropout=share(config, "hidden_dropout_prob"),
        classifier_dropout=share(config, "classifier_dropout_prob", default=0.1),
        inner_group_num=config.integer("inner_group_num", default=1, high=2000),
        **task(config),
    )


GAPS = frozenset(("releases before 5", "other losses"))
"""What is not modelled of these classes."""

FAMILIES = (
    Family(
        id="albert",
        types={"albert": "ALBERT"},
        dims=dims,
        body=body,
        loss=loss,
        gaps=GAPS,
        buffers=id_buffers,
        checkpoints=False,
        source="transformers 5.24.0, models/albert/modeling_albert.py",
    ),
)
