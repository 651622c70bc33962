"""DBRX: queries, keys and values from one matrix and clipped, and experts that a loop goes through one after another.

The loop takes each expert's matrices out of one parameter that holds all of them, so the backward pass makes a gradient as large as
that parameter for each expert. How many tokens an expert gets is the router's choice; here each gets the same share. Mirrors transformers
5.24.0 models/dbrx/modeling_dbrx.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from calc.autograd.elementwise import add, cast, clamp, dropout, mul, mul_in_place, softmax
from calc.autograd.linear import mm
from calc.autograd.routing import add_to_rows, divided, gather, topk, vector_norm
from calc.autograd.shapes import part, reshape
from calc.autograd.shapes import split as split_last
from calc.autograd.tensor import Tensor, empty
from calc.model.activations import activated, known_activation
from calc.model.attention import attention, split
from calc.model.config import Config, ConfigError
from calc.model.decoder import decoder, share, sizes
from calc.model.experts import MixtureDims, chosen
from calc.model.family import Dims, Family
from calc.model.modules import Modules
from calc.model.norms import layer_norm
from calc.model.rotary import Rotation, rotated
from calc.model.vision import part as inner


@dataclass(frozen=True)
class DbrxDims(MixtureDims):
    """Sizes, and what the router does while it trains."""

    residual_dropout: float = 0.0
    jitters: bool = False
    """What reaches the router and the experts is multiplied by random numbers near one (`moe_jitter_eps`)."""


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    return decoder(m, ids, block, norm=last_norm, names=("transformer.wte", "transformer.blocks", "transformer.norm_f"))


def last_norm(m: Modules, name: str, x: Tensor) -> Tensor:
    """A layer norm without a bias."""
    return layer_norm(m, name, x, bias=False)


def block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """One decoder layer."""
    residual, x = attended(m, x, mask, positions)
    x = mixture(m, x)
    x = dropout(x, m.c.residual_dropout)
    return add(residual, x)


def attended(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> tuple[Tensor, Tensor]:
    """A norm, attention, the sum, and the norm behind it: the sum and what is normed."""
    residual = x
    x = cast(layer_norm(m, "norm_attn_norm.norm_1", x, bias=False), x.dtype)
    x = self_attention(m, x, mask, positions)
    x = dropout(x, m.c.residual_dropout)
    x = add(x, residual)
    residual = x
    x = cast(layer_norm(m, "norm_attn_norm.norm_2", x, bias=False), x.dtype)
    m.held.clear()  # the module's frame ends here
    return residual, x


def self_attention(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """Grouped-query attention with one matrix for queries, keys and values, which are clipped."""
    c = m.c
    few = c.num_key_value_heads * c.head_dim
    both = m.linear("norm_attn_norm.attn.Wqkv", x, c.hidden_size + 2 * few)
    if c.clip_qkv:
        both = clamp(both, 2)
    q, k, v = split_last(both, (c.hidden_size, few, few))
    q, k, v = (
        split(m, q, c.num_attention_heads, c.head_dim),
        split(m, k, c.num_key_value_heads, c.head_dim),
        split(m, v, c.num_key_value_heads, c.head_dim),
    )
    rotated_q, rotated_k = rotated(q, positions), rotated(k, positions)
    q, k = rotated_q, rotated_k
    del rotated_q, rotated_k
    out = attention(m, q, k, v, mask, dropout_p=c.attention_dropout)
    return m.linear("norm_attn_norm.attn.out_proj", out, c.hidden_size)


def mixture(m: Modules, x: Tensor) -> Tensor:
    """The router's softmax in its own dtype, normed by the sum of the chosen; then the experts."""
    c = m.c
    if c.jitters:
        x = mul_in_place(x, empty(x.shape, x.dtype, "empty_like"))
    logits = m.linear("ffn.router.layer", reshape(x, x.shape), c.num_experts)
    scores = softmax(logits)
    values, places = topk(scores, c.num_experts_per_tok)
    if c.norm_topk_prob:
        values = divided(values, vector_norm(values, values.dtype if m.recipe.autocast is None else "fp32"))
    del scores
    out = experts(m, x, values)
    del logits, places
    return out


