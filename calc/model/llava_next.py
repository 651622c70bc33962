"""LLaVA-NeXT: LLaVA's tower over a small copy of the image and over tiles of it, whose padding is taken off again and whose rows end with a
trained mark. Mirrors transformers 5.24.0 models/llava_next/modeling_llava_next.py.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from calc.autograd.elementwise import cast
from calc.autograd.shapes import cat, expand, folded, part, split_as
from calc.autograd.tensor import Tensor, empty
from calc.model import clip, llava
from calc.model.config import Config, ConfigError
from calc.model.family import Family, Input
from calc.model.llava import LlavaDims, buffers
from calc.model.modules import Modules, Stack
from calc.model.recipe import Recipe
from calc.model.vision import Sight, body, given, head, images

PINPOINTS = ((336, 672), (672, 336), (672, 672), (1008, 336), (336, 1008))
"""Sizes, height and width, that an image may be brought to, where the config names none."""


@dataclass(frozen=True, kw_only=True)
class LlavaNextDims(LlavaDims):
    """Sizes of a LLaVA-NeXT model."""

    pinpoints: tuple[tuple[int, int], ...]

    def sight(self, height: int, width: int) -> Sight:
        """The size that keeps most of the image and wastes least, in tiles, with a small copy of the whole.

        Source: image_processing_utils.py, select_best_resolution.
        """
        side = self.vision.image_size
        patches = (side // self.vision.patch_size) ** 2
        high, wide = self.best(height, width)
        rows, columns = self.kept(height, width)
        tiles = 1 + (high // side) * (wide // side)
        return Sight(side, side, patches, patches + rows * (columns + 1), 0, tiles)

    def best(self, height: int, width: int) -> tuple[int, int]:
        """Height and width that the image is brought to."""

        def worth(size: tuple[int, int]) -> tuple[int, int]:
            scale = min(size[1] / width, size[0] / height)
            effective = min(int(width * scale) * int(height * scale), width * height)
            return effective, effective - size[0] * size[1]

        return max(self.pinpoints, key=worth)

    def grid(self, height: int, width: int) -> tuple[int, int]:
        """Rows and columns of patches in all tiles."""
        high, wide = self.best(height, width)
        return high // self.vision.patch_size, wide // self.vision.patch_size

    def kept(self, height: int, width: int) -> tuple[int, int]:
        """Rows and columns of patches that are not padding.

        Source: modeling_llava_next.py, unpad_image.
        """
        rows, columns = self.grid(height, width)
        if width / height > columns / rows:
            padding = (rows - int(round(height * (columns / width), 7))) // 2
            return rows - 2 * padding, columns
        padding = (columns - int(round(width * (rows / height), 7))) // 2
        return rows, columns - 2 * padding

    def unable(self, height: int, width: int) -> str:
        """Patches are laid out in whole tiles, so that no row may stand for anything else."""
        if not self.drops_class:
            return "the class token's row (vision_feature_select_strategy full) has no place among the patches"
        high, wide = self.best(height, width)
        side = self.vision.image_size
        return f"{high} by {wide} pixels are not whole tiles of {side}" if high % side or wide % side else ""

    def look(self, m: Modules, sight: Sight) -> Tensor:
        """Images to features, (images·tokens, hidden_size)."""
        pixels = empty(m.given[0].shape, m.given[0].dtype, "cat")
        count, each, width = images(m), sight.patches * sight.tiles, self.hidden_size
        with self.tower(m, sight.patches + 1, tiles=sight.tiles):
            seen = clip.tower(m, pixels)
        with m.within(Stack(self, count * sight.tiles, sight.patches, "projector")):
            projected = self.project(m, seen.chosen)
            newline = m.weight("model.image_newline", (width,), "other")
        pieces = split_as(projected, [(each, width)] * count)
        del projected
        packed = []
        for piece in pieces:
            packed.append(self.packed(m, piece, newline, sight))
        del piece, pieces
        m.seen += [seen.last, seen.chosen, *packed]
        del seen, pixels
        return cast(cat(packed, (count * sight.tokens, width)), m.recipe.dtype)

    def packed(self, m: Modules, x: Tensor, newline: Tensor, sight: Sight) -> Tensor:
        """The small copy's rows, then those of the tiles, laid out as one picture without its padding, with a mark behind each line."""
        assert m.recipe.images is not None
        size, width = (m.recipe.images.height, m.recipe.images.width), self.hidden_size
        whole, (rows, columns) = self.grid(*size), self.kept(*size)
        base = part(x, (sight.patches, width))
        tiles = part(x, (whole[0] * whole[1], width))
        picture = folded(tiles, tiles.shape)
        del tiles
        if (rows, columns) != whole:
            picture = part(picture, (rows * columns, width))
        marks = cast(expand(newline, (rows, width)), picture.dtype)
        picture = cat((picture, marks), (rows * (columns + 1), width))
        del marks
        return cat((base, picture), (sight.tokens, width))


def inputs(c: LlavaNextDims, recipe: Recipe) -> tuple[Input, ...]:
    """Pixels, and the size of each image."""
    pixels = given(c, recipe)
    if not pixels or recipe.images is None:
        return ()
    count = recipe.batch * recipe.images.per_sequence
    return (*pixels, Input("Sizes of the images", (count, 2), "i64"))


def dims(config: Config) -> LlavaNextDims:
    """LlavaNextConfig's fields and defaults."""
    common = llava.dims(config)
    own = {field.name: getattr(common, field.name) for field in fields(LlavaDims)}
    return LlavaNextDims(**own, pinpoints=_pinpoints(config))


def _pinpoints(config: Config) -> tuple[tuple[int, int], ...]:
    rows = config.given("image_grid_pinpoints")
    if rows is None:
        return PINPOINTS
    if not isinstance(rows, list | tuple) or not 0 < len(rows) <= 1000:
        raise ConfigError("image_grid_pinpoints", "should be a list of heights and widths")
    for row in rows:
        if not isinstance(row, list | tuple) or len(row) != 2 or not all(type(n) is int and 0 < n < 65536 for n in row):
            raise ConfigError("image_grid_pinpoints", "should be a list of heights and widths")
    return tuple([(row[0], row[1]) for row in rows])


FAMILIES = (
    Family(
        id="llava_next",
        types={"llava_next": "LLaVA-NeXT"},
        dims=dims,
        body=body,
        head=head,
        given=inputs,
        buffers=buffers,
        source="transformers 5.24.0, models/llava_next/modeling_llava_next.py",
    ),
)
