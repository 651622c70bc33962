"""JetMoE: mixtures in the feed-forward and in attention, where each expert has queries and an output matrix of its own.

The experts run one after another, each on the tokens that the router sent to it; here each gets the same share. Mirrors transformers
5.24.0 models/jetmoe/modeling_jetmoe.py.
"""

from __future__ import annotations

from typing import NamedTuple

from calc.autograd.elementwise import add, add_broadcast, cast, mul, softmax
from calc.autograd.linear import mm
from calc.autograd.routing import add_to_zeros, gather, topk
from calc.autograd.shapes import cat, part, repeated, reshape, split_as
from calc.autograd.shapes import split as split_last
from calc.autograd.tensor import Tensor, empty
from calc.model.activations import activated, activation_name
from calc.model.attention import attention, split
from calc.model.config import Config
from calc.model.decoder import decoder, share
from calc.model.experts import MixtureDims, chosen
from calc.model.family import Dims, Family
from calc.model.modules import Modules
from calc.model.norms import rms_norm
from calc.model.rotary import Rotation, rotated


class Topology(NamedTuple):
    """Which copies of tokens go to which expert: one row for each copy, sorted by expert."""

    order: Tensor
    """The copy's place among all."""
    tokens: Tensor
    """The token that it is a copy of."""
    weights: Tensor


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    return decoder(m, ids, block)


def block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """One decoder layer."""
    residual = x
    x = rms_norm(m, "input_layernorm", x)
    x = self_attention(m, x, mask, positions)
    x = add(residual, x)
    residual = x
    x = rms_norm(m, "post_attention_layernorm", x)
    x = mixture(m, x)
    return add(residual, x)


