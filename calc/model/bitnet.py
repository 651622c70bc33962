"""BitNet, its training form: norms before the projections that close each half. Mirrors transformers 5.24.0 models/bitnet/modeling_bitnet.py."""

from __future__ import annotations

from calc.autograd.elementwise import mul
from calc.autograd.tensor import Tensor
from calc.model.activations import activated
from calc.model.attention import attention
from calc.model.config import Config
from calc.model.decoder import decoder, pre_norm, sizes
from calc.model.family import Dims, Family
from calc.model.llama import queries_keys_values
from calc.model.modules import Modules
from calc.model.norms import rms_norm
from calc.model.rotary import Rotation, rotated


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    return decoder(m, ids, block)


def block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """One decoder layer."""
    return pre_norm(m, x, self_attention, mlp, mask, positions)


def self_attention(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """Grouped-query attention with a norm before its last projection."""
    c = m.c
    q, k, v = queries_keys_values(m, x)
    rotated_q, rotated_k = rotated(q, positions), rotated(k, positions)
    q, k = rotated_q, rotated_k
    del rotated_q, rotated_k
    out = attention(m, q, k, v, mask, dropout_p=c.attention_dropout)
    out = rms_norm(m, "self_attn.attn_sub_norm", out)
    return m.linear("self_attn.o_proj", out, c.hidden_size, c.output_bias)


def mlp(m: Modules, x: Tensor) -> Tensor:
    """Gated feed-forward with a norm before its last projection."""
    c = m.c
    gate = activated(m, m.linear("mlp.gate_proj", x, c.intermediate_size), c.hidden_act)
    x = mul(gate, m.linear("mlp.up_proj", x, c.intermediate_size))
    del gate
    x = rms_norm(m, "mlp.ffn_sub_norm", x)
    return m.linear("mlp.down_proj", x, c.hidden_size)


def dims(config: Config) -> Dims:
    """BitNetConfig's fields and defaults."""
    bias = config.boolean("attention_bias", default=False)
    return Dims(
        **sizes(
            config,
            vocab_size=128256,
            hidden_size=2560,
            intermediate_size=6912,
            num_hidden_layers=30,
            num_attention_heads=20,
            num_key_value_heads=5,
            hidden_act="relu2",
        ),
        attention_bias=bias,
        output_bias=bias,
    )


FAMILIES = (
    Family(
        id="bitnet",
        types={"bitnet": "BitNet"},
        dims=dims,
        body=body,
        source="transformers 5.24.0, models/bitnet/modeling_bitnet.py",
    ),
)
