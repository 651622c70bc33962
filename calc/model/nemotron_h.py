"""Nemotron-H: each layer is one thing, Mamba 2, attention without positions, a feed-forward without a gate, or experts without one.

Mirrors transformers 5.24.0 models/nemotron_h/modeling_nemotron_h.py, where mamba-ssm and causal-conv1d are not installed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from calc.autograd.elementwise import add, add_constant, cast, mean, mul, rsqrt, square
from calc.autograd.tensor import Tensor
from calc.model.activations import activated, activation_name
from calc.model.attention import attention, split
from calc.model.config import Config, ConfigError
from calc.model.decoder import masks, sizes
from calc.model.deepseek import groups as expert_groups
from calc.model.deepseek import sigmoid_router
from calc.model.experts import MixtureDims, chosen, experts
from calc.model.family import Dims, Family, lm_head
from calc.model.modules import Modules
from calc.model.rotary import position_ids
from calc.model.state_space import StateSpace, groups, mixer


@dataclass(frozen=True)
class NemotronHDims(MixtureDims):
    """Sizes of the mixer, too."""

    mamba: StateSpace | None = None
    latent: int = 0
    """Columns that the experts work on, where those of the stream are projected for them; 0 where they are not."""


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    c = m.c
    x = inputs_embeds = m.embedding("model.embeddings", ids, c.vocab_size, c.hidden_size)
    counted = position_ids(m)
    mask = masks(m, x.dtype, ("full",))["full"]
    for layer, kind in zip(m.layers("model.layers", c.kinds), c.kinds, strict=True):
        x = layer(BLOCKS[kind], x, mask if kind == "full" else None, counted)
    x = norm(m, "model.norm_f", x)
    del inputs_embeds, counted  # transformers holds them until its forward returns
    return x


def block(mix: Callable[[Modules, Tensor, Tensor | None], Tensor]) -> Callable[..., Tensor]:
    """A layer with that one thing in it. It is given the positions, and does not look at them."""

    def run(m: Modules, x: Tensor, mask: Tensor | None, counted: Tensor) -> Tensor:
        residual = x
        x = norm(m, "norm", cast(x, m.weight("norm.weight", (m.c.hidden_size,), "norm").dtype))
        x = mix(m, x, mask)
        return add(residual, x)

    return run


def norm(m: Modules, name: str, x: Tensor) -> Tensor:
    """NemotronHRMSNorm: the weight is cast and multiplied in fp32."""
    weight = m.weight(f"{name}.weight", (x.shape[-1],), "norm")
    y = cast(x, "fp32")
    variance = mean(square(y))
    y = mul(y, rsqrt(add_constant(variance)))
    y = cast(mul(cast(weight, "fp32"), y), x.dtype)
    del variance
    return y


def self_attention(m: Modules, x: Tensor, mask: Tensor | None) -> Tensor:
    """Grouped-query attention."""
    c = m.c
    heads, few, d = c.num_attention_heads, c.num_key_value_heads, c.head_dim
    q = split(m, m.linear("mixer.q_proj", x, heads * d), heads, d)
    k = split(m, m.linear("mixer.k_proj", x, few * d), few, d)
    v = split(m, m.linear("mixer.v_proj", x, few * d), few, d)
    out = attention(m, q, k, v, mask, dropout_p=c.attention_dropout)
    return m.linear("mixer.o_proj", out, c.hidden_size)


def mlp(m: Modules, x: Tensor, name: str, width: int) -> Tensor:
    """Feed-forward without a gate."""
    c = m.c
    y = activated(m, m.linear(f"{name}.up_proj", x, width, c.mlp_bias), c.hidden_act)
    return m.linear(f"{name}.down_proj", y, c.hidden_size, c.mlp_bias)


def mixture(m: Modules, x: Tensor) -> Tensor:
    """Router and experts, perhaps on fewer columns, then the shared expert, which sees the same input."""
    c = m.c
    residuals = x
    routed = sigmoid_router(m, "mixer.gate", x)
    if c.latent:
        x = m.linear("mixer.fc1_latent_proj", x, c.latent, c.mlp_bias)
    x = experts(m, "mixer.experts", x, routed, first="up_proj", gate=lambda m, x: activated(m, x, m.c.hidden_act))
    if c.latent:
        x = m.linear("mixer.fc2_latent_proj", x, c.hidden_size, c.mlp_bias)
    return add(x, mlp(m, residuals, "mixer.shared_experts", c.shared_intermediate_size))


BLOCKS: Mapping[str, Callable[..., Tensor]] = {
    "full": block(self_attention),
    "none mamba": block(lambda m, x, _: mixer(m, "mixer", x, m.c.mamba)),
    "none mlp": block(lambda m, x, _: mlp(m, x, "mixer", m.c.intermediate_size)),
    "none experts": block(lambda m, x, _: mixture(m, x)),
}
"""What a layer is, by its kind."""

KINDS = {
    "linear_attention": "none mamba", "mamba": "none mamba", "full_attention": "full", "attention": "full", "mlp": "none mlp",
    "moe": "none experts",
}  # fmt: skip
LETTERS = {"M": "none mamba", "*": "full", "-": "none mlp", "E": "none experts"}


def head(m: Modules, x: Tensor) -> Tensor:
    """Logits in fp32."""
    return cast(lm_head(m, x), "fp32")


def dims(config: Config) -> Dims:
    """NemotronHConfig's fields and defaults. The number of layers is that of those listed, whatever num_hidden_layers says."""
    kinds = layer_kinds(config)
    common = sizes(
        config,
        vocab_size=131072,
        hidden_size=4096,
        intermediate_size=21504,
        num_hidden_layers=len(kinds),
        num_attention_heads=32,
        num_key_value_heads=8,
        head_dim=128,
        hidden_act="relu2",
        names={"hidden_act": ("mlp_hidden_act",)},
    )
    heads = config.integer("mamba_num_heads", default=128, high=10**6)
    bias = config.boolean("use_bias", default=False)
    count, top = (
        chosen(config, "n_routed_experts", "num_local_experts", default=8, top=2) if "none experts" in kinds else (0, 0)
    )
    return NemotronHDims(
        **{**common, "kinds": kinds, "num_hidden_layers": len(kinds), "tie_word_embeddings": False},
        mlp_bias=config.boolean("mlp_bias", default=False),
        num_experts=count,
        num_experts_per_tok=top,
        moe_intermediate_size=config.integer("moe_intermediate_size", default=7688),
        shared_intermediate_size=config.integer("moe_shared_expert_intermediate_size", default=7688),
        norm_topk_prob=config.boolean("norm_topk_prob", default=True),
        **(expert_groups(config, count, n_group=1, topk_group=1) if count else {}),
        latent=config.integer("moe_latent_size", default=0, low=0),
        mamba=StateSpace(
            heads=heads,
            head_dim=config.integer("mamba_head_dim", default=64, high=10**6),
            state=config.integer("ssm_state_size", default=128, high=10**6),
            groups=groups(config, "mamba_n_groups" if config.given("mamba_n_groups") else "n_groups", 8, heads),
            conv=config.integer("mamba_d_conv", "conv_kernel", default=4, high=10**6),
            chunk=config.integer("mamba_chunk_size", "chunk_size", default=128, high=10**6),
            conv_bias=config.boolean("mamba_conv_bias", "use_conv_bias", default=True),
            proj_bias=bias,
            act=activation_name(config, "mamba_hidden_act", default="silu"),
        ),
    )


