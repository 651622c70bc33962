"""Llama and everything that is built like it. Mirrors transformers 5.24.0 models/llama/modeling_llama.py."""

from __future__ import annotations

from functools import partial
from typing import Any

from calc.autograd.tensor import Tensor
from calc.model.activations import gated
from calc.model.attention import attention, split
from calc.model.config import Config
from calc.model.decoder import decoder, pre_norm, sizes
from calc.model.family import Dims, Family
from calc.model.modules import Modules
from calc.model.rotary import Rotation, rotated


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    return decoder(m, ids, block)


def block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """One decoder layer."""
    return pre_norm(m, x, self_attention, mlp, mask, positions)


def self_attention(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation | None) -> Tensor:
    """Grouped-query attention with rotary positions, or none."""
    c = m.c
    q, k, v = queries_keys_values(m, x)
    if positions is not None:
        rotated_q, rotated_k = rotated(q, positions), rotated(k, positions)
        q, k = rotated_q, rotated_k
        del rotated_q, rotated_k
    out = attention(m, q, k, v, mask, dropout_p=c.attention_dropout, softcap=c.attn_logit_softcapping)
    return m.linear("self_attn.o_proj", out, c.hidden_size, c.output_bias)


def queries_keys_values(m: Modules, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Three products, each as (batch, heads, length, head_dim)."""
    c = m.c
    heads, few, d, bias = c.num_attention_heads, c.num_key_value_heads, c.head_dim, c.attention_bias
    q = split(m, m.linear("self_attn.q_proj", x, heads * d, bias), heads, d)
    k = split(m, m.linear("self_attn.k_proj", x, few * d, bias), few, d)
    v = split(m, m.linear("self_attn.v_proj", x, few * d, bias), few, d)
    return q, k, v


def mlp(m: Modules, x: Tensor, name: str = "mlp", width: int | None = None) -> Tensor:
    """Gated feed-forward, as wide as the config's unless `width` says otherwise."""
    c = m.c
    width = c.intermediate_size if width is None else width
    product = gated(
        m,
        m.linear(f"{name}.gate_proj", x, width, c.mlp_bias),
        lambda: m.linear(f"{name}.up_proj", x, width, c.mlp_bias),
        c.hidden_act,
    )
    return m.linear(f"{name}.down_proj", product, c.hidden_size, c.mlp_bias)


_CLASSES: tuple[tuple[str, str, dict[str, Any]], ...] = (
    (
        "llama",
        "Llama",
        {
            "vocab_size": 32000,
            "hidden_size": 4096,
            "intermediate_size": 11008,
            "num_hidden_layers": 32,
            "num_attention_heads": 32,
        },
    ),
    (
        "exaone",
        "EXAONE 3",
        {
            "vocab_size": 102400,
            "hidden_size": 4096,
            "intermediate_size": 14336,
            "num_hidden_layers": 32,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "names": {
                "num_hidden_layers": ("num_hidden_layers", "num_layers"),
                "hidden_act": ("hidden_act", "activation_function"),
            },
        },
    ),
    (
        "internlm3",
        "InternLM3",
        {
            "vocab_size": 128512,
            "hidden_size": 4096,
            "intermediate_size": 10240,
            "num_hidden_layers": 48,
            "num_attention_heads": 32,
            "num_key_value_heads": 2,
            "head_dim": 128,
        },
    ),
    (
        "iquestcoder",
        "IQuest-Coder",
        {
            "vocab_size": 76800,
            "hidden_size": 5120,
            "intermediate_size": 27648,
            "num_hidden_layers": 80,
            "num_attention_heads": 40,
            "num_key_value_heads": 8,
            "head_dim": 128,
        },
    ),
)
"""Config classes that load as LlamaForCausalLM: model type, the name that people know, and the class's defaults."""


def dims(config: Config, defaults: dict[str, Any] = _CLASSES[0][2]) -> Dims:
    """Fields and defaults of LlamaConfig, or of a class like it."""
    bias = config.boolean("attention_bias", "qkv_bias", default=False)
    return Dims(
        **sizes(config, **defaults),
        attention_bias=bias,
        output_bias=bias,
        mlp_bias=config.boolean("mlp_bias", "bias", default=False),
    )


FAMILIES = tuple(
    Family(
        id=model_type,
        types={model_type: name},
        dims=partial(dims, defaults=defaults),
        body=body,
        source="transformers 5.24.0, models/llama/modeling_llama.py",
    )
    for model_type, name, defaults in _CLASSES
)
