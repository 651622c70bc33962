"""Mixtral: Llama's attention, and in place of the feed-forward a mixture of experts. Mirrors transformers 5.24.0
models/mixtral/modeling_mixtral.py."""

from __future__ import annotations

from functools import partial
from typing import Any

from calc.autograd.elementwise import cast, softmax
from calc.autograd.routing import add_to_rows, gather, normalized_in_place, topk, weighted
from calc.autograd.shapes import reshape
from calc.autograd.tensor import Tensor, empty
from calc.model.activations import gated
from calc.model.config import Config
from calc.model.decoder import decoder, pre_norm, sizes, window
from calc.model.experts import MixtureDims, chosen, experts, router
from calc.model.family import Dims, Family
from calc.model.llama import self_attention
from calc.model.modules import Modules
from calc.model.rotary import Rotation

SIZES: dict[str, Any] = {
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
    if not m.recipe.grouped_experts:
        return one_by_one(m, x)
    routed = router(m, "mlp.gate", x, lowered=False)
    x = experts(m, "mlp.experts", x, routed)
    return x


def one_by_one(m: Modules, x: Tensor) -> Tensor:
    """MixtralSparseMoeBlock of transformers 4: each expert's tokens picked, passed through its three linear layers and added back.

    How many tokens an expert gets is the router's choice; here each gets the same share.
    """
    c = m.c
    (tokens, hidden), copies = x.shape, x.shape[0] * c.num_experts_per_tok
    logits = m.linear("block_sparse_moe.gate", x, c.num_experts)
    values, _places = topk(softmax(cast(logits, "fp32")), c.num_experts_per_tok)
    values = cast(normalized_in_place(values), x.dtype)
    y = empty((tokens, hidden), x.dtype, "zeros")
    _chosen = empty((copies, c.num_experts), "i64", "one_hot")
    share = copies // c.num_experts
    for index in range(c.num_experts):
        name = f"block_sparse_moe.experts.{index}"
        rows = share if index else copies - share * (c.num_experts - 1)
        places = empty((rows, 2), "i64", "where")
        current = gather(x, (rows, hidden), places)
        product = gated(
            m,
            m.linear(f"{name}.w1", current, c.moe_intermediate_size),
            partial(m.linear, f"{name}.w3", current, c.moe_intermediate_size),
            c.hidden_act,
        )
        result = m.linear(f"{name}.w2", product, hidden)
        del product
        result = weighted(result, gather(reshape(values, (copies, 1)), (rows, 1), places))
        y = add_to_rows(y, result, places)
    return y


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
