"""Granite's mixtures of experts, with or without an expert that every token passes. Mirrors transformers 5.24.0
models/granitemoe/modeling_granitemoe.py and models/granitemoeshared/modeling_granitemoeshared.py."""

from __future__ import annotations

from calc.autograd.elementwise import add, cast, mul, scale, softmax
from calc.autograd.routing import topk
from calc.autograd.shapes import split
from calc.autograd.tensor import Tensor
from calc.model.activations import activated
from calc.model.config import Config
from calc.model.decoder import decoder, pre_norm, sizes
from calc.model.experts import MixtureDims, chosen, experts
from calc.model.family import Dims, Family
from calc.model.granite import head
from calc.model.llama import self_attention
from calc.model.modules import Modules
from calc.model.rotary import Rotation


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    return decoder(m, ids, block, embed=scale)


def block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """One decoder layer."""
    return pre_norm(m, x, self_attention, feed, mask, positions, joined=lambda m, x: scale(x))


def feed(m: Modules, x: Tensor) -> Tensor:
    """The experts, and the shared one beside them if there is one."""
    mixed = mixture(m, x)
    if not m.c.shared_intermediate_size:
        return mixed
    return add(mixed, shared_mlp(m, x))


def mixture(m: Modules, x: Tensor) -> Tensor:
    """Softmax over the chosen experts only."""
    return of_chosen(m, x, m.linear("block_sparse_moe.router", x, m.c.num_experts, role="router"))


def of_chosen(m: Modules, x: Tensor, logits: Tensor) -> Tensor:
    """The chosen experts' results, weighted by a softmax over them, from the router's logits (rows, num_experts)."""
    logits = cast(logits, "fp32")
    values, places = topk(logits, m.c.num_experts_per_tok)
    weights = cast(softmax(values), x.dtype)
    del values
    return experts(m, "block_sparse_moe.experts", x, (logits, weights, places))


def shared_mlp(m: Modules, x: Tensor) -> Tensor:
    """Gated feed-forward with gate and up in one matrix."""
    width = m.c.shared_intermediate_size
    x = m.linear("shared_mlp.input_linear", x, 2 * width)
    gate, up = split(x, (width, width))
    x = mul(activated(m, gate, m.c.hidden_act), up)
    return m.linear("shared_mlp.output_linear", x, m.c.hidden_size)


def dims(config: Config) -> Dims:
    """GraniteMoeConfig's and GraniteMoeSharedConfig's fields and defaults."""
    common = sizes(
        config,
        vocab_size=32000,
        hidden_size=4096,
        intermediate_size=11008,
        num_hidden_layers=32,
        num_attention_heads=32,
    )
    bias = config.boolean("attention_bias", default=False)
    count, top = chosen(config, "num_local_experts", default=8, top=2)
    shared = config.text("model_type") == "granitemoeshared"
    return MixtureDims(
        **common,
        attention_bias=bias,
        output_bias=bias,
        num_experts=count,
        num_experts_per_tok=top,
        moe_intermediate_size=common["intermediate_size"],
        shared_intermediate_size=config.integer("shared_intermediate_size", default=0, low=0) if shared else 0,
    )


FAMILIES = (
    Family(
        id="granite-moe",
        types={"granitemoe": "Granite MoE", "granitemoeshared": "Granite MoE, shared"},
        dims=dims,
        body=body,
        head=head,
        source="transformers 5.24.0, models/granitemoeshared/modeling_granitemoeshared.py",
    ),
)
