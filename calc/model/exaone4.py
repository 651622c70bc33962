"""EXAONE 4: norms behind each half, normed queries and keys, windows with positions only there. Mirrors transformers 5.24.0 models/exaone4/modeling_exaone4.py."""

from __future__ import annotations

from calc.autograd.elementwise import add
from calc.autograd.tensor import Tensor
from calc.model.apertus import self_attention
from calc.model.config import Config
from calc.model.decoder import decoder, layer_kinds, sizes, window
from calc.model.family import Dims, Family
from calc.model.llama import mlp
from calc.model.modules import Modules
from calc.model.norms import rms_norm
from calc.model.qwen2 import masked
from calc.model.rotary import Rotation


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    return decoder(m, ids, block, masked=masked(m.c), others={"unrotated": unrotated})


def block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation | None) -> Tensor:
    """One decoder layer."""
    residual = x
    x = self_attention(m, x, mask, positions)
    x = rms_norm(m, "post_attention_layernorm", x)
    x = add(residual, x)
    residual = x
    x = mlp(m, x)
    x = rms_norm(m, "post_feedforward_layernorm", x)
    return add(residual, x)


def unrotated(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """One decoder layer that leaves the positions aside."""
    return block(m, x, mask, None)


def dims(config: Config) -> Dims:
    """Exaone4Config's fields and defaults. `sliding_window_pattern` is a number of layers, or a word of L and G for local and global ones."""
    common = sizes(
        config,
        vocab_size=102400,
        hidden_size=4096,
        intermediate_size=16384,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=32,
    )
    layers = common["num_hidden_layers"]
    size = window(config, 4096)
    if size is None:
        kinds = layer_kinds(config, layers, lambda i: False)
        return Dims(**{**common, "kinds": kinds})
    given = config.given("sliding_window_pattern")
    if isinstance(given, str):
        word = config.text("sliding_window_pattern")
        pattern = len(word) or 1
    else:
        pattern = config.integer("sliding_window_pattern", default=4)
    kinds = layer_kinds(config, layers, lambda i: (i + 1) % pattern != 0)
    return Dims(
        **{**common, "kinds": tuple([k if k == "sliding" else f"{k} unrotated" for k in kinds])}, sliding_window=size
    )


FAMILIES = (
    Family(
        id="exaone4",
        types={"exaone4": "EXAONE 4"},
        dims=dims,
        body=body,
        source="transformers 5.24.0, models/exaone4/modeling_exaone4.py",
    ),
)
