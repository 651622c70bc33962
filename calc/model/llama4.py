"""Llama 4's text model: rotated layers that look at chunks, plain layers that look at everything, and experts that transformers runs on
every token. Mirrors transformers 5.24.0 models/llama4/modeling_llama4.py."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from calc.autograd.elementwise import (
    add,
    add_constant,
    add_in_place,
    cast,
    complex_mul,
    from_output,
    mean,
    mul,
    rsqrt,
    square,
)
from calc.autograd.linear import bmm
from calc.autograd.routing import copied, scatter_into, summed_groups, topk
from calc.autograd.shapes import laid_out, reshape
from calc.autograd.shapes import split as split_last
from calc.autograd.tensor import Tensor, empty
from calc.model.activations import activated
from calc.model.attention import Eager, attention, split
from calc.model.config import Config, ConfigError
from calc.model.decoder import decoder, sizes
from calc.model.experts import MixtureDims, chosen
from calc.model.family import Dims, Family
from calc.model.latent import complex_rotation
from calc.model.llama import mlp
from calc.model.modules import Modules
from calc.model.rotary import Rotation


@dataclass(frozen=True)
class Llama4Dims(MixtureDims):
    """Sizes, and what a head does beside the rotation."""

    intermediate_size_mlp: int = 0
    """Width of the feed-forward of layers without experts."""
    use_qk_norm: bool = True
    attn_temperature_tuning: bool = True


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    others = {
        "dense": partial(block, feed=dense),
        "unrotated": partial(block, feed=mixture, rotate=False),
        "unrotated-dense": partial(block, feed=dense, rotate=False),
    }
    masked = tuple(sorted({kind.partition(" ")[0] for kind in m.c.kinds}))
    return decoder(
        m, ids, partial(block, feed=mixture), others=others, masked=masked, norm=rms_norm, angles=complex_rotation
    )


def block(
    m: Modules,
    x: Tensor,
    mask: Tensor | None,
    positions: Rotation,
    *,
    feed: Callable[[Modules, Tensor], Tensor],
    rotate: bool = True,
) -> Tensor:
    """One decoder layer."""
    residual = x
    x = rms_norm(m, "input_layernorm", x)
    attended = self_attention(m, x, mask, positions, rotate)
    x = add(residual, attended)
    residual = x
    x = rms_norm(m, "post_attention_layernorm", x)
    x = feed(m, x)
    x = add(residual, x)
    del attended  # a name of its own, which the layer's frame keeps
    return x


def rms_norm(m: Modules, name: str, x: Tensor) -> Tensor:
    """normalised(x).to(dtype) * weight."""
    weight = m.weight(f"{name}.weight", (x.shape[-1],), "norm")
    return mul(l2_norm(x), weight)


def l2_norm(x: Tensor) -> Tensor:
    """x over the root of its mean square, in fp32 and back."""
    wide = cast(x, "fp32")
    return cast(mul(wide, rsqrt(add_constant(mean(square(wide))))), x.dtype)


def self_attention(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation, rotate: bool) -> Tensor:
    """Grouped-query attention: rotated and perhaps normed, or unrotated with queries that grow with their position."""
    c = m.c
    q = split(
        m,
        m.linear("self_attn.q_proj", x, c.num_attention_heads * c.head_dim, c.attention_bias),
        c.num_attention_heads,
        c.head_dim,
    )
    k = split(
        m,
        m.linear("self_attn.k_proj", x, c.num_key_value_heads * c.head_dim, c.attention_bias),
        c.num_key_value_heads,
        c.head_dim,
    )
    v = split(
        m,
        m.linear("self_attn.v_proj", x, c.num_key_value_heads * c.head_dim, c.attention_bias),
        c.num_key_value_heads,
        c.head_dim,
    )
    scales = counted = None
    if rotate:
        turned_q, turned_k = rotated(q, k, positions)
        q, k = turned_q, turned_k
        del turned_q, turned_k
        if c.use_qk_norm:
            q = l2_norm(q)
            k = l2_norm(k)
    elif c.attn_temperature_tuning:
        counted = empty((m.length,), "i64", "arange")
        scales = empty((1, 1, m.length, 1), "fp32", "attention scales")
        q = cast(mul(q, scales), q.dtype)
    out = attention(m, q, k, v, mask, dropout_p=c.attention_dropout, eager=Eager(wide_softmax=False, lowered=False))
    out = m.linear("self_attn.o_proj", out, c.hidden_size, c.output_bias)
    del scales, counted
    return out


def rotated(q: Tensor, k: Tensor, positions: Rotation) -> tuple[Tensor, Tensor]:
    """Pairs as complex numbers, each times one of unit length."""
    wide_q, wide_k = cast(q, "fp32"), cast(k, "fp32")
    turned_q = complex_mul(wide_q, positions.cos)
    turned_k = complex_mul(wide_k, positions.cos)
    result = cast(turned_q, q.dtype), cast(turned_k, k.dtype)
    del wide_q, wide_k, turned_q, turned_k
    return result


def dense(m: Modules, x: Tensor) -> Tensor:
    """Gated feed-forward of a layer without experts."""
    return mlp(m, x, "feed_forward", m.c.intermediate_size_mlp)


def mixture(m: Modules, x: Tensor) -> Tensor:
    """Every expert on every token, weighted by scores that are zero for experts that were not chosen; and the shared expert."""
    c = m.c
    count, rows, hidden = c.num_experts, x.shape[0], x.shape[1]
    logits = m.linear("feed_forward.router", x, count)
    scores = _scores(logits, c.num_experts_per_tok)
    routed = copied(x, (count * rows, hidden))
    routed = mul(routed, laid_out(scores, (count * rows, 1)))
    routed_out = _experts(m, reshape(routed, (count, rows, hidden)))
    out = mlp(m, x, "feed_forward.shared_expert", c.moe_intermediate_size)
    wide = out.dtype if m.recipe.autocast is None else "fp32"  # autocast sums in fp32
    out = add_in_place(out, summed_groups(routed_out, (rows, hidden), wide))
    m.held[:] = [logits]  # they take the name that held the attention's weights
    del routed, scores
    return out


def _scores(logits: Tensor, top: int) -> Tensor:
    """sigmoid of the chosen logits, zero elsewhere: (rows, experts)."""
    values, places = topk(logits, top)
    filled = scatter_into(empty(logits.shape, logits.dtype, "full_like"), places, values)
    scores = cast(from_output(cast(filled, "fp32"), "sigmoid"), logits.dtype)
    del values, places, filled
    return scores


def _experts(m: Modules, x: Tensor) -> Tensor:
    """(experts, rows, hidden) in and out."""
    c = m.c
    count, _, hidden = x.shape
    width = c.moe_intermediate_size
    up_weight = m.weight("feed_forward.experts.gate_up_proj", (count, hidden, 2 * width), "expert")
    down_weight = m.weight("feed_forward.experts.down_proj", (count, width, hidden), "expert")
    both = _product(m, x, up_weight, 2 * width)
    gate, up = split_last(both, (width, width))
    product = mul(up, activated(m, gate, c.hidden_act))
    out = _product(m, product, down_weight, hidden)
    del both, gate, up
    return out


def _product(m: Modules, x: Tensor, weight: Tensor, out: int) -> Tensor:
    if m.recipe.autocast is not None:  # from the last to the first
        weight = m.lowered(weight)
        x = cast(x, m.recipe.autocast)
    return bmm(x, weight, (x.shape[0], x.shape[1], out))


def dims(config: Config) -> Dims:
    """Llama4TextConfig's fields and defaults."""
    common = sizes(
        config, vocab_size=202048, hidden_size=5120, intermediate_size=8192, num_hidden_layers=48, num_attention_heads=40,
        num_key_value_heads=8, head_dim=128,
    )  # fmt: skip
    layers = common["num_hidden_layers"]
    bias = config.boolean("attention_bias", default=False)
    count, top = chosen(config, "num_local_experts", default=16, top=1)
    interval = config.integer("no_rope_layer_interval", default=4)
    rotated = config.integers("no_rope_layers", default=None) or tuple(
        [int((i + 1) % interval != 0) for i in range(layers)]
    )
    if len(rotated) < layers:
        raise ConfigError("no_rope_layers", f"should have num_hidden_layers ({layers}) entries, not {len(rotated)}")
    step = config.integer("interleave_moe_layer_step", default=1)
    sparse = (
        set(range(step - 1, layers, step)) if config.given("moe_layers") is None else set(config.integers("moe_layers"))
    )
    chunk = (
        None
        if config.null("attention_chunk_size")
        else config.integer("attention_chunk_size", default=8192, high=10**9)
    )
    kinds = []
    for i in range(layers):
        mask = "chunked" if rotated[i] and chunk is not None else "full"
        word = ("" if rotated[i] else "unrotated") + ("" if i in sparse else "-dense")
        kinds.append(f"{mask} {word.removeprefix('-')}".rstrip())
    return Llama4Dims(
        **{**common, "kinds": tuple(kinds)},
        attention_bias=bias,
        output_bias=bias,
        sliding_window=chunk,
        num_experts=count,
        num_experts_per_tok=top,
        moe_intermediate_size=common["intermediate_size"],
        shared_intermediate_size=common["intermediate_size"],
        intermediate_size_mlp=config.integer("intermediate_size_mlp", default=16384),
        use_qk_norm=config.boolean("use_qk_norm", default=True),
        attn_temperature_tuning=bool(config.given("attn_temperature_tuning"))
        if config.given("attn_temperature_tuning") is not None
        else True,
    )


GAPS = frozenset(("adapters on every linear layer",))

FAMILIES = (
    Family(
        id="llama4",
        types={"llama4_text": "Llama 4"},
        dims=dims,
        body=body,
        gaps=GAPS,
        source="transformers 5.24.0, models/llama4/modeling_llama4.py",
    ),
)
