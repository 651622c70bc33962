"""GLM-4.1V, 4.5V and 4.6V: a tower that sees images at any size with positions read between those it learned, a convolution that joins patches,
a merger, and GLM-4's or GLM-4.5's layers with three-dimensional positions.

Mirrors transformers 5.24.0 models/glm4v/modeling_glm4v.py, models/glm46v/modeling_glm46v.py and
models/glm4v_moe/modeling_glm4v_moe.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from math import ceil, floor, sqrt
from typing import ClassVar

from calc.autograd.convolution import conv1d
from calc.autograd.elementwise import activation, add, cast
from calc.autograd.images import grid_sampled, turned
from calc.autograd.tensor import Tensor, empty
from calc.model import glm4_moe, llama
from calc.model.activations import activation_name, gated
from calc.model.config import Config, ConfigError
from calc.model.decoder import decoder, pre_norm, rotary_dim, sizes
from calc.model.family import Dims, Family, rotary_buffers
from calc.model.glm import GlmDims, beginnings_rotated, sandwich_block
from calc.model.modules import Modules
from calc.model.norms import layer_norm, rms_norm
from calc.model.qwen2_5_vl import QwenTowerDims, Windows, inputs, text_rotation, turns, windowed_attention
from calc.model.qwen2_vl import features
from calc.model.rotary import Rotation
from calc.model.vision import Seeing, Sight, body, head, patch_embedding, shared
from calc.model.vision import part as inner

HOME = "model.visual"
LEAST, MOST = 12_544, 9_633_792
"""Pixels of all frames that the published models' image processor makes an image have, at least and at most (`size`)."""
LONGEST = 200
"""Times that one side may be the other."""


