"""Cohere's Command: both halves of a layer side by side, every second component rotated, in fp32; Cohere 2 adds windows, with positions
only there.

Mirrors transformers 5.24.0 models/cohere/modeling_cohere.py and models/cohere2/modeling_cohere2.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from calc.autograd.elementwise import add, cast, scale
from calc.autograd.tensor import Tensor
from calc.model.attention import attention
from calc.model.config import Config
from calc.model.decoder import decoder, layer_kinds, sizes, window
from calc.model.family import Dims, Family, lm_head
from calc.model.llama import mlp, queries_keys_values
from calc.model.llama import self_attention as plain_attention
from calc.model.modules import Modules
from calc.model.norms import mean_norm
from calc.model.rotary import Rotation, rotated

_SIZES: dict[str, Any] = {
    "vocab_size": 256000,
    "hidden_size": 8192,
    "intermediate_size": 22528,
    "num_hidden_layers": 40,
    "num_attention_heads": 64,
    "tie_word_embeddings": True,
}


@dataclass(frozen=True)
class CohereDims(Dims):
    """Sizes, and whether queries and keys are normed."""

    use_qk_norm: bool = False


def body(m: Modules, ids: Tensor) -> Tensor:
    """Cohere: token ids (rows,) to hidden states (rows, hidden_size)."""
    return decoder(m, ids, block, norm=mean_norm)


def windowed_body(m: Modules, ids: Tensor) -> Tensor:
    """Cohere 2: layers without a window have no positions."""
    return decoder(m, ids, block, masked=("full", "sliding"), others={"unrotated": unrotated_block}, norm=mean_norm)


def block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """One decoder layer."""
    return side_by_side(m, x, self_attention, mask, positions)


def unrotated_block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """One decoder layer that leaves the positions aside."""
    return side_by_side(m, x, plain_attention, mask, None)


def side_by_side(
    m: Modules, x: Tensor, attend: Callable[..., Tensor], mask: Tensor | None, positions: Rotation | None
) -> Tensor:
    """One norm, whose result both halves read."""
    residual = x
    x = mean_norm(m, "input_layernorm", x)
    attended = attend(m, x, mask, positions)
    fed = mlp(m, x)
    return add(add(residual, attended), fed)


def self_attention(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """Grouped-query attention; queries and keys may be normed, each head by its own weights."""
    c = m.c
    q, k, v = queries_keys_values(m, x)
    if c.use_qk_norm:
        q = mean_norm(m, "self_attn.q_norm", q, (c.num_attention_heads, c.head_dim))
        k = mean_norm(m, "self_attn.k_norm", k, (c.num_key_value_heads, c.head_dim))
    q, k = rotated_widely(q, k, positions)
    out = attention(m, q, k, v, mask, dropout_p=c.attention_dropout)
    return m.linear("self_attn.o_proj", out, c.hidden_size, c.output_bias)


def rotated_widely(q: Tensor, k: Tensor, positions: Rotation) -> tuple[Tensor, Tensor]:
    """Queries and keys cast to fp32, rotated, and cast back when both are done."""
    dtype = q.dtype
    wide_q, wide_k = cast(q, "fp32"), cast(k, "fp32")
    wide_q, wide_k = rotated(wide_q, positions), rotated(wide_k, positions)
    return cast(wide_q, dtype), cast(wide_k, dtype)


def head(m: Modules, x: Tensor) -> Tensor:
    """Logits times a number."""
    logits = lm_head(m, x)
    return scale(logits)


def dims(config: Config) -> Dims:
    """CohereConfig's fields and defaults."""
    bias = config.boolean("attention_bias", default=False)
    return CohereDims(
        **sizes(config, **_SIZES),
        attention_bias=bias,
        output_bias=bias,
        use_qk_norm=config.boolean("use_qk_norm", default=False),
    )


def windowed_dims(config: Config) -> Dims:
    """Cohere2Config's fields and defaults."""
    bias = config.boolean("attention_bias", default=False)
    common = sizes(config, **_SIZES)
    pattern = config.integer("sliding_window_pattern", default=4)
    size = window(config, 4096)
    kinds = layer_kinds(config, common["num_hidden_layers"], lambda i: (i + 1) % pattern != 0)
    return CohereDims(
        **{
            **common,
            "head_dim": common["hidden_size"] // common["num_attention_heads"],
            "kinds": tuple([k if k == "sliding" and size is not None else f"{k} unrotated" for k in kinds]),
        },
        sliding_window=size,
        attention_bias=bias,
        output_bias=bias,
    )


FAMILIES = (
    Family(
        id="cohere",
        types={"cohere": "Cohere Command"},
        dims=dims,
        body=body,
        head=head,
        source="transformers 5.24.0, models/cohere/modeling_cohere.py",
    ),
    Family(
        id="cohere2",
        types={"cohere2": "Cohere Command 2"},
        dims=windowed_dims,
        body=windowed_body,
        head=head,
        source="transformers 5.24.0, models/cohere2/modeling_cohere2.py",
    ),
)
