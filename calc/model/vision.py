"""What every model that sees images has in common: a text model, a tower that looks, a projector, and images in the place of their tokens.

A class with eyes is a text family, whose forward pass it runs, and a `Seeing` of its own, which says what its image processor makes of an
image and what becomes of the pixels. Mirrors the ...ForConditionalGeneration classes of transformers 5.24.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple

from calc.autograd.elementwise import cast
from calc.autograd.images import masked_scatter, patches, turned
from calc.autograd.storage import Ledger, recording
from calc.autograd.tensor import Tensor, empty, without_graph
from calc.model.config import Config, ConfigError
from calc.model.family import Dims, Family, Input
from calc.model.modules import Modules, Stack
from calc.model.recipe import Images, Recipe

APART = "vision apart"
"""The kind of a tower's layers that nothing uses."""


class Sight(NamedTuple):
    """What the image processor makes of an image."""

    height: int
    width: int
    """Pixels, as the tower gets them."""
    patches: int
    tokens: int
    """Features that it becomes, and tokens that they take the place of."""
    beside: int = 0
    """Tokens that mark it in the sequence: its rows, its end."""
    tiles: int = 1
    """Pieces that it is cut into, each of which the tower looks at by itself; `height`, `width` and `patches` are a tile's."""


@dataclass(frozen=True, kw_only=True)
class TowerDims(Dims):
    """Sizes of a vision tower."""

    patch_size: int
    num_channels: int = 3
    image_size: int = 0
    """Side of the images that it was made for, in pixels."""

    @property
    def frames(self) -> tuple[int, ...]:
        """How many frames a patch of a video reaches over, where there are videos."""
        return ()


@dataclass(frozen=True, kw_only=True)
class Seeing(Dims):
    """Sizes of a model that sees images: those of its text model, and what it sees with. `kinds` are the tower's layers, then the text's."""

    text: Dims
    language: Family
    """The family of the text model."""
    vision: TowerDims
    kinds_of_places: ClassVar[int] = 1
    """Masks that are made of the token ids: where images are, where videos are."""
    home: str = "model.language_model"
    """Where the text model hangs."""
    pixels: ClassVar[str] = "fp32"
    """Dtype in which the image processor hands on the pixels; others than fp32 reach the tower as they are."""
    names_live_on: ClassVar[bool] = False
    """The class that puts images in their places computes the loss too, so that its names live until then."""

    def sight(self, height: int, width: int) -> Sight:
        """What the image processor makes of an image of that many pixels."""
        raise NotImplementedError

    def unable(self, height: int, width: int) -> str:
        """Why the model cannot see such an image; empty where it can."""
        return ""

    def look(self, m: Modules, sight: Sight) -> Tensor:
        """Images to features (rows, hidden_size), a row for each of their tokens."""
        raise NotImplementedError

    def arranged(self, m: Modules) -> list[Tensor]:
        """What the model makes of the batch once the images are in their places, and keeps until its forward is over."""
        return []

    def tower(
        self, m: Modules, length: int, *, one_sequence: bool = False, tiles: int = 1
    ) -> AbstractContextManager[None]:
        """The part of the run in which the tower looks at the images, each `length` patches long; some towers lay all in one sequence."""
        kinds = tuple([kind for kind in m.whole.kinds if kind.startswith("vision")])
        count, length = (1, images(m) * length) if one_sequence else (images(m) * tiles, length)
        return m.within(Stack(replace(self.vision, kinds=kinds), count, length, "vision"))

    def projector(self, m: Modules, length: int) -> AbstractContextManager[None]:
        """The part of the run in which the tower's result becomes features, `length` for each image."""
        return m.within(Stack(self, images(m), length, "projector"))


def images(m: Modules) -> int:
    """How many images the batch has."""
    assert m.recipe.images is not None
    return m.recipe.batch * m.recipe.images.per_sequence


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    c: Seeing = m.c
    text = replace(c.text, kinds=tuple([kind for kind in c.kinds if not kind.startswith("vision")]))
    m.sees = partial(_merged, m, c)
    with m.within(Stack(text, m.batch, m.length, "text", c.home, m.recipe.padded)):
        x = c.language.body(m, ids)
    m.masks = None
    if not c.names_live_on:
        m.frame.clear()
    m.deep.clear()
    return x


