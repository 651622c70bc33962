"""OPT: learned positions counted from the mask, layer norms before or behind each half. Mirrors transformers 5.24.0 models/opt/modeling_opt.py."""

from __future__ import annotations

from dataclasses import dataclass

from calc.autograd.elementwise import add, dropout, scale
from calc.autograd.tensor import Tensor, empty
from calc.model.activations import activated
from calc.model.attention import attention, causal_mask, split
from calc.model.config import Config
from calc.model.decoder import share, sizes
from calc.model.family import Dims, Family
from calc.model.modules import Modules
from calc.model.norms import layer_norm

_NAMES = {"intermediate_size": ("ffn_dim",), "hidden_act": ("activation_function",)}


@dataclass(frozen=True)
class OptDims(Dims):
    """Sizes, the table of positions, the embedding's own width, and the shape of a layer."""

    max_position_embeddings: int = 2048
    word_embed_proj_dim: int = 0
    do_layer_norm_before: bool = True
    final_layer_norm: bool = True
    affine: bool = True
    dropout: float = 0.1


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, word_embed_proj_dim)."""
    c = m.c
    inputs_embeds = m.embedding("model.decoder.embed_tokens", ids, c.vocab_size, c.word_embed_proj_dim)
    every = None if m.recipe.padded else empty((m.rows,), "fp32", "ones")
    counted = empty((m.rows,), "i64", "position ids")
    mask = causal_mask(m, inputs_embeds.dtype)
    shifted = empty((m.rows,), "i64", "add")
    position_embeds = m.embedding(
        "model.decoder.embed_positions", shifted, c.max_position_embeddings + 2, c.hidden_size
    )
    del shifted
    if c.word_embed_proj_dim != c.hidden_size:
        inputs_embeds = m.linear("model.decoder.project_in", inputs_embeds, c.hidden_size)
    x = add(inputs_embeds, position_embeds)
    for layer in m.layers("model.decoder.layers", c.kinds):
        x = layer(block, x, mask, counted)
    if c.final_layer_norm:
        x = layer_norm(m, "model.decoder.final_layer_norm", x, affine=c.affine)
    if c.word_embed_proj_dim != c.hidden_size:
        x = m.linear("model.decoder.project_out", x, c.word_embed_proj_dim)
    del inputs_embeds, position_embeds, every  # transformers holds them until its forward returns
    return x


def block(m: Modules, x: Tensor, mask: Tensor | None, counted: Tensor) -> Tensor:
    """One decoder layer."""
    c = m.c
    residual = x
    if c.do_layer_norm_before:
        x = layer_norm(m, "self_attn_layer_norm", x, affine=c.affine)
    x = self_attention(m, x, mask)
    x = dropout(x, c.dropout)
    x = add(residual, x)
    if not c.do_layer_norm_before:
        x = layer_norm(m, "self_attn_layer_norm", x, affine=c.affine)
    residual = x
    if c.do_layer_norm_before:
        x = layer_norm(m, "final_layer_norm", x, affine=c.affine)
    x = m.linear("fc1", x, c.intermediate_size, c.mlp_bias)
    x = activated(m, x, c.hidden_act)
    x = m.linear("fc2", x, c.hidden_size, c.mlp_bias)
    x = dropout(x, c.dropout)
    x = add(residual, x)
    if not c.do_layer_norm_before:
        x = layer_norm(m, "final_layer_norm", x, affine=c.affine)
    return x


def self_attention(m: Modules, x: Tensor, mask: Tensor | None) -> Tensor:
    """Attention whose queries are scaled first."""
    c = m.c
    q = scale(m.linear("self_attn.q_proj", x, c.hidden_size, c.attention_bias))
    q = split(m, q, c.num_attention_heads, c.head_dim)
    k = m.linear("self_attn.k_proj", x, c.hidden_size, c.attention_bias)
    v = m.linear("self_attn.v_proj", x, c.hidden_size, c.attention_bias)
    k = split(m, k, c.num_attention_heads, c.head_dim)
    v = split(m, v, c.num_attention_heads, c.head_dim)
    out = attention(m, q, k, v, mask, dropout_p=c.attention_dropout)
    return m.linear("self_attn.out_proj", out, c.hidden_size, c.output_bias)


def dims(config: Config) -> Dims:
    """OPTConfig's fields and defaults."""
    common = sizes(
        config,
        vocab_size=50272,
        hidden_size=768,
        intermediate_size=3072,
        num_hidden_layers=12,
        num_attention_heads=12,
        hidden_act="relu",
        tie_word_embeddings=True,
        names=_NAMES,
    )
    before = config.boolean("do_layer_norm_before", default=True)
    bias = config.boolean("enable_bias", default=True)
    return OptDims(
        **common,
        attention_bias=bias,
        output_bias=bias,
        mlp_bias=bias,
        max_position_embeddings=config.integer("max_position_embeddings", default=2048),
        word_embed_proj_dim=config.integer("word_embed_proj_dim", default=common["hidden_size"]),
        do_layer_norm_before=before,
        final_layer_norm=before and not config.boolean("_remove_final_layer_norm", default=False),
        affine=config.boolean("layer_norm_elementwise_affine", default=True),
        dropout=share(config, "dropout", default=0.1),
    )


FAMILIES = (
    Family(
        id="opt",
        types={"opt": "OPT"},
        dims=dims,
        body=body,
        buffers=lambda dims, size: 0,
        source="transformers 5.24.0, models/opt/modeling_opt.py",
    ),
)
