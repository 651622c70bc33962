"""Youtu-LLM: Llama's block with DeepSeek's latent attention and no experts. Mirrors transformers 5.24.0 models/youtu/modeling_youtu.py."""

from __future__ import annotations

from calc.autograd.tensor import Tensor
from calc.model.config import Config
from calc.model.decoder import decoder, sizes
from calc.model.deepseek import dense_block
from calc.model.family import Dims, Family
from calc.model.latent import LatentDims, latent_sizes
from calc.model.modules import Modules


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    return decoder(m, ids, dense_block)


def dims(config: Config) -> Dims:
    """YoutuConfig's fields and defaults."""
    common = sizes(
        config,
        vocab_size=128256,
        hidden_size=2048,
        intermediate_size=6144,
        num_hidden_layers=32,
        num_attention_heads=16,
        head_dim=64,
        tie_word_embeddings=True,
        names={"num_key_value_heads": ("num_attention_heads",)},  # each head has its own keys, whatever the field says
    )
    return LatentDims(
        **{**common, **latent_sizes(config, q_lora_rank=1536)},
        rope_interleave=config.boolean("rope_interleave", default=True),
        latent_bias=config.boolean("attention_bias", default=False),
    )


FAMILIES = (
    Family(
        id="youtu",
        types={"youtu": "Youtu-LLM"},
        dims=dims,
        body=body,
        gaps=frozenset(("offload without checkpointing",)),
        source="transformers 5.24.0, models/youtu/modeling_youtu.py",
    ),
)
