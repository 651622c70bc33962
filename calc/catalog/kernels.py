"""Replaced kernels: which parts of a model each library runs as one fused operation, and what that operation keeps.

A row says what the library's autograd functions save and where they write their gradients, read in its own source.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from calc.catalog.table import Table


@dataclass(frozen=True, slots=True)
class Kernels:
    """One library of fused kernels for transformers models."""

    id: str
    label: str
    source: str
    cross_entropy: Literal["liger", "foak"]
    """Whose in-place cross-entropy `loss: triton` means beside these kernels."""
    fused_head: Literal["liger", "foak"]
    """Whose fused head and cross-entropy `loss: liger` means beside them."""
    head_types: tuple[str, ...]
    """Architectures whose head that one knows, of those that are modelled."""
    norm: bool = False
    """RMSNorm is one kernel: keeps its input and the reciprocal root of each row, and writes the input's gradient over the incoming one."""
    trains_norm: bool = True
    """Its backward makes the weight's gradient; some leave norms as they are."""
    rotary: bool = False
    """The rotation is done in place, in both directions."""
    gated: tuple[str, ...] = ()
    """Activations whose product with the up-projection is one kernel: keeps both factors, and writes their gradients over them."""
    adapters: bool = False
    """On a 4-bit base the adapters of q, k and v are one function together, and so is the output projection's."""
    model_types: tuple[str, ...] | None = None
    """Architectures that it patches, of those that are modelled; None for all."""


_LIGER = (
    "llama",
    "mistral",
    "qwen2",
    "qwen3",
    "gemma",
    "gemma2",
    "gemma3_text",
    "phi3",
    "smollm3",
    "olmo2",
)
_LIGER_HEADS = (*_LIGER, "glm4", "mixtral", "qwen3_moe")

CUT_HEADS = (
    "llama",
    "mistral",
    "mixtral",
    "qwen2",
    "qwen3",
    "qwen3_moe",
    "gemma",
    "gemma2",
    "gemma3_text",
    "phi3",
    "smollm3",
)
"""Architectures whose head cut cross-entropy can stand for (a product, perhaps capped), of those that were recorded."""

KERNELS = Table(
    "kernels",
    Kernels("eager", "eager", "transformers", "liger", "liger", _LIGER_HEADS),
    Kernels(
        "liger", "Liger", "liger-kernel", "liger", "liger", _LIGER_HEADS,
        norm=True, rotary=True, gated=("silu", "swish", "gelu_pytorch_tanh", "gelu"), model_types=(*_LIGER, "granite"),
    ),
    Kernels(
        "foak", "fms-acceleration's", "foak", "foak", "foak", ("llama", "mistral", "mixtral"),
        norm=True, trains_norm=False, rotary=True, adapters=True, model_types=("llama", "mistral", "mixtral", "granite"),
    ),
)  # fmt: skip
