"""Gemma 4, its text model: wider heads in the layers that see everything, keys and values that later layers use again, an input of its own for
each layer, and perhaps experts beside the feed-forward. Mirrors transformers 5.24.0 models/gemma4/modeling_gemma4.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from calc.autograd.elementwise import add, mul, mul_in_place, scale, softmax
from calc.autograd.routing import gather, normalized_in_place, topk
from calc.autograd.shapes import part, reshape
from calc.autograd.storage import Standing
from calc.autograd.tensor import Tensor, recording_mode
from calc.model import llama
from calc.model.activations import activated, activation_name
from calc.model.attention import attention, split
from calc.model.config import Config, ConfigError
from calc.model.decoder import layer_kinds, masks, sizes, window
from calc.model.experts import MixtureDims, Routed, chosen, experts
from calc.model.family import Dims, Family, rotary_buffers
from calc.model.gemma2 import capped, head
from calc.model.modules import Modules
from calc.model.norms import power_rms_norm
from calc.model.rotary import Rotation, position_ids, rotate_half, rotation

Shared = dict[str, tuple[Tensor, Tensor]]
"""Keys and values that later layers use again, by the kind of the layer that made them."""


@dataclass(frozen=True)
class Gemma4Dims(MixtureDims):
    """Sizes of both kinds of layers."""

    final_logit_softcapping: bool = False
    global_head_dim: int = 0
    """Of a head in a layer that sees everything."""
    global_key_value_heads: int = 0
    keys_are_values: bool = False
    """There one product makes keys and values."""
    per_layer_width: int = 0
    """Width of the input that each layer has of its own; 0 for none."""
    per_layer_vocab: int = 0
    double_wide: bool = False
    """Layers that use other layers' keys and values have a feed-forward twice as wide."""


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    c: Gemma4Dims = m.c
    x = inputs_embeds = m.embedding("model.embed_tokens", ids, c.vocab_size, c.hidden_size, scaled=True)
    own = _own_inputs(m, ids, x) if c.per_layer_width else None
    counted = position_ids(m)
    mask = masks(m, x.dtype, ("full", "sliding"))
    kinds = [kind.partition(" ")[0] for kind in c.kinds]
    positions = {kind: rotation(m, x.dtype, head_dim(c, kind), counted) for kind in sorted(set(kinds))}
    shared: Shared = {}
    for layer, whole, kind in zip(m.layers("model.layers", c.kinds), c.kinds, kinds, strict=True):
        given = None if own is None else part(own, (m.rows, c.per_layer_width))
        x = layer(partial(block, kind=whole), x, mask[kind], positions[kind], given, shared)
    x = power_rms_norm(m, "model.norm", x)
    del inputs_embeds  # transformers holds them until its forward returns
    return x


def head_dim(c: Gemma4Dims, kind: str) -> int:
    """Of a layer of that kind."""
    return c.global_head_dim if kind == "full" else c.head_dim


def _own_inputs(m: Modules, ids: Tensor, x: Tensor) -> Tensor:
    """What each layer is given beside the stream, (rows, layers, width): looked up by the token, and projected from its embedding."""
    c: Gemma4Dims = m.c
    count, width = c.num_hidden_layers, c.per_layer_width
    looked = m.embedding("model.embed_tokens_per_layer", ids, c.per_layer_vocab, count * width, scaled=True)
    projected = scale(m.linear("model.per_layer_model_projection", x, count * width))
    projected = power_rms_norm(m, "model.per_layer_projection_norm", reshape(projected, (m.rows, count, width)))
    return scale(add(projected, reshape(looked, projected.shape)))


