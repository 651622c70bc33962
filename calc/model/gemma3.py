"""Gemma 3, its text model: normed queries and keys, windows with their own rotation. Mirrors transformers 5.24.0 models/gemma3/modeling_gemma3.py."""

from __future__ import annotations

from calc.autograd.tensor import Tensor
from calc.model.activations import activation_name
from calc.model.attention import attention
from calc.model.config import Config
from calc.model.decoder import layer_kinds, masks, sizes, window
from calc.model.family import Dims, Family, rotary_buffers
from calc.model.gemma2 import Gemma2Dims, capped, head, sandwich
from calc.model.llama import queries_keys_values
from calc.model.modules import Modules
from calc.model.norms import gemma_rms_norm
from calc.model.rotary import Rotation, position_ids, rotated, rotation


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    c = m.c
    x = inputs_embeds = m.embedding("model.embed_tokens", ids, c.vocab_size, c.hidden_size, scaled=True)
    counted = position_ids(m)
    mask = masks(m, x.dtype, ("full", "sliding"))
    positions = {kind: rotation(m, x.dtype, c.head_dim, counted) for kind in sorted(set(c.kinds))}
    for layer, kind in zip(m.layers("model.layers", c.kinds), c.kinds, strict=True):
        x = layer(block, x, mask[kind], positions[kind])
    x = gemma_rms_norm(m, "model.norm", x, apart=True)
    del inputs_embeds  # transformers holds them until its forward returns
    return x


def block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """One decoder layer."""
    return sandwich(m, x, self_attention, mask, positions)


def self_attention(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """Grouped-query attention with normed queries and keys."""
    c = m.c
    q, k, v = queries_keys_values(m, x)
    q = gemma_rms_norm(m, "self_attn.q_norm", q, apart=True)
    k = gemma_rms_norm(m, "self_attn.k_norm", k, apart=True)
    rotated_q, rotated_k = rotated(q, positions), rotated(k, positions)
    q, k = rotated_q, rotated_k
    del rotated_q, rotated_k
    out = attention(m, q, k, v, mask, dropout_p=c.attention_dropout)
    return m.linear("self_attn.o_proj", out, c.hidden_size, c.output_bias)


def dims(config: Config) -> Dims:
    """Gemma3TextConfig's fields and defaults."""
    bias = config.boolean("attention_bias", default=False)
    common = sizes(
        config,
        vocab_size=262208,
        hidden_size=2304,
        intermediate_size=9216,
        num_hidden_layers=26,
        num_attention_heads=8,
        num_key_value_heads=4,
        head_dim=256,
        tie_word_embeddings=True,
    )
    pattern = config.integer("sliding_window_pattern", default=6)
    return Gemma2Dims(
        **{
            **common,
            "hidden_act": activation_name(config, "hidden_activation", default="gelu_pytorch_tanh"),
            "kinds": layer_kinds(config, common["num_hidden_layers"], lambda i: (i + 1) % pattern != 0),
        },
        sliding_window=window(config, 4096),
        attention_bias=bias,
        output_bias=bias,
        final_logit_softcapping=capped(config, "final_logit_softcapping", None),
    )


FAMILIES = (
    Family(
        id="gemma3_text",
        types={"gemma3_text": "Gemma 3"},
        dims=dims,
        body=body,
        head=head,
        buffers=lambda dims, size: len(set(dims.kinds)) * rotary_buffers(dims.head_dim) + size,
        source="transformers 5.24.0, models/gemma3/modeling_gemma3.py",
    ),
)
