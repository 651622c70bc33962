"""GPT-J and CodeGen: one norm for both halves of a layer, every second component of each head's beginning rotated.

Mirrors transformers 5.24.0 models/gptj/modeling_gptj.py and models/codegen/modeling_codegen.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from calc.autograd.elementwise import add, cast, clone, dropout
from calc.autograd.shapes import cat, part, reshape
from calc.autograd.shapes import split as pieces
from calc.autograd.tensor import Tensor, empty
from calc.model.activations import activated
from calc.model.attention import Eager, attention, causal_mask, split
from calc.model.config import Config
from calc.model.decoder import share, sizes
from calc.model.family import Dims, Family
from calc.model.gpt2 import NAMES
from calc.model.modules import Modules
from calc.model.norms import layer_norm
from calc.model.rotary import Rotation, position_ids, rotated

Projected = tuple[Tensor | None, Tensor, Tensor, Tensor]
"""One product for all, if there is one; queries, keys and values."""


@dataclass(frozen=True)
class GptjDims(Dims):
    """Sizes, the table of positions, and dropouts."""

    rotary_dim: int = 64
    max_position_embeddings: int = 2048
    resid_pdrop: float = 0.0
    embd_pdrop: float = 0.0


def body(m: Modules, ids: Tensor) -> Tensor:
    """GPT-J: token ids (rows,) to hidden states (rows, hidden_size)."""
    return _body(m, ids, separate)


def fused_body(m: Modules, ids: Tensor) -> Tensor:
    """CodeGen: token ids (rows,) to hidden states (rows, hidden_size)."""
    return _body(m, ids, fused)


def _body(m: Modules, ids: Tensor, projected: Callable[[Modules, Tensor], Projected]) -> Tensor:
    c = m.c
    inputs_embeds = m.embedding("transformer.wte", ids, c.vocab_size, c.hidden_size)
    counted = position_ids(m)
    mask = causal_mask(m, inputs_embeds.dtype)
    x = dropout(inputs_embeds, c.embd_pdrop)
    positions = empty((m.length, c.rotary_dim), "fp32", "index")
    if projected is separate:
        positions = cast(positions, x.dtype)
    for layer in m.layers("transformer.h", c.kinds):
        x = layer(block, x, projected, mask, positions, counted)
    x = layer_norm(m, "transformer.ln_f", x)
    del inputs_embeds  # transformers holds them until its forward returns
    return x


def block(
    m: Modules,
    x: Tensor,
    projected: Callable[[Modules, Tensor], Projected],
    mask: Tensor | None,
    positions: Tensor,
    counted: Tensor,
) -> Tensor:
    """One layer."""
    residual = x
    x = layer_norm(m, "ln_1", x)
    attended = self_attention(m, x, projected, mask, positions)
    fed = mlp(m, x)
    return add(add(attended, fed), residual)


def separate(m: Modules, x: Tensor) -> Projected:
    """Queries, keys and values (rows, heads, head_dim) out of three matrices."""
    c = m.c
    by_head = (m.rows, c.num_attention_heads, c.head_dim)
    q = reshape(m.linear("attn.q_proj", x, c.hidden_size), by_head)
    k = reshape(m.linear("attn.k_proj", x, c.hidden_size), by_head)
    v = reshape(m.linear("attn.v_proj", x, c.hidden_size), by_head)
    return None, q, k, v


def self_attention(
    m: Modules,
    x: Tensor,
    projected: Callable[[Modules, Tensor], Projected],
    mask: Tensor | None,
    positions: Tensor,
) -> Tensor:
    """Attention whose eager scores are made in fp32."""
    c = m.c
    product, q, k, v = projected(m, x)
    v = split(m, v, c.num_attention_heads, c.head_dim)
    k_turned, k_passed = _beginning(k, c.rotary_dim)
    q_turned, q_passed = _beginning(q, c.rotary_dim)
    k_turned = _rotated(m, k_turned, positions)
    q_turned = _rotated(m, q_turned, positions)
    k = cat((k_turned, k_passed), k.shape)
    q = cat((q_turned, q_passed), q.shape)
    q = split(m, q, c.num_attention_heads, c.head_dim)
    if projected is fused:
        q = cast(q, v.dtype)
    k = split(m, k, c.num_attention_heads, c.head_dim)
    if projected is fused:
        k = cast(k, v.dtype)
    out = attention(m, q, k, v, mask, dropout_p=c.attention_dropout, eager=Eager(wide_scores=True, wide_softmax=False))
    out = m.linear("attn.out_proj", out, c.hidden_size)
    del product  # a name of the frame
    return dropout(out, c.resid_pdrop)


def _beginning(x: Tensor, width: int) -> tuple[Tensor, Tensor]:
    return part(x, (*x.shape[:-1], width)), part(x, (*x.shape[:-1], x.shape[-1] - width))


def _rotated(m: Modules, x: Tensor, positions: Tensor) -> Tensor:
    """x rotated by sines and cosines that are repeated for this call."""
    shape = (m.length, x.shape[-1])
    sin = empty(shape, positions.dtype, "repeat_interleave")
    cos = empty(shape, positions.dtype, "repeat_interleave")
    return rotated(x, Rotation(cos, sin, None))


def mlp(m: Modules, x: Tensor) -> Tensor:
    """Feed-forward without a gate, and a dropout."""
    c = m.c
    x = m.linear("mlp.fc_in", x, c.intermediate_size, True)
    x = activated(m, x, c.hidden_act)
    x = m.linear("mlp.fc_out", x, c.hidden_size, True)
    return dropout(x, c.resid_pdrop)


def fused(m: Modules, x: Tensor) -> Projected:
    """Queries, keys and values (rows, heads, head_dim) out of one matrix, laid out for four machines: each is copied out."""
    c = m.c
    local = c.hidden_size // 4
    qkv = reshape(m.linear("attn.qkv_proj", x, 3 * c.hidden_size), (m.rows, 4, 3 * local))
    by_head = (m.rows, c.num_attention_heads, c.head_dim)
    q, v, k = (reshape(clone(piece), by_head) for piece in pieces(qkv, (local, local, local)))
    return qkv, q, k, v


def head(m: Modules, x: Tensor) -> Tensor:
    """Logits, with a bias."""
    c = m.c
    if c.tie_word_embeddings:
        return m.product(x, m.tied(), m.weight("lm_head.bias", (c.vocab_size,), "bias"))
    return m.linear("lm_head", x, c.vocab_size, True, role="head")


def dims(config: Config) -> Dims:
    """GPTJConfig's and CodeGenConfig's fields and defaults."""
    common = sizes(
        config,
        vocab_size=50400,
        hidden_size=4096,
        num_hidden_layers=28,
        num_attention_heads=16,
        hidden_act="gelu_new",
        names=NAMES,
    )
    return GptjDims(
        **common,
        rotary_dim=config.integer("rotary_dim", default=64, high=common["head_dim"]),
        max_position_embeddings=config.integer("n_positions", "max_position_embeddings", default=2048),
        resid_pdrop=share(config, "resid_pdrop"),
        embd_pdrop=share(config, "embd_pdrop"),
    )


def _table(dims: Dims, size: int) -> int:
    """Sines and cosines of every position."""
    assert isinstance(dims, GptjDims)
    return dims.max_position_embeddings * dims.rotary_dim * 4


FAMILIES = (
    Family(
        id="gptj",
        types={"gptj": "GPT-J"},
        dims=dims,
        body=body,
        head=head,
        buffers=_table,
        source="transformers 5.24.0, models/gptj/modeling_gptj.py",
    ),
    Family(
        id="codegen",
        types={"codegen": "CodeGen"},
        dims=dims,
        body=fused_body,
        head=head,
        buffers=_table,
        source="transformers 5.24.0, models/codegen/modeling_codegen.py",
    ),
)
