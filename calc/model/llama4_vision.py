"""Llama 4 with eyes: a tower of rotated layers over tiles of the image, patches shuffled into squares, and the text model with its experts.

Mirrors transformers 5.24.0 models/llama4/modeling_llama4.py.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar

from calc.autograd.elementwise import activation, add_broadcast, cast, dropout, promoted
from calc.autograd.shapes import cat, expand, laid_out, part, reshape
from calc.autograd.storage import LOGITS, Standing, active
from calc.autograd.tensor import Tensor, empty
from calc.model import clip
from calc.model.attention import Eager, attention, split
from calc.model.config import Config
from calc.model.decoder import pre_norm, share
from calc.model.family import Family
from calc.model.llama4 import GAPS, rotated
from calc.model.modules import Modules
from calc.model.norms import layer_norm
from calc.model.rotary import Rotation
from calc.model.vision import Seeing, Sight, TowerDims, body, given, head, shared, text_model
from calc.model.vision import part as inner

HOME = "vision_model"
NARROW = Eager(wide_softmax=False, lowered=False)
MOST_TILES = 16
"""Of the published models' image processor (`max_patches`)."""


@dataclass(frozen=True, kw_only=True)
class Llama4TowerDims(TowerDims):
    """Sizes of the tower and of the two layers on top of it."""

    squares: int
    """Patches that become one row, along a side."""
    projector_input_dim: int
    projector_output_dim: int
    vision_output_dim: int
    projector_dropout: float

    @property
    def meetings(self) -> tuple[tuple[int, int], ...]:
        """What each layer on top is given, and what it takes: alike in a tower that can see."""
        return (
            (self.hidden_size * self.squares**2, self.intermediate_size),
            (self.projector_input_dim, self.projector_output_dim),
            (self.projector_output_dim, self.vision_output_dim),
        )


