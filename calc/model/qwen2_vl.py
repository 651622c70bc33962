"""Qwen2-VL: Qwen2.5-VL's text model and way of seeing, without windows. Mirrors transformers 5.24.0 models/qwen2_vl/modeling_qwen2_vl.py."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from calc.autograd.elementwise import activation, cast
from calc.autograd.images import joined, unbound
from calc.autograd.shapes import reshape
from calc.autograd.tensor import Tensor, empty
from calc.model import clip
from calc.model.activations import activation_name
from calc.model.config import Config
from calc.model.decoder import pre_norm
from calc.model.family import Family
from calc.model.modules import Modules
from calc.model.norms import layer_norm
from calc.model.qwen2_5_vl import (
    HOME,
    TEXT,
    QwenDims,
    QwenTowerDims,
    Windows,
    buffers,
    inputs,
    text_dims,
    turns,
    windowed_attention,
)
from calc.model.rotary import Rotation
from calc.model.vision import Seeing, Sight, body, head, images, patch_embedding, shared
from calc.model.vision import part as inner


@dataclass(frozen=True, kw_only=True)
class Qwen2Seeing(QwenDims):
    """Sizes of a Qwen2-VL model."""

    def look(self, m: Modules, sight: Sight) -> Tensor:
        """Images to features, (images·tokens, hidden_size)."""
        return features(self, m, sight, tower, merger)


def features(
    c: Seeing, m: Modules, sight: Sight, tower: Callable[..., Tensor], merger: Callable[..., Tensor]
) -> Tensor:
    """Images through a tower that takes all patches as one sequence, and a merger: (images·tokens, hidden_size)."""
    pixels = cast(m.given[0], m.recipe.dtype)
    with c.tower(m, sight.patches, one_sequence=True):
        last = tower(m, pixels, sight, images(m))
    with c.projector(m, sight.tokens):
        merged = unbound(merger(m, last, c.vision))
    m.seen += [last, merged]
    del last, pixels
    return cast(joined(merged), m.recipe.dtype)


def tower(m: Modules, pixels: Tensor, sight: Sight, count: int) -> Tensor:
    """Images to a row for each patch: (images·patches, hidden_size)."""
    c: QwenTowerDims = m.c
    ids = empty((m.rows, 2), "i64", "cat")
    whole = Windows(((count, sight.patches),), empty((count + 1,), "i32", "cumulative lengths"))
    x = patch_embedding(m, f"{HOME}.patch_embed.proj", pixels, m.length, bias=False)
    positions = Rotation(*turns(m, ids), None)
    for layer in m.layers(f"{HOME}.blocks", c.kinds):
        x = layer(block, x, whole, positions)
    del ids, whole, pixels
    return x


def block(m: Modules, x: Tensor, windows: Windows, positions: Rotation) -> Tensor:
    """One layer of the tower."""
    names = ("norm1", "norm2")
    return pre_norm(m, x, windowed_attention, clip.mlp, windows, positions, norm=layer_norm, names=names)  # type: ignore[arg-type]


def merger(m: Modules, x: Tensor, c: QwenTowerDims) -> Tensor:
    """Squares of patches side by side, brought to the text model's width."""
    wide = c.hidden_size * c.spatial_merge_size**2
    x = reshape(layer_norm(m, f"{HOME}.merger.ln_q", x), (m.rows, wide))
    x = m.linear(f"{HOME}.merger.mlp.0", x, wide, True)
    x = activation(x, "gelu")
    return m.linear(f"{HOME}.merger.mlp.2", x, c.out_hidden_size, True)


def tower_dims(config: Config) -> QwenTowerDims:
    """Qwen2VLVisionConfig's fields and defaults; its `hidden_size` is what the merger makes."""
    hidden = config.integer("embed_dim", default=1280)
    heads = config.integer("num_heads", "num_attention_heads", default=16, high=4096)
    layers = config.integer("depth", "num_hidden_layers", default=32, high=2000)
    return QwenTowerDims(
        vocab_size=0,
        hidden_size=hidden,
        intermediate_size=int(hidden * config.number("mlp_ratio", default=4, low=0.01, high=1000)),
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        head_dim=hidden // heads,
        hidden_act=activation_name(config, "hidden_act", default="quick_gelu"),
        patch_size=config.integer("patch_size", default=14, high=4096),
        num_channels=config.integer("in_channels", "in_chans", default=3, high=64),
        temporal_patch_size=config.integer("temporal_patch_size", default=2, high=64),
        spatial_merge_size=config.integer("spatial_merge_size", default=2, high=64),
        window_size=0,
        out_hidden_size=config.integer("hidden_size", default=3584),
        image_size=448,
        kinds=("vision",) * layers,
    )


def dims(config: Config) -> Qwen2Seeing:
    """Qwen2VLConfig's fields and defaults; older files have the text model's at the top."""
    nested = config.given("text_config") is not None
    text = text_dims(config.part("text_config") if nested else config)
    vision = tower_dims(inner(config, "vision_config", {}))
    tied = config.boolean("tie_word_embeddings", default=False)
    return Qwen2Seeing(**shared(text, vision.kinds, tied), language=LANGUAGE, vision=vision)


LANGUAGE = replace(TEXT, id="qwen2_vl_text", types={"qwen2_vl_text": "Qwen2-VL"})
FAMILIES = (
    Family(
        id="qwen2_vl",
        types={"qwen2_vl": "Qwen2-VL"},
        dims=dims,
        body=body,
        head=head,
        given=inputs,
        buffers=buffers,
        source="transformers 5.24.0, models/qwen2_vl/modeling_qwen2_vl.py",
    ),
)
