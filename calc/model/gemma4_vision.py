"""Gemma 4 with eyes and ears, on text: the text model, and beside it a vision tower and an audio tower that are loaded and stand by. What they
do with images and sounds is not modelled yet. Mirrors transformers 5.24.0 models/gemma4/modeling_gemma4.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from calc.autograd.tensor import Tensor, empty
from calc.model.activations import activation_name
from calc.model.config import Config, ConfigError
from calc.model.family import Family, rotary_buffers
from calc.model.gemma4 import WRAPPED, Gemma4Dims
from calc.model.gemma4 import dims as text_dims
from calc.model.modules import Modules
from calc.model.vision import Seeing, Sight, TowerDims, body, given, head, shared

SEES, HEARS = "model.vision_tower", "model.audio_tower"
SOUND = "vision audio"
"""The kind of the audio tower's layers, which stand by with the vision tower's."""


@dataclass(frozen=True, kw_only=True)
class Gemma4TowerDims(TowerDims):
    """Sizes of the vision tower."""

    position_embedding_size: int
    clipped: bool
    standardized: bool


@dataclass(frozen=True, kw_only=True)
class AudioDims:
    """Sizes of the audio tower."""

    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    channels: tuple[int, ...]
    """Of the two convolutions that shorten the sound."""
    kernel: int
    output: int
    clipped: bool


@dataclass(frozen=True, kw_only=True)
class Gemma4Seeing(Seeing):
    """Sizes of a Gemma 4 model with eyes and ears, either of which it may lack."""

    vision: Gemma4TowerDims
    sees: bool
    audio: AudioDims | None

    def sight(self, height: int, width: int) -> Sight:
        """Not modelled; one patch stands for an image."""
        return Sight(self.vision.patch_size, self.vision.patch_size, 1, 1)

    def unable(self, height: int, width: int) -> str:
        """Images are refused."""
        return "its vision tower is not modelled yet, so only text can be trained on"

    def look(self, m: Modules, sight: Sight) -> Tensor:
        """Ask for the weights of both towers; there is nothing to see."""
        x = empty((1, 1), m.recipe.dtype, "nothing")
        with self.tower(m, 1):
            kinds = m.c.kinds
            if self.sees:
                stand_by_to_see(m, x, [kind for kind in kinds if kind != SOUND])
            if self.audio is not None:
                stand_by_to_hear(m, x, [kind for kind in kinds if kind == SOUND], self.audio)
        with self.projector(m, 1):
            if self.sees:
                linear(m, "model.embed_vision.embedding_projection", self.vision.hidden_size, self.hidden_size)
            if self.audio is not None:
                linear(m, "model.embed_audio.embedding_projection", self.audio.output, self.hidden_size)
        return x


def linear(m: Modules, name: str, entering: int, made: int, bias: bool = False) -> None:
    """Ask for the weights of a linear layer."""
    m.linear(name, empty((1, entering), m.recipe.dtype, "nothing"), made, bias)


def norms(m: Modules, width: int, *names: str) -> None:
    """Ask for the weights of norms."""
    for name in names:
        m.weight(f"{name}.weight", (width,), "norm")


def stand_by_to_see(m: Modules, x: Tensor, kinds: Sequence[str]) -> None:
    """The vision tower's weights."""
    c: Gemma4TowerDims = m.c
    h = c.hidden_size
    m.weight(f"{SEES}.patch_embedder.position_embedding_table", (2, c.position_embedding_size, h), "other")
    linear(m, f"{SEES}.patch_embedder.input_proj", c.num_channels * c.patch_size**2, h)
    for layer in m.layers(f"{SEES}.encoder.layers", kinds):
        layer(_seeing_block, x)


def _seeing_block(m: Modules, x: Tensor) -> Tensor:
    c: Gemma4TowerDims = m.c
    h, own, few = c.hidden_size, c.num_attention_heads * c.head_dim, c.num_key_value_heads * c.head_dim
    for name, entering, made in (
        ("self_attn.q_proj", h, own), ("self_attn.k_proj", h, few), ("self_attn.v_proj", h, few), ("self_attn.o_proj", own, h),
        ("mlp.gate_proj", h, c.intermediate_size), ("mlp.up_proj", h, c.intermediate_size), ("mlp.down_proj", c.intermediate_size, h),
    ):  # fmt: skip
        linear(m, f"{name}.linear", entering, made)
    norms(m, c.head_dim, "self_attn.q_norm", "self_attn.k_norm")
    around = ("input", "post_attention", "pre_feedforward", "post_feedforward")
    norms(m, h, *[f"{name}_layernorm" for name in around])
    return x


