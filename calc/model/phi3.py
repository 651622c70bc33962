"""Phi-3 and Phi-4: one matrix for queries, keys and values, one for gate and up. Mirrors transformers 5.24.0 models/phi3/modeling_phi3.py."""

from __future__ import annotations

from dataclasses import dataclass

from calc.autograd import fused
from calc.autograd.elementwise import clone, dropout, mul
from calc.autograd.shapes import part
from calc.autograd.shapes import split as pieces
from calc.autograd.tensor import Tensor
from calc.model.activations import activated
from calc.model.attention import attention, split
from calc.model.config import Config
from calc.model.decoder import decoder, pre_norm, rotary_dim, sizes, window
from calc.model.family import Dims, Family, rotary_buffers
from calc.model.modules import Modules
from calc.model.rotary import Rotation, partly_rotated


@dataclass(frozen=True)
class Phi3Dims(Dims):
    """Sizes, with the components of a head that are rotated and the dropout on what joins the stream."""

    rotary_dim: int = 0
    resid_pdrop: float = 0.0


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    return decoder(m, ids, block, masked=m.c.kinds[:1], rotary_dim=m.c.rotary_dim)


def block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """One decoder layer."""
    return pre_norm(m, x, self_attention, fused_mlp, mask, positions, joined=lambda m, x: dropout(x, m.c.resid_pdrop))


def self_attention(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """Grouped-query attention out of one product, which stays whole until its end."""
    c = m.c
    wide, narrow = c.num_attention_heads * c.head_dim, c.num_key_value_heads * c.head_dim
    qkv = m.linear("self_attn.qkv_proj", x, wide + 2 * narrow)
    q, k, v = part(qkv, (m.rows, wide)), part(qkv, (m.rows, narrow)), part(qkv, (m.rows, narrow))
    q = split(m, q, c.num_attention_heads, c.head_dim)
    k = split(m, k, c.num_key_value_heads, c.head_dim)
    v = split(m, v, c.num_key_value_heads, c.head_dim)
    rotated_q, rotated_k = partly_rotated(q, positions), partly_rotated(k, positions)
    q, k = rotated_q, rotated_k
    del rotated_q, rotated_k
    out = attention(m, q, k, v, mask, dropout_p=c.attention_dropout)
    return m.linear("self_attn.o_proj", out, c.hidden_size)


def fused_mlp(m: Modules, x: Tensor) -> Tensor:
    """Gated feed-forward with gate and up out of one product."""
    c = m.c
    gate, up = pieces(
        m.linear("mlp.gate_up_proj", x, 2 * c.intermediate_size), (c.intermediate_size, c.intermediate_size)
    )
    if c.hidden_act in m.recipe.kernels.gated:  # its halves do not lie together, so the kernel gets copies
        up = fused.gated(clone(gate), clone(up), c.hidden_act)
    else:
        up = mul(up, activated(m, gate, c.hidden_act))
    return m.linear("mlp.down_proj", up, c.hidden_size)


def dims(config: Config) -> Dims:
    """Phi3Config's fields and defaults."""
    common = sizes(
        config,
        vocab_size=32064,
        hidden_size=3072,
        intermediate_size=8192,
        num_hidden_layers=32,
        num_attention_heads=32,
    )
    size = window(config, None)
    return Phi3Dims(
        **{**common, "kinds": ("full" if size is None else "sliding",) * common["num_hidden_layers"]},
        sliding_window=size,
        rotary_dim=rotary_dim(config, common["head_dim"], 1.0),
        resid_pdrop=config.number("resid_pdrop", default=0.0, low=0.0, high=1.0),
    )


FAMILIES = (
    Family(
        id="phi3",
        types={"phi3": "Phi-3"},
        dims=dims,
        body=body,
        buffers=lambda dims, size: rotary_buffers(dims.rotary_dim),
        source="transformers 5.24.0, models/phi3/modeling_phi3.py",
    ),
)
