"""T5, mT5 and UMT5: an encoder and a decoder that attends to it too. Distances between tokens enter as a trained bias of the scores, which the
first layer of a stack makes for all of them, and in UMT5 each layer for itself.

Source and target have `seq_len` tokens each. Mirrors transformers 5.24.0 models/t5/modeling_t5.py and models/umt5/modeling_umt5.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from calc.autograd.elementwise import add, cast, dropout, mean, mul, rsqrt, scale, square
from calc.autograd.elementwise import add_constant as plus_number
from calc.autograd.shapes import permuted
from calc.autograd.storage import LOGITS, active
from calc.autograd.tensor import Leaf, Tensor, empty, view
from calc.model.activations import activated, known_activation
from calc.model.attention import Eager, attention, bidirectional_mask, split
from calc.model.bert import cross_entropy_of
from calc.model.config import Config, ConfigError
from calc.model.decoder import share
from calc.model.family import Dims, Family
from calc.model.modules import Modules
from calc.model.sequence import own_mask, shifted_right, stack_kinds

PLAIN = Eager(wide_softmax=False, lowered=False)


@dataclass(frozen=True)
class T5Dims(Dims):
    """Sizes of both stacks."""

    num_layers: int = 0
    """Layers of the encoder; the others of `kinds` are the decoder's."""
    num_buckets: int = 32
    """Classes of distance, each with a trained number for each head."""
    gated: bool = False
    dropout_rate: float = 0.1
    scale_decoder_outputs: bool = True
    shares_bias: bool = True
    """The first layer of a stack makes the bias for all."""


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) of the source to the decoder's hidden states (rows, hidden_size)."""
    source = stack(m, "encoder", ids, None)
    target = shifted_right(m)
    x = stack(m, "decoder", target, source)
    m.seen[:] = [source]
    m.returned[:] = [target]
    return x


def stack(m: Modules, name: str, ids: Tensor, source: Tensor | None) -> Tensor:
    """Encoder, or decoder beside the encoder's result."""
    c = m.c
    kinds = [kind for kind in c.kinds if kind.startswith(name)]
    x = inputs_embeds = m.asked(m.embedding("shared", ids, c.vocab_size, c.hidden_size))
    mask = bidirectional_mask(m, x.dtype) if source is None else own_mask(m, x.dtype)
    cross_mask = None if source is None else bidirectional_mask(m, x.dtype)
    own = cross = None
    x = dropout(x, c.dropout_rate)
    for layer in m.layers(f"{name}.block", kinds):
        x, own, cross = layer(block, x, mask, own, source, cross_mask, cross)
    x = norm(m, f"{name}.final_layer_norm", x)
    y = dropout(x, c.dropout_rate)
    del inputs_embeds, own, cross
    return y