def block(
    m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation, given: Tensor | None, shared: Shared, *, kind: str
) -> Tensor:
    """One decoder layer."""
    c: Gemma4Dims = m.c
    if "keeps" in kind and recording_mode.recompute is not None:
        recording_mode.recompute.outlived = True
    residual = x
    x = power_rms_norm(m, "input_layernorm", x)
    x = self_attention(m, x, mask, positions, shared, kind)
    x = power_rms_norm(m, "post_attention_layernorm", x)
    x = add(residual, x)
    residual = x
    x = power_rms_norm(m, "pre_feedforward_layernorm", x)
    x = llama.mlp(m, x, "mlp", c.intermediate_size * (2 if c.double_wide and "uses" in kind else 1))
    if c.num_experts:
        x = _with_experts(m, x, residual)
    x = power_rms_norm(m, "post_feedforward_layernorm", x)
    x = add(residual, x)
    if given is not None:
        residual = x
        x = activated(m, m.linear("per_layer_input_gate", x, c.per_layer_width), c.hidden_act)
        x = mul(x, given)
        x = m.linear("per_layer_projection", x, c.hidden_size)
        x = power_rms_norm(m, "post_per_layer_input_norm", x)
        x = add(residual, x)
    return mul_in_place(x, Tensor((1,), m.recipe.dtype, Standing((1,), m.recipe.dtype, "layer_scalar")))


def self_attention(
    m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation, shared: Shared, kind: str
) -> Tensor:
    """Grouped-query attention with normed queries, keys and values; perhaps with another layer's keys and values."""
    c: Gemma4Dims = m.c
    which, _, role = kind.partition(" ")
    heads, d, bias = c.num_attention_heads, head_dim(c, which), c.attention_bias
    few = c.global_key_value_heads if which == "full" else c.num_key_value_heads
    q = split(m, m.linear("self_attn.q_proj", x, heads * d, bias), heads, d)
    q = power_rms_norm(m, "self_attn.q_norm", q)
    q = _rotated(q, positions)
    if role == "uses":
        k, v = shared[which]
    else:
        k = split(m, m.linear("self_attn.k_proj", x, few * d, bias), few, d)
        alike = c.keys_are_values and which == "full"
        v = k if alike else split(m, m.linear("self_attn.v_proj", x, few * d, bias), few, d)
        k = power_rms_norm(m, "self_attn.k_norm", k)
        k = _rotated(k, positions)
        v = power_rms_norm(m, "self_attn.v_norm", v, affine=False)
    if role == "keeps":
        shared[which] = k, v
    out = attention(m, q, k, v, mask, dropout_p=c.attention_dropout)
    return m.linear("self_attn.o_proj", out, c.hidden_size, c.output_bias)


def _rotated(x: Tensor, positions: Rotation) -> Tensor:
    """x·cos + rotate_half(x)·sin, of heads that lie beside each other token by token."""
    return add(mul(x, positions.cos), mul(_turned(x), positions.sin))


def _turned(x: Tensor) -> Tensor:
    y = rotate_half(x)
    y.heads_first = False
    return y


def _with_experts(m: Modules, x: Tensor, residual: Tensor) -> Tensor:
    """The feed-forward's result and that of the experts, which work on what the feed-forward was given before its norm."""
    first = power_rms_norm(m, "post_feedforward_layernorm_1", x)
    routed = router(m, residual)
    m.held[:] = [first, *routed]  # names of the layer's frame, one of which held the attention's weights
    second = power_rms_norm(m, "pre_feedforward_layernorm_2", residual)
    second = experts(m, "experts", second, routed)
    second = power_rms_norm(m, "post_feedforward_layernorm_2", second)
    m.held.append(second)
    return add(first, second)


def router(m: Modules, x: Tensor) -> Routed:
    """Scores of the normed and scaled stream, the k largest made to sum to one, each times a number of its expert."""
    c: Gemma4Dims = m.c
    x = power_rms_norm(m, "router.norm", x, affine=False)
    x = scale(mul(x, m.weight("router.scale", (c.hidden_size,), "other")))
    scores = m.linear("router.proj", x, c.num_experts)
    shares = softmax(scores, "fp32")
    values, places = topk(shares, c.num_experts_per_tok)
    values = normalized_in_place(values)
    each = gather(m.weight("router.per_expert_scale", (c.num_experts,), "other"), places.shape, places)
    values = mul(values, each)
    del scores
    return shares, values, places


