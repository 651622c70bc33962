"""Phi and Phi-2: one norm for both halves of a layer, part of each head rotated, biases everywhere. Mirrors transformers 5.24.0 models/phi/modeling_phi.py."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from calc.autograd.elementwise import add, dropout
from calc.autograd.shapes import cat
from calc.autograd.tensor import Tensor
from calc.model.activations import activated
from calc.model.attention import attention, causal_mask, split
from calc.model.config import Config
from calc.model.decoder import rotary_dim, share, sizes
from calc.model.family import Dims, Family, rotary_buffers
from calc.model.modules import Modules
from calc.model.norms import layer_norm
from calc.model.rotary import Rotation, rotated, rotation
from calc.model.stablelm import beginning

_EARLY_NAMES = {
    "hidden_size": ("n_embd",),
    "num_hidden_layers": ("n_layer",),
    "num_attention_heads": ("n_head",),
    "intermediate_size": ("n_inner",),
    "hidden_act": ("activation_function",),
    "attention_dropout": ("attn_pdrop",),
}
"""How the first revisions of Phi-1.5 and Phi-2 spelled them."""


@dataclass(frozen=True)
class PhiDims(Dims):
    """Sizes, and the shape of a layer."""

    rotary_dim: int = 0
    qk_layernorm: bool = False
    resid_pdrop: float = 0.0
    embd_pdrop: float = 0.0


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    c = m.c
    x = m.embedding("model.embed_tokens", ids, c.vocab_size, c.hidden_size)
    mask = causal_mask(m, x.dtype)
    x = inputs_embeds = dropout(x, c.embd_pdrop)
    positions = rotation(m, x.dtype, c.rotary_dim)
    for layer in m.layers("model.layers", c.kinds):
        x = layer(block, x, mask, positions)
    x = layer_norm(m, "model.final_layernorm", x)
    del inputs_embeds  # transformers holds them until its forward returns
    return x


def block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """One decoder layer."""
    c = m.c
    residual = x
    x = layer_norm(m, "input_layernorm", x)
    attended = self_attention(m, x, mask, positions)
    attended = dropout(attended, c.resid_pdrop)
    fed = dropout(mlp(m, x), c.resid_pdrop)
    return add(add(attended, fed), residual)


def self_attention(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """Grouped-query attention; queries and keys may be normed."""
    c = m.c
    q = split(
        m, m.linear("self_attn.q_proj", x, c.num_attention_heads * c.head_dim, True), c.num_attention_heads, c.head_dim
    )
    k = split(
        m, m.linear("self_attn.k_proj", x, c.num_key_value_heads * c.head_dim, True), c.num_key_value_heads, c.head_dim
    )
    v = split(
        m, m.linear("self_attn.v_proj", x, c.num_key_value_heads * c.head_dim, True), c.num_key_value_heads, c.head_dim
    )
    if c.qk_layernorm:
        q = layer_norm(m, "self_attn.q_layernorm", q)
        k = layer_norm(m, "self_attn.k_layernorm", k)
    q_turned, q_passed = beginning(q, c.rotary_dim)
    k_turned, k_passed = beginning(k, c.rotary_dim)
    rotated_q, rotated_k = rotated(q_turned, positions), rotated(k_turned, positions)
    q_turned, k_turned = rotated_q, rotated_k
    del rotated_q, rotated_k
    q = cat((q_turned, q_passed), q.shape)
    k = cat((k_turned, k_passed), k.shape)
    out = attention(m, q, k, v, mask, dropout_p=c.attention_dropout)
    return m.linear("self_attn.dense", out, c.hidden_size, True)


def mlp(m: Modules, x: Tensor) -> Tensor:
    """Feed-forward without a gate."""
    c = m.c
    x = m.linear("mlp.fc1", x, c.intermediate_size, True)
    x = activated(m, x, c.hidden_act)
    return m.linear("mlp.fc2", x, c.hidden_size, True)


def head(m: Modules, x: Tensor) -> Tensor:
    """Logits, with a bias."""
    c = m.c
    if c.tie_word_embeddings:
        return m.product(x, m.tied(), m.weight("lm_head.bias", (c.vocab_size,), "bias"))
    return m.linear("lm_head", x, c.vocab_size, True, role="head")


def dims(config: Config) -> Dims:
    """PhiConfig's fields and defaults."""
    common = sizes(
        config,
        vocab_size=51200,
        hidden_size=2048,
        intermediate_size=8192,
        num_hidden_layers=24,
        num_attention_heads=32,
        hidden_act="gelu_new",
    )
    return PhiDims(
        **common,
        rotary_dim=rotary_dim(config, common["head_dim"], 0.5),
        qk_layernorm=config.boolean("qk_layernorm", default=False),
        resid_pdrop=share(config, "resid_pdrop"),
        embd_pdrop=share(config, "embd_pdrop"),
    )


def early_dims(config: Config) -> Dims:
    """The same under the names that the first revisions used."""
    common = sizes(
        config,
        vocab_size=51200,
        hidden_size=2048,
        num_hidden_layers=24,
        num_attention_heads=32,
        hidden_act="gelu_new",
        names=_EARLY_NAMES,
    )
    return PhiDims(
        **common,
        rotary_dim=config.integer("rotary_dim", default=32, high=common["head_dim"]),
        resid_pdrop=share(config, "resid_pdrop"),
        embd_pdrop=share(config, "embd_pdrop"),
    )


def _family(id: str, types: dict[str, str], reader: Callable[[Config], Dims]) -> Family:
    return Family(
        id=id,
        types=types,
        dims=reader,
        body=body,
        head=head,
        buffers=lambda dims, size: rotary_buffers(dims.rotary_dim),
        source="transformers 5.24.0, models/phi/modeling_phi.py",
    )


FAMILIES = (_family("phi", {"phi": "Phi"}, dims), _family("phi-msft", {"phi-msft": "Phi, first revision"}, early_dims))
