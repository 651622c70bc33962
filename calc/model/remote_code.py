"""Dense decoders whose code lies in their own repository (`trust_remote_code`) and is built like Llama's.

Their parameters are exact. That code is never run here, so what it keeps alive is taken to be what transformers 5.24.0's Llama keeps
with the same products; every config of these types says so in a note.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from calc.autograd.elementwise import clone, mul, scale
from calc.autograd.shapes import part
from calc.autograd.shapes import split as pieces
from calc.autograd.tensor import Tensor
from calc.model import llama, qwen2
from calc.model.activations import activated
from calc.model.attention import attention, split
from calc.model.config import Config, ConfigError
from calc.model.decoder import decoder, pre_norm, share, sizes
from calc.model.family import Dims, Family, lm_head, rotary_buffers
from calc.model.modules import Modules
from calc.model.norms import layer_norm
from calc.model.rotary import Rotation, partly_rotated, rotated

NOTE = (
    "the code of this model type lies in its own repository: parameters are exact, activations are modelled as Llama's"
)


@dataclass(frozen=True)
class RemoteDims(Dims):
    """Sizes, and what some of these types have besides."""

    embd_pdrop: float = 0.0
    mtp_layers: int = 0
    """Layers that predict further tokens; training's forward pass leaves them out."""


# -- attention -----------------------------------------------------------------------------------------------------------