def layer_kinds(config: Config) -> tuple[str, ...]:
    """The kind of each layer, listed or spelt in letters."""
    for name in ("layers_block_type", "layer_types"):
        if config.given(name) is not None:
            for one in config.texts(name):
                if one not in KINDS:
                    raise ConfigError(name, f"should hold {', '.join(KINDS)}, not {one[:40]!r}")
            return tuple([KINDS[one] for one in config.texts(name)])
    if config.given("hybrid_override_pattern") is None:
        return tuple([LETTERS[letter] for letter in "ME*-"])
    spelt = config.given("hybrid_override_pattern")
    if not isinstance(spelt, str) or not spelt or set(spelt) - set(LETTERS):
        raise ConfigError("hybrid_override_pattern", f"should spell the layers in {' '.join(LETTERS)}")
    return tuple([LETTERS[letter] for letter in spelt])


def correction_buffers(dims: Any, size: int) -> int:
    """Each router's bias for choosing, which is a buffer in fp32."""
    routers: int = 4 * dims.num_experts * dims.kinds.count("none experts")
    return routers


FAMILIES = (
    Family(
        id="nemotron-h",
        types={"nemotron_h": "Nemotron-H"},
        dims=dims,
        body=body,
        head=head,
        gaps=frozenset(("offload without checkpointing", "other losses", "releases before 5")),
        buffers=correction_buffers,
        masks_states=True,
        packages=("mamba-ssm", "causal-conv1d"),
        source="transformers 5.24.0, models/nemotron_h/modeling_nemotron_h.py",
    ),
)
