"""Qwen2.5-VL: a tower of its own that sees images at any size in windows, a merger, and Qwen2's layers with three-dimensional positions.

Mirrors transformers 5.24.0 models/qwen2_5_vl/modeling_qwen2_5_vl.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, sqrt
from typing import ClassVar, NamedTuple

from calc.autograd import attention as kernels
from calc.autograd.elementwise import activation, cast, scale, softmax
from calc.autograd.images import joined, reordered, stacked_heads, unbound
from calc.autograd.linear import bmm
from calc.autograd.shapes import cat, reshape, split_as
from calc.autograd.tensor import Shape, Tensor, empty
from calc.model import llama
from calc.model.activations import activation_name
from calc.model.attention import FLASH_HEAD_DIM, attention, contiguous_rows, lowered
from calc.model.config import Config
from calc.model.decoder import decoder, pre_norm, sizes, switched_window
from calc.model.family import Dims, Family, Input, rotary_buffers
from calc.model.modules import Modules
from calc.model.norms import rms_norm
from calc.model.qwen2 import masked
from calc.model.recipe import Recipe
from calc.model.rotary import Rotation, position_ids, rotated
from calc.model.vision import Seeing, Sight, TowerDims, body, given, head, images, patch_embedding, shared
from calc.model.vision import part as inner

HOME = "model.visual"
FULL = "vision full"
"""The kind of a layer in which all patches of an image see each other; the others look through windows."""
LEAST, MOST = 56 * 56, 12_845_056
"""Pixels that the image processor makes an image have, at least and at most (`min_pixels`, `max_pixels` of the published models)."""


@dataclass(frozen=True, kw_only=True)
class QwenTowerDims(TowerDims):
    """Sizes of the tower."""

    temporal_patch_size: int
    spatial_merge_size: int
    window_size: int
    out_hidden_size: int

    @property
    def frames(self) -> tuple[int, ...]:
        """How many frames a patch reaches over."""
        return (self.temporal_patch_size,)


class Windows(NamedTuple):
    """What the patches of the batch are looked at through: how many windows of how many patches, and where each begins."""

    sizes: tuple[tuple[int, int], ...]
    begins: Tensor


@dataclass(frozen=True, kw_only=True)
class QwenDims(Seeing):
    """Sizes of a Qwen2.5-VL model."""

    kinds_of_places: ClassVar[int] = 2
    vision: QwenTowerDims

    def sight(self, height: int, width: int) -> Sight:
        """An image keeps its shape: both sides are rounded to whole merged patches, and shrunk or grown into bounds.

        Source: models/qwen2_vl/image_processing_qwen2_vl.py, smart_resize.
        """
        patch, merge = self.vision.patch_size, self.vision.spatial_merge_size
        side = patch * merge
        high, wide = max(side, round(height / side) * side), max(side, round(width / side) * side)
        if high * wide > MOST:
            by = sqrt(height * width / MOST)
            high, wide = (max(side, floor(n / by / side) * side) for n in (height, width))
        elif high * wide < LEAST:
            by = sqrt(LEAST / (height * width))
            high, wide = (ceil(n * by / side) * side for n in (height, width))
        patches = (high // patch) * (wide // patch)
        return Sight(high, wide, patches, patches // merge**2, 2)

    def unable(self, height: int, width: int) -> str:
        """The heads must divide the tower's width."""
        hidden, heads = self.vision.hidden_size, self.vision.num_attention_heads
        return (
            ""
            if heads * self.vision.head_dim == hidden
            else f"{heads} heads do not divide the tower's width of {hidden}"
        )

    def windows(self, sight: Sight) -> tuple[tuple[int, int], ...]:
        """The windows of an image: how many there are of each size in patches."""
        vision, merge = self.vision, self.vision.spatial_merge_size
        reach = vision.window_size // merge // vision.patch_size
        high, wide = (n // vision.patch_size // merge for n in (sight.height, sight.width))
        tall, low = high // reach, high % reach
        broad, narrow = wide // reach, wide % reach
        tiles = ((tall * broad, reach, reach), (tall, reach, narrow), (broad, low, reach), (1, low, narrow))
        return tuple((count, a * b * merge**2) for count, a, b in tiles if count * a * b)

    def look(self, m: Modules, sight: Sight) -> Tensor:
        """Images to features, (images·tokens, hidden_size)."""
        pixels = cast(m.given[0], m.recipe.dtype)
        with self.tower(m, sight.patches, one_sequence=True):
            last = tower(m, pixels, sight, self.windows(sight), images(m))
        with self.projector(m, sight.tokens):
            merged = unbound(reordered(merger(m, last, self.vision)))
        m.seen += [last, merged]
        del last, pixels
        return cast(joined(merged), m.recipe.dtype)

    def arranged(self, m: Modules) -> list[Tensor]:
        """Position of each token in time, height and width."""
        return [empty((3, m.batch, m.length), "i64", "zeros")]


def tower(m: Modules, pixels: Tensor, sight: Sight, windows: tuple[tuple[int, int], ...], count: int) -> Tensor:
    """Images to a row for each patch: (images·patches, hidden_size)."""
    c: QwenTowerDims = m.c
    ids = empty((m.rows, 2), "i64", "cat")
    number = count * sum([n for n, _ in windows])
    whole = Windows(((count, sight.patches),), empty((count + 1,), "i32", "cumulative lengths"))
    through = Windows(
        tuple([(count * n, size) for n, size in windows]), empty((number + 1,), "i32", "cumulative lengths")
    )
    x = reordered(patch_embedding(m, f"{HOME}.patch_embed.proj", pixels, m.length, bias=False))
    positions = rotation(m, ids)
    for layer, kind in zip(m.layers(f"{HOME}.blocks", c.kinds), c.kinds, strict=True):
        x = layer(block, x, whole if kind == FULL else through, positions)
    del ids, whole, through, pixels
    return x


def rotation(m: Modules, ids: Tensor) -> Rotation:
    """The rotation of each patch by its row and its column, in fp32 and in the order of the windows."""
    cos, sin = turns(m, ids)
    ordered = empty(cos.shape, "fp32", "index"), empty(sin.shape, "fp32", "index")
    return Rotation(*ordered, None)


def turns(m: Modules, ids: Tensor) -> tuple[Tensor, Tensor]:
    """cos and sin of each patch by its row and its column, in fp32."""
    rows, quarter = m.rows, m.c.head_dim // 4
    places = cast(ids, "fp32")
    angles = empty((rows, 2, quarter), "fp32", "mul")
    del places
    cos = scale(empty(angles.shape, "fp32", "cos"))
    sin = scale(empty(angles.shape, "fp32", "sin"))
    cos = laid_out(cos, (rows, 2 * quarter))
    sin = laid_out(sin, (rows, 2 * quarter))
    return cos, sin


def laid_out(x: Tensor, shape: Shape) -> Tensor:
    """The angles of each axis side by side, and once more."""
    once = empty(shape, "fp32", "cat")
    twice = empty((*shape[:-1], 2 * shape[-1]), "fp32", "cat")
    del once
    return twice


def block(m: Modules, x: Tensor, windows: Windows, positions: Rotation) -> Tensor:
    """One layer of the tower."""
    return pre_norm(m, x, windowed_attention, llama.mlp, windows, positions, names=("norm1", "norm2"))  # type: ignore[arg-type]


def windowed_attention(
    m: Modules, x: Tensor, windows: Windows, positions: Rotation, *, bias: bool = True, output_bias: bool = True
) -> Tensor:
    """Attention of the patches in each window to each other, one window after another."""
    c: QwenTowerDims = m.c
    shape = (1, c.num_attention_heads, m.rows, c.head_dim)
    qkv = stacked_heads(m.linear("attn.qkv", x, 3 * c.hidden_size, bias), 3, shape)
    q, k, v = split_as(qkv, [shape] * 3)
    del qkv
    q, k = _rotated(q, k, positions)
    if m.recipe.attention.startswith("flash"):
        out = attention(m, q, k, v, None)
        return m.linear("attn.proj", out, c.hidden_size, output_bias)
    lengths = empty((sum([n for n, _ in windows.sizes]),), "i32", "sub")
    shapes = [(n, c.num_attention_heads, size, c.head_dim) for n, size in windows.sizes]
    pieces = zip(split_as(q, shapes), split_as(k, shapes), split_as(v, shapes), strict=True)
    seen = [_within(m, *piece) for piece in pieces]
    out = reshape(cat(seen, (m.rows, c.hidden_size)), (m.rows, c.hidden_size))
    out = m.linear("attn.proj", out, c.hidden_size, output_bias)
    del lengths
    return out


def _rotated(q: Tensor, k: Tensor, positions: Rotation) -> tuple[Tensor, Tensor]:
    """Both turned in fp32."""
    dtype = q.dtype
    q, k = cast(q, "fp32"), cast(k, "fp32")
    turned_q, turned_k = rotated(q, positions), rotated(k, positions)
    turned_q = cast(turned_q, dtype)
    turned_k = cast(turned_k, dtype)
    return turned_q, turned_k


def _within(m: Modules, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Windows of one size, each a call of its own: (windows·patches, hidden_size)."""
    count, heads, length, d = q.shape
    if m.recipe.attention == "eager":
        return _by_scores(m, q, k, v)
    q, k, v = lowered(m, q), lowered(m, k), lowered(m, v)
    if q.dtype != "fp32" and m.recipe.flash and d <= FLASH_HEAD_DIM:
        out = kernels.flash(q, k, v, words=(2 * count, count))
    else:
        out = kernels.efficient(q, k, v, None, calls=count)
    return reshape(out, (count * length, heads * d))


def _by_scores(m: Modules, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """eager_attention_forward, whose windows are batches of one and so are not laid out anew."""
    count, heads, length, d = q.shape
    scores = (count, heads, length, length)
    low_k = lowered(m, k)
    weights = scale(bmm(lowered(m, q), low_k, scores))
    del low_k
    shares = softmax(weights, "fp32")
    weights = cast(shares, q.dtype)
    del shares
    low_v = lowered(m, v)
    out = bmm(lowered(m, weights), low_v, q.shape)
    return reshape(contiguous_rows(out), (count * length, heads * d))


def merger(m: Modules, x: Tensor, c: QwenTowerDims) -> Tensor:
    """Squares of patches side by side, brought to the text model's width."""
    wide = c.hidden_size * c.spatial_merge_size**2
    x = reshape(rms_norm(m, f"{HOME}.merger.ln_q", x), (m.rows, wide))
    x = m.linear(f"{HOME}.merger.mlp.0", x, wide, True)
    x = activation(x, "gelu")
    return m.linear(f"{HOME}.merger.mlp.2", x, c.out_hidden_size, True)


def text_body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    return decoder(m, ids, llama.block, masked=masked(m.c), angles=text_rotation)


def text_rotation(m: Modules, dtype: str, head_dim: int) -> Rotation:
    """The rotation of each token of each sequence by its place in time, height and width."""
    if m.recipe.images is None:
        m.frame.append(position_ids(m))
    shape = (3, m.batch, m.length, head_dim // 2)
    positions = empty((*shape[:-1], 1), "fp32", "_to_copy")
    angles = empty(shape, "fp32", "mul")
    del positions
    cos = scale(empty(shape, "fp32", "cos"))
    sin = scale(empty(shape, "fp32", "sin"))
    sin = laid_out(sin, shape[1:])
    cos = laid_out(cos, shape[1:])
    low = cast(cos, dtype), cast(sin, dtype)
    del angles
    return Rotation(*low, None)


def text_dims(config: Config) -> Dims:
    """Qwen2_5_VLTextConfig's fields and defaults."""
    common = sizes(
        config,
        vocab_size=152064,
        hidden_size=8192,
        intermediate_size=29568,
        num_hidden_layers=80,
        num_attention_heads=64,
        num_key_value_heads=8,
    )
    windows = switched_window(config, common["num_hidden_layers"])  # Qwen2-VL's and Qwen2.5-VL's alike
    return Dims(
        **{**common, **windows, "head_dim": common["hidden_size"] // common["num_attention_heads"]}, attention_bias=True
    )


def tower_dims(config: Config) -> QwenTowerDims:
    """Qwen2_5_VLVisionConfig's fields and defaults."""
    hidden = config.integer("hidden_size", default=3584)
    heads = config.integer("num_heads", "num_attention_heads", default=16, high=4096)
    layers = config.integer("depth", "num_hidden_layers", default=32, high=2000)
    whole = config.integers("fullatt_block_indexes", default=(7, 15, 23, 31))
    return QwenTowerDims(
        vocab_size=0,
        hidden_size=hidden,
        intermediate_size=config.integer("intermediate_size", default=3420),
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        head_dim=hidden // heads,
        hidden_act=activation_name(config, "hidden_act", default="silu"),
        mlp_bias=True,
        patch_size=config.integer("patch_size", default=14, high=4096),
        num_channels=config.integer("in_channels", "in_chans", default=3, high=64),
        temporal_patch_size=config.integer("temporal_patch_size", default=2, high=64),
        spatial_merge_size=config.integer("spatial_merge_size", default=2, high=64),
        window_size=config.integer("window_size", default=112, high=65536),
        out_hidden_size=config.integer("out_hidden_size", default=3584),
        image_size=448,
        kinds=tuple([FULL if i in whole else "vision" for i in range(layers)]),
    )


def inputs(c: QwenDims, recipe: Recipe) -> tuple[Input, ...]:
    """Pixels patch by patch, how many each image has, and for each token whether it is an image's."""
    if not given(c, recipe) or recipe.images is None:
        return ()
    v, sight = c.vision, c.sight(recipe.images.height, recipe.images.width)
    count = recipe.batch * recipe.images.per_sequence
    columns = v.num_channels * v.temporal_patch_size * v.patch_size**2
    return (
        Input("Pixels of the images", (count * sight.patches, columns), "fp32"),
        Input("Patches of each image", (count, 3), "i64"),
        Input("Kinds of the tokens", (recipe.batch, recipe.length), "i64"),
    )


def dims(config: Config) -> QwenDims:
    """Qwen2_5_VLConfig's fields and defaults; older files have the text model's at the top."""
    nested = config.given("text_config") is not None
    text = text_dims(config.part("text_config") if nested else config)
    vision = tower_dims(inner(config, "vision_config", {}))
    tied = config.boolean("tie_word_embeddings", default=False)
    return QwenDims(**shared(text, vision.kinds, tied), language=TEXT, vision=vision)


def buffers(c: QwenDims, size: int) -> int:
    """The text model's, and the tower's own frequencies."""
    return rotary_buffers(c.text.head_dim) + rotary_buffers(c.vision.head_dim // 2)


TEXT = Family(
    id="qwen2_5_vl_text",
    types={"qwen2_5_vl_text": "Qwen2.5-VL"},
    dims=text_dims,
    body=text_body,
    source="transformers 5.24.0, models/qwen2_5_vl/modeling_qwen2_5_vl.py",
)
FAMILIES = (
    Family(
        id="qwen2_5_vl",
        types={"qwen2_5_vl": "Qwen2.5-VL"},
        dims=dims,
        body=body,
        head=head,
        given=inputs,
        buffers=buffers,
        source="transformers 5.24.0, models/qwen2_5_vl/modeling_qwen2_5_vl.py",
    ),
)