def dims(config: Config) -> Dims:
    """Gemma4TextConfig's fields and defaults."""
    common = sizes(
        config,
        vocab_size=262144,
        hidden_size=2304,
        intermediate_size=9216,
        num_hidden_layers=30,
        num_attention_heads=8,
        num_key_value_heads=4,
        head_dim=256,
        tie_word_embeddings=True,
    )
    layers = common["num_hidden_layers"]
    bias = config.boolean("attention_bias", default=False)
    alike = config.boolean("attention_k_eq_v", default=False)
    kinds = _kinds(config, layers)
    wide, few = _global_sizes(config, kinds, common["num_key_value_heads"], alike)
    mixture: dict[str, Any] = {}
    if config.boolean("enable_moe_block", default=False):
        count, top = chosen(config, "num_experts", per_token=("top_k_experts",))
        mixture = {
            "num_experts": count,
            "num_experts_per_tok": top,
            "moe_intermediate_size": config.integer("moe_intermediate_size"),
        }
    width = (
        0
        if config.null("hidden_size_per_layer_input")
        else config.integer("hidden_size_per_layer_input", default=256, low=0)
    )
    return Gemma4Dims(
        **{
            **common,
            "hidden_act": activation_name(config, "hidden_activation", default="gelu_pytorch_tanh"),
            "kinds": kinds,
        },
        **mixture,
        sliding_window=window(config, 512),
        attention_bias=bias,
        output_bias=bias,
        final_logit_softcapping=capped(config, "final_logit_softcapping", None),
        global_head_dim=wide,
        global_key_value_heads=few,
        keys_are_values=alike,
        per_layer_width=width,
        per_layer_vocab=config.integer("vocab_size_per_layer_input", default=262144),
        double_wide=config.boolean("use_double_wide_mlp", default=False),
    )


def _global_sizes(config: Config, kinds: tuple[str, ...], usual: int, alike: bool) -> tuple[int, int]:
    """The size of a head and the number of key heads in layers that see everything, given by name or layer by layer."""
    if config.given("per_layer_config") is None:
        few = config.integer("num_global_key_value_heads", default=usual, high=4096)
        return config.integer("global_head_dim", default=512, high=65536), few if alike else usual
    rows = config.part("per_layer_config")
    own = [kind.startswith("full") for kind in kinds]
    if {str(name) for name in rows.values} != {str(i) for i, whole in enumerate(own) if whole}:
        raise ConfigError("per_layer_config", "is only modelled for the layers that see everything, each of them")
    parts = [rows.part(name) for name in rows.values]
    given = [
        (
            part.integer("head_dim", default=config.integer("head_dim", default=256, high=65536), high=65536),
            part.integer("num_key_value_heads", default=usual, high=4096),
        )
        for part in parts
    ]
    if len(set(given)) > 1:
        raise ConfigError("per_layer_config", "is only modelled where those layers are alike")
    return given[0]


def _kinds(config: Config, layers: int) -> tuple[str, ...]:
    """Each layer's kind: what it sees, and whether it keeps its keys and values for later ones or uses another's. The last one sees everything."""
    kinds = list(layer_kinds(config, layers, lambda i: (i + 1) % 6 != 0))
    kinds[-1] = "full"
    users = config.integer("num_kv_shared_layers", default=0, low=0, high=layers)
    makers = kinds[: layers - users]
    if not set(kinds[layers - users :]) <= set(makers):
        raise ConfigError("num_kv_shared_layers", "should leave a layer of each kind that makes keys and values")
    last = {kind: i for i, kind in enumerate(makers)}
    return tuple(
        [
            f"{kind} uses" if i >= len(makers) else f"{kind} keeps" if last[kind] == i else kind
            for i, kind in enumerate(kinds)
        ]
    )


def buffers(c: Gemma4Dims, size: int) -> int:
    """Rotary frequencies of each kind of layer, a number for each layer, and those that embeddings are multiplied by."""
    kinds = {kind.partition(" ")[0] for kind in c.kinds}
    rotary = sum(rotary_buffers(head_dim(c, kind)) for kind in kinds)
    return rotary + size * (len(c.kinds) + 1 + (c.per_layer_width > 0))


FAMILIES = (
    Family(
        id="gemma4-text",
        types={"gemma4_text": "Gemma 4"},
        dims=dims,
        body=body,
        head=head,
        buffers=buffers,
        source="transformers 5.24.0, models/gemma4/modeling_gemma4.py",
    ),
)
