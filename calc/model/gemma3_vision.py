"""Gemma 3 with eyes: SigLIP's tower, pooled patches, and masks in which the tokens of an image see each other.

Mirrors transformers 5.24.0 models/gemma3/modeling_gemma3.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt

from calc.autograd.elementwise import cast, clone
from calc.autograd.images import average_pool
from calc.autograd.linear import mm
from calc.autograd.shapes import reshape
from calc.autograd.tensor import Tensor, empty
from calc.model import siglip
from calc.model.attention import causal_mask
from calc.model.config import Config
from calc.model.family import Family, Input
from calc.model.modules import Modules
from calc.model.norms import gemma_rms_norm
from calc.model.recipe import Recipe
from calc.model.vision import Seeing, Sight, body, given, head, part, shared, text_model

NAME = "model.multi_modal_projector"


@dataclass(frozen=True, kw_only=True)
class Gemma3Seeing(Seeing):
    """Sizes of a Gemma 3 model with eyes."""

    mm_tokens_per_image: int

    def sight(self, height: int, width: int) -> Sight:
        """Every image is resized to the square that the tower was made for."""
        side = self.vision.image_size
        return Sight(side, side, (side // self.vision.patch_size) ** 2, self.mm_tokens_per_image)

    def unable(self, height: int, width: int) -> str:
        """Patches must fall into as many squares as there are tokens."""
        side, tokens = self.vision.image_size // self.vision.patch_size, self.mm_tokens_per_image
        if isqrt(tokens) <= side and (side // (side // isqrt(tokens))) ** 2 == tokens:
            return ""
        return f"the tower's {side} by {side} patches do not fall into {tokens} squares of one size"

    def look(self, m: Modules, sight: Sight) -> Tensor:
        """Images to features, (images·tokens, hidden_size)."""
        with self.tower(m, sight.patches):
            seen = siglip.tower(m, m.given[0])
        with self.projector(m, sight.tokens):
            features = self.project(m, seen.last, sight)
        m.seen += [seen.last, features]
        del seen
        return cast(features, m.recipe.dtype)

    def project(self, m: Modules, x: Tensor, sight: Sight) -> Tensor:
        """Patches averaged in squares, normed, and multiplied with a matrix."""
        dtype, images, width = x.dtype, m.batch, self.vision.hidden_size
        laid = clone(reshape(x, (images, width, sight.patches)))
        pooled = reshape(average_pool(laid, (images, width, sight.tokens)), (m.rows, width))
        normed = gemma_rms_norm(m, f"{NAME}.mm_soft_emb_norm", pooled)
        weight = m.weight(f"{NAME}.mm_input_projection_weight", (width, self.hidden_size), "other")
        to = m.recipe.autocast
        if to is not None:
            weight = m.lowered(weight)
        y = mm(clone(normed if to is None else cast(normed, to)), weight, transposed=True)
        return cast(y, dtype)

    def arranged(self, m: Modules) -> list[Tensor]:
        """Which image each token belongs to, and masks of both kinds."""
        groups = empty((m.batch, m.length), "i64", "where")
        m.masks = {kind: causal_mask(m, m.recipe.dtype, chunked=True) for kind in ("full", "sliding")}
        return [groups]


def inputs(c: Seeing, recipe: Recipe) -> tuple[Input, ...]:
    """Pixels, and for each token whether it is an image's."""
    pixels = given(c, recipe)
    return (*pixels, Input("Kinds of the tokens", (recipe.batch, recipe.length), "i64")) if pixels else ()


def dims(config: Config) -> Gemma3Seeing:
    """Gemma3Config's fields and defaults."""
    language, text = text_model(config, "gemma3_text", {})
    vision = siglip.dims(part(config, "vision_config", {}))
    tokens = config.integer("mm_tokens_per_image", default=256, high=65536)
    tied = config.boolean("tie_word_embeddings", default=True)
    return Gemma3Seeing(
        **shared(text, vision.kinds, tied), language=language, vision=vision, mm_tokens_per_image=tokens
    )


def buffers(c: Seeing, size: int) -> int:
    """The text model's, and the tower's position ids."""
    return c.language.buffers(c.text, size) + 8 * (c.vision.image_size // c.vision.patch_size) ** 2


FAMILIES = (
    Family(
        id="gemma3",
        types={"gemma3": "Gemma 3"},
        dims=dims,
        body=body,
        head=head,
        given=inputs,
        attentions=("eager", "sdpa"),
        buffers=buffers,
        source="transformers 5.24.0, models/gemma3/modeling_gemma3.py",
    ),
)
