"""DeepSeek V2, V3, R1 and what is built like them (Kimi K2): latent attention, many narrow experts and shared ones, a router in fp32.

Mirrors transformers 5.24.0 models/deepseek_v2/modeling_deepseek_v2.py and models/deepseek_v3/modeling_deepseek_v3.py.
"""

from __future__ import annotations

from typing import Any

from calc.autograd.elementwise import add, add_constant, cast, from_output, scale, softmax
from calc.autograd.routing import divided_in_place, gather, masked_fill, maximum, topk, total
from calc.autograd.shapes import reshape
from calc.autograd.tensor import Tensor, empty
from calc.model.config import Config, ConfigError
from calc.model.decoder import decoder, pre_norm, sizes
from calc.model.experts import Routed, chosen, experts, required, routed_logits
from calc.model.family import Dims, Family, rotary_buffers
from calc.model.latent import (
    LatentDims,
    complex_attention,
    complex_rotation,
    halved_attention,
    interleaved_attention,
    latent_sizes,
)
from calc.model.llama import mlp
from calc.model.modules import Modules
from calc.model.rotary import Rotation


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size), with cos and sin."""
    return decoder(m, ids, block, others={"dense": dense_block})


def complex_body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size), with complex rotations."""
    return decoder(m, ids, block_v2, others={"dense": dense_block_v2}, angles=complex_rotation)


def block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """A layer of V3 with experts."""
    return pre_norm(m, x, _attend(m.c), mixture, mask, positions)


def dense_block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """A layer of V3 without experts."""
    return pre_norm(m, x, _attend(m.c), mlp, mask, positions)


