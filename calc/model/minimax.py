"""MiniMax-01: lightning attention, which goes through the sequence block by block and carries one matrix per head along, plain attention
among it, and Mixtral's experts. Mirrors transformers 5.24.0 models/minimax/modeling_minimax.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from calc.autograd.elementwise import add, cast, from_output, mul, scale
from calc.autograd.shapes import cat, part, permuted, rows, split_as
from calc.autograd.storage import Standing
from calc.autograd.tensor import Tensor, empty
from calc.model.activations import activated
from calc.model.attention import matmul
from calc.model.config import Config, ConfigError
from calc.model.decoder import decoder, sizes, window
from calc.model.experts import MixtureDims, chosen
from calc.model.family import Dims, Family, rotary_buffers
from calc.model.llama import self_attention
from calc.model.mixtral import SIZES, mixture
from calc.model.modules import Modules
from calc.model.norms import rms_norm
from calc.model.rotary import Rotation
from calc.model.short_convolution import unpadded


@dataclass(frozen=True)
class MiniMaxDims(MixtureDims):
    """Sizes of a block of lightning attention, too."""

    block_size: int = 256
    """Tokens that see each other directly; those before them are seen through the matrix."""


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    others = {"lightning": partial(block, attend=lightning_attention)}
    masked = ("full" if m.c.sliding_window is None else "sliding",)
    return decoder(m, ids, partial(block, attend=self_attention), others=others, masked=masked)


def block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation, *, attend: Callable[..., Tensor]) -> Tensor:
    """One decoder layer: both halves start from the normed stream, and each side is multiplied by a number of the config before they join."""
    x = rms_norm(m, "input_layernorm", x)
    residual = x
    x = attend(m, x, mask, positions)
    x = add(scale(residual), scale(x))
    x = rms_norm(m, "post_attention_layernorm", x)
    residual = x
    x = mixture(m, x)
    return add(scale(residual), scale(x))


def lightning_attention(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """Within a block every token looks at every other, with a decay in place of a mask; what came before reaches it through keys times values."""
    c = m.c
    batch, length, heads, d, size = m.batch, m.length, c.num_attention_heads, c.head_dim, c.block_size
    qkv = activated(m, m.linear("self_attn.qkv_proj", x, 3 * heads * d), c.hidden_act)
    qkv = unpadded(m, qkv)
    queries, keys, values = split_as(qkv, [(batch, heads, length, d)] * 3)
    carried = empty((batch, heads, d, d), values.dtype, "zeros", True)
    outputs = []
    start, several = 0, length > size
    while length > start:
        count = size if length > start + size else length - start
        shape, square = (batch, heads, count, d), (batch, heads, count, count)
        q, k, v = [part(t, shape) if several else t for t in (queries, keys, values)]
        block_decay = _block_decay(m)
        within = matmul(m, q, permuted(k, (batch, heads, d, count)), square)
        from_within = matmul(m, mul(within, _decay(m, (1, heads, count, count))), v, shape)
        from_before = matmul(m, mul(q, _decay(m, (heads, count, 1))), carried, shape)
        output = add(from_before, from_within)
        outputs.append(output)
        turned = permuted(mul(k, _decay(m, (heads, count, 1))), (batch, heads, d, count))
        following = matmul(m, turned, v, (batch, heads, d, d))
        del turned
        carried = add(mul(carried, block_decay), following)
        start += size
    out = cat(outputs, (batch, heads, length, d))
    outputs.clear()
    out = rows(out, (m.rows, heads * d))
    out = rms_norm(m, "self_attn.norm", out)
    out = mul(from_output(m.linear("self_attn.output_gate", x, heads * d), "sigmoid"), out)
    out = m.linear("self_attn.out_proj", out, c.hidden_size)
    m.held.append(carried)  # returned beside the result
    del qkv, queries, keys, values, q, k, v, block_decay, within, from_within, from_before, output, following
    return out


def _decay(m: Modules, shape: tuple[int, ...]) -> Tensor:
    """A part of one of the module's tables, which are in the dtype of the weights."""
    return Tensor(shape, m.recipe.dtype, Standing(shape, m.recipe.dtype, "decay"))


def _block_decay(m: Modules) -> Tensor:
    """exp(-slope·tokens) for each head, which autocast computes in fp32."""
    shape, dtype = (m.c.num_attention_heads, 1, 1), m.recipe.dtype
    negated = empty(shape, dtype, "neg")
    product = empty(shape, dtype, "mul")
    del negated
    given = product if m.recipe.autocast is None else cast(product, "fp32")
    return empty(shape, given.dtype, "exp")


def dims(config: Config) -> Dims:
    """MiniMaxConfig's fields and defaults."""
    common = sizes(config, **SIZES)
    layers, size = common["num_hidden_layers"], window(config, None)
    count, top = chosen(config, "num_local_experts", "num_experts", default=8, top=2)
    if config.number("router_jitter_noise", default=0.0) > 0:
        raise ConfigError("router_jitter_noise", "should be 0: noise in front of the router is not modelled")
    types = (
        tuple(["linear_attention" if i % 2 else "full_attention" for i in range(layers)])
        if config.given("layer_types") is None
        else config.texts("layer_types")
    )
    if len(types) != layers:
        raise ConfigError("layer_types", f"should have num_hidden_layers ({layers}) entries, not {len(types)}")
    plain = "full" if size is None else "sliding"
    kinds = {"full_attention": plain, "linear_attention": "none lightning"}
    for name in types:
        if name not in kinds:
            raise ConfigError("layer_types", f"should hold {' or '.join(kinds)}, not {name[:40]!r}")
    return MiniMaxDims(
        **{**common, "kinds": tuple([kinds[name] for name in types])},
        sliding_window=size,
        num_experts=count,
        num_experts_per_tok=top,
        moe_intermediate_size=common["intermediate_size"],
        block_size=config.integer("block_size", default=256, high=65536),
    )


def buffers(c: MiniMaxDims, size: int) -> int:
    """Rotary frequencies, and each lightning layer's slopes and tables of decays in the dtype of the weights."""
    tables = c.num_attention_heads * (1 + 2 * c.block_size + c.block_size**2)
    return rotary_buffers(c.head_dim) + size * tables * sum("lightning" in kind for kind in c.kinds)


FAMILIES = (
    Family(
        id="minimax",
        types={"minimax": "MiniMax-01"},
        dims=dims,
        body=body,
        gaps=frozenset(("releases before 5",)),
        buffers=buffers,
        masks_states=True,
        source="transformers 5.24.0, models/minimax/modeling_minimax.py",
    ),
)
