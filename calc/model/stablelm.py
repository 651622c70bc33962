"""StableLM: layer norms, a quarter of each head rotated, optionally both halves side by side.

Mirrors transformers 5.24.0 models/stablelm/modeling_stablelm.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from calc.autograd.elementwise import add, dropout
from calc.autograd.shapes import cat, part
from calc.autograd.tensor import Tensor
from calc.model.attention import attention, split
from calc.model.config import Config
from calc.model.decoder import decoder, rotary_dim, sizes
from calc.model.family import Dims, Family, rotary_buffers
from calc.model.llama import mlp
from calc.model.modules import Modules
from calc.model.norms import layer_norm, layer_norm_per_head
from calc.model.rotary import Rotation, rotated


@dataclass(frozen=True)
class StableLmDims(Dims):
    """Sizes, and the shape of a layer."""

    rotary_dim: int = 0
    qk_layernorm: bool = False
    use_parallel_residual: bool = False
    hidden_dropout: float = 0.0


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    return decoder(m, ids, block, norm=layer_norm, rotary_dim=m.c.rotary_dim)


def block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """One decoder layer."""
    c = m.c
    residual = x
    x = layer_norm(m, "input_layernorm", x)
    attended = self_attention(m, x, mask, positions)
    if c.use_parallel_residual:
        fed = dropout(mlp(m, x), c.hidden_dropout)
        return add(add(residual, attended), fed)
    residual = add(residual, attended)
    fed = dropout(mlp(m, layer_norm(m, "post_attention_layernorm", residual)), c.hidden_dropout)
    return add(residual, fed)


def self_attention(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """Grouped-query attention; queries and keys may be normed head by head."""
    c = m.c
    q = m.linear("self_attn.q_proj", x, c.num_attention_heads * c.head_dim, c.attention_bias)
    k = m.linear("self_attn.k_proj", x, c.num_key_value_heads * c.head_dim, c.attention_bias)
    v = m.linear("self_attn.v_proj", x, c.num_key_value_heads * c.head_dim, c.attention_bias)
    q = split(m, q, c.num_attention_heads, c.head_dim)
    k = split(m, k, c.num_key_value_heads, c.head_dim)
    v = split(m, v, c.num_key_value_heads, c.head_dim)
    if c.qk_layernorm:
        q = layer_norm_per_head(m, "self_attn.q_layernorm", q)
        k = layer_norm_per_head(m, "self_attn.k_layernorm", k)
    q_turned, q_passed = beginning(q, c.rotary_dim)
    k_turned, k_passed = beginning(k, c.rotary_dim)
    rotated_q, rotated_k = rotated(q_turned, positions), rotated(k_turned, positions)
    q_turned, k_turned = rotated_q, rotated_k
    del rotated_q, rotated_k
    q = cat((q_turned, q_passed), q.shape)
    k = cat((k_turned, k_passed), k.shape)
    out = attention(m, q, k, v, mask, dropout_p=c.attention_dropout)
    return m.linear("self_attn.o_proj", out, c.hidden_size)


def beginning(x: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """The first `width` components of each head, and the others."""
    return part(x, (*x.shape[:-1], width)), part(x, (*x.shape[:-1], x.shape[-1] - width))


def dims(config: Config) -> Dims:
    """StableLmConfig's fields and defaults."""
    common = sizes(
        config,
        vocab_size=50304,
        hidden_size=2560,
        intermediate_size=6912,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=32,
    )
    return StableLmDims(
        **common,
        attention_bias=config.boolean("use_qkv_bias", default=False),
        rotary_dim=rotary_dim(config, common["head_dim"], 0.25),
        qk_layernorm=config.boolean("qk_layernorm", default=False),
        use_parallel_residual=config.boolean("use_parallel_residual", default=False),
        hidden_dropout=config.number("hidden_dropout", default=0.0, low=0.0, high=1.0),
    )


FAMILIES = (
    Family(
        id="stablelm",
        types={"stablelm": "StableLM"},
        dims=dims,
        body=body,
        buffers=lambda dims, size: rotary_buffers(dims.rotary_dim),
        source="transformers 5.24.0, models/stablelm/modeling_stablelm.py",
    ),
)
