"""Aya Vision: SigLIP's tower over tiles of the image, read before its last norm, patches shuffled into squares, a gated projector, and Cohere's
text model. Mirrors transformers 5.24.0 models/aya_vision/modeling_aya_vision.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from calc.autograd.elementwise import activation, cast, mul
from calc.autograd.shapes import laid_out, split
from calc.autograd.tensor import Tensor
from calc.model import siglip
from calc.model.config import Config, ConfigError
from calc.model.family import Family
from calc.model.internvl import grid
from calc.model.modules import Modules
from calc.model.norms import layer_norm
from calc.model.vision import Seeing, Sight, body, given, head, part, shared, text_model

NAME = "model.multi_modal_projector"
SO400M = {"hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 26, "num_attention_heads": 14, "image_size": 384, "patch_size": 14, "vision_use_head": False}  # fmt: skip
"""The tower of a config that says nothing of it."""


@dataclass(frozen=True, kw_only=True)
class AyaDims(Seeing):
    """Sizes of an Aya Vision model."""

    vision: siglip.SiglipDims
    downsample_factor: int
    reads_last: bool
    """The projector reads the last layer's rows, all of them."""
    alignment_width: int
    """Of the projector's first layer, both halves together."""

    def sight(self, height: int, width: int) -> Sight:
        """An image is cut into tiles of the tower's size, in the grid whose shape is nearest, with a small copy of the whole beside them.

        Source: models/got_ocr2/image_processing_got_ocr2.py; models/aya_vision/processing_aya_vision.py for the names of the tiles.
        """
        side = self.vision.image_size
        patches = (side // self.vision.patch_size) ** 2
        columns, rows = grid(height, width, side)
        tiles = columns * rows + (columns * rows > 1)
        return Sight(side, side, patches, tiles * patches // self.downsample_factor**2, 2 + tiles, tiles)

    def unable(self, height: int, width: int) -> str:
        """Patches must fall into squares, and the gated layer into halves."""
        if not self.reads_last:
            return "another layer than the last, or its rows without the first, is not modelled"
        side, squares = self.vision.image_size // self.vision.patch_size, self.downsample_factor
        if side % squares:
            return f"the tower's {side} by {side} patches do not fall into squares of {squares}"
        return f"its projector's width of {self.alignment_width} has no halves" if self.alignment_width % 2 else ""

    def look(self, m: Modules, sight: Sight) -> Tensor:
        """Images to features, (images·tokens, hidden_size)."""
        with self.tower(m, sight.patches, tiles=sight.tiles):
            seen = siglip.tower(m, m.given[0], normed=False)
        with self.projector(m, sight.tokens):
            features = self.project(m, seen.chosen)
        m.seen += [seen.last, features, seen.chosen]
        del seen
        return cast(features, m.recipe.dtype)

    def project(self, m: Modules, x: Tensor) -> Tensor:
        """Patches of each square side by side, normed, and brought to the text model's width by a gated feed-forward."""
        side, width, half = self.downsample_factor, self.vision.hidden_size, self.alignment_width // 2
        once = laid_out(x, (m.rows * side, width * side))
        x = laid_out(once, (m.rows, width * side**2))
        del once
        x = layer_norm(m, f"{NAME}.layernorm", x)
        y = m.linear(f"{NAME}.linear_1", x, self.alignment_width, True)
        up, gate = split(y, (half, self.alignment_width - half))
        y = mul(activation(gate, "silu"), up)
        return m.linear(f"{NAME}.linear_2", y, self.hidden_size, True)


def dims(config: Config) -> AyaDims:
    """AyaVisionConfig's fields and defaults."""
    language, text = text_model(config, "cohere2", {})
    tower = part(config, "vision_config", SO400M)
    if (kind := tower.text("model_type", default="siglip_vision_model")) != "siglip_vision_model":
        raise ConfigError("vision_config.model_type", f"is only modelled as siglip_vision_model, not {kind[:40]!r}")
    usual = (("vision_feature_layer", -1), ("vision_feature_select_strategy", "full"))
    vision = siglip.dims(tower)
    return AyaDims(
        **shared(text, vision.kinds, config.boolean("tie_word_embeddings", default=True)),
        language=language,
        vision=vision,
        downsample_factor=config.integer("downsample_factor", default=2, high=64),
        reads_last=all(config.given(name) in (None, value) for name, value in usual),
        alignment_width=config.integer("alignment_intermediate_size", default=text.hidden_size),
    )


def buffers(c: AyaDims, size: int) -> int:
    """The text model's, and the tower's position ids."""
    return c.language.buffers(c.text, size) + 8 * (c.vision.image_size // c.vision.patch_size) ** 2


FAMILIES = (
    Family(
        id="aya_vision",
        types={"aya_vision": "Aya Vision"},
        dims=dims,
        body=body,
        head=head,
        given=given,
        buffers=buffers,
        source="transformers 5.24.0, models/aya_vision/modeling_aya_vision.py",
    ),
)
