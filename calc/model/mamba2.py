"""Mamba 2: nothing but state-space layers, their sum kept in fp32. Mirrors transformers 5.24.0 models/mamba2/modeling_mamba2.py, where
mamba-ssm and causal-conv1d are not installed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from calc.autograd.elementwise import add, cast
from calc.autograd.tensor import Tensor
from calc.model.activations import activation_name
from calc.model.config import Config, ConfigError
from calc.model.family import Dims, Family, lm_head
from calc.model.modules import Modules
from calc.model.norms import rms_norm
from calc.model.state_space import StateSpace, groups, mixer


@dataclass(frozen=True)
class MambaDims(Dims):
    """Sizes without attention: what `Dims` says of heads is one."""

    residual_in_fp32: bool = True


@dataclass(frozen=True, kw_only=True)
class Mamba2Dims(MambaDims):
    """Sizes of the mixer, too."""

    mamba: StateSpace


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    return body_of(m, ids, block)


def body_of(m: Modules, ids: Tensor, block: Callable[[Modules, Tensor], Tensor]) -> Tensor:
    """Embeddings, the layers, the last norm."""
    c = m.c
    x = inputs_embeds = m.embedding("backbone.embeddings", ids, c.vocab_size, c.hidden_size)
    for layer in m.layers("backbone.layers", c.kinds):
        x = layer(block, x)
    x = rms_norm(m, "backbone.norm_f", x)
    del inputs_embeds  # transformers holds them until its forward returns
    return x


def block(m: Modules, x: Tensor) -> Tensor:
    """One layer: a norm and the mixer."""
    return layer(m, x, lambda m, x: mixer(m, "mixer", x, m.c.mamba))


def layer(m: Modules, x: Tensor, mix: Callable[[Modules, Tensor], Tensor]) -> Tensor:
    """A norm and a mixer, beside a stream that may be kept in fp32."""
    residual = x
    x = rms_norm(m, "norm", cast(x, m.weight("norm.weight", (m.c.hidden_size,), "norm").dtype))
    if m.c.residual_in_fp32:
        residual = cast(residual, "fp32")
    x = mix(m, x)
    return add(residual, x)


def head(m: Modules, x: Tensor) -> Tensor:
    """Logits in fp32, from hidden states in the dtype of the weights."""
    c = m.c
    weight = m.tied() if c.tie_word_embeddings else m.weight("lm_head.weight", (c.vocab_size, c.hidden_size), "head")
    return cast(lm_head(m, cast(x, weight.dtype)), "fp32")


def dims(config: Config) -> Dims:
    """Mamba2Config's fields and defaults."""
    common = attention_free(config, vocab_size=32768, hidden_size=4096, num_hidden_layers=64, tie_word_embeddings=False)
    heads = config.integer("num_heads", default=128, high=10**6)
    head_dim = config.integer("head_dim", default=64, high=10**6)
    width: int = common["intermediate_size"]
    if heads * head_dim != width:
        raise ConfigError("num_heads", f"times head_dim ({heads * head_dim}) should be expand * hidden_size ({width})")
    return Mamba2Dims(
        **common,
        mamba=StateSpace(
            heads=heads,
            head_dim=head_dim,
            state=config.integer("state_size", default=128, high=10**6),
            groups=groups(config, "n_groups", 8, heads),
            conv=config.integer("conv_kernel", default=4, high=10**6),
            chunk=config.integer("chunk_size", default=256, high=10**6),
            conv_bias=config.boolean("use_conv_bias", default=True),
            proj_bias=config.boolean("use_bias", default=False),
            act=common["hidden_act"],
        ),
    )


def attention_free(
    config: Config, *, vocab_size: int, hidden_size: int, num_hidden_layers: int, tie_word_embeddings: bool
) -> dict[str, Any]:
    """The fields of `MambaDims`; each argument is the class's default."""
    hidden = config.integer("hidden_size", default=hidden_size)
    layers = config.integer("num_hidden_layers", default=num_hidden_layers, high=2000)
    return {
        "vocab_size": config.integer("vocab_size", default=vocab_size),
        "hidden_size": hidden,
        "intermediate_size": config.integer("expand", default=2, high=1000) * hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": 1,
        "num_key_value_heads": 1,
        "head_dim": 1,
        "hidden_act": activation_name(config, "hidden_act", default="silu"),
        "tie_word_embeddings": config.boolean("tie_word_embeddings", default=tie_word_embeddings),
        "kinds": ("none",) * layers,
        "residual_in_fp32": config.boolean("residual_in_fp32", default=True),
    }


FAMILIES = (
    Family(
        id="mamba2",
        types={"mamba2": "Mamba 2"},
        dims=dims,
        body=body,
        head=head,
        attentions=("eager",),
        gaps=frozenset(("offload without checkpointing", "other losses", "releases before 5")),
        buffers=lambda dims, size: 0,
        masks_states=True,
        packages=("mamba-ssm", "causal-conv1d"),
        source="transformers 5.24.0, models/mamba2/modeling_mamba2.py",
    ),
)
