"""Nemotron and the models that share its feed-forward without a gate: Arcee (with Llama's layer) and Jais 2 (with layer norms).

Mirrors transformers 5.24.0 models/nemotron/modeling_nemotron.py, models/arcee/modeling_arcee.py and models/jais2/modeling_jais2.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from calc.autograd.elementwise import add_constant, cast
from calc.autograd.elementwise import layer_norm as native_layer_norm
from calc.autograd.tensor import Tensor
from calc.model.activations import activated
from calc.model.attention import attention
from calc.model.config import Config
from calc.model.decoder import decoder, pre_norm, rotary_dim, sizes
from calc.model.family import Dims, Family, rotary_buffers
from calc.model.llama import queries_keys_values
from calc.model.llama import self_attention as llama_attention
from calc.model.modules import Modules
from calc.model.norms import layer_norm
from calc.model.rotary import Rotation, partly_rotated


@dataclass(frozen=True)
class NemotronDims(Dims):
    """Sizes, and the components of a head that are rotated."""

    rotary_dim: int = 0


def body(m: Modules, ids: Tensor) -> Tensor:
    """Nemotron: token ids (rows,) to hidden states (rows, hidden_size)."""
    return decoder(m, ids, block, norm=shifted_layer_norm, rotary_dim=m.c.rotary_dim)


def arcee_body(m: Modules, ids: Tensor) -> Tensor:
    """Arcee: token ids (rows,) to hidden states (rows, hidden_size)."""
    return decoder(m, ids, arcee_block)


def jais_body(m: Modules, ids: Tensor) -> Tensor:
    """Jais 2: token ids (rows,) to hidden states (rows, hidden_size)."""
    return decoder(m, ids, jais_block, norm=layer_norm)


def block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """Nemotron's layer."""
    return pre_norm(m, x, self_attention, mlp, mask, positions, norm=shifted_layer_norm)


def arcee_block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """Arcee's layer."""
    return pre_norm(m, x, llama_attention, mlp, mask, positions)


def jais_block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """Jais 2's layer."""
    return pre_norm(m, x, llama_attention, mlp, mask, positions, norm=layer_norm)


def shifted_layer_norm(m: Modules, name: str, x: Tensor) -> Tensor:
    """A layer norm whose weight is one plus what is trained; under autocast it works in the lower precision."""
    weight = add_constant(m.weight(f"{name}.weight", (x.shape[-1],), "norm"))
    offset = m.weight(f"{name}.bias", (x.shape[-1],), "norm")
    to = m.recipe.autocast
    if to is None:
        return native_layer_norm(x, weight, offset)
    lowered = cast(x, to), cast(weight, to), cast(offset, to)
    del weight
    return native_layer_norm(*lowered)


def self_attention(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """Grouped-query attention, part of each head rotated."""
    c = m.c
    q, k, v = queries_keys_values(m, x)
    rotated_q, rotated_k = partly_rotated(q, positions), partly_rotated(k, positions)
    q, k = rotated_q, rotated_k
    del rotated_q, rotated_k
    out = attention(m, q, k, v, mask, dropout_p=c.attention_dropout)
    return m.linear("self_attn.o_proj", out, c.hidden_size, c.output_bias)


def mlp(m: Modules, x: Tensor) -> Tensor:
    """Feed-forward without a gate."""
    c = m.c
    return m.linear(
        "mlp.down_proj",
        activated(m, m.linear("mlp.up_proj", x, c.intermediate_size, c.mlp_bias), c.hidden_act),
        c.hidden_size,
        c.mlp_bias,
    )


def dims(config: Config) -> Dims:
    """NemotronConfig's fields and defaults."""
    bias = config.boolean("attention_bias", default=False)
    common = sizes(
        config,
        vocab_size=256000,
        hidden_size=6144,
        intermediate_size=24576,
        num_hidden_layers=32,
        num_attention_heads=48,
        hidden_act="relu2",
    )
    return NemotronDims(
        **common,
        attention_bias=bias,
        output_bias=bias,
        mlp_bias=config.boolean("mlp_bias", default=False),
        rotary_dim=rotary_dim(config, common["head_dim"], 0.5),
    )


def arcee_dims(config: Config) -> Dims:
    """ArceeConfig's fields and defaults."""
    bias = config.boolean("attention_bias", default=False)
    return Dims(
        **sizes(
            config,
            vocab_size=32000,
            hidden_size=2560,
            intermediate_size=18432,
            num_hidden_layers=32,
            num_attention_heads=32,
            hidden_act="relu2",
        ),
        attention_bias=bias,
        output_bias=bias,
        mlp_bias=config.boolean("mlp_bias", default=False),
    )


def jais_dims(config: Config) -> Dims:
    """Jais2Config's fields and defaults."""
    bias = config.boolean("attention_bias", default=True)
    return Dims(
        **sizes(
            config,
            vocab_size=150272,
            hidden_size=3328,
            intermediate_size=26624,
            num_hidden_layers=32,
            num_attention_heads=26,
            hidden_act="relu2",
        ),
        attention_bias=bias,
        output_bias=bias,
        mlp_bias=config.boolean("mlp_bias", default=True),
    )


FAMILIES = (
    Family(
        id="nemotron",
        types={"nemotron": "Nemotron"},
        dims=dims,
        body=body,
        buffers=lambda dims, size: rotary_buffers(dims.rotary_dim),
        source="transformers 5.24.0, models/nemotron/modeling_nemotron.py",
    ),
    Family(
        id="arcee",
        types={"arcee": "Arcee"},
        dims=arcee_dims,
        body=arcee_body,
        source="transformers 5.24.0, models/arcee/modeling_arcee.py",
    ),
    Family(
        id="jais2",
        types={"jais2": "Jais 2"},
        dims=jais_dims,
        body=jais_body,
        source="transformers 5.24.0, models/jais2/modeling_jais2.py",
    ),
)
