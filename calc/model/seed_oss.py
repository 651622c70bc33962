"""Seed-OSS: Llama with biases and a dropout behind each half. Mirrors transformers 5.24.0 models/seed_oss/modeling_seed_oss.py."""

from __future__ import annotations

from dataclasses import dataclass

from calc.autograd.elementwise import dropout
from calc.autograd.tensor import Tensor
from calc.model import llama
from calc.model.config import Config
from calc.model.decoder import decoder, pre_norm, share, sizes
from calc.model.family import Dims, Family
from calc.model.modules import Modules
from calc.model.rotary import Rotation


@dataclass(frozen=True)
class SeedOssDims(Dims):
    """Sizes, and a dropout."""

    residual_dropout: float = 0.1


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    return decoder(m, ids, block)


def block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """One decoder layer."""
    return pre_norm(m, x, self_attention, mlp, mask, positions)


def self_attention(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """Grouped-query attention, and a dropout."""
    return dropout(llama.self_attention(m, x, mask, positions), m.c.residual_dropout)


def mlp(m: Modules, x: Tensor) -> Tensor:
    """Gated feed-forward, and a dropout."""
    return dropout(llama.mlp(m, x), m.c.residual_dropout)


def dims(config: Config) -> Dims:
    """SeedOssConfig's fields and defaults."""
    return SeedOssDims(
        **sizes(
            config,
            vocab_size=155136,
            hidden_size=4096,
            intermediate_size=27648,
            num_hidden_layers=64,
            num_attention_heads=80,
            num_key_value_heads=8,
            head_dim=128,
            attention_dropout=0.1,
        ),
        attention_bias=config.boolean("attention_bias", default=True),
        output_bias=config.boolean("attention_out_bias", default=False),
        mlp_bias=config.boolean("mlp_bias", default=False),
        residual_dropout=share(config, "residual_dropout", default=0.1),
    )


FAMILIES = (
    Family(
        id="seed_oss",
        types={"seed_oss": "Seed-OSS"},
        dims=dims,
        body=body,
        source="transformers 5.24.0, models/seed_oss/modeling_seed_oss.py",
    ),
)