@dataclass(frozen=True, kw_only=True)
class Llama4Seeing(Seeing):
    """Sizes of a Llama 4 model with eyes."""

    vision: Llama4TowerDims
    home: str = "language_model.model"
    names_live_on: ClassVar[bool] = True
    pixels: ClassVar[str] = "bf16"

    def sight(self, height: int, width: int) -> Sight:
        """An image is laid on the canvas of tiles that it fits best, with a small copy of the whole beside several.

        Source: models/llama4/image_processing_llama4.py, get_best_fit; processing_llama4.py for the tokens between the tiles.
        """
        side = self.vision.image_size
        patches = (side // self.vision.patch_size) ** 2
        rows, columns = _canvas(height, width, side)
        several = rows * columns > 1
        tiles = rows * columns + several
        between = rows * columns if several else 0
        return Sight(side, side, patches, tiles * patches // self.vision.squares**2, 3 + between, tiles)

    def unable(self, height: int, width: int) -> str:
        """Patches must fall into squares, whose rows the layers on top take."""
        tower, side = self.vision, self.vision.image_size // self.vision.patch_size
        if side % tower.squares:
            return f"the tower's {side} by {side} patches do not fall into squares of {tower.squares}"
        for handed, taken in tower.meetings:
            if handed != taken:
                return f"a layer on top of the tower takes {taken:,} numbers and is given {handed:,}"
        return ""

    def look(self, m: Modules, sight: Sight) -> Tensor:
        """Images to features, (images·tokens, hidden_size)."""
        (pixels,) = m.given
        with self.tower(m, sight.patches + 1, tiles=sight.tiles):
            seen = tower(m, pixels)
        with self.projector(m, sight.tokens):
            rows = reshape(seen, (m.rows, self.vision.vision_output_dim))
            features = m.linear("multi_modal_projector.linear_1", rows, self.hidden_size)
            del rows
        features = cast(features, m.recipe.dtype)
        m.frame.append(seen)
        return features


def _canvas(height: int, width: int, side: int) -> tuple[int, int]:
    """Rows and columns of tiles: the smallest enlargement that some grid allows, else the smallest reduction; of grids that do alike the
    smallest."""
    grids = [(a, b) for a in range(1, MOST_TILES + 1) for b in range(1, MOST_TILES + 1) if a * b <= MOST_TILES]
    scales = {(a, b): min(a * side / height, b * side / width) for a, b in grids}
    enlarging = [scale for scale in scales.values() if scale >= 1]
    best = min(enlarging) if enlarging else max(scales.values())
    return min([grid for grid in grids if scales[grid] == best], key=lambda grid: grid[0] * grid[1])


def tower(m: Modules, pixels: Tensor) -> Tensor:
    """Tiles to a row for each square of patches, (tiles·squares, projector_output_dim)."""
    c: Llama4TowerDims = m.c
    entered = x = embeddings(m, pixels)
    turns = Standing((m.length, c.head_dim), "fp32", "rotation")
    numbers = Tensor((m.length, c.head_dim), "fp32", turns)
    for layer in m.layers(f"{HOME}.model.layers", c.kinds):
        x = layer(block, x, None, Rotation(numbers, numbers, None))
    del entered
    last = x
    x = layer_norm(m, f"{HOME}.layernorm_post", x)
    patches = part(x, (m.batch * (m.length - 1), c.hidden_size))
    del x
    y = adapter(m, patches)
    del last, patches
    return y


def embeddings(m: Modules, pixels: Tensor) -> Tensor:
    """Patches and the class token behind them, with their positions, normed."""
    c: Llama4TowerDims = m.c
    count, width = m.length - 1, c.num_channels * c.patch_size**2
    unfolded = empty((m.batch, width, count), pixels.dtype, "im2col")
    rows = empty((m.batch * count, width), pixels.dtype, "clone")
    x = m.asked(m.linear(f"{HOME}.patch_embedding.linear", rows, c.hidden_size))
    del rows, unfolded
    token = m.weight(f"{HOME}.class_embedding", (c.hidden_size,), "other")
    tokens = expand(token, (m.batch, c.hidden_size))
    wide = promoted(x.dtype, tokens.dtype)
    x = cat((cast(x, wide), tokens), (m.rows, c.hidden_size))
    places = m.weight(f"{HOME}.positional_embedding_vlm", (m.length, c.hidden_size), "other")
    x = add_broadcast(x, places)
    return layer_norm(m, f"{HOME}.layernorm_pre", x)


def block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """One layer."""
    return pre_norm(m, x, self_attention, mlp, mask, positions, norm=layer_norm)


def self_attention(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """Attention of every patch to every other of its tile, turned by row and column."""
    c: Llama4TowerDims = m.c
    heads, d, h = c.num_attention_heads, c.head_dim, c.hidden_size
    q = split(m, m.linear("self_attn.q_proj", x, h, True), heads, d)
    k = split(m, m.linear("self_attn.k_proj", x, h, True), heads, d)
    v = split(m, m.linear("self_attn.v_proj", x, h, True), heads, d)
    turned_q, turned_k = rotated(q, k, positions)
    q, k = turned_q, turned_k
    del turned_q, turned_k
    out = attention(m, q, k, v, mask, dropout_p=c.attention_dropout, eager=NARROW)
    return m.linear("self_attn.o_proj", out, h, True)


def mlp(m: Modules, x: Tensor) -> Tensor:
    """Two linear layers with gelu between them, whatever the config says."""
    x = m.linear("mlp.fc1", x, m.c.intermediate_size, True)
    x = activation(x, "gelu")
    return m.linear("mlp.fc2", x, m.c.hidden_size, True)


def adapter(m: Modules, x: Tensor) -> Tensor:
    """Patches of each square side by side, and two layers, each with gelu."""
    c: Llama4TowerDims = m.c
    name, side, width = f"{HOME}.vision_adapter.mlp", c.squares, c.hidden_size
    rows = m.batch * (m.length - 1)
    once = laid_out(x, (rows // side, width * side))
    shuffled = laid_out(once, (rows // side**2, c.intermediate_size))
    del once
    y = m.linear(f"{name}.fc1", shuffled, c.projector_input_dim)
    y = activation(y, "gelu")
    y = reshape(dropout(y, c.projector_dropout), (rows // side**2, c.projector_output_dim))
    y = activation(m.linear(f"{name}.fc2", y, c.projector_output_dim), "gelu")
    del shuffled
    return y


def logits(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to logits (rows, vocab_size): the text model's own class ends with its head, before the loss."""
    x = body(m, ids)
    before, active.ledger.kind = active.ledger.kind, LOGITS
    y = head(m, x)
    active.ledger.kind = before
    return y


def tower_dims(config: Config) -> Llama4TowerDims:
    """Llama4VisionConfig's fields and defaults."""
    sizes: dict[str, Any] = {"hidden_size": 768, "intermediate_size": 5632, "num_hidden_layers": 34, "num_attention_heads": 16, "image_size": 448, "patch_size": 14, "hidden_act": "gelu"}  # fmt: skip
    common = clip.dims(config, **sizes)
    own = {field.name: getattr(common, field.name) for field in fields(TowerDims)}
    return Llama4TowerDims(
        **own,
        squares=int(1 / config.number("pixel_shuffle_ratio", default=0.5, low=0.01, high=1)),
        projector_input_dim=config.integer("projector_input_dim", default=4096),
        projector_output_dim=config.integer("projector_output_dim", default=4096),
        vision_output_dim=config.integer("vision_output_dim", default=7680),
        projector_dropout=share(config, "projector_dropout"),
    )


def dims(config: Config) -> Llama4Seeing:
    """Llama4Config's fields and defaults."""
    language, text = text_model(config, "llama4_text", {})
    vision = tower_dims(inner(config, "vision_config", {}))
    return Llama4Seeing(**shared(text, vision.kinds, text.tie_word_embeddings), language=language, vision=vision)


def buffers(c: Llama4Seeing, size: int) -> int:
    """The text model's, and the tower's rotation."""
    return (
        c.language.buffers(c.text, size)
        + 4 * ((c.vision.image_size // c.vision.patch_size) ** 2 + 1) * c.vision.head_dim
    )


FAMILIES = (
    Family(
        id="llama4-vision",
        types={"llama4": "Llama 4"},
        dims=dims,
        body=logits,
        head=lambda m, x: x,
        given=given,
        attentions=("eager", "sdpa"),
        gaps=GAPS,
        mended="image_outputs",
        buffers=buffers,
        source="transformers 5.24.0, models/llama4/modeling_llama4.py",
    ),
)
