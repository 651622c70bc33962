"""OLMo 2 and OLMo 3: norms behind each half and over all heads of queries and keys; OLMo 3 has windows.

Mirrors transformers 5.24.0 models/olmo2/modeling_olmo2.py and models/olmo3/modeling_olmo3.py.
"""

from __future__ import annotations

from typing import Any

from calc.autograd.elementwise import add
from calc.autograd.tensor import Tensor
from calc.model.attention import attention, split
from calc.model.config import Config
from calc.model.decoder import decoder, layer_kinds, masks, sizes, window
from calc.model.family import Dims, Family, rotary_buffers
from calc.model.llama import mlp
from calc.model.modules import Modules
from calc.model.norms import wide_rms_norm
from calc.model.olmo import rotated_in_fp32
from calc.model.rotary import Rotation, position_ids, rotation


def body(m: Modules, ids: Tensor) -> Tensor:
    """OLMo 2: token ids (rows,) to hidden states (rows, hidden_size)."""
    return decoder(m, ids, block, norm=wide_rms_norm, rotary_dtype="fp32")


def windowed_body(m: Modules, ids: Tensor) -> Tensor:
    """OLMo 3: each kind of layer has its mask and its rotation."""
    c = m.c
    x = inputs_embeds = m.embedding("model.embed_tokens", ids, c.vocab_size, c.hidden_size)
    counted = position_ids(m)
    mask = masks(m, x.dtype, ("full", "sliding"))
    positions = {kind: rotation(m, "fp32", c.head_dim, counted) for kind in sorted(set(c.kinds))}
    for layer, kind in zip(m.layers("model.layers", c.kinds), c.kinds, strict=True):
        x = layer(block, x, mask[kind], positions[kind])
    x = wide_rms_norm(m, "model.norm", x)
    del inputs_embeds  # transformers holds them until its forward returns
    return x


def block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """One decoder layer."""
    residual = x
    x = self_attention(m, x, mask, positions)
    x = wide_rms_norm(m, "post_attention_layernorm", x)
    x = add(residual, x)
    residual = x
    x = mlp(m, x)
    x = wide_rms_norm(m, "post_feedforward_layernorm", x)
    return add(residual, x)


def self_attention(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """Grouped-query attention with normed queries and keys."""
    c = m.c
    q = wide_rms_norm(
        m,
        "self_attn.q_norm",
        m.linear("self_attn.q_proj", x, c.num_attention_heads * c.head_dim, c.attention_bias),
        replaced=False,
    )
    k = wide_rms_norm(
        m,
        "self_attn.k_norm",
        m.linear("self_attn.k_proj", x, c.num_key_value_heads * c.head_dim, c.attention_bias),
        replaced=False,
    )
    v = m.linear("self_attn.v_proj", x, c.num_key_value_heads * c.head_dim, c.attention_bias)
    q = split(m, q, c.num_attention_heads, c.head_dim)
    k = split(m, k, c.num_key_value_heads, c.head_dim)
    v = split(m, v, c.num_key_value_heads, c.head_dim)
    q, k = rotated_in_fp32(q, k, positions)
    out = attention(m, q, k, v, mask, dropout_p=c.attention_dropout)
    return m.linear("self_attn.o_proj", out, c.hidden_size, c.output_bias)


def dims(config: Config) -> Dims:
    """Olmo2Config's fields and defaults."""
    bias = config.boolean("attention_bias", default=False)
    return Dims(**_sizes(config), attention_bias=bias, output_bias=bias)


def windowed_dims(config: Config) -> Dims:
    """Olmo3Config's fields and defaults."""
    common = _sizes(config)
    bias = config.boolean("attention_bias", default=False)
    return Dims(
        **{**common, "kinds": layer_kinds(config, common["num_hidden_layers"], lambda i: (i + 1) % 4 != 0)},
        sliding_window=window(config, 4096),
        attention_bias=bias,
        output_bias=bias,
    )


def _sizes(config: Config) -> dict[str, Any]:
    return sizes(
        config,
        vocab_size=50304,
        hidden_size=4096,
        intermediate_size=11008,
        num_hidden_layers=32,
        num_attention_heads=32,
    )


FAMILIES = (
    Family(
        id="olmo2",
        types={"olmo2": "OLMo 2"},
        dims=dims,
        body=body,
        source="transformers 5.24.0, models/olmo2/modeling_olmo2.py",
    ),
    Family(
        id="olmo3",
        types={"olmo3": "OLMo 3"},
        dims=windowed_dims,
        body=windowed_body,
        buffers=lambda dims, size: len(set(dims.kinds)) * rotary_buffers(dims.head_dim),
        source="transformers 5.24.0, models/olmo3/modeling_olmo3.py",
    ),
)
