"""LFM2: short gated convolutions, and attention with normed queries and keys among them; the larger ones with experts.

Mirrors transformers 5.24.0 models/lfm2/modeling_lfm2.py and models/lfm2_moe/modeling_lfm2_moe.py, where causal-conv1d is not installed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

from calc.autograd.elementwise import add, add_constant, from_output, mul, scale
from calc.autograd.routing import divided, gathered, topk, total
from calc.autograd.shapes import split as split_last
from calc.autograd.tensor import Tensor
from calc.model.activations import gated
from calc.model.attention import attention, split
from calc.model.config import Config, ConfigError
from calc.model.decoder import decoder, sizes
from calc.model.experts import MixtureDims, Routed, chosen, experts, routed_logits
from calc.model.family import Dims, Family, rotary_buffers
from calc.model.modules import Modules
from calc.model.norms import rms_norm
from calc.model.rotary import Rotation, rotated
from calc.model.short_convolution import causal_conv, unpadded

NAMES = ("model.embed_tokens", "model.layers", "model.embedding_norm")


@dataclass(frozen=True)
class Lfm2Dims(MixtureDims):
    """Sizes of the convolutions, too."""

    conv_width: int = 3
    """Tokens that a convolution sees."""
    conv_bias: bool = False
    use_expert_bias: bool = True
    """A bias that is no parameter decides with the scores which experts are chosen."""


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    others = {
        "convolution": partial(block, operator=short_convolution, feed=mlp),
        "experts": partial(block, operator=self_attention, feed=mixture),
        "convolution-experts": partial(block, operator=short_convolution, feed=mixture),
    }
    return decoder(m, ids, partial(block, operator=self_attention, feed=mlp), others=others, names=NAMES)


def block(
    m: Modules,
    x: Tensor,
    mask: Tensor | None,
    positions: Rotation,
    *,
    operator: Callable[..., Tensor],
    feed: Callable[[Modules, Tensor], Tensor],
) -> Tensor:
    """One decoder layer."""
    x = add(operator(m, rms_norm(m, "operator_norm", x), mask, positions), x)
    return add(x, feed(m, rms_norm(m, "ffn_norm", x)))


def self_attention(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """Grouped-query attention with normed queries and keys."""
    c = m.c
    heads, few, d = c.num_attention_heads, c.num_key_value_heads, c.head_dim
    q = rms_norm(m, "self_attn.q_layernorm", split(m, m.linear("self_attn.q_proj", x, heads * d), heads, d))
    k = rms_norm(m, "self_attn.k_layernorm", split(m, m.linear("self_attn.k_proj", x, few * d), few, d))
    v = split(m, m.linear("self_attn.v_proj", x, few * d), few, d)
    rotated_q, rotated_k = rotated(q, positions), rotated(k, positions)
    q, k = rotated_q, rotated_k
    del rotated_q, rotated_k
    return m.linear("self_attn.out_proj", attention(m, q, k, v, mask), c.hidden_size)


def short_convolution(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """Three projections: the product of two is convolved along the sequence and multiplied by the third."""
    c = m.c
    x = unpadded(m, x)
    b, gate, x = split_last(m.linear("conv.in_proj", x, 3 * c.hidden_size, c.conv_bias), (c.hidden_size,) * 3)
    y = causal_conv(m, "conv.conv", mul(b, x), c.conv_width, c.conv_bias)
    y = mul(gate, y)
    return m.linear("conv.out_proj", y, c.hidden_size, c.conv_bias)


def mlp(m: Modules, x: Tensor) -> Tensor:
    """Gated feed-forward."""
    c = m.c
    product = gated(
        m,
        m.linear("feed_forward.w1", x, c.intermediate_size),
        lambda: m.linear("feed_forward.w3", x, c.intermediate_size),
        "silu",
    )
    return m.linear("feed_forward.w2", product, c.hidden_size)


def mixture(m: Modules, x: Tensor) -> Tensor:
    """Router and experts."""
    return experts(m, "feed_forward.experts", x, router(m, x))


def router(m: Modules, x: Tensor) -> Routed:
    """Sigmoid scores; with a bias that is no parameter they decide which experts are chosen."""
    c = m.c
    logits = routed_logits(m, "feed_forward.gate", x)
    scores = from_output(logits, "sigmoid")
    if c.use_expert_bias:
        values, places = topk(add_constant(scores, "fp32"), c.num_experts_per_tok)
        del values
        weights = gathered(scores, places.shape, places)
    else:
        weights, places = topk(scores, c.num_experts_per_tok)
    if c.norm_topk_prob:
        weights = divided(weights, add_constant(total(weights, None if m.recipe.autocast is None else "fp32")))
    return logits, scale(weights), places


def dims(config: Config) -> Dims:
    """Lfm2Config's fields and defaults."""
    common = _sizes(
        config, hidden_size=2560, intermediate_size=12288, names={"intermediate_size": ("block_ff_dim", "intermediate_size")}
    )  # fmt: skip
    layers = common["num_hidden_layers"]
    attending = range(layers) if config.given("full_attn_idxs") is None else config.integers("full_attn_idxs")
    rule = ["full_attention" if i in attending else "conv" for i in range(layers)]
    width = common["intermediate_size"]
    if config.boolean("block_auto_adjust_ff_dim", default=True):
        width = _adjusted(config, width)
    return Lfm2Dims(
        **{
            **common,
            "intermediate_size": width,
            "kinds": tuple([_kind(t) for t in _layer_types(config, layers, rule)]),
        },
        conv_width=config.integer("conv_L_cache", default=3, high=10**6),
        conv_bias=config.boolean("conv_bias", default=False),
    )


