"""FlexOlmo: OLMo 2's attention and norms behind each half, OLMoE's experts. Mirrors transformers 5.24.0 models/flex_olmo/modeling_flex_olmo.py."""

from __future__ import annotations

from calc.autograd.elementwise import add
from calc.autograd.tensor import Tensor
from calc.model.config import Config
from calc.model.decoder import decoder, sizes
from calc.model.experts import MixtureDims, chosen
from calc.model.family import Dims, Family
from calc.model.modules import Modules
from calc.model.norms import wide_rms_norm
from calc.model.olmo2 import self_attention
from calc.model.olmoe import mixture
from calc.model.rotary import Rotation


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    return decoder(m, ids, block, norm=wide_rms_norm, rotary_dtype="fp32")


def block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """One decoder layer."""
    residual = x
    x = self_attention(m, x, mask, positions)
    x = wide_rms_norm(m, "post_attention_layernorm", x)
    x = add(residual, x)
    residual = x
    x = mixture(m, x)
    x = wide_rms_norm(m, "post_feedforward_layernorm", x)
    return add(residual, x)


def dims(config: Config) -> Dims:
    """FlexOlmoConfig's fields and defaults."""
    common = sizes(
        config, vocab_size=100352, hidden_size=4096, intermediate_size=11008, num_hidden_layers=32, num_attention_heads=32,
    )  # fmt: skip
    bias = config.boolean("attention_bias", default=False)
    count, top = chosen(config, "num_experts", "num_local_experts", default=7, top=5)
    return MixtureDims(
        **common,
        attention_bias=bias,
        output_bias=bias,
        num_experts=count,
        num_experts_per_tok=top,
        moe_intermediate_size=common["intermediate_size"],
        norm_topk_prob=config.boolean("norm_topk_prob", default=False),
    )


FAMILIES = (
    Family(
        id="flex_olmo",
        types={"flex_olmo": "FlexOlmo"},
        dims=dims,
        body=body,
        source="transformers 5.24.0, models/flex_olmo/modeling_flex_olmo.py",
    ),
)
