"""Gemma: scaled embeddings and norms that add one to their weight. Mirrors transformers 5.24.0 models/gemma/modeling_gemma.py."""

from __future__ import annotations

from calc.autograd.tensor import Tensor
from calc.model.config import Config
from calc.model.decoder import decoder, pre_norm, sizes
from calc.model.family import Dims, Family, rotary_buffers
from calc.model.llama import mlp, self_attention
from calc.model.modules import Modules
from calc.model.norms import gemma_rms_norm
from calc.model.rotary import Rotation


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    return decoder(m, ids, block, norm=gemma_rms_norm, scaled=True)


def block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """One decoder layer."""
    return pre_norm(m, x, self_attention, mlp, mask, positions, norm=gemma_rms_norm)


def dims(config: Config) -> Dims:
    """GemmaConfig's fields and defaults."""
    bias = config.boolean("attention_bias", default=False)
    return Dims(
        **sizes(
            config,
            vocab_size=256000,
            hidden_size=3072,
            intermediate_size=24576,
            num_hidden_layers=28,
            num_attention_heads=16,
            num_key_value_heads=16,
            head_dim=256,
            hidden_act="gelu_pytorch_tanh",
            tie_word_embeddings=True,
        ),
        attention_bias=bias,
        output_bias=bias,
    )


FAMILIES = (
    Family(
        id="gemma",
        types={"gemma": "Gemma"},
        dims=dims,
        body=body,
        buffers=lambda dims, size: rotary_buffers(dims.head_dim) + size,
        source="transformers 5.24.0, models/gemma/modeling_gemma.py",
    ),
)
