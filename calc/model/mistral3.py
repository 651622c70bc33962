"""Mistral 3: Pixtral's tower, patches merged in squares, and a text model. Mirrors transformers 5.24.0 models/mistral3/modeling_mistral3.py."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor

from calc.autograd.elementwise import cast
from calc.autograd.images import joined, unbound, unfolded
from calc.autograd.tensor import Tensor
from calc.model import pixtral
from calc.model.activations import activated, activation_name
from calc.model.config import Config, ConfigError
from calc.model.family import Family, Input, rotary_buffers
from calc.model.modules import Modules
from calc.model.norms import rms_norm
from calc.model.recipe import Recipe
from calc.model.vision import Seeing, Sight, body, given, head, part, shared, text_model

NAME = "model.multi_modal_projector"
SMALL_24B = {"model_type": "mistral", "vocab_size": 131072, "hidden_size": 5120, "intermediate_size": 32768, "num_hidden_layers": 40, "head_dim": 128}  # fmt: skip
"""The text model of a config that says nothing of it."""


@dataclass(frozen=True, kw_only=True)
class Mistral3Dims(Seeing):
    """Sizes of a Mistral 3 model."""

    spatial_merge_size: int
    projector_act: str
    projector_bias: bool

    def sight(self, height: int, width: int) -> Sight:
        """An image keeps its shape: shrunk until its longer side fits the tower, then up to whole squares of merged patches.

        A token follows each row of them. Source: models/pixtral/image_processing_pixtral.py, models/pixtral/processing_pixtral.py.
        """
        side, longest = self.vision.patch_size * self.spatial_merge_size, self.vision.image_size
        ratio = max(height / longest, width / longest)
        if ratio > 1:
            height, width = floor(height / ratio), floor(width / ratio)
        rows, columns = max(1, -(-height // side)), max(1, -(-width // side))
        merged = self.spatial_merge_size**2
        return Sight(rows * side, columns * side, rows * columns * merged, rows * columns, rows)

    def look(self, m: Modules, sight: Sight) -> Tensor:
        """Images to features, (images·tokens, hidden_size)."""
        patch = self.vision.patch_size
        with self.tower(m, sight.patches, one_sequence=True):
            seen = pixtral.tower(m, m.given[0], (sight.height // patch, sight.width // patch))
        with self.projector(m, sight.tokens):
            projected = unbound(self.project(m, seen.chosen))
        m.seen += [seen.last, projected, seen.chosen]
        del seen
        return cast(joined(projected), m.recipe.dtype)

    def project(self, m: Modules, x: Tensor) -> Tensor:
        """Rows normed, merged in squares, and brought to the text model's width."""
        normed = rms_norm(m, f"{NAME}.norm", x)
        x = self.merge(m, normed)
        del normed
        x = m.linear(f"{NAME}.linear_1", x, self.hidden_size, self.projector_bias)
        x = activated(m, x, self.projector_act)
        return m.linear(f"{NAME}.linear_2", x, self.hidden_size, self.projector_bias)

    def merge(self, m: Modules, x: Tensor) -> Tensor:
        """Each square of patches in one row, multiplied down to one patch's width."""
        width = self.vision.hidden_size
        squares = unfolded(x, (m.rows, width * self.spatial_merge_size**2))
        return m.linear(f"{NAME}.patch_merger.merging_layer", joined(squares), width)


def inputs(c: Mistral3Dims, recipe: Recipe) -> tuple[Input, ...]:
    """Pixels, and the size of each image."""
    pixels = given(c, recipe)
    return tuple(x for one in pixels for x in (one, Input("Sizes of the images", (one.shape[0], 2), "i64")))


def dims(config: Config) -> Mistral3Dims:
    """Mistral3Config's fields and defaults."""
    language, text = text_model(config, "mistral", SMALL_24B)
    select = config.integer("vision_feature_layer", default=-1, low=-1000, high=1000)
    tower = part(config, "vision_config", {"patch_size": 14, "image_size": 1540})
    if (kind := tower.text("model_type", default="pixtral")) != "pixtral":
        raise ConfigError("vision_config.model_type", f"is only modelled as pixtral, not {kind[:40]!r}")
    vision = pixtral.dims(tower, select=select)
    tied = config.boolean("tie_word_embeddings", default=True)
    return Mistral3Dims(
        **shared(text, vision.kinds, tied),
        language=language,
        vision=vision,
        spatial_merge_size=config.integer("spatial_merge_size", default=2, high=64),
        projector_act=activation_name(config, "projector_hidden_act", default="gelu"),
        projector_bias=config.boolean("multimodal_projector_bias", default=False),
    )


def buffers(c: Mistral3Dims, size: int) -> int:
    """The text model's, and the tower's own frequencies."""
    return c.language.buffers(c.text, size) + rotary_buffers(c.vision.head_dim)


FAMILIES = (
    Family(
        id="mistral3",
        types={"mistral3": "Mistral 3"},
        dims=dims,
        body=body,
        head=head,
        given=inputs,
        buffers=buffers,
        source="transformers 5.24.0, models/mistral3/modeling_mistral3.py",
    ),
)