def self_attention(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """Each chosen expert's queries on the same keys and values, and its own matrix behind them."""
    c = m.c
    name, top, few, d = "self_attention.experts", c.num_experts_per_tok, c.num_key_value_heads, c.head_dim
    heads, width, copies = top * few, few * d, x.shape[0] * top
    q, logits, topology = queries(m, name, x, width)
    k, v = split_last(m.linear("self_attention.kv_proj", x, 2 * width), (width, width))
    q, k, v = split(m, reshape(q, (m.rows, heads * d)), heads, d), split(m, k, few, d), split(m, v, few, d)
    rotated_q, rotated_k = rotated(q, positions), rotated(k, positions)
    q, k = rotated_q, rotated_k
    del rotated_q, rotated_k
    k = repeated(k, (m.batch, heads, m.length, d))
    v = repeated(v, (m.batch, heads, m.length, d))
    out = attention(m, q, k, v, mask, dropout_p=c.attention_dropout)
    out = reduced(m, name, reshape(out, (copies, width)), topology)
    m.held[:] = [logits]  # they take the name that held the attention's weights
    return out


def queries(m: Modules, name: str, x: Tensor, width: int) -> tuple[Tensor, Tensor, Topology]:
    """A row of queries for each copy, in the order of the copies; the router's logits; and which copies went where."""
    c = m.c
    x = reshape(x, x.shape)
    topology, logits = router(m, f"{name}.router", x)
    copies = topology.order.shape[0]
    given = gather(x, (copies, x.shape[1]), topology.tokens)
    made = parallel(m, f"{name}.input_linear", given, width, c.num_experts)
    zeros = empty((copies, width), made.dtype, "zeros")
    y = add_to_zeros(zeros, made, topology.order)
    del given, made, zeros
    return y, logits, topology


def reduced(m: Modules, name: str, x: Tensor, topology: Topology) -> Tensor:
    """Each copy through its expert's output matrix, weighted, and added to its token."""
    c = m.c
    given = gather(x, x.shape, topology.order)
    made = parallel(m, f"{name}.output_linear", given, c.hidden_size, c.num_experts)
    made = mul(made, reshape(topology.weights, (x.shape[0], 1)))
    zeros = empty((m.rows, c.hidden_size), made.dtype, "zeros")
    y = add_to_zeros(zeros, made, topology.tokens)
    y = add_broadcast(y, m.weight(f"{name}.bias", (c.hidden_size,), "bias"))
    del given, made, zeros
    return y


def mixture(m: Modules, x: Tensor) -> Tensor:
    """The experts of the feed-forward."""
    c = m.c
    x = reshape(x, x.shape)
    topology, logits = router(m, "mlp.router", x)
    copies, width = topology.order.shape[0], c.moe_intermediate_size
    given = gather(x, (copies, x.shape[1]), topology.tokens)
    both = parallel(m, "mlp.input_linear", given, 2 * width, c.num_experts)
    gate, up = split_last(both, (width, width))
    states = mul(activated(m, gate, c.hidden_act), up)
    made = parallel(m, "mlp.output_linear", states, c.hidden_size, c.num_experts)
    made = mul(made, reshape(topology.weights, (copies, 1)))
    zeros = empty((m.rows, c.hidden_size), made.dtype, "zeros")
    y = add_to_zeros(zeros, made, topology.tokens)
    y = add_broadcast(y, m.weight("mlp.bias", (c.hidden_size,), "bias"))
    del logits, given, both, gate, up, states, made, zeros
    return y


def router(m: Modules, name: str, x: Tensor) -> tuple[Topology, Tensor]:
    """Softmax over the chosen experts only; copies sorted by expert; and the logits."""
    c = m.c
    rows, top = x.shape[0], c.num_experts_per_tok
    logits = cast(m.linear(f"{name}.layer", x, c.num_experts), "fp32")
    values, places = topk(logits, top)
    weights = cast(softmax(values), x.dtype)
    zeros = empty((rows, c.num_experts), x.dtype, "zeros")
    taken = empty((rows, c.num_experts), x.dtype, "scatter")
    whole = empty((rows, c.num_experts), "i64", "_to_copy")
    sizes = empty((c.num_experts,), "i64", "sum")
    del whole, sizes  # the experts' shares are read from the device
    in_order, order = empty((rows * top,), "i64", "sort"), empty((rows * top,), "i64", "sort")
    tokens = empty((rows * top,), "i64", "div")
    sorted_weights = gather(reshape(weights, (rows * top,)), (rows * top,), order)
    del values, places, zeros, taken, in_order
    return Topology(order, tokens, sorted_weights), logits


def parallel(m: Modules, name: str, x: Tensor, out: int, count: int) -> Tensor:
    """Each expert's rows times its own matrix of a parameter (experts, out, in)."""
    weight = m.weight(f"{name}.weight", (count, out, x.shape[1]), "expert")
    share = x.shape[0] // count  # of each expert; the first takes the rest
    first = x.shape[0] - share * (count - 1)
    given = split_as(x, [(share if index else first, x.shape[1]) for index in range(count)])
    made = [_product(m, piece, part(weight, (out, x.shape[1]))) for piece in given]
    y = cat(made, (x.shape[0], out))
    del given, made
    return y


def _product(m: Modules, x: Tensor, weight: Tensor) -> Tensor:
    """F.linear, in which autocast casts the part of the parameter each time."""
    to = m.recipe.autocast
    if to is not None:
        weight = cast(weight, to)
        x = cast(x, to)
    return mm(x, weight, alone=True)


def dims(config: Config) -> Dims:
    """JetMoeConfig's fields and defaults."""
    few = config.integer("num_key_value_heads", default=16, high=4096)
    layers = config.integer("num_hidden_layers", default=12, high=2000)
    count, top = chosen(config, "num_local_experts", default=8, top=2)
    width = config.integer("intermediate_size", default=5632)
    return MixtureDims(
        vocab_size=config.integer("vocab_size", default=32000),
        hidden_size=config.integer("hidden_size", default=2048),
        intermediate_size=width,
        num_hidden_layers=layers,
        num_attention_heads=few * top,
        num_key_value_heads=few,
        head_dim=config.integer("kv_channels", "head_dim", default=128, high=65536),
        tie_word_embeddings=config.boolean("tie_word_embeddings", default=True),
        hidden_act=activation_name(config, "activation_function", default="silu"),
        attention_dropout=share(config, "attention_dropout"),
        kinds=("full",) * layers,
        num_experts=count,
        num_experts_per_tok=top,
        moe_intermediate_size=width,
    )


FAMILIES = (
    Family(
        id="jetmoe",
        types={"jetmoe": "JetMoE"},
        dims=dims,
        body=body,
        checkpoints=False,
        gaps=frozenset(("offload without checkpointing",)),
        source="transformers 5.24.0, models/jetmoe/modeling_jetmoe.py",
    ),
)
