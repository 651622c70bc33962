"""Qwen3-VL: Qwen3's layers, a tower with positions stretched over the image, and features of its early layers that join the text's.

Mirrors transformers 5.24.0 models/qwen3_vl/modeling_qwen3_vl.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from calc.autograd.elementwise import activation, add, cast, clone, mul, scale
from calc.autograd.images import chosen, joined, put, summed, unbound
from calc.autograd.lookup import embedding
from calc.autograd.shapes import reshape
from calc.autograd.tensor import Tensor, empty
from calc.model import qwen3
from calc.model.activations import activated, activation_name
from calc.model.config import Config
from calc.model.decoder import masks, pre_norm
from calc.model.family import Dims, Family
from calc.model.modules import Modules
from calc.model.norms import layer_norm, rms_norm
from calc.model.qwen2_5_vl import HOME, QwenDims, QwenTowerDims, Windows, buffers, inputs, turns, windowed_attention
from calc.model.rotary import Rotation, position_ids
from calc.model.vision import Sight, body, head, images, patch_embedding, shared
from calc.model.vision import part as inner

DEEP = "deep"
"""Word in the kind of a layer whose features join the text, or which they join, before their number."""


@dataclass(frozen=True, kw_only=True)
class Qwen3TowerDims(QwenTowerDims):
    """Sizes of the tower."""

    num_position_embeddings: int
    mergers: int
    """How many layers' features are meant to join the text; a merger stands for each, also where the tower has no such layer."""


@dataclass(frozen=True, kw_only=True)
class Qwen3Seeing(QwenDims):
    """Sizes of a Qwen3-VL model. Images are taken to be within the bounds of its own processor: 65,536 to 16,777,216 pixels."""

    vision: Qwen3TowerDims

    def look(self, m: Modules, sight: Sight) -> Tensor:
        """Images to features, (images·tokens, hidden_size)."""
        pixels = cast(m.given[0], m.recipe.dtype)
        deep: list[Tensor] = []
        with self.tower(m, sight.patches, one_sequence=True):
            last = tower(m, self, pixels, sight, images(m), deep)
        with self.projector(m, sight.tokens):
            merged = unbound(merger(m, last, self.vision, f"{HOME}.merger"))
        m.deep = [unbound(one) for one in deep]
        m.seen += [last, merged, *m.deep]
        del last, pixels, deep
        return cast(joined(merged), m.recipe.dtype)

    def arranged(self, m: Modules) -> list[Tensor]:
        """Position of each token in time, height and width; and the features of the tower's early layers."""
        m.deep = [joined(one) for one in m.deep]
        return super().arranged(m)


def tower(m: Modules, c: Qwen3Seeing, pixels: Tensor, sight: Sight, count: int, deep: list[Tensor]) -> Tensor:
    """Images to a row for each patch; the features of the layers that have a merger of their own go to `deep`."""
    v: Qwen3TowerDims = m.c
    taps, weights = empty((4 * m.rows,), "i64", "indices"), empty((4 * m.rows, 1), "fp32", "weights")
    ids = empty((m.rows, 2), "i64", "cat")
    whole = Windows(((count, sight.patches),), empty((count + 1,), "i32", "cumulative lengths"))
    x = patch_embedding(m, f"{HOME}.patch_embed.proj", pixels, m.length, bias=True, known=False)
    table = m.weight(f"{HOME}.pos_embed.weight", (v.num_position_embeddings, v.hidden_size), "other")
    places = summed(mul(embedding(table, taps), weights), x.shape)
    x = add(x, cast(places, x.dtype))
    positions = Rotation(*turns(m, ids), None)
    for layer, kind in zip(m.layers(f"{HOME}.blocks", v.kinds), v.kinds, strict=True):
        x = layer(block, x, whole, positions)
        if DEEP in kind:
            deep.append(_deep_merger(m, c, sight, x, kind.rpartition(" ")[2]))
    for number in range(v.mergers):
        if f"vision {DEEP} {number}" not in v.kinds:
            _idle_merger(m, v, f"{HOME}.deepstack_merger_list.{number}")
    del taps, weights, places, ids, whole, pixels
    return x


def _idle_merger(m: Modules, c: QwenTowerDims, name: str) -> None:
    """The weights of a merger that no layer feeds."""
    wide = c.hidden_size * c.spatial_merge_size**2
    shapes = {"norm": (wide,), "linear_fc1": (wide, wide), "linear_fc2": (c.out_hidden_size, wide)}
    m.apart = True
    for layer, shape in shapes.items():
        m.weight(f"{name}.{layer}.weight", shape, "norm" if layer == "norm" else "linear")
        m.weight(f"{name}.{layer}.bias", shape[:1], "bias")
    m.apart = False


def _deep_merger(m: Modules, c: Qwen3Seeing, sight: Sight, x: Tensor, number: str) -> Tensor:
    """The features of one layer; its weights are the tower's, not the layer's."""
    before = m.block, m.prefix
    m.block, m.prefix = None, ""
    try:
        with c.projector(m, sight.tokens):
            return merger(m, x, c.vision, f"{HOME}.deepstack_merger_list.{number}", shuffled=True)
    finally:
        m.block, m.prefix = before


def block(m: Modules, x: Tensor, windows: Windows, positions: Rotation) -> Tensor:
    """One layer of the tower."""
    names = ("norm1", "norm2")
    return pre_norm(m, x, windowed_attention, mlp, windows, positions, norm=layer_norm, names=names)  # type: ignore[arg-type]