@dataclass(frozen=True, kw_only=True)
class Glm4vDims(Seeing):
    """Sizes of a GLM model with eyes."""

    kinds_of_places: ClassVar[int] = 2
    vision: QwenTowerDims

    def sight(self, height: int, width: int) -> Sight:
        """An image keeps its shape: both sides are rounded to whole merged patches, and shrunk or grown into bounds.

        Source: models/glm4v/image_processing_glm4v.py, smart_resize, where an image is as many frames as a patch reaches over.
        """
        patch, merge, frames = self.vision.patch_size, self.vision.spatial_merge_size, self.vision.temporal_patch_size
        side = patch * merge
        if height < side or width < side:
            by = max(side / height, side / width)
            height, width = int(height * by), int(width * by)
        high, wide = round(height / side) * side, round(width / side) * side
        if frames * high * wide > MOST:
            by = sqrt(frames * height * width / MOST)
            high, wide = (max(side, floor(n / by / side) * side) for n in (height, width))
        elif frames * high * wide < LEAST:
            by = sqrt(LEAST / (frames * height * width))
            high, wide = (ceil(n * by / side) * side for n in (height, width))
        patches = (high // patch) * (wide // patch)
        return Sight(high, wide, patches, patches // merge**2, 2)

    def unable(self, height: int, width: int) -> str:
        """The image processor takes no narrow strips, and the heads must divide the tower's width."""
        if max(height, width) > LONGEST * min(height, width):
            return f"one side is more than {LONGEST} times the other"
        hidden, heads = self.vision.hidden_size, self.vision.num_attention_heads
        return "" if hidden % heads == 0 else f"{heads} heads do not divide the tower's width of {hidden}"

    def look(self, m: Modules, sight: Sight) -> Tensor:
        """Images to features, (images·tokens, hidden_size)."""
        return features(self, m, sight, tower, merger)

    def arranged(self, m: Modules) -> list[Tensor]:
        """Position of each token in time, height and width."""
        return [empty((3, m.batch, m.length), "i64", "zeros")]


def tower(m: Modules, pixels: Tensor, sight: Sight, count: int) -> Tensor:
    """Images to a row for each square of patches, (images·squares, out_hidden_size)."""
    c: QwenTowerDims = m.c
    ids = empty((m.rows, 2), "i64", "cat")
    whole = Windows(((count, sight.patches),), empty((count + 1,), "i32", "cumulative lengths"))
    x = patch_embedding(m, f"{HOME}.patch_embed.proj", pixels, m.length, bias=True, known=False)
    x = rms_norm(m, f"{HOME}.post_conv_layernorm", x)
    positions = Rotation(*turns(m, ids), None)
    x = placed(m, x)
    for layer in m.layers(f"{HOME}.blocks", c.kinds):
        x = layer(block, x, whole, positions)
    x = rms_norm(m, f"{HOME}.post_layernorm", x)
    x = downsampled(m, x)
    del ids, whole, positions, pixels
    return x


def placed(m: Modules, x: Tensor) -> Tensor:
    """Patches with positions read out of the square of learned ones, between which they may lie, in fp32."""
    c: QwenTowerDims = m.c
    name, side = f"{HOME}.embeddings.position_embedding", c.image_size // c.patch_size
    table = cast(turned(m.weight(f"{name}.weight", (side**2, c.hidden_size), "other")), "fp32")
    places = grid_sampled(table, empty((m.rows, 2), "fp32", "stack"), x.shape)
    return add(x, cast(places, m.recipe.dtype))


def block(m: Modules, x: Tensor, windows: Windows, positions: Rotation) -> Tensor:
    """One layer of the tower."""
    c: QwenTowerDims = m.c
    attend = partial(windowed_attention, bias=c.attention_bias, output_bias=False)
    return pre_norm(m, x, attend, mlp, windows, positions, names=("norm1", "norm2"))  # type: ignore[arg-type]


def mlp(m: Modules, x: Tensor) -> Tensor:
    """Gated feed-forward, as wide as what the tower hands on."""
    return llama.mlp(m, x, "mlp", m.c.out_hidden_size)


def downsampled(m: Modules, x: Tensor) -> Tensor:
    """A convolution that steps by its own width: a row for each square of patches."""
    c: QwenTowerDims = m.c
    name, side = f"{HOME}.downsample", c.spatial_merge_size
    weight = m.weight(f"{name}.weight", (c.out_hidden_size, c.hidden_size, side, side), "other")
    offset = m.weight(f"{name}.bias", (c.out_hidden_size,), "bias")
    if m.recipe.autocast is not None:
        offset, weight = m.lowered(offset), m.lowered(weight)
        x = cast(x, m.recipe.autocast)
    return conv1d(x, weight, offset, (m.rows // side**2, c.out_hidden_size))


def merger(m: Modules, x: Tensor, c: QwenTowerDims) -> Tensor:
    """A product, a norm, and a gated feed-forward."""
    name, wide = f"{HOME}.merger", c.intermediate_size
    x = m.linear(f"{name}.proj", x, c.out_hidden_size)
    x = activation(layer_norm(m, f"{name}.post_projection_norm", x), "gelu")
    product = gated(
        m,
        m.linear(f"{name}.gate_proj", x, wide),
        lambda: m.linear(f"{name}.up_proj", x, wide),
        c.hidden_act,
    )
    return m.linear(f"{name}.down_proj", product, c.out_hidden_size)


def text_body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    return decoder(
        m, ids, partial(sandwich_block, turn=beginnings_rotated), angles=text_rotation, rotary_dim=m.c.rotary_dim
    )


def moe_text_body(m: Modules, ids: Tensor) -> Tensor:
    """GLM-4.5V's: token ids (rows,) to hidden states (rows, hidden_size)."""
    return glm4_moe.body(m, ids, angles=_kept_positions)


def _kept_positions(m: Modules, dtype: str, head_dim: int) -> Rotation:
    """The rotation, and the places that it was made of, which this class hands to its layers too."""
    turns = text_rotation(m, dtype, head_dim)
    return turns._replace(position_ids=m.frame[-1])


def text_dims(config: Config) -> Dims:
    """Glm4vTextConfig's fields and defaults."""
    common = sizes(
        config,
        vocab_size=151552,
        hidden_size=4096,
        intermediate_size=13696,
        num_hidden_layers=40,
        num_attention_heads=32,
        num_key_value_heads=2,
    )
    head_dim = common["hidden_size"] // common["num_attention_heads"]
    return GlmDims(
        **{**common, "head_dim": head_dim}, attention_bias=True, rotary_dim=rotary_dim(config, head_dim, 1.0)
    )


def tower_dims(config: Config) -> QwenTowerDims:
    """Glm4vVisionConfig's fields and defaults."""
    hidden = config.integer("hidden_size", default=1536)
    heads = config.integer("num_heads", "num_attention_heads", default=12, high=4096)
    layers = config.integer("depth", "num_hidden_layers", default=24, high=2000)
    return QwenTowerDims(
        vocab_size=0,
        hidden_size=hidden,
        intermediate_size=config.integer("intermediate_size", default=13696),
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        head_dim=hidden // heads,
        hidden_act=activation_name(config, "hidden_act", default="silu"),
        attention_bias=config.boolean("attention_bias", default=False),
        patch_size=config.integer("patch_size", default=14, high=4096),
        num_channels=config.integer("in_channels", default=3, high=64),
        temporal_patch_size=config.integer("temporal_patch_size", default=2, high=64),
        spatial_merge_size=config.integer("spatial_merge_size", default=2, high=64),
        window_size=0,
        out_hidden_size=config.integer("out_hidden_size", default=4096),
        image_size=config.integer("image_size", default=336, high=65536),
        kinds=("vision",) * layers,
    )


def moe_text_dims(config: Config) -> Dims:
    """Glm4vMoeTextConfig's fields and defaults; its class knows no norms of queries and keys."""
    text = glm4_moe.dims(config, vocab_size=151424, bias=True, rotated_part=0.5)
    return replace(text, use_qk_norm=False)  # type: ignore[call-arg]


def dims(config: Config) -> Glm4vDims:
    """Glm4vConfig's and Glm46VConfig's fields and defaults."""
    return _seeing(config, TEXT, config.boolean("tie_word_embeddings", default=False))


def moe_dims(config: Config) -> Glm4vDims:
    """Glm4vMoeConfig's fields and defaults."""
    below = inner(config, "text_config", {}).given("tie_word_embeddings")  # where files of before version 5 say it
    tied = config.boolean("tie_word_embeddings", default=False)
    return _seeing(config, MOE_TEXT, tied or bool(below))


def _seeing(config: Config, language: Family, tied: bool) -> Glm4vDims:
    vision = tower_dims(inner(config, "vision_config", {}))
    within = inner(config, "text_config", {})
    (usual,) = language.types
    if (kind := within.text("model_type", default=usual)) != usual:
        raise ConfigError("text_config.model_type", f"is only modelled as {usual}, not {kind[:40]!r}")
    return Glm4vDims(**shared(language.dims(within), vision.kinds, tied), language=language, vision=vision)


def buffers(c: Glm4vDims, size: int) -> int:
    """The text model's, and the tower's own frequencies."""
    return c.language.buffers(c.text, size) + rotary_buffers(c.vision.head_dim // 2)


TEXT = Family(
    id="glm4v_text",
    types={"glm4v_text": "GLM-4.1V"},
    dims=text_dims,
    body=text_body,
    buffers=lambda dims, size: rotary_buffers(dims.rotary_dim),
    source="transformers 5.24.0, models/glm4v/modeling_glm4v.py",
)
MOE_TEXT = Family(
    id="glm4v_moe_text",
    types={"glm4v_moe_text": "GLM-4.5V"},
    dims=moe_text_dims,
    body=moe_text_body,
    buffers=glm4_moe.glm_buffers,
    source="transformers 5.24.0, models/glm4v_moe/modeling_glm4v_moe.py",
)
FAMILIES = (
    Family(
        id="glm4v",
        types={"glm4v": "GLM-4.1V", "glm46v": "GLM-4.6V"},
        dims=dims,
        body=body,
        head=head,
        given=inputs,
        buffers=buffers,
        source="transformers 5.24.0, models/glm4v/modeling_glm4v.py",
    ),
    Family(
        id="glm4v_moe",
        types={"glm4v_moe": "GLM-4.5V"},
        dims=moe_dims,
        body=body,
        head=head,
        given=inputs,
        gaps=frozenset(("all-linear adapters in the tower",)),
        buffers=buffers,
        source="transformers 5.24.0, models/glm4v_moe/modeling_glm4v_moe.py",
    ),
)
