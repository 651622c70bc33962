"""Bamba: layers of Mamba 2 and of attention that rotates half of each head. Mirrors transformers 5.24.0 models/bamba/modeling_bamba.py, where
mamba-ssm and causal-conv1d are not installed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from calc.autograd.tensor import Tensor
from calc.model import llama
from calc.model.attention import attention
from calc.model.config import Config, ConfigError
from calc.model.decoder import decoder, pre_norm, rotary_dim, sizes
from calc.model.family import Dims, Family, rotary_buffers
from calc.model.granite_hybrid import mix, state_space
from calc.model.modules import Modules
from calc.model.rotary import Rotation, partly_rotated
from calc.model.state_space import StateSpace


@dataclass(frozen=True)
class BambaDims(Dims):
    """Sizes of the mixer, and how much of a head is rotated."""

    mamba: StateSpace | None = None
    rotary_dim: int = 0


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    names = ("model.embed_tokens", "model.layers", "model.final_layernorm")
    others = {"mamba": mamba_block, "mamba-behind": mamba_block, "behind": block}
    x = decoder(m, ids, block, others=others, rotary_dim=m.c.rotary_dim, names=names)
    m.returned.clear()
    return x


def block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """A layer with attention."""
    return _layer(m, x, self_attention, mask, positions)


def mamba_block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """A layer with Mamba's mixer."""
    return _layer(m, x, mix, mask, positions)


def _layer(m: Modules, x: Tensor, attend: Callable[..., Tensor], mask: Tensor | None, positions: Rotation) -> Tensor:
    x = pre_norm(
        m, x, attend, lambda m, x: llama.mlp(m, x, "feed_forward"), mask, positions,
        names=("input_layernorm", "pre_ff_layernorm"),
    )  # fmt: skip
    m.returns(*m.held)  # weights of eager attention
    return x


def self_attention(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """Grouped-query attention, the first part of each head rotated."""
    c = m.c
    q, k, v = llama.queries_keys_values(m, x)
    rotated_q, rotated_k = partly_rotated(q, positions), partly_rotated(k, positions)
    q, k = rotated_q, rotated_k
    del rotated_q, rotated_k
    out = attention(m, q, k, v, mask, dropout_p=c.attention_dropout)
    return m.linear("self_attn.o_proj", out, c.hidden_size, c.output_bias)


def dims(config: Config) -> Dims:
    """BambaConfig's fields and defaults."""
    common = sizes(
        config,
        vocab_size=128000,
        hidden_size=4096,
        intermediate_size=14336,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=8,
    )
    if config.number("z_loss_coefficient", default=0.0):
        raise ConfigError("z_loss_coefficient", "should be 0: another is not modelled")
    attending = config.integers("attn_layer_indices") if config.given("attn_layer_indices") else ()
    layers = range(common["num_hidden_layers"])
    bias = config.boolean("attention_bias", default=False)
    return BambaDims(
        **{**common, "kinds": tuple([_kind(i in attending, behind=i - 1 in attending) for i in layers])},
        attention_bias=bias,
        output_bias=bias,
        mlp_bias=config.boolean("mlp_bias", default=False),
        mamba=state_space(config, common),
        rotary_dim=rotary_dim(config, common["head_dim"], 0.5),
    )


def _kind(attends: bool, *, behind: bool) -> str:
    """The kind of a layer. One behind a layer with attention is of its own: the model holds eager attention's weights until it is done."""
    if attends:
        return "full behind" if behind else "full"
    return "none mamba-behind" if behind else "none mamba"


FAMILIES = (
    Family(
        id="bamba",
        types={"bamba": "Bamba"},
        dims=dims,
        body=body,
        gaps=frozenset(("offload without checkpointing", "releases before 5")),
        buffers=lambda dims, size: rotary_buffers(dims.rotary_dim),
        masks_states=True,
        packages=("mamba-ssm", "causal-conv1d"),
        source="transformers 5.24.0, models/bamba/modeling_bamba.py",
    ),
)
