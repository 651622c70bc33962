"""Falcon H1: Mamba 2 and attention side by side in each layer, with numbers multiplied onto nearly everything.

Mirrors transformers 5.24.0 models/falcon_h1/modeling_falcon_h1.py, where mamba-ssm and causal-conv1d are not installed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from calc.autograd.elementwise import activation, add, add_constant, cast, mean, mul, rsqrt, scale, square
from calc.autograd.shapes import reshape
from calc.autograd.shapes import split as split_last
from calc.autograd.storage import Standing
from calc.autograd.tensor import Tensor
from calc.model.activations import activated
from calc.model.attention import attention, split
from calc.model.config import Config, ConfigError
from calc.model.decoder import decoder, sizes
from calc.model.family import Dims, Family, lm_head, rotary_buffers
from calc.model.modules import Modules
from calc.model.norms import rms_norm
from calc.model.rotary import Rotation, rotated
from calc.model.short_convolution import causal_conv, unpadded
from calc.model.state_space import StateSpace, chunk_scan, decay, groups


@dataclass(frozen=True)
class FalconH1Dims(Dims):
    """Sizes of the mixer, too."""

    mamba: StateSpace | None = None
    normed: bool = False
    """The mixer's result is normed."""
    norm_before_gate: bool = True


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    names = ("model.embed_tokens", "model.layers", "model.final_layernorm")
    return decoder(m, ids, block, embed=scale, names=names)


def block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """One layer: mixer and attention see the same, and both join the stream."""
    residual = x
    x = rms_norm(m, "input_layernorm", x)
    mixed = mixer(m, "mamba", x)
    mixed = scale(mixed)
    attended = self_attention(m, scale(x), mask, positions)
    attended = scale(attended)
    x = add(mixed, attended)
    x = add(residual, x)
    residual = x
    x = rms_norm(m, "pre_ff_layernorm", x)
    x = mlp(m, x)
    x = add(residual, x)
    del mixed, attended  # names of the frame, as in the original
    return x


