"""Mixtral: Llama's attention, and in place of the feed-forward a mixture of experts. Mirrors transformers 5.24.0
models/mixtral/modeling_mixtral.py."""

from __future__ import annotations

from calc.autograd.tensor import Tensor
from calc.model.config import Config
from calc.model.decoder import decoder, pre_norm, sizes, window
from calc.model.experts import MixtureDims, chosen, experts, router
from calc.model.family import Dims, Family
from calc.model.llama import self_attention
from calc.model.modules import Modules
from calc.model.rotary import Rotation

SIZES = {
    "vocab_size": 32000,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
}


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    return decoder(m, ids, block, masked=m.c.kinds[:1])


def block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """One decoder layer."""
    return pre_norm(m, x, self_attention, mixture, mask, positions)


def mixture(m: Modules, x: Tensor) -> Tensor:
    """Router and experts; the weights stay in fp32."""
    routed = router(m, "mlp.gate", x, lowered=False)
    x = experts(m, "mlp.experts", x, routed)
    return x


def dims(config: Config) -> Dims:
    """MixtralConfig's fields and defaults."""
    common = sizes(config, **SIZES)
    size = window(config, None)
    count, top = chosen(config, "num_local_experts", default=8, top=2)
    return MixtureDims(
        **{**common, "kinds": ("full" if size is None else "sliding",) * common["num_hidden_layers"]},
        sliding_window=size,
        num_experts=count,
        num_experts_per_tok=top,
        moe_intermediate_size=common["intermediate_size"],
    )


FAMILIES = (
    Family(
        id="mixtral",
        types={"mixtral": "Mixtral"},
        dims=dims,
        body=body,
        source="transformers 5.24.0, models/mixtral/modeling_mixtral.py",
    ),
)