def _merged(m: Modules, c: Seeing, embedded: Tensor) -> Tensor:
    """The embeddings of the tokens, those of images replaced by what is seen."""
    if m.recipe.images is None:
        _stands_by(m, c)
        m.frame += [embedded] if c.names_live_on else []
        return embedded
    features = c.look(m, c.sight(m.recipe.images.height, m.recipe.images.width))
    places = [empty((m.batch, m.length), "bool", "eq") for _ in range(c.kinds_of_places)]
    merged = masked_scatter(embedded, places[0], features)
    m.frame += [features, *places, merged] if c.names_live_on else [features, *places]
    del embedded  # the model's name for both
    m.frame += c.arranged(m)
    return merged


def _stands_by(m: Modules, c: Seeing) -> None:
    """Ask for the weights of tower and projector without running them: no sequence has an image, and they get no gradient."""
    before, seen = m.recipe, Images(1, c.vision.image_size, c.vision.image_size)
    try:
        with recording(Ledger()), without_graph():
            m.recipe = replace(before, batch=1, images=seen, trained=before.trained & {"text"})
            m.given = tuple([empty(i.shape, i.dtype, i.label) for i in given(c, m.recipe)])
            c.look(m, c.sight(seen.height, seen.width))
            m.seen.clear()
            m.deep.clear()
            m.given = ()
    finally:
        m.recipe = before


def head(m: Modules, x: Tensor) -> Tensor:
    """Hidden states to logits, as the text model does it."""
    c: Seeing = m.c
    with m.within(Stack(c.text, m.batch, m.length, "text", padded=m.recipe.padded)):
        return c.language.head(m, x)


def given(c: Seeing, recipe: Recipe) -> tuple[Input, ...]:
    """The pixels of the batch."""
    if recipe.images is None:
        return ()
    sight = c.sight(recipe.images.height, recipe.images.width)
    count = recipe.batch * recipe.images.per_sequence * sight.tiles
    return (Input("Pixels of the images", (count, c.vision.num_channels, sight.height, sight.width), c.pixels),)


def patch_embedding(
    m: Modules, name: str, pixels: Tensor, count: int, *, bias: bool, channels_first: bool = False, known: bool = True
) -> Tensor:
    """Pixels in the weight's dtype, then a convolution: (images·count, hidden_size), for `count` patches of each image; what it makes has its
    `channels_first` where the rows are a view of it. `known` where the class says that this is its input embedding, so that checkpointing asks
    for a gradient of it."""
    c: TowerDims = m.c
    kernel: tuple[int, ...] = (c.hidden_size, c.num_channels, *c.frames, c.patch_size, c.patch_size)
    weight = m.weight(f"{name}.weight", kernel, "other")
    offset = m.weight(f"{name}.bias", (c.hidden_size,), "bias") if bias else None
    x = cast(pixels, weight.dtype)
    if m.recipe.autocast is not None:
        offset = None if offset is None else m.lowered(offset)
        weight = m.lowered(weight)
        x = cast(x, m.recipe.autocast)
    x = patches(x, weight, offset, (m.batch * count, c.hidden_size))
    asked = m.asked(x) if known else x
    return turned(asked) if channels_first and asked is not x else asked


def text_model(config: Config, default: str, absent: Mapping[str, Any]) -> tuple[Family, Dims]:
    """The family and the sizes of `text_config`; `absent` is what the class takes where there is none."""
    from calc.model import family_of  # when asked: the families hold this one too

    inner = part(config, "text_config", absent)
    model_type = inner.text("model_type", default=default)
    family = family_of(model_type)
    if family is None:
        raise ConfigError("text_config.model_type", f"is a text model that is not modelled: {model_type[:40]!r}")
    return family, family.dims(inner)


def part(config: Config, name: str, absent: Mapping[str, Any]) -> Config:
    """A nested config, or what the class takes where there is none."""
    if config.given(name) is not None:
        return config.part(name)
    inner = Config(absent, name)
    inner.notes = config.notes
    return inner


def shared(text: Dims, kinds: tuple[str, ...], tie_word_embeddings: bool) -> dict[str, Any]:
    """The fields that a `Seeing` has from its text model, and the kinds of the layers of both."""
    own = {field.name: getattr(text, field.name) for field in fields(Dims)}
    text = replace(text, tie_word_embeddings=tie_word_embeddings)
    return {**own, "text": text, "tie_word_embeddings": tie_word_embeddings, "kinds": (*kinds, *text.kinds)}
