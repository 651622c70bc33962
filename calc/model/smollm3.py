"""SmolLM3: Llama where every fourth layer has no positions. Mirrors transformers 5.24.0 models/smollm3/modeling_smollm3.py."""

from __future__ import annotations

from calc.autograd.tensor import Tensor
from calc.model import llama
from calc.model.config import Config, ConfigError
from calc.model.decoder import decoder, layer_kinds, pre_norm, sizes, window
from calc.model.family import Dims, Family
from calc.model.modules import Modules
from calc.model.qwen2 import masked
from calc.model.rotary import Rotation


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    return decoder(m, ids, llama.block, masked=masked(m.c), others={"unrotated": unrotated})


def unrotated(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """One decoder layer that leaves the positions aside."""
    return pre_norm(m, x, llama.self_attention, llama.mlp, mask, None)


def dims(config: Config) -> Dims:
    """SmolLM3Config's fields and defaults. A 1 in `no_rope_layers` means that the layer has positions."""
    bias = config.boolean("attention_bias", default=False)
    common = sizes(
        config,
        vocab_size=128256,
        hidden_size=2048,
        intermediate_size=11008,
        num_hidden_layers=36,
        num_attention_heads=16,
        num_key_value_heads=4,
        tie_word_embeddings=True,
    )
    layers = common["num_hidden_layers"]
    interval = config.integer("no_rope_layer_interval", default=4)
    rotates = config.integers("no_rope_layers", default=None) or [(i + 1) % interval != 0 for i in range(layers)]
    if len(rotates) != layers:
        raise ConfigError("no_rope_layers", f"should have num_hidden_layers ({layers}) entries, not {len(rotates)}")
    size = window(config, None) if config.boolean("use_sliding_window", default=False) else None
    kinds = layer_kinds(config, layers, lambda i: size is not None and not rotates[i])
    return Dims(
        **{**common, "kinds": tuple([k if r else f"{k} unrotated" for k, r in zip(kinds, rotates, strict=True)])},
        sliding_window=size,
        attention_bias=bias,
        output_bias=bias,
        mlp_bias=config.boolean("mlp_bias", default=False),
    )


FAMILIES = (
    Family(
        id="smollm3",
        types={"smollm3": "SmolLM3"},
        dims=dims,
        body=body,
        source="transformers 5.24.0, models/smollm3/modeling_smollm3.py",
    ),
)
