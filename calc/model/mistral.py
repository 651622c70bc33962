"""Mistral: Llama without biases and with an optional window over all layers. Mirrors transformers 5.24.0 models/mistral/modeling_mistral.py."""

from __future__ import annotations

from dataclasses import replace

from calc.autograd.tensor import Tensor
from calc.model import llama
from calc.model.config import Config
from calc.model.decoder import decoder, sizes, window
from calc.model.family import Dims, Family
from calc.model.modules import Modules

_SIZES = {
    "vocab_size": 32000,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
}


def body(m: Modules, ids: Tensor) -> Tensor:
    """Token ids (rows,) to hidden states (rows, hidden_size)."""
    return decoder(m, ids, llama.block, masked=m.c.kinds[:1])


def dims(config: Config) -> Dims:
    """MistralConfig's fields and defaults."""
    common = Dims(**sizes(config, **_SIZES), sliding_window=window(config, 4096))
    kind = "full" if common.sliding_window is None else "sliding"
    return replace(common, kinds=(kind,) * common.num_hidden_layers)


FAMILIES = (
    Family(
        id="mistral",
        types={"mistral": "Mistral"},
        dims=dims,
        body=body,
        source="transformers 5.24.0, models/mistral/modeling_mistral.py",
    ),
)
