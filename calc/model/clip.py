"""CLIP's vision tower. Mirrors transformers 5.24.0 models/clip/modeling_clip.py."""

from __future__ import annotations

from typing import NamedTuple

from calc.autograd.elementwise import add, add_broadcast, cast, promoted
from calc.autograd.lookup import embedding
from calc.autograd.shapes import cat, expand, part
from calc.autograd.storage import Standing
from calc.autograd.tensor import Tensor
from calc.model.activations import activated, activation_name
from calc.model.attention import attention, split
from calc.model.config import Config, ConfigError
from calc.model.decoder import pre_norm, share
from calc.model.modules import Modules
from calc.model.norms import layer_norm
from calc.model.rotary import Rotation
from calc.model.vision import APART, TowerDims, patch_embedding

HOME = "model.vision_tower"


class Seen(NamedTuple):
    """What a tower hands back."""

    last: Tensor
    """The last layer's result."""
    chosen: Tensor
    """That of the layer which the projector reads."""
    pooled: Tensor


def tower(m: Modules, pixels: Tensor) -> Seen:
    """Images to a row for each patch and one for the class token before them, `length` in all."""
    c: TowerDims = m.c
    count = m.batch
    entered = layer_norm(m, f"{HOME}.pre_layrnorm", embeddings(m, pixels))
    x = chosen = entered
    for layer, kind in zip(m.layers(f"{HOME}.encoder.layers", c.kinds), c.kinds, strict=True):
        m.apart = kind == APART
        x = layer(block, x, None, None)
        chosen = chosen if m.apart else x
    m.apart = True
    pooled = layer_norm(m, f"{HOME}.post_layernorm", part(x, (count, c.hidden_size)))
    m.apart = False
    return Seen(x, chosen, pooled)


def embeddings(m: Modules, pixels: Tensor) -> Tensor:
    """Patches and the class token, with their positions."""
    c: TowerDims = m.c
    patches = patch_embedding(
        m, f"{HOME}.embeddings.patch_embedding", pixels, m.length - 1, bias=False, channels_first=True
    )
    token = m.weight(f"{HOME}.embeddings.class_embedding", (c.hidden_size,), "other")
    tokens = expand(token, (m.batch, c.hidden_size))
    wide = promoted(patches.dtype, tokens.dtype)
    x = cat((tokens, cast(patches, wide)), (m.rows, c.hidden_size))
    return add_positions(m, f"{HOME}.embeddings.position_embedding", x)


def add_positions(m: Modules, name: str, x: Tensor) -> Tensor:
    """x and a learned row for each place, alike for every image."""
    count = m.length
    table = m.weight(f"{name}.weight", (count, x.shape[-1]), "other")
    ids = Tensor((count,), "i64", Standing((count,), "i64", "position ids"))
    places = embedding(table, ids)
    return add(x, places) if m.batch == 1 else add_broadcast(x, places)


def block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation | None) -> Tensor:
    """One layer."""
    return pre_norm(
        m, x, self_attention, mlp, mask, positions, norm=layer_norm, names=("layer_norm1", "layer_norm2")
    )  # fmt: skip


def self_attention(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation | None) -> Tensor:
    """Attention of every patch to every other of its image."""
    c: TowerDims = m.c
    heads, d, h = c.num_attention_heads, c.head_dim, c.hidden_size
    q = m.linear("self_attn.q_proj", x, h, True)
    k = m.linear("self_attn.k_proj", x, h, True)
    v = m.linear("self_attn.v_proj", x, h, True)
    q, k, v = (split(m, t, heads, d) for t in (q, k, v))
    out = attention(m, q, k, v, mask, dropout_p=c.attention_dropout)
    return m.linear("self_attn.out_proj", out, h, True)


def mlp(m: Modules, x: Tensor) -> Tensor:
    """Two linear layers with an activation between them."""
    c: TowerDims = m.c
    x = m.linear("mlp.fc1", x, c.intermediate_size, True)
    x = activated(m, x, c.hidden_act)
    return m.linear("mlp.fc2", x, c.hidden_size, True)


def dims(
    config: Config,
    *,
    hidden_size: int = 768,
    intermediate_size: int = 3072,
    num_hidden_layers: int = 12,
    num_attention_heads: int = 12,
    image_size: int = 224,
    patch_size: int = 32,
    hidden_act: str = "quick_gelu",
    select: int | None = None,
) -> TowerDims:
    """CLIPVisionConfig's fields, or those of a class like it; `select` is the hidden state that is used, as transformers counts them (0 is
    the first layer's input), None if all layers are."""
    hidden = config.integer("hidden_size", default=hidden_size)
    heads = config.integer("num_attention_heads", default=num_attention_heads, high=4096)
    layers = config.integer("num_hidden_layers", default=num_hidden_layers, high=2000)
    if hidden // heads * heads != hidden:
        raise ConfigError("vision_config.num_attention_heads", f"should divide hidden_size ({hidden}), not {heads}")
    used = layers
    if select is not None:
        if not -layers - 1 <= select <= layers:
            raise ConfigError("vision_feature_layer", f"should lie within the tower's {layers} layers, not {select}")
        used = select % (layers + 1)
    return TowerDims(
        vocab_size=0,
        hidden_size=hidden,
        intermediate_size=config.integer("intermediate_size", default=intermediate_size),
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        head_dim=hidden // heads,
        hidden_act=activation_name(config, "hidden_act", default=hidden_act),
        attention_dropout=share(config, "attention_dropout"),
        patch_size=config.integer("patch_size", default=patch_size, high=4096),
        num_channels=config.integer("num_channels", default=3, high=64),
        image_size=config.integer("image_size", default=image_size, high=65536),
        kinds=("vision",) * used + (APART,) * (layers - used),
    )
