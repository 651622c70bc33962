"""Mixtral: Llama's attention, and in place of the feed-forward a mixture of experts. Mirrors transformers 5.24.0
models/mixtral/modeling_mixtral.py."""

from __future__ import annotations

from dataclasses import dataclass

from calc.autograd.elementwise import add
from calc.autograd.tensor import Tensor
from calc.model.config import Config
from calc.model.decoder import decoder, sizes, window
from calc.model.experts import experts, router
from calc.model.family import Dims, Family
from calc.model.llama import self_attention
from calc.model.modules import Modules
from calc.model.norms import rms_norm
from calc.model.rotary import Rotation


@dataclass(frozen=True)
class MixtureDims(Dims):
    """Sizes of a mixture of experts."""

    num_experts: int = 0
    num_experts_per_tok: int = 0
    moe_intermediate_size: int = 0
    """Width of one expert."""
    shared_intermediate_size: int = 0
    """Width of the expert that every token passes; 0 for none."""
    norm_topk_prob: bool = True


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    return decoder(m, ids, block, masked=("full",))


def block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """One decoder layer."""
    residual = x
    x = rms_norm(m, "input_layernorm", x)
    x = self_attention(m, x, mask, positions)
    x = add(residual, x)
    residual = x
    x = rms_norm(m, "post_attention_layernorm", x)
    x = mixture(m, x)
    return add(residual, x)


def mixture(m: Modules, x: Tensor) -> Tensor:
    """Router and experts."""
    logits, weights, places = router(m, "mlp.gate", x, normalize=True, lowered=False)
    x = experts(m, "mlp.experts", x, weights, places, m.c.moe_intermediate_size)
    del logits  # a name in the module's frame holds them meanwhile
    return x


def dims(config: Config) -> Dims:
    """MixtralConfig's fields and defaults."""
    common = sizes(
        config, vocab_size=32000, hidden_size=4096, intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32,
        num_key_value_heads=8,
    )  # fmt: skip
    return MixtureDims(
        **common,
        sliding_window=window(config, None),
        num_experts=config.integer("num_local_experts", default=8, high=65536),
        num_experts_per_tok=config.integer("num_experts_per_tok", default=2, high=65536),
        moe_intermediate_size=common["intermediate_size"],
    )


FAMILIES = (
    Family(
        id="mixtral", types={"mixtral": "Mixtral"}, dims=dims, body=body, source="transformers 5.24.0, models/mixtral/modeling_mixtral.py"
    ),
)