def experts(m: Modules, x: Tensor, weights: Tensor) -> Tensor:
    """Each expert's tokens picked, passed through its three matrices, weighted and added to the result."""
    c = m.c
    (tokens, hidden), width, count = x.shape, c.moe_intermediate_size, c.num_experts
    gate, up, down = (
        m.weight(f"ffn.experts.mlp.{name}", (count * width, hidden), "expert") for name in ("w1", "v1", "w2")
    )
    y = empty((tokens, hidden), x.dtype, "zeros_like")
    mask = empty((tokens, c.num_experts_per_tok, count + 1), "i64", "zeros")
    sums = empty((count + 1,), "i64", "sum")
    above = empty((count + 1,), "bool", "gt")
    del sums
    hit = empty((count,), "i64", "nonzero")
    del above
    copies = tokens * c.num_experts_per_tok
    share = copies // count
    x = reshape(x, x.shape)
    for index in range(count):
        rows = share if index else copies - share * (count - 1)
        places = empty((rows, 2), "i64", "nonzero")
        second, first, third = (
            part(reshape(stack, (count, width, hidden)), (width, hidden)) for stack in (up, gate, down)
        )
        picked = gather(x, (rows, hidden), places)
        states = _expert(m, picked, first, second, third)
        del picked
        states = mul(states, gather(reshape(weights, (*weights.shape, 1)), (rows, 1), places))
        y = add_to_rows(y, states, places)
    del mask, hit
    return y


def _expert(m: Modules, x: Tensor, first: Tensor, second: Tensor, third: Tensor) -> Tensor:
    """act(x·first)·(x·second)·third."""
    gate = _product(m, x, first)
    up = _product(m, x, second)
    gate = activated(m, gate, m.c.hidden_act)
    states = mul(gate, up)
    down = _product(m, states, third, transposed=True)
    del gate, up, states
    return down


def _product(m: Modules, x: Tensor, weight: Tensor, *, transposed: bool = False) -> Tensor:
    """A matrix product in which autocast casts the part of the parameter each time."""
    to = m.recipe.autocast
    if to is not None:
        weight = cast(weight, to)
        x = cast(x, to)
    return mm(x, weight, transposed=transposed, alone=True)


def dims(config: Config) -> Dims:
    """DbrxConfig's fields and defaults."""
    attn, ffn = inner(config, "attn_config", {}), inner(config, "ffn_config", {})
    common = sizes(
        config,
        vocab_size=32000,
        hidden_size=2048,
        intermediate_size=3584,
        num_hidden_layers=24,
        num_attention_heads=16,
        num_key_value_heads=1,
        names={
            "hidden_size": ("d_model",),
            "num_attention_heads": ("n_heads",),
            "num_hidden_layers": ("n_layers",),
            "num_key_value_heads": ("",),
        },
    )
    heads = common["num_attention_heads"]
    few = attn.integer("kv_n_heads", default=1, high=4096)
    if heads // few * few != heads:
        raise ConfigError("attn_config.kv_n_heads", f"should divide n_heads ({heads}), not {few}")
    norm = 1.0 if ffn.given("moe_normalize_expert_weights") is None else ffn.number("moe_normalize_expert_weights")
    if norm != 1:
        raise ConfigError("ffn_config.moe_normalize_expert_weights", f"is only modelled as 1 or null, not {norm:g}")
    act = ffn.given("ffn_act_fn")
    count, top = chosen(ffn, "moe_num_experts", default=4, top=1, per_token=("moe_top_k",))
    return DbrxDims(
        **{**common, "num_key_value_heads": few, "head_dim": common["hidden_size"] // heads}
        | {"attention_dropout": share(attn, "attn_pdrop")}
        | {"hidden_act": known_activation("ffn_config.ffn_act_fn", act["name"]) if isinstance(act, dict) else "silu"},
        num_experts=count,
        num_experts_per_tok=top,
        moe_intermediate_size=ffn.integer("ffn_hidden_size", default=3584),
        norm_topk_prob=not ffn.null("moe_normalize_expert_weights"),
        clip_qkv=attn.given("clip_qkv") is not None,
        residual_dropout=share(config, "resid_pdrop"),
        jitters=ffn.given("moe_jitter_eps") is not None,
    )


FAMILIES = (
    Family(
        id="dbrx",
        types={"dbrx": "DBRX"},
        dims=dims,
        body=body,
        gaps=frozenset(("autocast over 16-bit weights",)),
        source="transformers 5.24.0, models/dbrx/modeling_dbrx.py",
    ),
)