def mlp(m: Modules, x: Tensor) -> Tensor:
    """Two linear layers with an activation between them."""
    c: Qwen3TowerDims = m.c
    x = m.linear("mlp.linear_fc1", x, c.intermediate_size, True)
    x = activated(m, x, c.hidden_act)
    return m.linear("mlp.linear_fc2", x, c.hidden_size, True)


def merger(m: Modules, x: Tensor, c: QwenTowerDims, name: str, *, shuffled: bool = False) -> Tensor:
    """Squares of patches side by side, normed before or, `shuffled`, after, brought to the text model's width."""
    wide = c.hidden_size * c.spatial_merge_size**2
    shape = (m.rows, wide)
    x = layer_norm(m, f"{name}.norm", reshape(x, shape) if shuffled else x)
    x = m.linear(f"{name}.linear_fc1", reshape(x, shape), wide, True)
    x = activation(x, "gelu")
    return m.linear(f"{name}.linear_fc2", x, c.out_hidden_size, True)


def text_body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    c = m.c
    x = inputs_embeds = m.embedding("model.embed_tokens", ids, c.vocab_size, c.hidden_size)
    mask = masks(m, x.dtype, ("full",))["full"]
    positions = text_rotation(m, x.dtype, c.head_dim)
    for layer, kind in zip(m.layers("model.layers", c.kinds), c.kinds, strict=True):
        x = layer_outputs = layer(qwen3.block, x, mask, positions)
        if m.deep and DEEP in kind:
            x = _joined_by(m, x, m.deep[int(kind.rpartition(" ")[2])])
    x = rms_norm(m, "model.norm", x)
    del inputs_embeds, layer_outputs  # names of the frame
    return x


def _joined_by(m: Modules, x: Tensor, deep: Tensor) -> Tensor:
    """x with features added at the places of the images."""
    places = m.frame[1]
    deep = cast(deep, x.dtype)
    x = clone(x)
    local = add(chosen(x, places, deep.shape), deep)
    return put(x, places, local)


def text_rotation(m: Modules, dtype: str, head_dim: int) -> Rotation:
    """The rotation of each token of each sequence by its place in time, height and width."""
    ids = position_ids(m) if m.recipe.images is None else None
    shape = (3, m.batch, m.length, head_dim // 2)
    positions = empty((*shape[:-1], 1), "fp32", "_to_copy")
    angles = empty(shape, "fp32", "mul")
    del positions
    cos = scale(empty(shape, "fp32", "cos"))
    sin = scale(empty(shape, "fp32", "sin"))
    sin = empty((m.batch, m.length, head_dim), "fp32", "cat")
    cos = empty((m.batch, m.length, head_dim), "fp32", "cat")
    low = cast(cos, dtype), cast(sin, dtype)
    del angles
    return Rotation(*low, ids)


def text_dims(config: Config, deep: int) -> Dims:
    """Qwen3VLTextConfig's fields and defaults; features join the first `deep` layers."""
    common = qwen3.dims(config)
    layers = common.num_hidden_layers
    return replace(
        common, sliding_window=None, kinds=tuple([f"full {DEEP} {i}" if i < deep else "full" for i in range(layers)])
    )


def tower_dims(config: Config) -> Qwen3TowerDims:
    """Qwen3VLVisionConfig's fields and defaults."""
    hidden = config.integer("hidden_size", default=1152)
    heads = config.integer("num_heads", "num_attention_heads", default=16, high=4096)
    layers = config.integer("depth", "num_hidden_layers", default=27, high=2000)
    deep = config.integers("deepstack_visual_indexes", default=(8, 16, 24))
    numbers = {index: number for number, index in reversed(list(enumerate(deep)))}
    return Qwen3TowerDims(
        vocab_size=0,
        hidden_size=hidden,
        intermediate_size=config.integer("intermediate_size", default=4304),
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        head_dim=hidden // heads,
        hidden_act=activation_name(config, "hidden_act", default="gelu_pytorch_tanh"),
        patch_size=config.integer("patch_size", default=16, high=4096),
        num_channels=config.integer("in_channels", "in_chans", default=3, high=64),
        temporal_patch_size=config.integer("temporal_patch_size", default=2, high=64),
        spatial_merge_size=config.integer("spatial_merge_size", default=2, high=64),
        window_size=0,
        out_hidden_size=config.integer("out_hidden_size", default=3584),
        image_size=512,
        mergers=len(deep),
        num_position_embeddings=config.integer("num_position_embeddings", default=2304),
        kinds=tuple([f"vision {DEEP} {numbers[i]}" if i in numbers else "vision" for i in range(layers)]),
    )


def dims(config: Config) -> Qwen3Seeing:
    """Qwen3VLConfig's fields and defaults."""
    vision = tower_dims(inner(config, "vision_config", {}))
    text = text_dims(inner(config, "text_config", {}), sum([DEEP in kind for kind in vision.kinds]))
    tied = config.boolean("tie_word_embeddings", default=False)
    return Qwen3Seeing(**shared(text, vision.kinds, tied), language=TEXT, vision=vision)


TEXT = Family(
    id="qwen3_vl_text",
    types={"qwen3_vl_text": "Qwen3-VL"},
    dims=qwen3.dims,
    body=text_body,
    source="transformers 5.24.0, models/qwen3_vl/modeling_qwen3_vl.py",
)
FAMILIES = (
    Family(
        id="qwen3_vl",
        types={"qwen3_vl": "Qwen3-VL"},
        dims=dims,
        body=body,
        head=head,
        given=inputs,
        buffers=buffers,
        source="transformers 5.24.0, models/qwen3_vl/modeling_qwen3_vl.py",
    ),
)