def block(
    m: Modules,
    x: Tensor,
    mask: Tensor | None,
    own: Tensor | None,
    source: Tensor | None,
    cross_mask: Tensor | None,
    cross: Tensor | None,
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """One layer: attention to its own stack, in a decoder attention to the encoder, feed-forward. It hands on the biases that it was given, or
    made."""
    x, own = attended(m, x, "layer.0", "SelfAttention", None, mask, own)
    if source is not None:
        x, cross = attended(m, x, "layer.1", "EncDecAttention", source, cross_mask, cross)
        m.held[:] = m.held[-1:]
    return fed(m, x, "layer.1" if source is None else "layer.2"), own, cross


def attended(
    m: Modules, x: Tensor, layer: str, name: str, source: Tensor | None, mask: Tensor | None, bias: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """A norm, attention, a dropout, and the sum; with the bias that was used, if it is to be shared."""
    y = norm(m, f"{layer}.layer_norm", x)
    out, bias = attend(m, f"{layer}.{name}", y, source, mask, bias)
    return add(x, dropout(out, m.c.dropout_rate)), bias


def attend(
    m: Modules, name: str, x: Tensor, source: Tensor | None, mask: Tensor | None, bias: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """Attention whose scores are not scaled and have a bias added."""
    c = m.c
    heads, d = c.num_attention_heads, c.head_dim
    states = x if source is None else source
    q = split(m, m.linear(f"{name}.q", x, heads * d), heads, d)
    k = split(m, m.linear(f"{name}.k", states, heads * d), heads, d)
    v = split(m, m.linear(f"{name}.v", states, heads * d), heads, d)
    decodes = m.prefix.startswith("decoder")
    if bias is None:
        bias = no_bias(m, q.dtype) if source is not None else relative_bias(m, name, both_ways=not decodes)
    out = attention(
        m, q, k, v, mask, dropout_p=c.dropout_rate, eager=PLAIN, bias=bias, causal=decodes and source is None
    )
    out = m.linear(f"{name}.o", out, c.hidden_size)
    return out, bias if c.shares_bias else None


def no_bias(m: Modules, dtype: str) -> Tensor:
    """Zeros in place of a bias; T5's ask for a gradient when layers are checkpointed."""
    zeros = empty((1, m.c.num_attention_heads, m.length, m.length), dtype, "zeros", True)
    if m.recipe.checkpointing == "none" or not m.c.shares_bias:
        return zeros
    leaf = Leaf(zeros.shape, dtype, zeros.storage, True)
    if m.in_forward:
        m.contexts.append(leaf)  # the graph holds it, and its gradient, as it holds weights
    return leaf


def relative_bias(m: Modules, name: str, *, both_ways: bool) -> Tensor:
    """A trained number for each head and class of distance: (1, heads, length, length), as it lies in memory (length, length, heads)."""
    c = m.c
    first = empty((m.length,), "i64", "arange")
    rows = empty((m.length,), "i64", "add")
    del first
    columns = empty((m.length,), "i64", "arange")
    distance = empty((m.length, m.length), "i64", "sub")
    places = view(buckets(m, both_ways), (m.length * m.length,))
    values = m.embedding(f"{name}.relative_attention_bias", places, c.num_buckets, c.num_attention_heads, "other")
    del rows, columns, distance
    return permuted(values, (1, c.num_attention_heads, m.length, m.length))


def buckets(m: Modules, both_ways: bool) -> Tensor:
    """The class of each distance, counted exactly near by and by logarithm farther away."""
    square_of = (m.length, m.length)

    def made(dtype: str, op: str) -> Tensor:
        return empty(square_of, dtype, op)

    result: Tensor | None = None
    if both_ways:
        sign = made("bool", "gt")
        number = made("i64", "_to_copy")
        del sign
        share_of = made("i64", "mul")
        del number
        result = made("i64", "add")
        del share_of
        distance = made("i64", "abs")
    else:
        zeros = made("i64", "zeros_like")
        smaller = made("i64", "minimum")
        del zeros
        distance = made("i64", "neg")
        del smaller
    near = made("bool", "lt")
    x = made("fp32", "_to_copy")
    for op in ("div", "log", "div", "mul"):
        x = made("fp32", op)
    whole = made("i64", "_to_copy")
    if m.c.shares_bias:
        del x  # part of an expression; in UMT5 a name of the frame
    far = made("i64", "add")
    del whole
    last = made("i64", "full_like")
    far_enough = made("i64", "minimum")
    del last, far
    chosen = made("i64", "where")
    if result is None:
        result = made("i64", "add")
    del chosen, far_enough, near, distance
    return result


def fed(m: Modules, x: Tensor, layer: str) -> Tensor:
    """A norm, the feed-forward, a dropout, and the sum."""
    y = norm(m, f"{layer}.layer_norm", x)
    y = mlp(m, f"{layer}.DenseReluDense", y)
    return add(x, dropout(y, m.c.dropout_rate))


def mlp(m: Modules, name: str, x: Tensor) -> Tensor:
    """Feed-forward with a dropout inside, gated or not; its last layer is given the dtype of its weight, also under autocast."""
    c = m.c
    gate = up = None
    if c.gated:
        gate = activated(m, m.linear(f"{name}.wi_0", x, c.intermediate_size), c.hidden_act)
        up = m.linear(f"{name}.wi_1", x, c.intermediate_size)
        x = mul(gate, up)
    else:
        x = m.linear(f"{name}.wi", x, c.intermediate_size)
        x = activated(m, x, c.hidden_act)
    x = dropout(x, c.dropout_rate)
    x = cast(x, m.recipe.dtype)
    x = m.linear(f"{name}.wo", x, c.hidden_size)
    del gate, up
    return x


def norm(m: Modules, name: str, x: Tensor) -> Tensor:
    """x divided by its root mean square, times a weight; only the mean is taken of a copy in fp32."""
    weight = m.weight(f"{name}.weight", (x.shape[-1],), "norm")
    variance = mean(square(cast(x, "fp32")))
    y = mul(x, rsqrt(plus_number(variance)))
    if weight.dtype != "fp32":
        y = cast(y, weight.dtype)
    y = mul(weight, y)
    del variance
    return y


def loss(m: Modules, x: Tensor) -> tuple[Tensor, Tensor]:
    """The decoder's hidden states to the loss and the logits: the shared table is the head."""
    active.ledger.kind = LOGITS
    y = scale(x) if m.c.scale_decoder_outputs else x
    logits = m.product(y, m.tied())
    result = cross_entropy_of(m, logits)
    m.returned.clear()
    return result, logits


def dims(config: Config, *, defaults: dict[str, int], proj: str, scales: bool, shares_bias: bool) -> Dims:
    """T5Config's fields; each argument is the class's own default."""
    layers = config.integer("num_layers", "num_hidden_layers", default=defaults["num_layers"], high=2000)
    decoder = config.integer("num_decoder_layers", default=None, high=2000) or layers
    heads = config.integer("num_heads", "num_attention_heads", default=defaults["num_heads"], high=4096)
    name = config.text("feed_forward_proj", default=proj)
    first, _, act = name.rpartition("-")
    if first not in ("", "gated"):
        raise ConfigError(
            "feed_forward_proj", f"should be an activation, or gated- and an activation, not {name[:40]!r}"
        )
    act = "gelu_new" if name == "gated-gelu" else act
    activation = known_activation("feed_forward_proj", act)
    return T5Dims(
        vocab_size=config.integer("vocab_size", default=defaults["vocab_size"]),
        hidden_size=config.integer("d_model", "hidden_size", default=512),
        intermediate_size=config.integer("d_ff", default=defaults["d_ff"]),
        num_hidden_layers=layers + decoder,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        head_dim=config.integer("d_kv", default=64, high=65536),
        tie_word_embeddings=True,
        hidden_act=activation,
        kinds=stack_kinds(layers, decoder),
        num_layers=layers,
        num_buckets=config.integer("relative_attention_num_buckets", default=32, high=10**6),
        gated=first == "gated",
        dropout_rate=share(config, "dropout_rate", default=0.1),
        scale_decoder_outputs=scales and config.boolean("scale_decoder_outputs", "tie_word_embeddings", default=True),
        shares_bias=shares_bias,
    )


_SIZES = {"vocab_size": 250112, "d_ff": 1024, "num_layers": 8, "num_heads": 6}
SDPA = ("eager", "sdpa")


GAPS = frozenset(("fp16 weights", "a quantised base", "releases before 5", "other losses"))
"""What is not modelled of these classes."""

FAMILIES = (
    Family(
        id="t5",
        types={"t5": "T5"},
        dims=partial(
            dims,
            defaults={"vocab_size": 32128, "d_ff": 2048, "num_layers": 6, "num_heads": 8},
            proj="relu",
            scales=True,
            shares_bias=True,
        ),
        body=body,
        loss=loss,
        gaps=GAPS,
        attentions=SDPA,
        buffers=lambda dims, size: 0,
        source="transformers 5.24.0, models/t5/modeling_t5.py",
    ),
    Family(
        id="mt5",
        types={"mt5": "mT5"},
        dims=partial(dims, defaults=_SIZES, proj="gated-gelu", scales=False, shares_bias=True),
        body=body,
        loss=loss,
        gaps=GAPS,
        attentions=SDPA,
        buffers=lambda dims, size: 0,
        source="transformers 5.24.0, models/mt5/modeling_mt5.py",
    ),
    Family(
        id="umt5",
        types={"umt5": "UMT5"},
        dims=partial(dims, defaults=_SIZES, proj="gated-gelu", scales=True, shares_bias=False),
        body=body,
        loss=loss,
        gaps=GAPS,
        attentions=SDPA,
        buffers=lambda dims, size: 0,
        source="transformers 5.24.0, models/umt5/modeling_umt5.py",
    ),
)
