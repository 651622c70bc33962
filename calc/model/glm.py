"""GLM-4: half of each head rotated, every second component; gate and up in one matrix. The later class adds norms behind each half.

Mirrors transformers 5.24.0 models/glm/modeling_glm.py and models/glm4/modeling_glm4.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from calc.autograd.elementwise import add
from calc.autograd.shapes import cat
from calc.autograd.tensor import Tensor, empty
from calc.model.attention import attention
from calc.model.config import Config
from calc.model.decoder import decoder, pre_norm, rotary_dim, sizes
from calc.model.family import Dims, Family, rotary_buffers
from calc.model.llama import queries_keys_values
from calc.model.modules import Modules
from calc.model.norms import rms_norm
from calc.model.phi3 import fused_mlp
from calc.model.rotary import Rotation, rotated
from calc.model.stablelm import beginning

Turn = Callable[[Tensor, Tensor, Rotation], tuple[Tensor, Tensor]]
"""How queries and keys are turned."""


@dataclass(frozen=True)
class GlmDims(Dims):
    """Sizes, and the components of a head that are rotated."""

    rotary_dim: int = 0


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    return decoder(m, ids, block, rotary_dim=m.c.rotary_dim)


def sandwich_body(m: Modules, ids: Tensor) -> Tensor:
    """The later class: token ids (rows,) to hidden states (rows, hidden_size)."""
    return decoder(m, ids, sandwich_block, rotary_dim=m.c.rotary_dim)


def block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """One decoder layer."""
    return pre_norm(m, x, self_attention, fused_mlp, mask, positions)


def sandwich_block(
    m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation, *, turn: Turn | None = None
) -> Tensor:
    """One decoder layer with a norm before and after each half."""
    residual = x
    x = rms_norm(m, "input_layernorm", x)
    x = self_attention(m, x, mask, positions, turn=turn)
    x = rms_norm(m, "post_self_attn_layernorm", x)
    x = add(residual, x)
    residual = x
    x = rms_norm(m, "post_attention_layernorm", x)
    x = fused_mlp(m, x)
    x = rms_norm(m, "post_mlp_layernorm", x)
    return add(residual, x)


def self_attention(
    m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation, *, turn: Turn | None = None
) -> Tensor:
    """Grouped-query attention."""
    c = m.c
    q, k, v = queries_keys_values(m, x)
    q, k = (turn or rotated_in_pairs)(q, k, positions)
    out = attention(m, q, k, v, mask, dropout_p=c.attention_dropout)
    return m.linear("self_attn.o_proj", out, c.hidden_size)


def rotated_in_pairs(q: Tensor, k: Tensor, positions: Rotation) -> tuple[Tensor, Tensor]:
    """The beginning of each head rotated by the first half of cos and sin, each entry repeated: new tables in every layer."""
    repeated = Rotation(
        empty(positions.cos.shape, positions.cos.dtype, "repeat_interleave"),
        empty(positions.sin.shape, positions.sin.dtype, "repeat_interleave"),
        None,
    )
    return beginnings_rotated(q, k, repeated)


def beginnings_rotated(q: Tensor, k: Tensor, repeated: Rotation) -> tuple[Tensor, Tensor]:
    """As many components of each head as there are angles, rotated; the others as they are."""
    width = repeated.cos.shape[-1]
    q_turned, q_passed = beginning(q, width)
    k_turned, k_passed = beginning(k, width)
    turned_q, turned_k = rotated(q_turned, repeated), rotated(k_turned, repeated)
    turned_q = cat((turned_q, q_passed), q.shape)
    turned_k = cat((turned_k, k_passed), k.shape)
    return turned_q, turned_k


def dims(config: Config) -> Dims:
    """GlmConfig's and Glm4Config's fields and defaults."""
    common: dict[str, Any] = sizes(
        config,
        vocab_size=151552,
        hidden_size=4096,
        intermediate_size=13696,
        num_hidden_layers=40,
        num_attention_heads=32,
        num_key_value_heads=2,
        head_dim=128,
    )
    return GlmDims(
        **common,
        attention_bias=config.boolean("attention_bias", default=True),
        rotary_dim=rotary_dim(config, common["head_dim"], 0.5),
    )


FAMILIES = (
    Family(
        id="glm",
        types={"glm": "GLM-4"},
        dims=dims,
        body=body,
        buffers=lambda dims, size: rotary_buffers(dims.rotary_dim),
        source="transformers 5.24.0, models/glm/modeling_glm.py",
    ),
    Family(
        id="glm4",
        types={"glm4": "GLM-4-0414"},
        dims=dims,
        body=sandwich_body,
        buffers=lambda dims, size: rotary_buffers(dims.rotary_dim),
        source="transformers 5.24.0, models/glm4/modeling_glm4.py",
    ),
)
