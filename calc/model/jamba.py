"""Jamba: layers of Mamba and of attention without positions, every other one with experts. Mirrors transformers 5.24.0
models/jamba/modeling_jamba.py, where mamba-ssm, causal-conv1d and mambapy are not installed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from calc.autograd.elementwise import cast, softmax
from calc.autograd.routing import topk
from calc.autograd.tensor import Tensor
from calc.model import llama
from calc.model.config import Config, ConfigError
from calc.model.decoder import masks, pre_norm, sizes
from calc.model.experts import MixtureDims, chosen, experts, routed_logits
from calc.model.family import Dims, Family
from calc.model.modules import Modules
from calc.model.norms import rms_norm
from calc.model.rotary import position_ids
from calc.model.selective_scan import SelectiveScan, mixer

NORMS = ("input_layernorm", "pre_ff_layernorm")


@dataclass(frozen=True)
class JambaDims(MixtureDims):
    """Sizes of the mixer, too."""

    mamba: SelectiveScan | None = None


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    c = m.c
    x = inputs_embeds = m.embedding("model.embed_tokens", ids, c.vocab_size, c.hidden_size)
    counted = position_ids(m)
    mask = masks(m, x.dtype, ("full",))["full"]
    for layer, kind in zip(m.layers("model.layers", c.kinds), c.kinds, strict=True):
        seen, _, word = kind.partition(" ")
        x = layer(LAYERS[word], x, mask if seen == "full" else None, counted)
    x = rms_norm(m, "model.final_layernorm", x)
    del inputs_embeds, counted  # transformers holds them until its forward returns
    return x


def block(m: Modules, x: Tensor, mask: Tensor | None, counted: Tensor, *, sparse: bool) -> Tensor:
    """A layer with attention. It is given the positions, and does not look at them."""
    return pre_norm(m, x, llama.self_attention, mixture if sparse else mlp, mask, None, names=NORMS)


def mamba_block(m: Modules, x: Tensor, mask: Tensor | None, counted: Tensor, *, sparse: bool) -> Tensor:
    """A layer with Mamba's mixer."""
    return pre_norm(
        m, x, lambda m, x, *_: mixer(m, "mamba", x, m.c.mamba), mixture if sparse else mlp, mask, None, names=NORMS
    )


LAYERS = {
    "": partial(block, sparse=False),
    "experts": partial(block, sparse=True),
    "mamba": partial(mamba_block, sparse=False),
    "mamba-experts": partial(mamba_block, sparse=True),
}
"""By the second word of a layer's kind."""


def mlp(m: Modules, x: Tensor) -> Tensor:
    """Gated feed-forward."""
    return llama.mlp(m, x, "feed_forward")


def mixture(m: Modules, x: Tensor) -> Tensor:
    """Softmax over all experts in fp32, whose weights need not sum to one."""
    logits = routed_logits(m, "feed_forward.router", x)
    values, places = topk(softmax(logits, "fp32"), m.c.num_experts_per_tok)
    weights = cast(values, x.dtype)
    del values
    return experts(m, "feed_forward.experts", x, (logits, weights, places))


def dims(config: Config) -> Dims:
    """JambaConfig's fields and defaults."""
    common = sizes(
        config,
        vocab_size=65536,
        hidden_size=4096,
        intermediate_size=14336,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=8,
    )
    layers = range(common["num_hidden_layers"])
    count, top = chosen(config, "num_experts", "num_local_experts", default=16, top=2)
    attending, sparse = every(config, "attn_layer", 8, 4), every(config, "expert_layer", 2, 1)
    hidden = common["hidden_size"]
    auto = config.given("mamba_dt_rank") in (None, "auto")
    return JambaDims(
        **{**common, "kinds": tuple([_kind(i in attending, i in sparse and count > 1) for i in layers])},
        num_experts=count,
        num_experts_per_tok=top,
        moe_intermediate_size=common["intermediate_size"],
        mamba=SelectiveScan(
            width=config.integer("mamba_expand", default=2, high=1000) * hidden,
            state=config.integer("mamba_d_state", default=16, high=10**6),
            rank=-(-hidden // 16) if auto else config.integer("mamba_dt_rank", high=10**6),
            conv=config.integer("mamba_d_conv", default=4, high=10**6),
            conv_bias=config.boolean("mamba_conv_bias", default=True),
            proj_bias=config.boolean("mamba_proj_bias", default=False),
            act=common["hidden_act"],
            normed="weighted",
            offered=False,
        ),
    )


def every(config: Config, name: str, period: int, offset: int) -> range:
    """Layers of a sort that comes once in so many, from the offset on."""
    period = config.integer(f"{name}_period", default=period, high=10**6)
    offset = config.integer(f"{name}_offset", default=offset, low=0, high=10**6)
    if offset >= period:
        raise ConfigError(f"{name}_offset", f"should lie below {name}_period ({period}), not {offset}")
    return range(offset, 10**6, period)


def _kind(attends: bool, sparse: bool) -> str:
    word = "-".join(filter(None, ("" if attends else "mamba", "experts" if sparse else "")))
    return f"{'full' if attends else 'none'} {word}".rstrip()


FAMILIES = (
    Family(
        id="jamba",
        types={"jamba": "Jamba"},
        dims=dims,
        body=body,
        gaps=frozenset(("offload without checkpointing", "a quantised base", "releases before 5")),
        buffers=lambda dims, size: 0,
        masks_states=True,
        packages=("mamba-ssm", "causal-conv1d"),
        source="transformers 5.24.0, models/jamba/modeling_jamba.py",
    ),
)
