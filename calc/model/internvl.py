"""InternVL: a tower of scaled layers over tiles of the image, patches shuffled into squares, and a text model.

Mirrors transformers 5.24.0 models/internvl/modeling_internvl.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from calc.autograd.elementwise import add, add_broadcast, cast, dropout, mul, promoted
from calc.autograd.images import placed
from calc.autograd.shapes import cat, expand, laid_out, part, reshape
from calc.autograd.tensor import Tensor
from calc.model import clip
from calc.model.activations import activated, activation_name
from calc.model.attention import Eager, attention, split
from calc.model.config import Config, ConfigError
from calc.model.decoder import share
from calc.model.family import Family
from calc.model.modules import Modules
from calc.model.norms import layer_norm, rms_norm
from calc.model.rotary import Rotation
from calc.model.vision import APART, Seeing, Sight, TowerDims, body, given, head, patch_embedding, shared, text_model
from calc.model.vision import part as inner

HOME, NAME = "model.vision_tower", "model.multi_modal_projector"
NARROW = Eager(wide_softmax=False, lowered=False)
MOST_TILES = 12
"""Of the published models' image processor (`max_patches`)."""


@dataclass(frozen=True, kw_only=True)
class InternDims(TowerDims):
    """Sizes of the tower."""

    use_qk_norm: bool
    use_mask_token: bool
    use_mean_pooling: bool
    use_absolute_position_embeddings: bool
    hidden_dropout: float


