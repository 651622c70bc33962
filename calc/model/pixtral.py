"""Pixtral's vision tower: the patches of all images in one row, turned by their place in the image, and a mask that keeps images apart.

Mirrors transformers 5.24.0 models/pixtral/modeling_pixtral.py.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from calc.autograd.elementwise import cast, scale
from calc.autograd.images import joined, unbound
from calc.autograd.tensor import Tensor, empty
from calc.model import llama
from calc.model.attention import attention, split
from calc.model.clip import dims as clip_dims
from calc.model.config import Config
from calc.model.decoder import pre_norm
from calc.model.modules import Modules
from calc.model.norms import rms_norm
from calc.model.rotary import Rotation, rotated
from calc.model.vision import APART, TowerDims, patch_embedding

HOME = "model.vision_tower"


class Seen(NamedTuple):
    """What the tower hands back."""

    last: Tensor
    chosen: Tensor
    """The layer's result that the projector reads."""


def tower(m: Modules, pixels: Tensor, side: tuple[int, int]) -> Seen:
    """Images of `side` patches, height and width, to a row for each patch: (images·patches, hidden_size)."""
    c: TowerDims = m.c
    patches = unbound(patch_embedding(m, f"{HOME}.patch_conv", pixels, m.length, bias=False))
    entered = rms_norm(m, f"{HOME}.ln_pre", joined(patches))
    places = [empty((n,), "i64", "arange") for n in side]
    ids = empty((m.rows, 2), "i64", "cat")
    positions = rotation(m, entered.dtype, ids)
    mask = None
    if not m.recipe.attention.startswith("flash"):
        mask = empty((1, 1, m.rows, m.rows), entered.dtype, "full")
    x = chosen = entered
    for layer, kind in zip(m.layers(f"{HOME}.transformer.layers", c.kinds), c.kinds, strict=True):
        m.apart = kind == APART
        x = layer(block, x, mask, positions)
        chosen = chosen if m.apart else x
    m.apart = False
    del patches, entered, places, ids  # names of the frame
    return Seen(x, chosen)


def rotation(m: Modules, dtype: str, ids: Tensor) -> Rotation:
    """The rotation of each patch by its row and its column."""
    rows, half = m.rows, m.c.head_dim // 2
    places = cast(ids, "fp32")
    angles = empty((rows, 2, half), "fp32", "mul")
    del places
    cos = scale(empty(angles.shape, "fp32", "cos"))
    sin = scale(empty(angles.shape, "fp32", "sin"))
    cos = _laid_out(cos)
    sin = _laid_out(sin)
    return Rotation(cast(cos, dtype), cast(sin, dtype), None)


def _laid_out(x: Tensor) -> Tensor:
    """Rows' and columns' angles side by side, and once more."""
    rows, _, half = x.shape
    once = empty((rows, half), "fp32", "cat")
    twice = empty((rows, 2 * half), "fp32", "cat")
    del once
    return twice


def block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """One layer."""
    return pre_norm(m, x, self_attention, mlp, mask, positions, norm=rms_norm, names=("attention_norm", "ffn_norm"))


def self_attention(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """Attention of the patches of each image to each other, all in one sequence."""
    c: TowerDims = m.c
    heads, d, h = c.num_attention_heads, c.head_dim, c.hidden_size
    q, k, v = m.linear("attention.q_proj", x, h), m.linear("attention.k_proj", x, h), m.linear("attention.v_proj", x, h)
    q, k, v = split(m, q, heads, d), split(m, k, heads, d), split(m, v, heads, d)
    rotated_q, rotated_k = rotated(q, positions), rotated(k, positions)
    q, k = rotated_q, rotated_k
    del rotated_q, rotated_k
    out = attention(m, q, k, v, mask, dropout_p=c.attention_dropout)
    return m.linear("attention.o_proj", out, h)


def mlp(m: Modules, x: Tensor) -> Tensor:
    """Gated feed-forward."""
    return llama.mlp(m, x, "feed_forward")


def dims(config: Config, *, select: int) -> TowerDims:
    """PixtralVisionConfig's fields and defaults."""
    return clip_dims(config, select=select, **DEFAULTS)


DEFAULTS: dict[str, Any] = {"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 16, "patch_size": 16, "image_size": 1024, "hidden_act": "gelu"}  # fmt: skip
