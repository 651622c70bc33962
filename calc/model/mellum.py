"""Mellum 2: Qwen3's mixture of experts with windows, each kind of layer with its own rotation.

Mirrors transformers 5.24.0 models/mellum/modeling_mellum.py.
"""

from __future__ import annotations

from calc.autograd.tensor import Tensor
from calc.model import qwen3
from calc.model.config import Config, ConfigError
from calc.model.decoder import layer_kinds, masks, sizes, window
from calc.model.experts import MixtureDims, chosen
from calc.model.family import Dims, Family, rotary_buffers
from calc.model.modules import Modules
from calc.model.norms import rms_norm
from calc.model.qwen_moe import qwen3_block
from calc.model.rotary import position_ids, rotation


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    c = m.c
    x = inputs_embeds = m.embedding("model.embed_tokens", ids, c.vocab_size, c.hidden_size)
    counted = position_ids(m)
    types = seen(c)
    mask = masks(m, x.dtype, types)
    positions = {kind: rotation(m, x.dtype, c.head_dim, counted) for kind in types}
    for layer, kind in zip(m.layers("model.layers", c.kinds), c.kinds, strict=True):
        sees, _, dense = kind.partition(" ")
        x = layer(qwen3.block if dense else qwen3_block, x, mask[sees], positions[sees])
    x = rms_norm(m, "model.norm", x)
    del inputs_embeds  # transformers holds them until its forward returns
    return x


def seen(c: Dims) -> tuple[str, ...]:
    """What layers see: everything, a window, or some the one and some the other."""
    return tuple(sorted({kind.partition(" ")[0] for kind in c.kinds}))


def dims(config: Config) -> Dims:
    """MellumConfig's fields and defaults."""
    common = sizes(
        config, vocab_size=98304, hidden_size=2304, intermediate_size=7168, num_hidden_layers=28, num_attention_heads=32,
        num_key_value_heads=4, head_dim=128,
    )  # fmt: skip
    depth = common["num_hidden_layers"]
    fed = config.texts("mlp_layer_types", default=None) or ("sparse",) * depth
    if len(fed) != depth or set(fed) - {"sparse", "dense"}:
        raise ConfigError("mlp_layer_types", f"should hold sparse or dense for each of the {depth} layers")
    kinds = layer_kinds(config, depth, lambda i: False)
    bias = config.boolean("attention_bias", default=False)
    count, top = chosen(config, "num_experts", "num_local_experts", default=64, top=8)
    return MixtureDims(
        **{
            **common,
            "kinds": tuple(
                [kind if feed == "sparse" else f"{kind} dense" for kind, feed in zip(kinds, fed, strict=True)]
            ),
        },
        attention_bias=bias,
        output_bias=bias,
        sliding_window=window(config, 1024),
        num_experts=count,
        num_experts_per_tok=top,
        moe_intermediate_size=config.integer("moe_intermediate_size", default=896),
        norm_topk_prob=config.boolean("norm_topk_prob", default=True),
    )


FAMILIES = (
    Family(
        id="mellum",
        types={"mellum": "Mellum"},
        dims=dims,
        body=body,
        buffers=lambda dims, size: len(seen(dims)) * rotary_buffers(dims.head_dim),
        source="transformers 5.24.0, models/mellum/modeling_mellum.py",
    ),
)