def stand_by_to_hear(m: Modules, x: Tensor, kinds: Sequence[str], c: AudioDims) -> None:
    """The audio tower's weights."""
    name, (first, second) = f"{HEARS}.subsample_conv_projection", c.channels
    m.weight(f"{name}.layer0.conv.weight", (first, 1, 3, 3), "other")
    m.weight(f"{name}.layer1.conv.weight", (second, first, 3, 3), "other")
    norms(m, first, f"{name}.layer0.norm")
    norms(m, second, f"{name}.layer1.norm")
    linear(m, f"{name}.input_proj_linear", first // 4 * second, c.hidden_size)
    for layer in m.layers(f"{HEARS}.layers", kinds):
        layer(partial(_hearing_block, c=c), x)
    linear(m, f"{HEARS}.output_proj", c.hidden_size, c.output, True)


def _hearing_block(m: Modules, x: Tensor, *, c: AudioDims) -> Tensor:
    h = c.hidden_size
    d = h // c.num_attention_heads
    own = c.num_attention_heads * d
    for half in ("feed_forward1", "feed_forward2"):
        linear(m, f"{half}.ffw_layer_1.linear", h, 4 * h)
        linear(m, f"{half}.ffw_layer_2.linear", 4 * h, h)
        norms(m, h, f"{half}.pre_layer_norm", f"{half}.post_layer_norm")
    m.weight("self_attn.per_dim_scale", (d,), "other")
    for name in ("q_proj.linear", "k_proj.linear", "v_proj.linear", "relative_k_proj"):
        linear(m, f"self_attn.{name}", h, own)
    linear(m, "self_attn.post.linear", h, h)
    linear(m, "lconv1d.linear_start.linear", h, 2 * h)
    linear(m, "lconv1d.linear_end.linear", h, h)
    m.weight("lconv1d.depthwise_conv1d.weight", (h, 1, c.kernel), "other")
    norms(m, h, "lconv1d.pre_layer_norm", "lconv1d.conv_norm", "norm_pre_attn", "norm_post_attn", "norm_out")
    return x


CLIPPED = 4
"""Bounds of a clipped layer, each a buffer."""


def buffers(c: Gemma4Seeing, size: int) -> int:
    """The text model's, the vision tower's rotation, and both towers' bounds and tables."""
    total: int = c.language.buffers(c.text, size)
    if c.sees:
        vision = c.vision
        layers = CLIPPED * 7 * vision.num_hidden_layers * vision.clipped
        total += rotary_buffers(vision.head_dim // 2) + size * (layers + 2 * vision.hidden_size * vision.standardized)
    if c.audio is not None:
        total += size * (c.audio.hidden_size // 2 + (1 + CLIPPED * 10 * c.audio.clipped) * c.audio.num_hidden_layers)
    return total


def tower_dims(config: Config, layers: int) -> Gemma4TowerDims:
    """Gemma4VisionConfig's fields and defaults."""
    return Gemma4TowerDims(
        vocab_size=0,
        hidden_size=config.integer("hidden_size", default=768),
        intermediate_size=config.integer("intermediate_size", default=3072),
        num_hidden_layers=layers,
        num_attention_heads=config.integer("num_attention_heads", default=12, high=4096),
        num_key_value_heads=config.integer("num_key_value_heads", default=12, high=4096),
        head_dim=config.integer("head_dim", default=64, high=65536),
        hidden_act=activation_name(config, "hidden_activation", default="gelu_pytorch_tanh"),
        patch_size=config.integer("patch_size", default=16, high=4096),
        position_embedding_size=config.integer("position_embedding_size", default=10240),
        clipped=config.boolean("use_clipped_linears", default=False),
        standardized=config.boolean("standardize", default=False),
        kinds=("vision",) * layers,
    )


def audio_dims(config: Config) -> AudioDims:
    """Gemma4AudioConfig's fields and defaults."""
    channels = config.integers("subsampling_conv_channels", default=(128, 32))
    if len(channels) != 2:
        raise ConfigError("audio_config.subsampling_conv_channels", f"should have 2 entries, not {len(channels)}")
    return AudioDims(
        hidden_size=config.integer("hidden_size", default=1024),
        num_hidden_layers=config.integer("num_hidden_layers", default=12, high=2000),
        num_attention_heads=config.integer("num_attention_heads", default=8, high=4096),
        channels=channels,
        kernel=config.integer("conv_kernel_size", default=5, high=4096),
        output=config.integer("output_proj_dims", default=1536),
        clipped=config.boolean("use_clipped_linears", default=True),
    )


def dims(config: Config) -> Gemma4Seeing:
    """Gemma4Config's fields and defaults."""
    text: Any = text_dims(config.part("text_config") if config.given("text_config") is not None else Config({}))
    assert isinstance(text, Gemma4Dims)
    sees, hears = config.given("vision_config") is not None, config.given("audio_config") is not None
    seeing = config.part("vision_config") if sees else Config({})
    vision = tower_dims(seeing, seeing.integer("num_hidden_layers", default=16, high=2000) if sees else 0)
    audio = audio_dims(config.part("audio_config")) if hears else None
    kinds = (*vision.kinds, *(() if audio is None else (SOUND,) * audio.num_hidden_layers))
    tied = config.boolean("tie_word_embeddings", default=True)
    return Gemma4Seeing(**shared(text, kinds, tied), language=WRAPPED, vision=vision, sees=sees, audio=audio)


FAMILIES = (
    Family(
        id="gemma4",
        types={"gemma4": "Gemma 4"},
        dims=dims,
        body=body,
        head=head,
        given=given,
        attentions=("eager", "sdpa"),
        gaps=frozenset(("adapters by name in the tower",)),
        buffers=buffers,
        source="transformers 5.24.0, models/gemma4/modeling_gemma4.py",
    ),
)
