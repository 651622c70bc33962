"""Granite: Llama with numbers multiplied onto embeddings, both halves of a layer, and logits.

Mirrors transformers 5.24.0 models/granite/modeling_granite.py.
"""

from __future__ import annotations

from calc.autograd.elementwise import scale
from calc.autograd.tensor import Tensor
from calc.model import llama
from calc.model.config import Config
from calc.model.decoder import decoder, pre_norm
from calc.model.family import Dims, Family, lm_head
from calc.model.modules import Modules
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


def dims(config: Config) -> Dims:
    """GraniteConfig's fields and defaults: those of Llama, and factors that change no size."""
    return llama.dims(config)


FAMILIES = (
    Family(
        id="granite",
        types={"granite": "Granite"},
        dims=dims,
        body=body,
        head=head,
        source="transformers 5.24.0, models/granite/modeling_granite.py",
    ),
)
