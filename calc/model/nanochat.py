"""nanochat: norms without weights, also before the first layer and after the rotation; capped logits. Mirrors transformers 5.24.0 models/nanochat/modeling_nanochat.py."""

from __future__ import annotations

from calc.autograd.elementwise import add_constant, cast, mean, mul, rsqrt, square
from calc.autograd.tensor import Tensor
from calc.model.activations import activated
from calc.model.attention import attention, causal_mask
from calc.model.config import Config
from calc.model.decoder import pre_norm, sizes
from calc.model.family import Dims, Family
from calc.model.gemma2 import Gemma2Dims, capped, head
from calc.model.llama import queries_keys_values
from calc.model.modules import Modules
from calc.model.rotary import Rotation, rotated, rotation


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    c = m.c
    x = inputs_embeds = m.embedding("model.embed_tokens", ids, c.vocab_size, c.hidden_size)
    mask = causal_mask(m, x.dtype)
    positions = rotation(m, x.dtype, c.head_dim)
    x = norm(m, "model.norm", x)
    for layer in m.layers("model.layers", c.kinds):
        x = layer(block, x, mask, positions)
    x = norm(m, "model.norm", x)
    del inputs_embeds  # transformers holds them until its forward returns
    return x


def norm(m: Modules, name: str, x: Tensor) -> Tensor:
    """x in fp32 times the reciprocal root of its mean square, cast back."""
    y = cast(x, "fp32")
    y = mul(y, rsqrt(add_constant(mean(square(y)))))
    return cast(y, x.dtype)


def block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """One decoder layer."""
    return pre_norm(m, x, self_attention, mlp, mask, positions, norm=norm)


def self_attention(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """Grouped-query attention; queries and keys are normed after their rotation."""
    c = m.c
    q, k, v = queries_keys_values(m, x)
    rotated_q, rotated_k = rotated(q, positions), rotated(k, positions)
    q, k = rotated_q, rotated_k
    del rotated_q, rotated_k
    q = norm(m, "self_attn.q_norm", q)
    k = norm(m, "self_attn.k_norm", k)
    out = attention(m, q, k, v, mask, dropout_p=c.attention_dropout)
    return m.linear("self_attn.o_proj", out, c.hidden_size, c.output_bias)


def mlp(m: Modules, x: Tensor) -> Tensor:
    """Feed-forward without a gate."""
    c = m.c
    x = m.linear("mlp.fc1", x, c.intermediate_size)
    x = activated(m, x, c.hidden_act)
    return m.linear("mlp.fc2", x, c.hidden_size)


def dims(config: Config) -> Dims:
    """NanoChatConfig's fields and defaults."""
    bias = config.boolean("attention_bias", default=False)
    return Gemma2Dims(
        **sizes(
            config,
            vocab_size=50304,
            hidden_size=768,
            intermediate_size=8192,
            num_hidden_layers=12,
            num_attention_heads=6,
            hidden_act="relu2",
        ),
        attention_bias=bias,
        output_bias=bias,
        final_logit_softcapping=capped(config, "final_logit_softcapping", 15.0),
    )


FAMILIES = (
    Family(
        id="nanochat",
        types={"nanochat": "nanochat"},
        dims=dims,
        body=body,
        head=head,
        source="transformers 5.24.0, models/nanochat/modeling_nanochat.py",
    ),
)
