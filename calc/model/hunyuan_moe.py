"""Hunyuan's mixture of experts: norms behind the rotation, a shared feed-forward beside the experts. Mirrors transformers 5.24.0
models/hunyuan_v1_moe/modeling_hunyuan_v1_moe.py."""

from __future__ import annotations

from calc.autograd.elementwise import add, cast, softmax
from calc.autograd.routing import normalized_in_place, topk
from calc.autograd.tensor import Tensor
from calc.model.attention import attention, split
from calc.model.config import Config, ConfigError
from calc.model.decoder import decoder, pre_norm, sizes
from calc.model.experts import MixtureDims, experts
from calc.model.family import Dims, Family
from calc.model.llama import mlp
from calc.model.modules import Modules
from calc.model.norms import rms_norm
from calc.model.rotary import Rotation, rotated


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    return decoder(m, ids, block)


def block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """One decoder layer."""
    return pre_norm(m, x, self_attention, mixture, mask, positions)


def self_attention(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """Grouped-query attention; queries and keys are normed after they are rotated."""
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
    rotated_q, rotated_k = rotated(q, positions), rotated(k, positions)
    q, k = rotated_q, rotated_k
    del rotated_q, rotated_k
    q = rms_norm(m, "self_attn.query_layernorm", q)
    k = rms_norm(m, "self_attn.key_layernorm", k)
    out = attention(m, q, k, v, mask, dropout_p=c.attention_dropout)
    return m.linear("self_attn.o_proj", out, c.hidden_size, c.output_bias)


def mixture(m: Modules, x: Tensor) -> Tensor:
    """The shared feed-forward, then a router in fp32 and its experts."""
    shared = mlp(m, x, "mlp.shared_mlp")
    weight = m.weight("mlp.gate.wg.weight", (m.c.num_experts, x.shape[-1]), "router", dtype="fp32")
    logits = m.product(cast(x, "fp32"), weight)
    values, places = topk(softmax(cast(logits, "fp32")), m.c.num_experts_per_tok)
    values = normalized_in_place(values)
    y = experts(m, "mlp.experts", x, (logits, cast(values, logits.dtype), places))
    return add(y, shared)


def dims(config: Config) -> Dims:
    """HunYuanMoEV1Config's fields and defaults."""
    common = sizes(
        config,
        vocab_size=290943,
        hidden_size=4096,
        intermediate_size=11008,
        num_hidden_layers=32,
        num_attention_heads=32,
    )
    bias = config.boolean("attention_bias", default=False)
    count = alike(config, "num_experts", default=1)
    top = alike(config, "moe_topk", "num_experts_per_tok", default=1)
    if top > count:
        raise ConfigError("moe_topk", f"should not exceed num_experts ({count}), not {top}")
    return MixtureDims(
        **common,
        attention_bias=bias,
        output_bias=bias,
        num_experts=count,
        num_experts_per_tok=top,
        moe_intermediate_size=common["intermediate_size"],
    )


def alike(config: Config, *names: str, default: int) -> int:
    """A whole number, or a list with one for each layer, all alike."""
    if isinstance(config.given(names[0]), list):
        listed = set(config.integers(names[0]))
        if len(listed) != 1:
            raise ConfigError(names[0], "should be the same for every layer")
        return listed.pop()
    return config.integer(*names, default=default, high=65536)


FAMILIES = (
    Family(
        id="hunyuan-moe",
        types={"hunyuan_v1_moe": "Hunyuan MoE"},
        dims=dims,
        body=body,
        gaps=frozenset(("offload without checkpointing",)),
        source="transformers 5.24.0, models/hunyuan_v1_moe/modeling_hunyuan_v1_moe.py",
    ),
)
