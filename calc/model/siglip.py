"""SigLIP's vision tower: CLIP's layers without a class token. Mirrors transformers 5.24.0 models/siglip/modeling_siglip.py."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import NamedTuple

from calc.autograd.elementwise import add, add_broadcast, clone, mean, scale, softmax
from calc.autograd.linear import bmm, mm
from calc.autograd.shapes import part, reshape
from calc.autograd.tensor import Tensor
from calc.model import clip
from calc.model.activations import activated
from calc.model.attention import lowered
from calc.model.config import Config
from calc.model.modules import Modules
from calc.model.norms import layer_norm
from calc.model.vision import TowerDims, patch_embedding

HOME = "model.vision_tower"


@dataclass(frozen=True, kw_only=True)
class SiglipDims(TowerDims):
    """Sizes of SigLIP's tower."""

    vision_use_head: bool
    """A pooling head stands on top, whose result the models built on the tower do not use."""


class Seen(NamedTuple):
    """What the tower hands back."""

    last: Tensor
    """Each patch's row, normed."""
    pooled: Tensor | None
    chosen: Tensor
    """The rows that a projector reads: those, or what they were before the norm."""


def tower(m: Modules, pixels: Tensor, *, normed: bool = True) -> Seen:
    """Images to a row for each patch; without `normed` nothing uses the last norm."""
    c: SiglipDims = m.c
    entered = embeddings(m, pixels)
    x = entered
    for layer in m.layers(f"{HOME}.encoder.layers", c.kinds):
        x = layer(clip.block, x, None, None)
    m.apart = not normed
    before, x = x, layer_norm(m, f"{HOME}.post_layernorm", x)
    m.apart = False
    pooled = head(m, x) if c.vision_use_head else None
    chosen = x if normed else before
    del entered, before  # names of the frames
    return Seen(x, pooled, chosen)


def embeddings(m: Modules, pixels: Tensor) -> Tensor:
    """Patches with their positions."""
    x = patch_embedding(m, f"{HOME}.embeddings.patch_embedding", pixels, m.length, bias=True, channels_first=True)
    return clip.add_positions(m, f"{HOME}.embeddings.position_embedding", x)


def head(m: Modules, x: Tensor) -> Tensor:
    """SiglipMultiheadAttentionPoolingHead: one trained query looks at all patches; then a norm and two linear layers."""
    m.apart = True
    c: SiglipDims = m.c
    images, length, width, heads, d = m.batch, m.length, c.hidden_size, c.num_attention_heads, c.head_dim
    name = f"{HOME}.head"
    probe = clone(part(m.weight(f"{name}.probe", (1, 1, width), "other"), (images, width)))
    weight = m.weight(f"{name}.attention.in_proj_weight", (3 * width, width), "other")
    offset = m.weight(f"{name}.attention.in_proj_bias", (3 * width,), "bias")
    q = _product(m, probe, part(weight, (width, width)), part(offset, (width,)))
    both = _keys_values(m, x, part(weight, (2 * width, width)), part(offset, (2 * width,)))
    keys = values = reshape(both, (images * heads, length, 2 * d))  # each a half of it
    scores = bmm(reshape(scale(q), (images * heads, 1, d)), keys, (images * heads, 1, length))
    shares = softmax(scores, None if m.recipe.autocast is None else "fp32")
    del scores
    looked = bmm(lowered(m, shares), values, (images * heads, 1, d))
    out = f"{name}.attention.out_proj"  # used as a weight, not as a layer: adapters beside it do nothing
    y = m.product(
        reshape(looked, (images, width)),
        m.weight(f"{out}.weight", (width, width), "linear"),
        m.weight(f"{out}.bias", (width,), "bias"),
    )
    mean(shares)
    del probe, q, both, keys, values, shares, looked
    residual = y
    y = layer_norm(m, f"{name}.layernorm", y)
    y = m.linear(f"{name}.mlp.fc1", y, c.intermediate_size, True)
    y = activated(m, y, c.hidden_act)
    y = add(residual, m.linear(f"{name}.mlp.fc2", y, width, True))
    m.apart = False
    return y


def _product(m: Modules, x: Tensor, weight: Tensor, offset: Tensor) -> Tensor:
    """A product with a part of a weight, which autocast casts each time."""
    offset, weight = lowered(m, offset), lowered(m, weight)
    return mm(lowered(m, x), weight, offset)


def _keys_values(m: Modules, x: Tensor, weight: Tensor, offset: Tensor) -> Tensor:
    """Keys and values in one product, then laid apart. Several images stand side by side, patch by patch, so that rows are copied first and
    the bias is added by itself."""
    if m.batch == 1:
        return clone(_product(m, x, weight, offset))
    offset, weight = lowered(m, offset), lowered(m, weight)
    x = lowered(m, x)
    return clone(add_broadcast(mm(clone(x), weight), offset))


def dims(config: Config) -> SiglipDims:
    """SiglipVisionConfig's fields and defaults."""
    common = clip.dims(config, patch_size=16, hidden_act="gelu_pytorch_tanh")
    own = {field.name: getattr(common, field.name) for field in fields(TowerDims)}
    return SiglipDims(**own, vision_use_head=config.boolean("vision_use_head", default=True))