def _adjusted(config: Config, width: int) -> int:
    """Two thirds of the width, times a factor, rounded up to a multiple."""
    width = 2 * width // 3
    if config.null("block_ffn_dim_multiplier"):
        return width
    factor = Fraction(config.number("block_ffn_dim_multiplier", default=1.0, low=0.0, high=1e6)).limit_denominator(
        10_000
    )
    multiple = config.integer("block_multiple_of", default=256, high=10**6)
    return multiple * -(-(width * factor.numerator // factor.denominator) // multiple)


def dims_moe(config: Config) -> Dims:
    """Lfm2MoeConfig's fields and defaults."""
    common = _sizes(config, hidden_size=2048, intermediate_size=7168)
    layers = common["num_hidden_layers"]
    count, top = chosen(config, "num_experts", default=32, top=4)
    dense = config.integer("num_dense_layers", default=2, low=0, high=10**6)
    types = _layer_types(config, layers, ())
    return Lfm2Dims(
        **{**common, "kinds": tuple([_kind(t, experts=i >= dense) for i, t in enumerate(types)])},
        num_experts=count,
        num_experts_per_tok=top,
        moe_intermediate_size=config.integer("moe_intermediate_size", default=1792),
        norm_topk_prob=config.boolean("norm_topk_prob", default=True),
        conv_width=config.integer("conv_L_cache", default=3, high=10**6),
        conv_bias=config.boolean("conv_bias", default=False),
        use_expert_bias=config.boolean("use_expert_bias", default=True),
    )


def _sizes(
    config: Config, *, hidden_size: int, intermediate_size: int, names: dict[str, Any] | None = None
) -> dict[str, Any]:
    """What both classes have in common. `tie_embedding`, where a config has it, is what counts."""
    common = sizes(
        config, vocab_size=65536, hidden_size=hidden_size, intermediate_size=intermediate_size, num_hidden_layers=32,
        num_attention_heads=32, num_key_value_heads=8, names=names,
    )  # fmt: skip
    return {**common, "tie_word_embeddings": config.boolean("tie_embedding", "tie_word_embeddings", default=True)}


def _kind(layer_type: str, *, experts: bool = False) -> str:
    """The kind of a layer, by its entry in `layer_types`; a convolution sees no mask of the attention."""
    mask, word = ("none", "convolution") if layer_type == "conv" else ("full", "")
    word = "-".join(filter(None, (word, "experts" if experts else "")))
    return f"{mask} {word}".rstrip()


def _layer_types(config: Config, layers: int, rule: Sequence[str]) -> Sequence[str]:
    """`layer_types`, or what the class makes of it where there is none."""
    if config.given("layer_types") is None and rule:
        return rule
    types = config.texts("layer_types")
    if len(types) != layers:
        raise ConfigError("layer_types", f"should have num_hidden_layers ({layers}) entries, not {len(types)}")
    for name in types:
        if name not in ("full_attention", "conv"):
            raise ConfigError("layer_types", f"should hold full_attention or conv, not {name[:40]!r}")
    return types


def expert_buffers(dims: Any, size: int) -> int:
    """Rotary frequencies, and each router's bias for choosing, which is a buffer in fp32."""
    routers: int = 4 * dims.num_experts * sum("experts" in kind for kind in dims.kinds) if dims.use_expert_bias else 0
    return rotary_buffers(dims.head_dim) + routers


FAMILIES = (
    Family(
        id="lfm2",
        types={"lfm2": "LFM2"},
        dims=dims,
        body=body,
        masks_states=True,
        packages=("causal-conv1d",),
        gaps=frozenset(("offload without checkpointing",)),
        source="transformers 5.24.0, models/lfm2/modeling_lfm2.py",
    ),
    Family(
        id="lfm2-moe",
        types={"lfm2_moe": "LFM2 MoE"},
        dims=dims_moe,
        body=body,
        buffers=expert_buffers,
        masks_states=True,
        packages=("causal-conv1d",),
        gaps=frozenset(("offload without checkpointing",)),
        source="transformers 5.24.0, models/lfm2_moe/modeling_lfm2_moe.py",
    ),
)
