"""Idefics3 and SmolVLM: SigLIP's layers over tiles of the image, patches shuffled into squares, one matrix, and a text model.

Mirrors transformers 5.24.0 models/idefics3/modeling_idefics3.py and models/smolvlm/modeling_smolvlm.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any

from calc.autograd.elementwise import add, cast
from calc.autograd.images import joined, unbound
from calc.autograd.lookup import embedding
from calc.autograd.shapes import laid_out
from calc.autograd.tensor import Tensor, empty
from calc.model import clip
from calc.model.config import Config
from calc.model.family import Family, Input
from calc.model.modules import Modules
from calc.model.norms import layer_norm
from calc.model.recipe import Recipe
from calc.model.vision import Seeing, Sight, TowerDims, body, given, head, images, patch_embedding, shared, text_model
from calc.model.vision import part as inner

HOME, NAME = "model.vision_model", "model.connector.modality_projection.proj"
ALONG = 4
"""Tiles along the longer side, to which the published models' image processors enlarge or reduce an image (`size` over `max_image_size`)."""


@dataclass(frozen=True, kw_only=True)
class Idefics3Dims(Seeing):
    """Sizes of an Idefics3 model."""

    scale_factor: int
    """Patches that become one token, along a side."""
    home: str = "model.text_model"

    def sight(self, height: int, width: int) -> Sight:
        """An image is brought to four tiles along its longer side and to whole tiles along the other, with a small copy of the whole beside.

        Source: models/idefics3/image_processing_idefics3.py; processing_idefics3.py for the tokens around the tiles.
        """
        side = self.vision.image_size
        patches = (side // self.vision.patch_size) ** 2
        rows, columns = _tiles(height, width, side)
        tiles = rows * columns + 1
        beside = (
            2 * tiles + rows + 1
        )  # a mark and a name before each, a line's end after each row, a mark behind the last
        return Sight(side, side, patches, tiles * patches // self.scale_factor**2, beside, tiles)

    def unable(self, height: int, width: int) -> str:
        """Patches must fall into squares."""
        side, squares = self.vision.image_size // self.vision.patch_size, self.scale_factor
        return f"the tower's {side} by {side} patches do not fall into squares of {squares}" if side % squares else ""

    def look(self, m: Modules, sight: Sight) -> Tensor:
        """Images to features, (images·tokens, hidden_size)."""
        pixels, chosen = real_images(m, m.given[0], sight)
        with self.tower(m, sight.patches, tiles=sight.tiles):
            real = empty((m.batch, sight.height, sight.width), "i64", "index")
            places = empty((m.batch, m.length), "bool", "gt")
            last = tower(m, pixels)
        with self.projector(m, sight.tokens):
            features = unbound(m.linear(NAME, self.shuffled(m, last), self.hidden_size))
        m.seen += [last, features]
        del pixels, chosen, real, places
        return cast(joined(features), m.recipe.dtype)

    def shuffled(self, m: Modules, x: Tensor) -> Tensor:
        """Patches of each square side by side."""
        side, width = self.scale_factor, self.vision.hidden_size
        x = laid_out(x, (m.rows * side, width * side))
        return laid_out(x, (m.rows, width * side**2))


def _tiles(height: int, width: int, side: int) -> tuple[int, int]:
    """Rows and columns of tiles. The shorter side is cut to an even number of pixels before it is rounded up to whole tiles."""
    longest = ALONG * side
    wide = width >= height
    ratio = width / height
    shorter = int(longest / ratio) if wide else int(longest * ratio)
    shorter = max(shorter + shorter % 2, 1)
    now = longest / shorter if wide else shorter / longest
    across = ceil((int(longest / now) if wide else int(longest * now)) / side)
    return (across, ALONG) if wide else (ALONG, across)


def real_images(m: Modules, given: Tensor, sight: Sight) -> tuple[Tensor, list[Tensor]]:
    """The images that are not there only to fill the batch: a copy of them, and what the frame keeps of finding them."""
    count = images(m) * sight.tiles
    x = cast(given, m.recipe.dtype)
    zeros = empty(given.shape, "bool", "eq")
    sums = empty((count,), "i64", "sum")
    del zeros
    found = empty((count,), "bool", "ne")
    del sums
    each = empty((m.recipe.batch,), "i64", "sum")
    places = empty((count,), "i64", "nonzero")
    pixels = empty(given.shape, x.dtype, "index")
    del x, places
    return pixels, [found, each]


def tower(m: Modules, pixels: Tensor) -> Tensor:
    """Tiles to a row for each patch."""
    c: TowerDims = m.c
    entered = m.asked(embeddings(m, pixels))
    mask = None
    if m.recipe.attention == "eager":
        mask = empty((m.batch, 1, m.length, m.length), entered.dtype, "mask")
    x = entered
    for layer in m.layers(f"{HOME}.encoder.layers", c.kinds):
        x = layer(clip.block, x, mask, None)
    before, x = x, layer_norm(m, f"{HOME}.post_layernorm", x)
    del entered, before, mask  # names of the frames
    return x


def embeddings(m: Modules, pixels: Tensor) -> Tensor:
    """Patches with their positions, looked up for each image."""
    c: TowerDims = m.c
    name = f"{HOME}.embeddings"
    x = patch_embedding(m, f"{name}.patch_embedding", pixels, m.length, bias=True, known=False)
    ids = empty((m.rows,), "i64", "where")
    table = m.weight(f"{name}.position_embedding.weight", ((c.image_size // c.patch_size) ** 2, c.hidden_size), "other")
    return add(x, embedding(table, ids))


def inputs(c: Seeing, recipe: Recipe) -> tuple[Input, ...]:
    """Pixels, and for each whether it is real."""
    pixels = given(c, recipe)
    return (*pixels, *[Input("Real pixels", (one.shape[0], *one.shape[2:]), "i64") for one in pixels])


def dims(config: Config) -> Idefics3Dims:
    """Idefics3Config's fields and defaults."""
    language, text = text_model(config, "llama", {})
    sizes: dict[str, Any] = {"hidden_size": 1152, "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 16, "image_size": 224, "patch_size": 32, "hidden_act": "gelu_pytorch_tanh"}  # fmt: skip
    vision = clip.dims(inner(config, "vision_config", {}), **sizes)
    tied = config.boolean("tie_word_embeddings", default=False)
    factor = config.integer("scale_factor", default=2, high=64)
    return Idefics3Dims(**shared(text, vision.kinds, tied), language=language, vision=vision, scale_factor=factor)


FAMILIES = (
    Family(
        id="idefics3",
        types={"idefics3": "Idefics3", "smolvlm": "SmolVLM"},
        dims=dims,
        body=body,
        head=head,
        given=inputs,
        buffers=lambda c, size: c.language.buffers(c.text, size),
        source="transformers 5.24.0, models/idefics3/modeling_idefics3.py",
    ),
)