@dataclass(frozen=True, kw_only=True)
class InternVLDims(Seeing):
    """Sizes of an InternVL model."""

    vision: InternDims
    squares: int
    """Patches that become one token, along a side."""
    projector_act: str
    drops_class: bool

    def sight(self, height: int, width: int) -> Sight:
        """An image is cut into tiles of the tower's size, in the grid whose shape is nearest, with a small copy of the whole beside them.

        Source: models/got_ocr2/image_processing_got_ocr2.py, get_optimal_tiled_canvas.
        """
        side = self.vision.image_size
        patches = (side // self.vision.patch_size) ** 2
        columns, rows = grid(height, width, side)
        tiles = columns * rows + (columns * rows > 1)
        return Sight(side, side, patches, tiles * patches // self.squares**2, 2, tiles)

    def look(self, m: Modules, sight: Sight) -> Tensor:
        """Images to features, (images·tokens, hidden_size)."""
        pixels = cast(m.given[0], m.recipe.dtype)
        with self.tower(m, sight.patches + 1, tiles=sight.tiles):
            last, chosen = tower(m, pixels)
        with self.projector(m, sight.tokens):
            features = self.project(m, chosen, sight)
        m.seen += [last, features, chosen]
        del last, chosen, pixels
        return cast(features, m.recipe.dtype)

    def project(self, m: Modules, x: Tensor, sight: Sight) -> Tensor:
        """Patches of each square side by side, brought to the text model's width."""
        width, rows = self.vision.hidden_size, m.rows * self.squares**2
        if self.drops_class:
            x = part(x, (rows, width))
        x = laid_out(x, (rows // self.squares, width * self.squares))
        x = laid_out(x, (m.rows, width * self.squares**2))
        x = layer_norm(m, f"{NAME}.layer_norm", x)
        x = m.linear(f"{NAME}.linear_1", x, self.hidden_size, True)
        x = activated(m, x, self.projector_act)
        return m.linear(f"{NAME}.linear_2", x, self.hidden_size, True)


def grid(height: int, width: int, side: int) -> tuple[int, int]:
    """Columns and rows of the tiles."""
    grids = [(a, b) for a in range(1, MOST_TILES + 1) for b in range(1, MOST_TILES + 1) if a * b <= MOST_TILES]
    best, nearest = (1, 1), float("inf")
    for grid in sorted(grids, key=lambda grid: grid[0] * grid[1]):
        off = abs(width / height - grid[0] / grid[1])
        if off < nearest or (off == nearest and width * height > 0.5 * side * side * grid[0] * grid[1]):
            best, nearest = grid, off
    return best


def tower(m: Modules, pixels: Tensor) -> tuple[Tensor, Tensor]:
    """Tiles to a row for each patch and one for the class token before them: the last layer's, and those that the projector reads."""
    c: InternDims = m.c
    x = chosen = entered = embeddings(m, pixels)
    for layer, kind in zip(m.layers(f"{HOME}.encoder.layer", c.kinds), c.kinds, strict=True):
        m.apart = kind == APART
        x = layer(block, x, None, None)
        chosen = chosen if m.apart else x
    if not c.use_mean_pooling:
        before, last = x, layer_norm(m, f"{HOME}.layernorm", x)
        chosen = last if chosen is before else chosen
        x = last
    m.apart = False
    del entered
    return x, chosen


def embeddings(m: Modules, pixels: Tensor) -> Tensor:
    """Patches and the class token, with their positions."""
    c: InternDims = m.c
    name = f"{HOME}.embeddings"
    if c.use_mask_token:
        m.weight(f"{name}.mask_token", (1, 1, c.hidden_size), "other")
        m.without_gradient.add((m.block, f"{name}.mask_token"))
    x = patch_embedding(m, f"{name}.patch_embeddings.projection", pixels, m.length - 1, bias=True, channels_first=True)
    token = m.weight(f"{name}.cls_token", (1, 1, c.hidden_size), "other")
    tokens = reshape(token, (1, c.hidden_size)) if m.batch == 1 else expand(token, (m.batch, c.hidden_size))
    wide = promoted(x.dtype, tokens.dtype)
    x = cat((tokens, cast(x, wide)), (m.rows, c.hidden_size))
    if c.use_absolute_position_embeddings:
        places = m.weight(f"{name}.position_embeddings", (1, m.length, c.hidden_size), "other")
        x = placed(x, places) if m.batch == 1 else add_broadcast(x, places)
    return dropout(x, c.hidden_dropout)


def block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation | None) -> Tensor:
    """One layer: both halves are scaled, element by element, before they join the stream."""
    c: InternDims = m.c
    attended = self_attention(m, layer_norm(m, "layernorm_before", x))
    attended = mul(m.weight("lambda_1", (c.hidden_size,), "other"), attended)
    x = add(attended, x)
    y = layer_norm(m, "layernorm_after", x)
    y = dropout(clip.mlp(m, y), c.hidden_dropout)
    y = mul(m.weight("lambda_2", (c.hidden_size,), "other"), y)
    y = add(y, x)
    del attended  # a name of the frame
    return y


def self_attention(m: Modules, x: Tensor) -> Tensor:
    """Attention of every patch to every other of its tile."""
    c: InternDims = m.c
    heads, d, h, bias = c.num_attention_heads, c.head_dim, c.hidden_size, c.attention_bias
    q = m.linear("attention.q_proj", x, h, bias)
    k = m.linear("attention.k_proj", x, h, bias)
    v = m.linear("attention.v_proj", x, h, bias)
    if c.use_qk_norm:
        q = rms_norm(m, "attention.q_norm", q)
        k = rms_norm(m, "attention.k_norm", k)
    q, k, v = split(m, q, heads, d), split(m, k, heads, d), split(m, v, heads, d)
    out = attention(m, q, k, v, None, dropout_p=c.attention_dropout, eager=NARROW)
    return m.linear("attention.projection_layer", out, h, True)


def tower_dims(config: Config, select: int) -> InternDims:
    """InternVLVisionConfig's fields and defaults."""
    if (norm := config.text("norm_type", default="layer_norm")) != "layer_norm":
        raise ConfigError("vision_config.norm_type", f"is only modelled as layer_norm, not {norm[:40]!r}")
    flat = Config(
        {**config.values, **{name: _side(config, name) for name in ("image_size", "patch_size")}}, config.path
    )
    flat.notes = config.notes
    sizes: Mapping[str, Any] = {"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 16, "image_size": 448, "patch_size": 14, "hidden_act": "gelu"}  # fmt: skip
    common = clip.dims(flat, select=select, **sizes)
    own = {field.name: getattr(common, field.name) for field in fields(TowerDims)}
    return InternDims(
        **{**own, "attention_bias": config.boolean("attention_bias", default=False)},
        use_qk_norm=config.boolean("use_qk_norm", default=False),
        use_mask_token=config.boolean("use_mask_token", default=False),
        use_mean_pooling=config.boolean("use_mean_pooling", default=True),
        use_absolute_position_embeddings=config.boolean("use_absolute_position_embeddings", default=True),
        hidden_dropout=share(config, "hidden_dropout_prob"),
    )


def _side(config: Config, name: str) -> Any:
    """A size that may be given as height and width, which must be alike."""
    value = config.given(name)
    if isinstance(value, list | tuple):
        if len(value) != 2 or value[0] != value[1]:
            raise ConfigError(f"vision_config.{name}", "should be one number, or two that are alike")
        return value[0]
    return value


def dims(config: Config) -> InternVLDims:
    """InternVLConfig's fields and defaults."""
    language, text = text_model(config, "qwen2", {})
    ratio = config.number("downsample_ratio", default=0.5, low=0.01, high=1)
    select = config.integer("vision_feature_layer", default=-1, low=-1000, high=1000)
    vision = tower_dims(inner(config, "vision_config", {}), select)
    return InternVLDims(
        **shared(text, vision.kinds, config.boolean("tie_word_embeddings", default=True)),
        language=language,
        vision=vision,
        squares=int(1 / ratio),
        projector_act=activation_name(config, "projector_hidden_act", default="gelu"),
        drops_class=config.text("vision_feature_select_strategy", default="default") == "default",
    )


FAMILIES = (
    Family(
        id="internvl",
        types={"internvl": "InternVL"},
        dims=dims,
        body=body,
        head=head,
        given=given,
        buffers=lambda c, size: c.language.buffers(c.text, size),
        source="transformers 5.24.0, models/internvl/modeling_internvl.py",
    ),
)
