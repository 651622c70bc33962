"""GLM-4.5 and what is built of its parts: DeepSeek's experts and router behind grouped-query or latent attention.

Mirrors transformers 5.24.0 models/glm4_moe, models/glm4_moe_lite, models/solar_open and models/dots1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from calc.autograd.shapes import cat
from calc.autograd.tensor import Tensor
from calc.model import llama, qwen3
from calc.model.attention import attention, split
from calc.model.config import Config, ConfigError
from calc.model.decoder import decoder, layer_kinds, pre_norm, rotary_dim, sizes, window
from calc.model.deepseek import body as latent_body
from calc.model.deepseek import correction_buffers, groups, mixture, mixture_sizes
from calc.model.experts import MixtureDims
from calc.model.family import Dims, Family, rotary_buffers
from calc.model.latent import LatentDims, latent_sizes
from calc.model.llama import mlp
from calc.model.modules import Modules
from calc.model.norms import rms_norm
from calc.model.rotary import Rotation, rotated, rotation
from calc.model.stablelm import beginning


@dataclass(frozen=True)
class GlmMoeDims(MixtureDims):
    """Sizes, and the shape of attention."""

    rotary_dim: int = 0
    use_qk_norm: bool = False


def body(m: Modules, ids: Tensor, *, angles: Callable[[Modules, str, int], Rotation] = rotation) -> Tensor:
    """GLM-4.5: token ids (rows,) to hidden states (rows, hidden_size)."""
    return decoder(
        m,
        ids,
        partial(_block, attend=self_attention, feed=mixture),
        others={"dense": _dense},
        rotary_dim=m.c.rotary_dim,
        angles=angles,
    )


def solar_body(m: Modules, ids: Tensor) -> Tensor:
    """Solar Open: token ids (rows,) to hidden states (rows, hidden_size)."""
    return decoder(m, ids, partial(_block, attend=llama.self_attention, feed=mixture))


def dots_body(m: Modules, ids: Tensor) -> Tensor:
    """dots.llm1: token ids (rows,) to hidden states (rows, hidden_size)."""
    masked = sorted({kind.partition(" ")[0] for kind in m.c.kinds})
    others = {"dense": partial(_block, attend=qwen3.self_attention, feed=mlp)}
    return decoder(m, ids, partial(_block, attend=qwen3.self_attention, feed=mixture), others=others, masked=masked)


def _block(
    m: Modules,
    x: Tensor,
    mask: Tensor | None,
    positions: Rotation,
    *,
    attend: Callable[[Modules, Tensor, Tensor | None, Rotation], Tensor],
    feed: Callable[[Modules, Tensor], Tensor],
) -> Tensor:
    return pre_norm(m, x, attend, feed, mask, positions)


def _dense(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    return pre_norm(m, x, self_attention, mlp, mask, positions)


def self_attention(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """Grouped-query attention, a part of each head rotated, queries and keys perhaps normed."""
    c = m.c
    q = split(
        m,
        m.linear("self_attn.q_proj", x, c.num_attention_heads * c.head_dim, c.attention_bias),
        c.num_attention_heads,
        c.head_dim,
    )
    k = split(
        m,
        m.linear("self_attn.k_proj", x, c.num_key_value_heads * c.head_dim, c.attention_bias),
        c.num_key_value_heads,
        c.head_dim,
    )
    v = split(
        m,
        m.linear("self_attn.v_proj", x, c.num_key_value_heads * c.head_dim, c.attention_bias),
        c.num_key_value_heads,
        c.head_dim,
    )
    if c.use_qk_norm:
        q = rms_norm(m, "self_attn.q_norm", q)
        k = rms_norm(m, "self_attn.k_norm", k)
    q, k = beginnings_rotated(q, k, positions)
    out = attention(m, q, k, v, mask, dropout_p=c.attention_dropout)
    return m.linear("self_attn.o_proj", out, c.hidden_size, c.output_bias)


def beginnings_rotated(q: Tensor, k: Tensor, positions: Rotation) -> tuple[Tensor, Tensor]:
    """The first components of each head rotated, as many as cos and sin have."""
    width = positions.cos.shape[-1]
    q_turned, q_passed = beginning(q, width)
    k_turned, k_passed = beginning(k, width)
    q_out = rotated(q_turned, positions)
    k_out = rotated(k_turned, positions)
    q_out = cat((q_out, q_passed), q.shape)
    k_out = cat((k_out, k_passed), k.shape)
    return q_out, k_out


def dims(config: Config, *, vocab_size: int = 151552, bias: bool = False, rotated_part: float = 0.5) -> Dims:
    """Glm4MoeConfig's fields and defaults."""
    common = sizes(
        config, vocab_size=vocab_size, hidden_size=4096, intermediate_size=10944, num_hidden_layers=46, num_attention_heads=96,
        num_key_value_heads=8,
    )  # fmt: skip
    mixed = mixture_sizes(config, common, experts=128, top=8, width=1408, shared=1, dense=1)
    return GlmMoeDims(
        **mixed,
        **groups(config, mixed["num_experts"], n_group=1, topk_group=1),
        norm_topk_prob=config.boolean("norm_topk_prob", default=True),
        attention_bias=config.boolean("attention_bias", default=bias),
        rotary_dim=rotary_dim(config, common["head_dim"], rotated_part),
        use_qk_norm=config.boolean("use_qk_norm", default=False),
    )


