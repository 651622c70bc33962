"""Granite: Llama with numbers multiplied onto embeddings, both halves of a layer, and logits; HyperCLOVA X adds norms.

Mirrors transformers 5.24.0 models/granite/modeling_granite.py and models/hyperclovax/modeling_hyperclovax.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from calc.autograd.elementwise import add, scale
from calc.autograd.tensor import Tensor
from calc.model import llama
from calc.model.config import Config
from calc.model.decoder import decoder, pre_norm
from calc.model.family import Dims, Family, lm_head
from calc.model.modules import Modules
from calc.model.norms import rms_norm
from calc.model.rotary import Rotation


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    return decoder(m, ids, block, embed=scale)


def block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """One decoder layer."""
    return pre_norm(m, x, llama.self_attention, llama.mlp, mask, positions, joined=lambda m, x: scale(x))


def head(m: Modules, x: Tensor) -> Tensor:
    """Logits, divided by a number."""
    logits = lm_head(m, x)
    return scale(logits)


def peri_body(m: Modules, ids: Tensor) -> Tensor:
    """HyperCLOVA X: token ids (rows,) to hidden states (rows, hidden_size)."""
    return decoder(m, ids, peri_block, embed=scale)


def peri_block(m: Modules, x: Tensor, mask: Tensor | None, positions: Rotation) -> Tensor:
    """HyperCLOVA X's layer: each half may have a norm behind it too."""
    residual = x
    x = rms_norm(m, "input_layernorm", x)
    x = llama.self_attention(m, x, mask, positions)
    if m.c.use_post_norm:
        x = rms_norm(m, "post_norm1", x)
    x = add(residual, scale(x))
    residual = x
    x = rms_norm(m, "post_attention_layernorm", x)
    x = llama.mlp(m, x)
    if m.c.use_post_norm:
        x = rms_norm(m, "post_norm2", x)
    return add(residual, scale(x))


def peri_head(m: Modules, x: Tensor) -> Tensor:
    """Logits times a number, in one expression."""
    return scale(lm_head(m, x))


def dims(config: Config) -> Dims:
    """GraniteConfig's fields and defaults: those of Llama, and factors that change no size."""
    return llama.dims(config)


@dataclass(frozen=True)
class HyperClovaDims(Dims):
    """Sizes, and whether norms stand behind the halves of a layer."""

    use_post_norm: bool = True


def peri_dims(config: Config) -> Dims:
    """HyperCLOVAXConfig's fields and defaults."""
    common = llama.dims(config)
    return HyperClovaDims(**vars(common), use_post_norm=config.boolean("use_post_norm", default=True))


FAMILIES = (
    Family(
        id="granite",
        types={"granite": "Granite"},
        dims=dims,
        body=body,
        head=head,
        source="transformers 5.24.0, models/granite/modeling_granite.py",
    ),
    Family(
        id="hyperclovax",
        types={"hyperclovax": "HyperCLOVA X"},
        dims=peri_dims,
        body=peri_body,
        head=peri_head,
        source="transformers 5.24.0, models/hyperclovax/modeling_hyperclovax.py",
    ),
)