def block_v2(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """A layer of V2 with experts."""
    return pre_norm(m, x, complex_attention, mixture_v2, mask, positions)


def dense_block_v2(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """A layer of V2 without experts."""
    return pre_norm(m, x, complex_attention, mlp, mask, positions)


def _attend(c: LatentDims) -> Any:
    return interleaved_attention if c.rope_interleave else halved_attention


def mixture(m: Modules, x: Tensor) -> Tensor:
    """Router and experts, then the shared experts, which see the same input."""
    residuals = x
    routed = sigmoid_router(m, "mlp.gate", x)
    x = experts(m, "mlp.experts", x, routed)
    return add(x, mlp(m, residuals, "mlp.shared_experts", m.c.shared_intermediate_size))


def sigmoid_router(m: Modules, name: str, x: Tensor) -> Routed:
    """Sigmoid scores in fp32; a bias that is no parameter, and the best groups of experts, decide which are chosen."""
    c = m.c
    count, groups, rows = c.num_experts, c.n_group, x.shape[0]
    logits = fp32_logits(m, name, x)
    scores = from_output(logits, "sigmoid")
    choice = add_constant(scores, "fp32")
    group_scores = total(topk(reshape(choice, (rows, groups, count // groups)), 2)[0])
    best, group_places = empty((rows, c.topk_group), "fp32", "topk"), empty((rows, c.topk_group), "i64", "topk")
    del best
    group_mask = empty((rows, groups), "fp32", "zeros_like")
    score_mask = empty((rows, count), "fp32", "clone")
    chosen_groups = empty((rows, count), "bool", "_to_copy")
    ignored = empty((rows, count), "bool", "bitwise_not")
    del chosen_groups
    choice = masked_fill(choice, ignored)
    del ignored
    values, places = topk(choice, c.num_experts_per_tok)
    del values
    weights = gather(scores, (rows, c.num_experts_per_tok), places)
    denominator = None
    if c.norm_topk_prob:
        denominator = add_constant(total(weights, "fp32"))  # as autocast sums; without it all is fp32 anyway
        weights = divided_in_place(weights, denominator)
    weights = scale(weights)
    del group_scores, group_places, group_mask, score_mask, denominator
    return logits, weights, places


def fp32_logits(m: Modules, name: str, x: Tensor) -> Tensor:
    """The router's logits; its weights stay in fp32 whatever the model's dtype."""
    return routed_logits(m, name, cast(x, "fp32"), dtype="fp32")


def mixture_v2(m: Modules, x: Tensor) -> Tensor:
    """Router and experts, then the shared experts, which see the same input."""
    residuals = x
    routed = softmax_router(m, "mlp.gate", x)
    x = experts(m, "mlp.experts", x, routed)
    return add(x, mlp(m, residuals, "mlp.shared_experts", m.c.shared_intermediate_size))


def softmax_router(m: Modules, name: str, x: Tensor) -> Routed:
    """Softmax scores in fp32; with `n_group`, only the best groups of experts can be chosen."""
    c = m.c
    rows, count, groups = x.shape[0], c.num_experts, c.n_group
    logits = fp32_logits(m, name, x)
    scores = softmax(cast(logits, "fp32"))
    if groups:
        group_scores = maximum(reshape(scores, (rows, groups, count // groups)))
        best, group_places = empty((rows, c.topk_group), "fp32", "topk"), empty((rows, c.topk_group), "i64", "topk")
        del best
        group_mask = empty((rows, groups), "fp32", "zeros_like")
        score_mask = empty((rows, count), "fp32", "clone")
        chosen_groups = empty((rows, count), "bool", "_to_copy")
        ignored = empty((rows, count), "bool", "bitwise_not")
        del chosen_groups
        scores = masked_fill(scores, ignored)
        del ignored
    values, places = topk(scores, c.num_experts_per_tok)
    weights = scale(values)
    if groups:
        del group_scores, group_places, group_mask, score_mask
    return logits, weights, places


def mixture_sizes(
    config: Config,
    common: dict[str, Any],
    *,
    experts: int | None,
    top: int | None,
    width: int,
    shared: int | None,
    dense: int,
) -> dict[str, Any]:
    """The sizes of the experts, and which layers have them: all after the first `first_k_dense_replace`."""
    layers = common["num_hidden_layers"]
    count, top = chosen(config, "n_routed_experts", "num_local_experts", "num_experts", default=experts, top=top)
    first = config.integer("first_k_dense_replace", default=dense, low=0, high=10**6)
    width = config.integer("moe_intermediate_size", default=width)
    return {
        **common,
        "kinds": tuple(["full dense" if i < first else "full" for i in range(layers)]),
        "num_experts": count,
        "num_experts_per_tok": top,
        "moe_intermediate_size": width,
        "shared_intermediate_size": width * required(config, "n_shared_experts", default=shared, high=1000),
    }


def groups(config: Config, experts: int, *, n_group: int, topk_group: int) -> dict[str, Any]:
    """In how many groups the experts are, and how many of them a token may use."""
    count = config.integer("n_group", default=n_group, high=4096)
    if experts // count * count != experts:
        raise ConfigError("n_group", f"should divide the number of experts ({experts}), not {count}")
    return {"n_group": count, "topk_group": config.integer("topk_group", default=topk_group, high=count)}


def dims_v3(config: Config) -> Dims:
    """DeepseekV3Config's fields and defaults."""
    common = sizes(
        config, vocab_size=129280, hidden_size=7168, intermediate_size=18432, num_hidden_layers=61, num_attention_heads=128,
        num_key_value_heads=128, head_dim=64,
    )  # fmt: skip
    mixed = mixture_sizes(config, common, experts=256, top=8, width=2048, shared=1, dense=3)
    return LatentDims(
        **{**mixed, **latent_sizes(config, q_lora_rank=1536)},
        **groups(config, mixed["num_experts"], n_group=8, topk_group=4),
        norm_topk_prob=config.boolean("norm_topk_prob", default=True),
        rope_interleave=config.boolean("rope_interleave", default=True),
        latent_bias=config.boolean("attention_bias", default=False),
    )


def dims_v2(config: Config) -> Dims:
    """DeepseekV2Config's fields and defaults."""
    common = sizes(
        config, vocab_size=102400, hidden_size=4096, intermediate_size=11008, num_hidden_layers=32, num_attention_heads=32, head_dim=64,
    )  # fmt: skip
    mixed = mixture_sizes(config, common, experts=64, top=None, width=1407, shared=2, dense=0)
    method = config.text("topk_method", default="greedy")
    if method not in ("greedy", "group_limited_greedy"):
        raise ConfigError("topk_method", f"should be greedy or group_limited_greedy, not {method[:40]!r}")
    grouped = groups(config, mixed["num_experts"], n_group=1, topk_group=1) if method != "greedy" else {"n_group": 0}
    return LatentDims(
        **{**mixed, **latent_sizes(config, q_lora_rank=1536)},
        **grouped,
        latent_bias=config.boolean("attention_bias", default=False),
        mlp_bias=config.boolean("mlp_bias", default=False),
    )


def correction_buffers(dims: Any, size: int) -> int:
    """Rotary frequencies, and each router's bias for choosing, which is a buffer in fp32."""
    routers: int = 4 * dims.num_experts * sum(not kind.endswith("dense") for kind in dims.kinds)
    return rotary_buffers(dims.head_dim) + routers


FAMILIES = (
    Family(
        id="deepseek-v3",
        types={"deepseek_v3": "DeepSeek V3", "kimi_k2": "Kimi K2"},
        dims=dims_v3,
        body=body,
        buffers=correction_buffers,
        gaps=frozenset(("offload without checkpointing",)),
        source="transformers 5.24.0, models/deepseek_v3/modeling_deepseek_v3.py",
    ),
    Family(
        id="deepseek-v2",
        types={"deepseek_v2": "DeepSeek V2"},
        dims=dims_v2,
        body=complex_body,
        source="transformers 5.24.0, models/deepseek_v2/modeling_deepseek_v2.py",
    ),
)