def self_attention(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """Grouped-query attention, a number multiplied onto the keys."""
    c = m.c
    heads, few, d, bias = c.num_attention_heads, c.num_key_value_heads, c.head_dim, c.attention_bias
    q = split(m, m.linear("self_attn.q_proj", x, heads * d, bias), heads, d)
    k = scale(split(m, m.linear("self_attn.k_proj", x, few * d, bias), few, d))
    v = split(m, m.linear("self_attn.v_proj", x, few * d, bias), few, d)
    rotated_q, rotated_k = rotated(q, positions), rotated(k, positions)
    q, k = rotated_q, rotated_k
    del rotated_q, rotated_k
    out = attention(m, q, k, v, mask, dropout_p=c.attention_dropout)
    return m.linear("self_attn.o_proj", out, c.hidden_size, c.output_bias)


def mlp(m: Modules, x: Tensor) -> Tensor:
    """Gated feed-forward, numbers multiplied onto gate and result."""
    c = m.c
    up = m.linear("feed_forward.up_proj", x, c.intermediate_size, c.mlp_bias)
    y = mul(
        up, activated(m, scale(m.linear("feed_forward.gate_proj", x, c.intermediate_size, c.mlp_bias)), c.hidden_act)
    )
    del up
    return scale(m.linear("feed_forward.down_proj", y, c.hidden_size, c.mlp_bias))


def mixer(m: Modules, name: str, x: Tensor) -> Tensor:
    """FalconH1Mixer: Mamba 2's, with a vector multiplied onto its projection and a norm that may be left out."""
    c, s = m.c, m.c.mamba
    dtype, out = x.dtype, x.shape[1]
    x = unpadded(m, x)
    x = scale(x)
    width = s.width + s.conv_width + s.heads
    projected = m.linear(f"{name}.in_proj", x, width, s.proj_bias)
    projected = mul(projected, Tensor((width,), m.recipe.dtype, Standing((width,), m.recipe.dtype, "mup_vector")))
    fading = decay(m, name, s)
    gate, convolved, dt = split_last(projected, (s.width, s.conv_width, s.heads))
    convolved = causal_conv(m, f"{name}.conv1d", convolved, s.conv, s.conv_bias, s.act)
    convolved = unpadded(m, convolved)
    shared = s.groups * s.state
    x, into, out_of = split_last(convolved, (s.width, shared, shared))
    y = chunk_scan(m, name, x, dt, fading, into, out_of, s)
    y = gated_norm(m, f"{name}.norm", y, gate) if c.normed else mul(y, activation(gate, "silu"))
    return m.linear(f"{name}.out_proj", cast(y, dtype), out, bool(s.out_bias))


def gated_norm(m: Modules, name: str, x: Tensor, gate: Tensor) -> Tensor:
    """FalconH1RMSNormGated, in fp32: each group of columns by itself, gated before or after."""
    c, dtype, shape = m.c, x.dtype, x.shape
    count = c.mamba.groups
    weight = m.weight(f"{name}.weight", shape[1:], "norm")
    if not c.norm_before_gate:
        x = mul(x, activation(cast(gate, "fp32"), "silu"))
    x = cast(x, "fp32")
    x = reshape(x, (shape[0], count, shape[1] // count))
    variance = mean(square(x))
    x = mul(x, rsqrt(add_constant(variance)))
    x = mul(reshape(weight, x.shape[1:]), x)
    x = reshape(x, shape)
    if c.norm_before_gate:
        x = mul(x, activation(cast(gate, "fp32"), "silu"))
    del variance
    return cast(x, dtype)


def head(m: Modules, x: Tensor) -> Tensor:
    """Logits times a number, in one expression."""
    return scale(lm_head(m, x))


def dims(config: Config) -> Dims:
    """FalconH1Config's fields and defaults."""
    common = sizes(
        config,
        vocab_size=128000,
        hidden_size=4096,
        intermediate_size=14336,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=8,
    )
    width = config.integer("mamba_d_ssm", default=1024, high=10**7)
    if config.null("mamba_d_ssm"):
        width = config.integer("mamba_expand", default=2, high=1000) * common["hidden_size"]
    heads = config.integer("mamba_n_heads", default=128, high=10**6)
    own = config.given("mamba_d_head")
    if width // heads * heads != width or own not in (None, "auto", width // heads):
        raise ConfigError("mamba_n_heads", f"times mamba_d_head should be the mixer's width ({width}), not {heads}")
    bias = config.boolean("attention_bias", default=False)
    return FalconH1Dims(
        **common,
        attention_bias=bias,
        output_bias=bias,
        mlp_bias=config.boolean("mlp_bias", default=False),
        mamba=StateSpace(
            heads=heads,
            head_dim=width // heads,
            state=config.integer("mamba_d_state", default=256, high=10**6),
            groups=groups(config, "mamba_n_groups", 1, heads),
            conv=config.integer("mamba_d_conv", default=4, high=10**6),
            chunk=config.integer("mamba_chunk_size", default=256, high=10**6),
            conv_bias=config.boolean("mamba_conv_bias", default=True),
            proj_bias=config.boolean("mamba_proj_bias", default=False),
            out_bias=config.boolean("projectors_bias", default=False),
            act=common["hidden_act"],
        ),
        normed=config.boolean("mamba_rms_norm", default=False),
        norm_before_gate=config.boolean("mamba_norm_before_gate", default=True),
    )


def vectors(dims: Any, size: int) -> int:
    """Rotary frequencies, and each layer's vector of factors."""
    s: StateSpace = dims.mamba
    layers: int = dims.num_hidden_layers
    return rotary_buffers(dims.head_dim) + layers * (s.width + s.conv_width + s.heads) * size


FAMILIES = (
    Family(
        id="falcon-h1",
        types={"falcon_h1": "Falcon H1"},
        dims=dims,
        body=body,
        head=head,
        gaps=frozenset(("offload without checkpointing", "releases before 5")),
        buffers=vectors,
        masks_states=True,
        packages=("mamba-ssm", "causal-conv1d"),
        source="transformers 5.24.0, models/falcon_h1/modeling_falcon_h1.py",
    ),
)
