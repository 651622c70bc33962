"""LLaVA: CLIP's tower, two linear layers, and a text model of any family. Mirrors transformers 5.24.0 models/llava/modeling_llava.py."""

from __future__ import annotations

from dataclasses import dataclass

from calc.autograd.elementwise import cast, clone
from calc.autograd.images import joined, unbound
from calc.autograd.shapes import part
from calc.autograd.tensor import Tensor
from calc.model import clip
from calc.model.activations import activated, activation_name
from calc.model.config import Config, ConfigError
from calc.model.family import Family
from calc.model.modules import Modules
from calc.model.vision import Seeing, Sight, body, given, head, shared, text_model
from calc.model.vision import part as inner

CLIP_L_336 = {"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 16, "image_size": 336, "patch_size": 14}  # fmt: skip
"""The tower of a config that says nothing of it."""


@dataclass(frozen=True, kw_only=True)
class LlavaDims(Seeing):
    """Sizes of a LLaVA model."""

    projector_act: str
    projector_bias: bool
    drops_class: bool
    """The class token's row is left out (`vision_feature_select_strategy` "default")."""

    def sight(self, height: int, width: int) -> Sight:
        """Every image is cut to the square that the tower was made for."""
        side = self.vision.image_size
        patches = (side // self.vision.patch_size) ** 2
        return Sight(side, side, patches, patches if self.drops_class else patches + 1)

    def look(self, m: Modules, sight: Sight) -> Tensor:
        """Images to features, (images·tokens, hidden_size)."""
        (pixels,) = m.given
        with self.tower(m, sight.patches + 1):  # and a row for the class token
            seen = clip.tower(m, pixels)
        with self.projector(m, sight.tokens):
            projected = unbound(self.project(m, seen.chosen))
        m.seen += [seen.last, projected, seen.chosen]
        del seen
        return cast(joined(projected), m.recipe.dtype)

    def project(self, m: Modules, x: Tensor) -> Tensor:
        """The tower's rows to the text model's width."""
        name, cut = "model.multi_modal_projector", self.drops_class
        if cut:
            x = part(x, (m.rows, self.vision.hidden_size))
        apart = cut and m.batch > 1 and m.recipe.autocast is None
        if apart:  # a slice of several images does not lie together, so it is copied, and the bias added by itself
            x = clone(x)
        x = (m.matmul if apart else m.linear)(f"{name}.linear_1", x, self.hidden_size, self.projector_bias)
        x = activated(m, x, self.projector_act)
        return m.linear(f"{name}.linear_2", x, self.hidden_size, self.projector_bias)


def dims(config: Config) -> LlavaDims:
    """LlavaConfig's fields and defaults."""
    language, text = text_model(config, "llama", {})
    select = config.integer("vision_feature_layer", default=-2, low=-1000, high=1000)
    strategy = config.text("vision_feature_select_strategy", default="default")
    if strategy not in ("default", "full"):
        raise ConfigError("vision_feature_select_strategy", f"should be default or full, not {strategy[:40]!r}")
    tower = inner(config, "vision_config", CLIP_L_336)
    if (kind := tower.text("model_type", default="clip_vision_model")) != "clip_vision_model":
        raise ConfigError("vision_config.model_type", f"is only modelled as clip_vision_model, not {kind[:40]!r}")
    vision = clip.dims(tower, select=select)
    tied = config.boolean("tie_word_embeddings", default=False)
    return LlavaDims(
        **shared(text, vision.kinds, tied),
        language=language,
        vision=vision,
        projector_act=activation_name(config, "projector_hidden_act", default="gelu"),
        projector_bias=config.boolean("multimodal_projector_bias", default=True),
        drops_class=strategy == "default",
    )


def buffers(c: LlavaDims, size: int) -> int:
    """The text model's, and the tower's position ids."""
    return c.language.buffers(c.text, size) + 8 * ((c.vision.image_size // c.vision.patch_size) ** 2 + 1)


FAMILIES = (
    Family(
        id="llava",
        types={"llava": "LLaVA"},
        dims=dims,
        body=body,
        head=head,
        given=given,
        buffers=buffers,
        source="transformers 5.24.0, models/llava/modeling_llava.py",
    ),
)
