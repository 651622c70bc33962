"""Qwen's mixtures of experts: Qwen2-MoE with a gated expert that every token passes, Qwen3-MoE without. Mirrors transformers 5.24.0
models/qwen2_moe/modeling_qwen2_moe.py and models/qwen3_moe/modeling_qwen3_moe.py."""

from __future__ import annotations

from typing import Any

from calc.autograd.elementwise import add, from_output, mul
from calc.autograd.tensor import Tensor
from calc.model import llama, qwen3
from calc.model.config import Config
from calc.model.decoder import decoder, layer_kinds, pre_norm, sizes, window
from calc.model.experts import MixtureDims, chosen, experts, router
from calc.model.family import Dims, Family
from calc.model.modules import Modules
from calc.model.rotary import Rotation


def qwen2_body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size); both masks are made always."""
    return decoder(m, ids, qwen2_block, others={"dense": llama.block}, masked=("full", "sliding"))


def qwen2_block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """One layer with experts."""
    return pre_norm(m, x, llama.self_attention, qwen2_mixture, mask, positions)


def qwen2_mixture(m: Modules, x: Tensor) -> Tensor:
    """The shared expert, the router and its experts, and a gate on the shared one."""
    c = m.c
    shared = llama.mlp(m, x, "mlp.shared_expert", c.shared_intermediate_size)
    routed = router(m, "mlp.gate", x)
    y = experts(m, "mlp.experts", x, routed)
    shared = mul(from_output(m.linear("mlp.shared_expert_gate", x, 1), "sigmoid"), shared)
    return add(y, shared)


def qwen3_body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    return decoder(m, ids, qwen3_block, others={"dense": qwen3.block}, masked=(m.c.kinds[0].partition(" ")[0],))


def qwen3_block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """One layer with experts."""
    return pre_norm(m, x, qwen3.self_attention, qwen3_mixture, mask, positions)


def qwen3_mixture(m: Modules, x: Tensor) -> Tensor:
    """Router and experts."""
    routed = router(m, "mlp.gate", x)
    x = experts(m, "mlp.experts", x, routed)
    return x


def mixture(
    config: Config, common: dict[str, Any], kinds: tuple[str, ...], *, experts: int, top: int, width: int
) -> dict[str, Any]:
    """The sizes of the experts, and which layers have them: each `decoder_sparse_step`-th, but for `mlp_only_layers`."""
    step = config.integer("decoder_sparse_step", default=1)
    dense = set(config.integers("mlp_only_layers", default=None))
    count = config.integer("num_experts", "num_local_experts", default=experts, low=0, high=65536)
    if count:
        count, top = chosen(config, "num_experts", "num_local_experts", default=experts, top=top)
    sparse = [count > 0 and i not in dense and (i + 1) % step == 0 for i in range(len(kinds))]
    return {
        **common,
        "kinds": tuple([kind if s else f"{kind} dense" for kind, s in zip(kinds, sparse, strict=True)]),
        "num_experts": count,
        "num_experts_per_tok": top,
        "moe_intermediate_size": config.integer("moe_intermediate_size", default=width),
        "norm_topk_prob": config.boolean("norm_topk_prob", default=False),
    }


def qwen2_dims(config: Config) -> Dims:
    """Qwen2MoeConfig's fields and defaults."""
    common = sizes(
        config, vocab_size=151936, hidden_size=2048, intermediate_size=5632, num_hidden_layers=24, num_attention_heads=16,
        num_key_value_heads=16,
    )  # fmt: skip
    size = window(config, 4096) if config.boolean("use_sliding_window", default=False) else 0
    last = config.integer("max_window_layers", default=28, low=0)
    kinds = layer_kinds(config, common["num_hidden_layers"], lambda i: size != 0 and i % 2 == 0 and i < last)
    return MixtureDims(
        **mixture(config, common, kinds, experts=60, top=4, width=1408),
        attention_bias=config.boolean("qkv_bias", default=True),
        sliding_window=size,
        shared_intermediate_size=config.integer("shared_expert_intermediate_size", default=5632),
    )


def qwen3_dims(config: Config) -> Dims:
    """Qwen3MoeConfig's fields and defaults."""
    common = sizes(
        config, vocab_size=151936, hidden_size=2048, intermediate_size=6144, num_hidden_layers=24, num_attention_heads=32,
        num_key_value_heads=4,
    )  # fmt: skip
    size = window(config, 4096) if config.boolean("use_sliding_window", default=False) else None
    bias = config.boolean("attention_bias", default=False)
    kinds = ("full" if size is None else "sliding",) * common["num_hidden_layers"]
    return MixtureDims(
        **mixture(config, common, kinds, experts=128, top=8, width=768),
        attention_bias=bias,
        output_bias=bias,
        sliding_window=size,
    )


FAMILIES = (
    Family(
        id="qwen2-moe",
        types={"qwen2_moe": "Qwen2-MoE"},
        dims=qwen2_dims,
        body=qwen2_body,
        source="transformers 5.24.0, models/qwen2_moe/modeling_qwen2_moe.py",
    ),
    Family(
        id="qwen3-moe",
        types={"qwen3_moe": "Qwen3-MoE"},
        dims=qwen3_dims,
        body=qwen3_body,
        source="transformers 5.24.0, models/qwen3_moe/modeling_qwen3_moe.py",
    ),
)
