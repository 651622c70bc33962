"""ERNIE 4.5 with experts: its dense sibling's attention, experts that a router in fp32 chooses with a bias that is not trained, and shared ones.

Mirrors transformers 5.24.0 models/ernie4_5_moe/modeling_ernie4_5_moe.py.
"""

from __future__ import annotations

from calc.autograd.elementwise import add, add_broadcast, cast, clamp, softmax
from calc.autograd.routing import divided, gather, topk, total
from calc.autograd.tensor import Tensor
from calc.model.config import Config, ConfigError
from calc.model.decoder import decoder, pre_norm, sizes
from calc.model.ernie4_5 import block as dense_block
from calc.model.ernie4_5 import self_attention
from calc.model.experts import MixtureDims, Routed, chosen, experts, routed_logits
from calc.model.family import Dims, Family
from calc.model.llama import mlp
from calc.model.modules import Modules
from calc.model.rotary import Rotation


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    return decoder(m, ids, block, others={"dense": dense_block}, rotary_dtype="fp32")


def block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """A layer with experts."""
    return pre_norm(m, x, self_attention, mixture, mask, positions)


def mixture(m: Modules, x: Tensor) -> Tensor:
    """The shared experts, the router and its experts, added up."""
    shared = None
    if m.c.shared_intermediate_size:
        shared = mlp(m, x, "mlp.shared_experts", m.c.shared_intermediate_size)
    routed = router(m, "mlp.gate", x)
    y = experts(m, "mlp.experts", x, routed)
    return y if shared is None else add(y, shared)


def router(m: Modules, name: str, x: Tensor) -> Routed:
    """Softmax over all experts in fp32; a bias decides with it which are chosen, and their shares are made to sum to one."""
    c = m.c
    logits = routed_logits(m, name, cast(x, "fp32"), dtype="fp32", outside_autocast=True)
    shares = softmax(logits)
    bias = m.weight(
        f"{name}.moe_statics.e_score_correction_bias", (1, c.num_experts), "bias", dtype="fp32", trainable=False
    )
    values, places = topk(add_broadcast(shares, bias), c.num_experts_per_tok)
    weights = gather(shares, (x.shape[0], c.num_experts_per_tok), places)
    weights = divided(weights, clamp(total(weights), 1))
    del values
    return logits, cast(weights, x.dtype), places


def dims(config: Config) -> Dims:
    """Ernie4_5_MoeConfig's fields and defaults."""
    common = sizes(
        config, vocab_size=103424, hidden_size=2560, intermediate_size=12288, num_hidden_layers=28, num_attention_heads=20,
        num_key_value_heads=4, tie_word_embeddings=True,
    )  # fmt: skip
    if config.boolean("use_bias", default=False):
        raise ConfigError("use_bias", "should be false: biases are not modelled")
    depth = common["num_hidden_layers"]
    first = config.integer("moe_layer_start_index", default=1, low=0, high=10**6)
    last = config.integer("moe_layer_end_index", default=-1, low=-1, high=10**6)
    last = depth - 1 if last == -1 else last
    every = config.integer("moe_layer_interval", default=1, high=10**6)
    width = config.integer("moe_intermediate_size", default=1536)
    count, top = chosen(
        config, "moe_num_experts", "num_experts", default=64, top=6, per_token=("moe_k", "num_experts_per_tok")
    )
    return MixtureDims(
        **{
            **common,
            "attention_dropout": 0.0,
            "kinds": tuple(
                ["full" if (i + 1) % every == 0 and first <= i <= last else "full dense" for i in range(depth)]
            ),
        },
        num_experts=count,
        num_experts_per_tok=top,
        moe_intermediate_size=width,
        shared_intermediate_size=width * config.integer("moe_num_shared_experts", default=2, low=0, high=1000),
    )


FAMILIES = (
    Family(
        id="ernie4_5_moe",
        types={"ernie4_5_moe": "ERNIE 4.5 MoE"},
        dims=dims,
        body=body,
        gaps=frozenset(("offload without checkpointing",)),
        source="transformers 5.24.0, models/ernie4_5_moe/modeling_ernie4_5_moe.py",
    ),
)
