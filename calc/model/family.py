"""A family: the model types of one architecture, how their config.json is read, and the forward pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from calc.autograd.tensor import Tensor
from calc.model.config import Config
from calc.model.modules import Modules
from calc.model.quantized_checkpoint import QuantizedCheckpoint
from calc.model.recipe import Recipe


@dataclass(frozen=True)
class Dims:
    """Sizes in config.json's names. A family with more of them extends this."""

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    tie_word_embeddings: bool = False
    hidden_act: str = "silu"
    attention_bias: bool = False
    """Bias of q, k and v."""
    output_bias: bool = False
    """Bias of the projection after attention."""
    mlp_bias: bool = False
    attention_dropout: float = 0.0
    attn_logit_softcapping: bool = False
    """Whether attention scores pass through a tanh that bounds them."""
    sliding_window: int | None = None
    kinds: tuple[str, ...] = ()
    """What each layer is, in order: layers of one kind are alike."""

    @property
    def widest_head(self) -> int:
        """The size of a head in the layers where it is widest."""
        return self.head_dim


def lm_head(m: Modules, x: Tensor) -> Tensor:
    """Hidden states to logits: the embedding's own table when tied, else a matrix called lm_head."""
    c = m.c
    if c.tie_word_embeddings:
        return m.product(x, m.tied())
    return m.linear("lm_head", x, c.vocab_size, role="head")


def rotary_buffers(rotary_dim: int) -> int:
    """Bytes of a rotary module's frequencies, which it keeps twice."""
    return 2 * (rotary_dim // 2) * 4


class Input(NamedTuple):
    """An input of the model beside the token ids, such as the pixels of its images."""

    label: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, eq=False)
class Family:
    """One architecture. `types` maps config.json's model_type to the name that people know."""

    id: str
    types: Mapping[str, str]
    dims: Callable[[Config], Dims]
    body: Callable[[Modules, Tensor], Tensor]
    """Token ids (rows,) to the last hidden states (rows, hidden_size)."""
    source: str
    """The modelling file that the forward pass mirrors."""
    head: Callable[[Modules, Tensor], Tensor] = lm_head
    loss: Callable[[Modules, Tensor], tuple[Tensor, Tensor]] | None = None
    """Last hidden states to the loss and the logits, head included, of a class whose loss is not that of the next token."""
    attentions: tuple[str, ...] = ("eager", "sdpa", "flash_attention_2", "flash_attention_3")
    """Implementations that the class accepts."""
    checkpoints: bool = True
    """The class can checkpoint its layers."""
    gaps: frozenset[str] = frozenset()
    """What is not modelled for it: "fp16 weights", "a quantised base", "releases before 5", "other losses",
    "all-linear adapters in the tower", "activations in host memory", "a mask beside activations in host memory",
    "offload without checkpointing"; what its class cannot do: "autocast over 16-bit weights", "16-bit arithmetic",
    "adapters on every linear layer"; and what PEFT cannot do with its tower: "adapters by name in the tower"."""
    buffers: Callable[[Any, int], int] = lambda dims, size: rotary_buffers(dims.head_dim)
    """Bytes of the tensors that are neither weights nor saved (rotary frequencies, in fp32), for weights of `size` bytes an element."""
    given: Callable[[Any, Recipe], tuple[Input, ...]] = lambda dims, recipe: ()
    """Inputs beside the token ids."""
    masks_states: bool = False
    """Padding is cut out of the hidden states by the batch's own mask, which is then kept for the backward pass."""
    packages: tuple[str, ...] = ()
    """Packages whose kernels transformers takes where they are installed; the forward pass is torch's own path, without them."""
    mended: str = ""
    """The field of an output that the class of 5.24.0 looks for and does not find; what is modelled is the class with that mended."""
    fused: frozenset[str] = field(default_factory=frozenset)
    """Families of replaced kernels that know this architecture: liger, ..."""


@dataclass(frozen=True)
class Architecture:
    """A family with the sizes of one config.json."""

    family: Family
    dims: Dims
    model_type: str
    notes: tuple[str, ...] = ()
    context: int | None = None
    """Positions that the model was made for (`max_position_embeddings`)."""
    checkpoint: QuantizedCheckpoint | None = None
    """How the repository stores its weights, if they are quantised."""

    @property
    def name(self) -> str:
        """The architecture as people call it."""
        return self.family.types[self.model_type]

    @property
    def text(self) -> Dims:
        """The sizes of what works on tokens: of a model that sees, its text model's."""
        return getattr(self.dims, "text", self.dims)


class UnknownArchitecture(ValueError):
    """A model type that no family mirrors yet."""


class NotModelled(UnknownArchitecture):
    """A model type whose parameters are known to the last element, but whose activations are not modelled."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"the parameters of {name} are known, but its activations are not modelled yet, so a step cannot be estimated"
        )
