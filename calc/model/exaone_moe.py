"""EXAONE with experts: EXAONE 4's attention, norms in front, and DeepSeek V3's experts. Mirrors transformers 5.24.0
models/exaone_moe/modeling_exaone_moe.py."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from calc.autograd.tensor import Tensor
from calc.model import exaone4
from calc.model.apertus import self_attention
from calc.model.config import Config, ConfigError
from calc.model.decoder import decoder, pre_norm
from calc.model.deepseek import correction_buffers, groups, mixture
from calc.model.experts import MixtureDims, chosen
from calc.model.family import Dims, Family
from calc.model.llama import mlp
from calc.model.modules import Modules
from calc.model.qwen2 import masked
from calc.model.rotary import Rotation


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    others = {
        "unrotated": partial(block, rotated=False),
        "dense": partial(block, experts=False),
        "unrotated dense": partial(block, rotated=False, experts=False),
    }
    return decoder(m, ids, block, masked=masked(m.c), others=others)


def block(
    m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation, *, rotated: bool = True, experts: bool = True
) -> Tensor:
    """One decoder layer."""
    return pre_norm(m, x, self_attention, mixture if experts else mlp, mask, positions if rotated else None)


def dims(config: Config) -> Dims:
    """ExaoneMoeConfig's fields and defaults."""
    common = exaone4.dims(config)
    depth = common.num_hidden_layers
    first = config.integer("first_k_dense_replace", default=1, low=0, high=10**6)
    fed = config.texts("mlp_layer_types", default=None) or tuple(
        ["dense" if i < first else "sparse" for i in range(depth)]
    )
    if len(fed) != depth or set(fed) - {"sparse", "dense"}:
        raise ConfigError("mlp_layer_types", f"should hold sparse or dense for each of the {depth} layers")
    count, top = chosen(config, "num_experts", "num_local_experts", default=64, top=8)
    width = config.integer("moe_intermediate_size", default=1024)
    kinds = tuple([kind if feed == "sparse" else f"{kind} dense" for kind, feed in zip(common.kinds, fed, strict=True)])
    return MixtureDims(
        **vars(replace(common, kinds=kinds)),
        num_experts=count,
        num_experts_per_tok=top,
        moe_intermediate_size=width,
        shared_intermediate_size=width * config.integer("num_shared_experts", default=1, high=1000),
        norm_topk_prob=config.boolean("norm_topk_prob", default=True),
        **groups(config, count, n_group=1, topk_group=1),
    )


FAMILIES = (
    Family(
        id="exaone_moe",
        types={"exaone_moe": "EXAONE MoE"},
        dims=dims,
        body=body,
        buffers=correction_buffers,
        gaps=frozenset(("offload without checkpointing",)),
        source="transformers 5.24.0, models/exaone_moe/modeling_exaone_moe.py",
    ),
)
