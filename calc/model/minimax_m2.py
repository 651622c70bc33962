"""MiniMax M2: norms over all heads, a part of each head rotated, sigmoid routing. Mirrors transformers 5.24.0
models/minimax_m2/modeling_minimax_m2.py."""

from __future__ import annotations

from calc.autograd.elementwise import add_constant, cast, from_output
from calc.autograd.routing import gather, normalized_in_place
from calc.autograd.tensor import Tensor, empty
from calc.model.attention import attention, split
from calc.model.config import Config
from calc.model.decoder import decoder, pre_norm, rotary_dim, sizes
from calc.model.experts import chosen, experts, routed_logits
from calc.model.family import Dims, Family, rotary_buffers
from calc.model.glm4_moe import GlmMoeDims, beginnings_rotated
from calc.model.modules import Modules
from calc.model.norms import rms_norm
from calc.model.rotary import Rotation


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    return decoder(m, ids, block, rotary_dim=m.c.rotary_dim)


def block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """One decoder layer."""
    return pre_norm(m, x, self_attention, mixture, mask, positions)


def self_attention(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """Grouped-query attention with normed projections."""
    c = m.c
    q = rms_norm(m, "self_attn.q_norm", m.linear("self_attn.q_proj", x, c.num_attention_heads * c.head_dim))
    k = rms_norm(m, "self_attn.k_norm", m.linear("self_attn.k_proj", x, c.num_key_value_heads * c.head_dim))
    v = m.linear("self_attn.v_proj", x, c.num_key_value_heads * c.head_dim)
    q = split(m, q, c.num_attention_heads, c.head_dim)
    k = split(m, k, c.num_key_value_heads, c.head_dim)
    v = split(m, v, c.num_key_value_heads, c.head_dim)
    q, k = beginnings_rotated(q, k, positions)
    out = attention(m, q, k, v, mask, dropout_p=c.attention_dropout)
    return m.linear("self_attn.o_proj", out, c.hidden_size)


def mixture(m: Modules, x: Tensor) -> Tensor:
    """Sigmoid scores; a bias that is no parameter decides with them which experts are chosen."""
    top = m.c.num_experts_per_tok
    logits = routed_logits(m, "mlp.gate", x)
    scores = from_output(cast(logits, "fp32"), "sigmoid")
    choice = add_constant(scores)
    best, places = empty((x.shape[0], top), "fp32", "topk"), empty((x.shape[0], top), "i64", "topk")
    weights = normalized_in_place(gather(scores, (x.shape[0], top), places))
    del choice, best, scores
    return experts(m, "mlp.experts", x, (logits, weights, places))


def dims(config: Config) -> Dims:
    """MiniMaxM2Config's fields and defaults."""
    common = sizes(
        config, vocab_size=200064, hidden_size=3072, intermediate_size=1536, num_hidden_layers=62, num_attention_heads=48,
        num_key_value_heads=8, head_dim=128,
    )  # fmt: skip
    count, top = chosen(config, "num_local_experts", default=256, top=8)
    turned = config.integer("rotary_dim", default=None, high=common["head_dim"])
    return GlmMoeDims(
        **common,
        num_experts=count,
        num_experts_per_tok=top,
        moe_intermediate_size=common["intermediate_size"],
        rotary_dim=rotary_dim(config, common["head_dim"], 1.0) if turned is None else turned,
    )


FAMILIES = (
    Family(
        id="minimax-m2",
        types={"minimax_m2": "MiniMax M2"},
        dims=dims,
        body=body,
        buffers=lambda dims, size: rotary_buffers(dims.rotary_dim) + size * dims.num_experts * len(dims.kinds),
        gaps=frozenset(("offload without checkpointing",)),
        source="transformers 5.24.0, models/minimax_m2/modeling_minimax_m2.py",
    ),
)
