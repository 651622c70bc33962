"""Granite 4: layers of attention and of Mamba 2, each with a gated feed-forward and perhaps experts beside it.

Mirrors transformers 5.24.0 models/granitemoehybrid/modeling_granitemoehybrid.py, where mamba-ssm and causal-conv1d are not installed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from calc.autograd.elementwise import add, scale
from calc.autograd.shapes import reshape
from calc.autograd.tensor import Tensor
from calc.model.config import Config, ConfigError
from calc.model.decoder import masks, pre_norm, sizes
from calc.model.experts import MixtureDims, chosen, routed_logits
from calc.model.family import Dims, Family, rotary_buffers
from calc.model.granite import head
from calc.model.granite_moe import of_chosen, shared_mlp
from calc.model.llama import self_attention
from calc.model.modules import Modules
from calc.model.norms import rms_norm
from calc.model.rotary import Rotation, position_ids, rotation
from calc.model.state_space import StateSpace, groups, mixer


@dataclass(frozen=True)
class GraniteHybridDims(MixtureDims):
    """Sizes of Mamba's mixer, too."""

    mamba: StateSpace | None = None
    rotates: bool = False
    """Attention knows positions."""


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    c = m.c
    x = inputs_embeds = scale(m.embedding("model.embed_tokens", ids, c.vocab_size, c.hidden_size))
    counted = position_ids(m)
    mask = masks(m, x.dtype, ("full",))["full"]
    positions = None
    if c.rotates:  # layers get no position ids
        positions = rotation(m, x.dtype, c.head_dim, counted)._replace(position_ids=None)
    for layer, kind in zip(m.layers("model.layers", c.kinds), c.kinds, strict=True):
        x = layer(block, x, mask, positions) if kind == "full" else layer(mamba_block, x, None, positions)
    x = rms_norm(m, "model.norm", x)
    del inputs_embeds, counted  # transformers holds them until its forward returns
    return x


def block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation | None) -> Tensor:
    """A layer with attention."""
    return pre_norm(m, x, self_attention, feed, mask, positions, joined=lambda m, x: scale(x))


def mamba_block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation | None) -> Tensor:
    """A layer with Mamba's mixer."""
    return pre_norm(m, x, mix, feed, mask, positions, joined=lambda m, x: scale(x))


def mix(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation | None) -> Tensor:
    """Mamba's mixer in attention's place."""
    return mixer(m, "mamba", x, m.c.mamba)


def feed(m: Modules, x: Tensor) -> Tensor:
    """The feed-forward, and experts beside it if there are any."""
    if not m.c.num_experts:
        return shared_mlp(m, x)
    mixed = mixture(m, x)
    m.held[:] = [mixed]  # a name of the layer's own
    return add(mixed, shared_mlp(m, x))


def mixture(m: Modules, x: Tensor) -> Tensor:
    """Softmax over the chosen experts only."""
    x = reshape(x, x.shape)  # gradients of router and experts meet in this view, before that of the feed-forward
    return of_chosen(m, x, routed_logits(m, "block_sparse_moe.router", x))


def dims(config: Config) -> Dims:
    """GraniteMoeHybridConfig's fields and defaults."""
    common = sizes(
        config,
        vocab_size=32000,
        hidden_size=4096,
        intermediate_size=11008,
        num_hidden_layers=32,
        num_attention_heads=32,
    )
    bias = config.boolean("attention_bias", default=False)
    count = config.integer("num_local_experts", default=8, low=0, high=65536)
    top = chosen(config, "num_local_experts", default=8, top=2)[1] if count else 0
    kinds = layer_kinds(config, common["num_hidden_layers"])
    return GraniteHybridDims(
        **{**common, "kinds": kinds},
        attention_bias=bias,
        output_bias=bias,
        num_experts=count,
        num_experts_per_tok=top,
        moe_intermediate_size=common["intermediate_size"],
        shared_intermediate_size=config.integer("shared_intermediate_size", default=1024),
        rotates=rotates(config),
        mamba=state_space(config, common) if "none mamba" in kinds else None,
    )


def rotates(config: Config) -> bool:
    """`position_embedding_type`: rope, or null for none."""
    if config.given("position_embedding_type") is None:
        return False
    return config.text("position_embedding_type") == "rope"


def layer_kinds(config: Config, layers: int) -> tuple[str, ...]:
    """ "full" or "none mamba" for each layer, as `layer_types` (`layers_block_type` in older files) lists them; all Mamba without a list."""
    name = "layer_types" if config.given("layer_types") is not None else "layers_block_type"
    if config.given(name) is None:
        return ("none mamba",) * layers
    types = config.texts(name)
    if len(types) != layers:
        raise ConfigError(name, f"should have num_hidden_layers ({layers}) entries, not {len(types)}")
    for one in types:
        if one not in KINDS:
            raise ConfigError(name, f"should hold {', '.join(KINDS)}, not {one[:40]!r}")
    return tuple([KINDS[one] for one in types])


KINDS = {"full_attention": "full", "attention": "full", "linear_attention": "none mamba", "mamba": "none mamba"}
"""What a layer is, by its name in the config."""


def state_space(config: Config, common: dict[str, Any], **defaults: int) -> StateSpace:
    """The fields that begin with mamba_, with Granite's defaults unless others are given."""
    known = {"heads": 128, "state": 256, "groups": 1, "conv": 4, "expand": 2, "chunk": 256, **defaults}
    width = config.integer("mamba_expand", default=known["expand"], high=1000) * common["hidden_size"]
    heads = config.integer("mamba_n_heads", default=known["heads"], high=10**6)
    if width // heads * heads != width:
        raise ConfigError("mamba_n_heads", f"should divide mamba_expand * hidden_size ({width}), not {heads}")
    own = config.given("mamba_d_head")
    if own not in (None, "auto", width // heads):
        raise ConfigError(
            "mamba_d_head",
            f"should be mamba_expand * hidden_size / mamba_n_heads ({width // heads}), not {str(own)[:40]}",
        )
    return StateSpace(
        heads=heads,
        head_dim=width // heads,
        state=config.integer("mamba_d_state", default=known["state"], high=10**6),
        groups=groups(config, "mamba_n_groups", known["groups"], heads),
        conv=config.integer("mamba_d_conv", default=known["conv"], high=10**6),
        chunk=config.integer("mamba_chunk_size", default=known["chunk"], high=10**6),
        conv_bias=config.boolean("mamba_conv_bias", default=True),
        proj_bias=config.boolean("mamba_proj_bias", default=False),
        act=common["hidden_act"],
    )


FAMILIES = (
    Family(
        id="granite-hybrid",
        types={"granitemoehybrid": "Granite 4"},
        dims=dims,
        body=body,
        head=head,
        gaps=frozenset(("offload without checkpointing", "releases before 5")),
        buffers=lambda dims, size: rotary_buffers(dims.head_dim) if dims.rotates else 0,
        masks_states=True,
        packages=("mamba-ssm", "causal-conv1d"),
        source="transformers 5.24.0, models/granitemoehybrid/modeling_granitemoehybrid.py",
    ),
)