def attended(m: Modules, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """Rotation and attention, from (batch, heads, length, head_dim) to (rows, width)."""
    rotated_q, rotated_k = rotated(q, positions), rotated(k, positions)
    q, k = rotated_q, rotated_k
    del rotated_q, rotated_k
    return attention(m, q, k, v, mask, dropout_p=m.c.attention_dropout)


def packed(m: Modules, name: str, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values side by side in one product, each as (batch, heads, length, head_dim)."""
    c = m.c
    wide, narrow = c.num_attention_heads * c.head_dim, c.num_key_value_heads * c.head_dim
    q, k, v = pieces(m.linear(name, x, wide + 2 * narrow, c.attention_bias), (wide, narrow, narrow))
    return (
        split(m, q, c.num_attention_heads, c.head_dim),
        split(m, k, c.num_key_value_heads, c.head_dim),
        split(m, v, c.num_key_value_heads, c.head_dim),
    )


# -- InternLM 2 ----------------------------------------------------------------------------------------------------------


def internlm2_body(m: Modules, ids: Tensor) -> Tensor:
    """InternLM 2: token ids (rows,) to hidden states (rows, hidden_size)."""
    return decoder(m, ids, internlm2_block, names=("model.tok_embeddings", "model.layers", "model.norm"))


def internlm2_block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """InternLM 2's layer."""
    return pre_norm(m, x, grouped_attention, internlm2_mlp, mask, positions, names=("attention_norm", "ffn_norm"))


def grouped_attention(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """One product holds each group's queries, then its key and its value: the queries are brought together in a copy."""
    c = m.c
    wide, narrow = c.num_attention_heads * c.head_dim, c.num_key_value_heads * c.head_dim
    qkv = m.linear("attention.wqkv", x, wide + 2 * narrow, c.attention_bias)
    q = split(m, clone(part(qkv, (m.rows, wide))), c.num_attention_heads, c.head_dim)
    k = split(m, part(qkv, (m.rows, narrow)), c.num_key_value_heads, c.head_dim)
    v = split(m, part(qkv, (m.rows, narrow)), c.num_key_value_heads, c.head_dim)
    return m.linear("attention.wo", attended(m, q, k, v, mask, positions), c.hidden_size, c.output_bias)


def internlm2_mlp(m: Modules, x: Tensor) -> Tensor:
    """Gated feed-forward under other names."""
    c = m.c
    gate = activated(m, m.linear("feed_forward.w1", x, c.intermediate_size), c.hidden_act)
    product = mul(gate, m.linear("feed_forward.w3", x, c.intermediate_size))
    return m.linear("feed_forward.w2", product, c.hidden_size)


def internlm2_head(m: Modules, x: Tensor) -> Tensor:
    """Logits; the head's matrix is called output."""
    c = m.c
    return m.product(x, m.tied()) if c.tie_word_embeddings else m.linear("output", x, c.vocab_size, role="head")


# -- Baichuan and Orion --------------------------------------------------------------------------------------------------


def baichuan_body(m: Modules, ids: Tensor) -> Tensor:
    """Baichuan: token ids (rows,) to hidden states (rows, hidden_size)."""
    return decoder(m, ids, baichuan_block)


def baichuan_block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """Baichuan's layer."""
    return pre_norm(m, x, baichuan_attention, llama.mlp, mask, positions)


def baichuan_attention(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """Attention out of one product."""
    return m.linear(
        "self_attn.o_proj", attended(m, *packed(m, "self_attn.W_pack", x), mask, positions), m.c.hidden_size
    )


def orion_body(m: Modules, ids: Tensor) -> Tensor:
    """Orion: token ids (rows,) to hidden states (rows, hidden_size)."""
    return decoder(m, ids, orion_block, norm=layer_norm)


def orion_block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """Llama's layer with layer norms."""
    return pre_norm(m, x, llama.self_attention, llama.mlp, mask, positions, norm=layer_norm)


# -- Qwen 1 --------------------------------------------------------------------------------------------------------------


def qwen_body(m: Modules, ids: Tensor) -> Tensor:
    """Qwen 1: token ids (rows,) to hidden states (rows, hidden_size)."""
    return decoder(
        m, ids, qwen_block, dropped=m.c.embd_pdrop, names=("transformer.wte", "transformer.h", "transformer.ln_f")
    )


def qwen_block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """Qwen 1's layer."""
    return pre_norm(m, x, qwen_attention, qwen_mlp, mask, positions, names=("ln_1", "ln_2"))


def qwen_attention(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """Attention out of one product with a bias."""
    return m.linear("attn.c_proj", attended(m, *packed(m, "attn.c_attn", x), mask, positions), m.c.hidden_size)


def qwen_mlp(m: Modules, x: Tensor) -> Tensor:
    """Gated feed-forward whose gate is the second product."""
    c = m.c
    up = m.linear("mlp.w1", x, c.intermediate_size)
    product = mul(up, activated(m, m.linear("mlp.w2", x, c.intermediate_size), c.hidden_act))
    return m.linear("mlp.c_proj", product, c.hidden_size)


# -- ChatGLM 2 and 3, GLM-4 ----------------------------------------------------------------------------------------------


def chatglm_body(m: Modules, ids: Tensor) -> Tensor:
    """ChatGLM: token ids (rows,) to hidden states (rows, hidden_size)."""
    names = "transformer.embedding.word_embeddings", "transformer.encoder.layers", "transformer.encoder.final_layernorm"
    return decoder(m, ids, chatglm_block, rotary_dim=m.c.head_dim // 2, names=names)


def chatglm_block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """ChatGLM's layer."""
    return pre_norm(m, x, chatglm_attention, chatglm_mlp, mask, positions)


def chatglm_attention(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """Grouped-query attention out of one product, half of each head rotated."""
    c = m.c
    q, k, v = packed(m, "self_attention.query_key_value", x)
    q, k = partly_rotated(q, positions), partly_rotated(k, positions)
    out = attention(m, q, k, v, mask, dropout_p=c.attention_dropout)
    return m.linear("self_attention.dense", out, c.hidden_size, c.output_bias)


def chatglm_mlp(m: Modules, x: Tensor) -> Tensor:
    """Gated feed-forward with gate and up out of one product."""
    c = m.c
    gate, up = pieces(m.linear("mlp.dense_h_to_4h", x, 2 * c.intermediate_size, c.mlp_bias), (c.intermediate_size,) * 2)
    return m.linear("mlp.dense_4h_to_h", mul(activated(m, gate, c.hidden_act), up), c.hidden_size, c.mlp_bias)


def chatglm_head(m: Modules, x: Tensor) -> Tensor:
    """Logits; the head's matrix is called transformer.output_layer."""
    c = m.c
    return (
        m.product(x, m.tied())
        if c.tie_word_embeddings
        else m.linear("transformer.output_layer", x, c.vocab_size, role="head")
    )


# -- MiniCPM and MiMo ----------------------------------------------------------------------------------------------------


def minicpm_body(m: Modules, ids: Tensor) -> Tensor:
    """MiniCPM: token ids (rows,) to hidden states (rows, hidden_size)."""
    return decoder(m, ids, minicpm_block, embed=scale)


def minicpm_block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """Llama's layer, with a factor on what joins the stream."""
    return pre_norm(m, x, llama.self_attention, llama.mlp, mask, positions, joined=lambda m, x: scale(x))


def minicpm_head(m: Modules, x: Tensor) -> Tensor:
    """Logits of hidden states divided by a number."""
    return lm_head(m, scale(x))


def mimo_body(m: Modules, ids: Tensor) -> Tensor:
    """MiMo: Qwen2, and layers for further tokens, which have weights and do not run."""
    c = m.c
    wide, narrow, h, i = (
        c.num_attention_heads * c.head_dim,
        c.num_key_value_heads * c.head_dim,
        c.hidden_size,
        c.intermediate_size,
    )
    shapes: list[tuple[str, tuple[int, ...], Any]] = [("input_proj.weight", (h, 2 * h), "linear")]
    shapes += [
        (f"{name}_layernorm.weight", (h,), "norm") for name in ("input", "post_attention", "token", "hidden", "final")
    ]
    for name, out in (("q", wide), ("k", narrow), ("v", narrow)):
        shapes += [
            (f"self_attn.{name}_proj.weight", (out, h), "linear"),
            (f"self_attn.{name}_proj.bias", (out,), "bias"),
        ]
    shapes += [("self_attn.o_proj.weight", (h, wide), "linear"), ("mlp.down_proj.weight", (h, i), "linear")]
    shapes += [(f"mlp.{name}_proj.weight", (i, h), "linear") for name in ("gate", "up")]
    for index in range(c.mtp_layers):
        for name, shape, role in shapes:  # no gradient ever reaches them, so they count as frozen
            packed = m.recipe.quantized.dtype if m.recipe.quantized is not None and role == "linear" else None
            m.weight(f"model.mtp_layers.{index}.{name}", shape, role, dtype=packed, trainable=False)
    return qwen2.body(m, ids)


# -- config.json ---------------------------------------------------------------------------------------------------------


def _dims(read: Callable[[Config], Dims]) -> Callable[[Config], Dims]:
    def noted(config: Config) -> Dims:
        config.notes.append(NOTE)
        return read(config)

    return noted


def internlm2_dims(config: Config) -> Dims:
    """InternLM2Config's fields and defaults."""
    bias = config.boolean("bias", default=False)
    common = sizes(
        config,
        vocab_size=103168,
        hidden_size=4096,
        intermediate_size=11008,
        num_hidden_layers=32,
        num_attention_heads=32,
    )
    return Dims(**common, attention_bias=bias, output_bias=bias)


def internlm_dims(config: Config) -> Dims:
    """InternLMConfig's fields and defaults."""
    bias = config.boolean("bias", default=True)
    common = sizes(
        config,
        vocab_size=103168,
        hidden_size=4096,
        intermediate_size=11008,
        num_hidden_layers=32,
        num_attention_heads=32,
    )
    return Dims(**common, attention_bias=bias, output_bias=bias)


def baichuan_dims(config: Config) -> Dims:
    """BaiChuanConfig's fields and defaults."""
    return Dims(
        **sizes(
            config,
            vocab_size=64000,
            hidden_size=4096,
            intermediate_size=11008,
            num_hidden_layers=32,
            num_attention_heads=32,
        )
    )


def orion_dims(config: Config) -> Dims:
    """OrionConfig's fields and defaults."""
    return Dims(
        **sizes(
            config,
            vocab_size=84608,
            hidden_size=4096,
            intermediate_size=15360,
            num_hidden_layers=40,
            num_attention_heads=40,
        )
    )


def qwen_dims(config: Config) -> Dims:
    """QWenConfig's fields and defaults; its intermediate_size is that of both halves together."""
    if config.given("no_bias") is False:
        raise ConfigError("no_bias", "should be true: the other is not modelled")
    common = sizes(
        config,
        vocab_size=151936,
        hidden_size=4096,
        intermediate_size=22016,
        num_hidden_layers=32,
        num_attention_heads=32,
        head_dim=config.integer("kv_channels", default=128, high=65536),
        names={"attention_dropout": ("attn_dropout_prob",)},
    )
    dims = RemoteDims(**common, attention_bias=True, embd_pdrop=share(config, "emb_dropout_prob"))
    return replace(dims, intermediate_size=dims.intermediate_size // 2)


def chatglm_dims(config: Config) -> Dims:
    """ChatGLMConfig's fields and defaults, from ChatGLM 2 on."""
    if config.given("position_encoding_2d") or config.given("inner_hidden_size") is not None:
        raise ConfigError("position_encoding_2d", "should not be there: the first ChatGLM is not modelled")
    for name in ("rmsnorm", "post_layer_norm"):
        if not config.boolean(name, default=True):
            raise ConfigError(name, "should be true: the other is not modelled")
    if config.boolean("apply_residual_connection_post_layernorm", default=False):
        raise ConfigError("apply_residual_connection_post_layernorm", "should be false: the other is not modelled")
    bias = config.boolean("add_bias_linear", default=False)
    heads = config.integer("num_attention_heads", default=32, high=4096)
    groups = (
        config.integer("multi_query_group_num", default=1, high=4096)
        if config.boolean("multi_query_attention", default=False)
        else heads
    )
    common = sizes(
        config,
        vocab_size=config.integer("padded_vocab_size", default=65024),
        hidden_size=4096,
        intermediate_size=13696,
        num_hidden_layers=28,
        num_attention_heads=heads,
        num_key_value_heads=groups,
        head_dim=config.integer("kv_channels", default=128, high=65536),
        names={"num_hidden_layers": ("num_layers", "num_hidden_layers"), "intermediate_size": ("ffn_hidden_size",)},
    )
    qkv_bias = bias or config.boolean("add_qkv_bias", default=False)
    return Dims(**common, attention_bias=qkv_bias, output_bias=bias, mlp_bias=bias)


def minicpm_dims(config: Config) -> Dims:
    """MiniCPMConfig's fields and defaults."""
    if config.given("num_experts"):
        raise ConfigError("num_experts", "should not be there: the mixture of MiniCPM is not modelled")
    bias = config.boolean("attention_bias", default=False)
    common = sizes(
        config,
        vocab_size=32000,
        hidden_size=4096,
        intermediate_size=11008,
        num_hidden_layers=32,
        num_attention_heads=32,
        tie_word_embeddings=True,
    )
    return Dims(**common, attention_bias=bias, output_bias=bias)


def mimo_dims(config: Config) -> Dims:
    """MiMoConfig's fields and defaults: those of Qwen2, and how many layers predict further tokens."""
    layers = config.integer("num_nextn_predict_layers", default=0, low=0, high=100)
    return RemoteDims(**vars(qwen2.dims(config)), mtp_layers=layers)


def _family(
    model_type: str, name: str, dims: Callable[[Config], Dims], body: Callable[[Modules, Tensor], Tensor], **others: Any
) -> Family:
    source = "parameters: the code in the model's own repository; activations: transformers 5.24.0, models/llama, not measured"
    gaps = frozenset(("activations in host memory",))
    return Family(
        id=model_type, types={model_type: name}, dims=_dims(dims), body=body, source=source, gaps=gaps, **others
    )


FAMILIES = (
    _family("internlm2", "InternLM 2", internlm2_dims, internlm2_body, head=internlm2_head),
    _family("internlm", "InternLM", internlm_dims, llama.body),
    _family("baichuan", "Baichuan", baichuan_dims, baichuan_body),
    _family("orion", "Orion", orion_dims, orion_body),
    _family("qwen", "Qwen 1", qwen_dims, qwen_body),
    _family(
        "chatglm",
        "ChatGLM",
        chatglm_dims,
        chatglm_body,
        head=chatglm_head,
        buffers=lambda dims, size: rotary_buffers(dims.head_dim // 2),
    ),
    _family("minicpm", "MiniCPM", minicpm_dims, minicpm_body, head=minicpm_head),
    _family("mimo", "MiMo", mimo_dims, mimo_body),
)