def solar_dims(config: Config) -> Dims:
    """SolarOpenConfig's fields and defaults."""
    common = sizes(
        config, vocab_size=196608, hidden_size=4096, intermediate_size=10944, num_hidden_layers=48, num_attention_heads=64,
        num_key_value_heads=8, head_dim=128,
    )  # fmt: skip
    mixed = mixture_sizes(config, common, experts=128, top=8, width=1280, shared=1, dense=0)
    return MixtureDims(
        **{**mixed, "kinds": ("full",) * common["num_hidden_layers"]},
        **groups(config, mixed["num_experts"], n_group=1, topk_group=1),
        norm_topk_prob=config.boolean("norm_topk_prob", default=True),
        attention_bias=config.boolean("attention_bias", default=False),
    )


def lite_dims(config: Config) -> Dims:
    """Glm4MoeLiteConfig's fields and defaults."""
    common = sizes(
        config, vocab_size=154880, hidden_size=2048, intermediate_size=10240, num_hidden_layers=47, num_attention_heads=20,
        num_key_value_heads=20, head_dim=64,
    )  # fmt: skip
    mixed = mixture_sizes(config, common, experts=64, top=4, width=1536, shared=1, dense=1)
    return LatentDims(
        **{
            **mixed,
            "kinds": sparse_kinds(config, mixed["kinds"]),
            **latent_sizes(config, q_lora_rank=768, nope=192, value=256),
        },
        **groups(config, mixed["num_experts"], n_group=1, topk_group=1),
        norm_topk_prob=config.boolean("norm_topk_prob", default=True),
        rope_interleave=config.boolean("rope_interleave", default=True),
        latent_bias=config.boolean("attention_bias", default=False),
    )


def sparse_kinds(config: Config, kinds: tuple[str, ...]) -> tuple[str, ...]:
    """Which layers have experts, as `mlp_layer_types` lists them if it does."""
    if config.given("mlp_layer_types") is None:
        return kinds
    words = config.texts("mlp_layer_types")
    if len(words) != len(kinds):
        raise ConfigError("mlp_layer_types", f"should have num_hidden_layers ({len(kinds)}) entries, not {len(words)}")
    for word in words:
        if word not in ("dense", "sparse"):
            raise ConfigError("mlp_layer_types", f"should hold dense or sparse, not {word[:40]!r}")
    return tuple(
        [
            kind.partition(" ")[0] + (" dense" if word == "dense" else "")
            for kind, word in zip(kinds, words, strict=True)
        ]
    )


def dots_dims(config: Config) -> Dims:
    """Dots1Config's fields and defaults."""
    common = sizes(
        config, vocab_size=152064, hidden_size=4608, intermediate_size=10944, num_hidden_layers=62, num_attention_heads=32,
        num_key_value_heads=32,
    )  # fmt: skip
    mixed = mixture_sizes(config, common, experts=None, top=None, width=1408, shared=None, dense=0)
    size = window(config, 4096)
    last = config.integer("max_window_layers", default=62, low=0)
    kinds = layer_kinds(config, common["num_hidden_layers"], lambda i: size is not None and i >= last)
    bias = config.boolean("attention_bias", default=False)
    return MixtureDims(
        **{**mixed, "kinds": tuple([a + b[4:] for a, b in zip(kinds, mixed["kinds"], strict=True)])},
        **groups(config, mixed["num_experts"], n_group=1, topk_group=1),
        norm_topk_prob=config.boolean("norm_topk_prob", default=False),
        attention_bias=bias,
        output_bias=bias,
        sliding_window=size,
    )


def glm_buffers(dims: Any, size: int) -> int:
    """Rotary frequencies of the rotated part, and each router's bias for choosing."""
    return correction_buffers(dims, size) - rotary_buffers(dims.head_dim) + rotary_buffers(dims.rotary_dim)


FAMILIES = (
    Family(
        id="glm4-moe",
        types={"glm4_moe": "GLM-4.5"},
        dims=dims,
        body=body,
        buffers=glm_buffers,
        gaps=frozenset(("offload without checkpointing",)),
        source="transformers 5.24.0, models/glm4_moe/modeling_glm4_moe.py",
    ),
    Family(
        id="glm4-moe-lite",
        types={"glm4_moe_lite": "GLM-4.7 Flash"},
        dims=lite_dims,
        body=latent_body,
        buffers=correction_buffers,
        gaps=frozenset(("offload without checkpointing",)),
        source="transformers 5.24.0, models/glm4_moe_lite/modeling_glm4_moe_lite.py",
    ),
    Family(
        id="solar-open",
        types={"solar_open": "Solar Open"},
        dims=solar_dims,
        body=solar_body,
        buffers=correction_buffers,
        gaps=frozenset(("offload without checkpointing",)),
        source="transformers 5.24.0, models/solar_open/modeling_solar_open.py",
    ),
    Family(
        id="dots1",
        types={"dots1": "dots.llm1"},
        dims=dots_dims,
        body=dots_body,
        buffers=correction_buffers,
        gaps=frozenset(("offload without checkpointing",)),
        source="transformers 5.24.0, models/dots1/modeling_dots1.py",
    ),
)
