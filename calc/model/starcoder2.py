"""StarCoder 2: layer norms, biases everywhere, a plain feed-forward. Mirrors transformers 5.24.0 models/starcoder2/modeling_starcoder2.py."""

from __future__ import annotations

from dataclasses import dataclass

from calc.autograd.elementwise import dropout
from calc.autograd.tensor import Tensor
from calc.model import llama
from calc.model.activations import activated
from calc.model.config import Config
from calc.model.decoder import decoder, pre_norm, sizes, window
from calc.model.family import Dims, Family
from calc.model.modules import Modules
from calc.model.norms import layer_norm
from calc.model.rotary import Rotation


@dataclass(frozen=True)
class Starcoder2Dims(Dims):
    """Sizes, and dropouts on the stream."""

    residual_dropout: float = 0.0
    embedding_dropout: float = 0.0


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    return decoder(m, ids, block, masked=m.c.kinds[:1], norm=layer_norm, dropped=m.c.embedding_dropout)


def block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """One decoder layer."""
    return pre_norm(m, x, self_attention, mlp, mask, positions, norm=layer_norm)


def self_attention(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """Grouped-query attention, and a dropout."""
    return dropout(llama.self_attention(m, x, mask, positions), m.c.residual_dropout)


def mlp(m: Modules, x: Tensor) -> Tensor:
    """Feed-forward without a gate, and a dropout."""
    c = m.c
    x = m.linear("mlp.c_fc", x, c.intermediate_size, c.mlp_bias)
    x = activated(m, x, c.hidden_act)
    x = m.linear("mlp.c_proj", x, c.hidden_size, c.mlp_bias)
    return dropout(x, c.residual_dropout)


def dims(config: Config) -> Dims:
    """Starcoder2Config's fields and defaults."""
    common = sizes(
        config,
        vocab_size=49152,
        hidden_size=3072,
        intermediate_size=12288,
        num_hidden_layers=30,
        num_attention_heads=24,
        num_key_value_heads=2,
        hidden_act="gelu_pytorch_tanh",
        tie_word_embeddings=True,
    )
    bias = config.boolean("use_bias", default=True)
    size = window(config, None)
    return Starcoder2Dims(
        **{**common, "kinds": ("full" if size is None else "sliding",) * common["num_hidden_layers"]},
        sliding_window=size,
        attention_bias=bias,
        output_bias=bias,
        mlp_bias=bias,
        residual_dropout=config.number("residual_dropout", default=0.0, low=0.0, high=1.0),
        embedding_dropout=config.number("embedding_dropout", default=0.0, low=0.0, high=1.0),
    )


FAMILIES = (
    Family(
        id="starcoder2",
        types={"starcoder2": "StarCoder 2"},
        dims=dims,
        body=body,
        source="transformers 5.24.0, models/starcoder2/modeling_starcoder2.py",
    ),
)
