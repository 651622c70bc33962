"""gpt-oss: attention with a learned sink for each head, a window on every other layer, clamped experts with biases. Mirrors
transformers 5.24.0 models/gpt_oss/modeling_gpt_oss.py."""

from __future__ import annotations

from functools import partial

from calc.autograd.elementwise import (
    add,
    add_broadcast,
    add_constant,
    cast,
    clamp,
    dropout,
    from_output,
    mul,
    scale,
    softmax,
    sub,
    sub_broadcast,
)
from calc.autograd.routing import maximum, topk
from calc.autograd.shapes import cat, expand, part, repeat, rows
from calc.autograd.shapes import split as split_last
from calc.autograd.tensor import Tensor
from calc.model.attention import contiguous_rows, matmul, split
from calc.model.config import Config
from calc.model.decoder import decoder, layer_kinds, pre_norm, sizes, window
from calc.model.experts import MixtureDims, chosen, experts
from calc.model.family import Dims, Family
from calc.model.modules import Modules
from calc.model.norms import wide_rms_norm
from calc.model.rotary import Rotation, rotation


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    return decoder(
        m, ids, block, masked=("full", "sliding"), norm=wide_rms_norm, angles=partial(rotation, doubled=False)
    )


def block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """One decoder layer."""
    return pre_norm(m, x, self_attention, mixture, mask, positions, norm=wide_rms_norm)


def self_attention(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """Grouped-query attention in which each head may also look at its sink."""
    c = m.c
    q = split(
        m,
        m.linear("self_attn.q_proj", x, c.num_attention_heads * c.head_dim, c.attention_bias),
        c.num_attention_heads,
        c.head_dim,
    )
    k = split(
        m,
        m.linear("self_attn.k_proj", x, c.num_key_value_heads * c.head_dim, c.attention_bias),
        c.num_key_value_heads,
        c.head_dim,
    )
    v = split(
        m,
        m.linear("self_attn.v_proj", x, c.num_key_value_heads * c.head_dim, c.attention_bias),
        c.num_key_value_heads,
        c.head_dim,
    )
    rotated_q, rotated_k = _rotated(q, positions), _rotated(k, positions)
    q, k = rotated_q, rotated_k
    del rotated_q, rotated_k
    out = _attention(m, q, k, v, mask)
    return m.linear("self_attn.o_proj", out, c.hidden_size, c.output_bias)


def _rotated(x: Tensor, positions: Rotation) -> Tensor:
    """Each half of the head from both halves; cos and sin are half as wide as the head."""
    cos, sin = positions.cos, positions.sin
    first, second = split_last(x, (x.shape[-1] // 2,) * 2)
    turned_first = sub(mul(first, cos), mul(second, sin))
    turned_second = add(mul(second, cos), mul(first, sin))
    return cat((turned_first, turned_second), x.shape)


def _attention(m: Modules, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    """The class's own eager attention: a column for the sink, softmax in the states' dtype."""
    batch, heads, length, head_dim = q.shape
    sinks = m.weight("self_attn.sinks", (heads,), "other")
    k, v = repeat(k, heads), repeat(v, heads)
    weights = scale(matmul(m, q, k, (batch, heads, length, length)))
    if mask is not None:
        weights = add_broadcast(weights, mask)
    combined = cat((weights, expand(sinks, (batch, heads, length, 1))), (batch, heads, length, length + 1))
    combined = sub_broadcast(combined, maximum(combined))
    probabilities = softmax(combined)
    weights = cast(dropout(part(probabilities, (batch, heads, length, length)), m.c.attention_dropout), v.dtype)
    out = contiguous_rows(matmul(m, weights, v, (batch, heads, length, v.shape[-1])))
    m.held.append(weights)
    del combined, probabilities
    return rows(out, (m.rows, heads * head_dim))


def mixture(m: Modules, x: Tensor) -> Tensor:
    """Router with a bias, softmax over the chosen only, and experts."""
    logits = m.linear("mlp.router", x, m.c.num_experts, True, role="router")
    values, places = topk(logits, m.c.num_experts_per_tok)
    weights = softmax(values)
    del values
    y = experts(m, "mlp.experts", x, (logits, weights, places), gate=clamped, bias=True, transposed=True)
    m.held[:] = [weights]  # they take the name that held the attention's
    return y


def clamped(m: Modules, x: Tensor) -> Tensor:
    """(up + 1)·gate·sigmoid(α·gate), with gate and up taken in turns and clamped."""
    half = (x.shape[0], x.shape[1] // 2)
    gate, up = part(x, half), part(x, half)
    gate, up = clamp(gate, 1), clamp(up, 2)
    glu = mul(gate, from_output(scale(gate), "sigmoid"))
    return mul(add_constant(up), glu)


def dims(config: Config) -> Dims:
    """GptOssConfig's fields and defaults."""
    common = sizes(
        config, vocab_size=201088, hidden_size=2880, intermediate_size=2880, num_hidden_layers=36, num_attention_heads=64,
        num_key_value_heads=8, head_dim=64,
    )  # fmt: skip
    bias = config.boolean("attention_bias", default=True)
    count, top = chosen(config, "num_local_experts", "num_experts", default=128, top=4)
    return MixtureDims(
        **{**common, "kinds": layer_kinds(config, common["num_hidden_layers"], lambda i: i % 2 == 0)},
        attention_bias=bias,
        output_bias=bias,
        sliding_window=window(config, 128),
        num_experts=count,
        num_experts_per_tok=top,
        moe_intermediate_size=common["intermediate_size"],
    )


FAMILIES = (
    Family(
        id="gpt-oss",
        types={"gpt_oss": "gpt-oss"},
        dims=dims,
        body=body,
        attentions=("eager",),
        gaps=frozenset(("offload without checkpointing",)),
        source="transformers 5.24.0, models/gpt_oss/modeling_gpt_oss.py",
    ),
)
