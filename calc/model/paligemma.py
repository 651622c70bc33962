"""PaliGemma: SigLIP's tower, one linear layer, and Gemma's text model, whose prompt sees itself whole.

Mirrors transformers 5.24.0 models/paligemma/modeling_paligemma.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from calc.autograd.elementwise import cast
from calc.autograd.tensor import Tensor, empty
from calc.model import siglip
from calc.model.attention import causal_mask
from calc.model.config import Config
from calc.model.family import Family
from calc.model.gemma3_vision import buffers, inputs
from calc.model.modules import Modules
from calc.model.vision import Seeing, Sight, body, head, part, shared, text_model

SO400M: dict[str, Any] = {"hidden_size": 1152, "intermediate_size": 4096, "num_hidden_layers": 27, "num_attention_heads": 16, "patch_size": 14, "vision_use_head": False}  # fmt: skip
"""The tower of a config that says nothing of it."""
GEMMA_2B: dict[str, Any] = {"model_type": "gemma", "vocab_size": 257152, "hidden_size": 2048, "intermediate_size": 16384, "num_hidden_layers": 18, "num_attention_heads": 8, "num_key_value_heads": 1}  # fmt: skip
"""The text model of a config that says nothing of it."""


@dataclass(frozen=True, kw_only=True)
class PaliGemmaDims(Seeing):
    """Sizes of a PaliGemma model."""

    projection_dim: int

    def sight(self, height: int, width: int) -> Sight:
        """Every image is resized to the square that the tower was made for; each patch is a token."""
        side = self.vision.image_size
        patches = (side // self.vision.patch_size) ** 2
        return Sight(side, side, patches, patches)

    def look(self, m: Modules, sight: Sight) -> Tensor:
        """Images to features, (images·tokens, hidden_size)."""
        with self.tower(m, sight.patches):
            seen = siglip.tower(m, m.given[0])
        with self.projector(m, sight.tokens):
            features = m.linear("model.multi_modal_projector.linear", seen.last, self.projection_dim, True)
        m.seen += [seen.last, features]
        del seen
        return cast(features, m.recipe.dtype)

    def arranged(self, m: Modules) -> list[Tensor]:
        """Which tokens are the prompt's, and the masks."""
        prompt = empty((m.batch, m.length), "i64", "where")
        kinds = ("full", "sliding") if self.text.sliding_window is not None else ("full",)
        m.masks = {kind: causal_mask(m, m.recipe.dtype, chunked=True) for kind in kinds}
        return [prompt]


def dims(config: Config) -> PaliGemmaDims:
    """PaliGemmaConfig's fields and defaults."""
    language, text = text_model(config, "gemma", GEMMA_2B)
    vision = siglip.dims(part(config, "vision_config", SO400M))
    tied = config.boolean("tie_word_embeddings", default=True)
    projection = config.integer("projection_dim", default=2048)
    return PaliGemmaDims(
        **shared(text, vision.kinds, tied), language=language, vision=vision, projection_dim=projection
    )


FAMILIES = (
    Family(
        id="paligemma",
        types={"paligemma": "PaliGemma"},
        dims=dims,
        body=body,
        head=head,
        given=inputs,
        attentions=("eager", "sdpa"),
        buffers=buffers,
        source="transformers 5.24.0, models/paligemma/modeling_paligemma.py",
    ),
)
