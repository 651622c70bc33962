"""What a framework does around the model's primitives: precision, adapters, quantisation, kernels, checkpointing.

A `Recipe` is the part of a plan that changes the run on shapes. Each entry is what it is in a framework: autocast is a context in which
`linear` casts, LoRA a module around `linear`, nf4 a storage that is unpacked when used, checkpointing a function that runs a block again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from calc.catalog.frameworks import Logits
from calc.catalog.kernels import KERNELS, Kernels

PARTS = frozenset(("text", "vision", "projector"))
"""What a model that sees images consists of. A model without eyes is all text."""


@dataclass(frozen=True, slots=True)
class Adapters:
    """LoRA: which layers, how wide, in which dtype."""

    rank: int
    targets: tuple[str, ...] | Literal["all-linear", "attention"]
    dropout: float = 0.0
    dtype: str = "fp32"
    saved_modules: tuple[str, ...] = ()
    dora: bool = False

    @property
    def meets_queries(self) -> bool:
        """Surely on the layer that makes the queries, which meet all that attention's layers share (tables of positions)."""
        return self.targets in ("all-linear", "attention") or "q_proj" in self.targets


@dataclass(frozen=True, slots=True)
class QuantizedBase:
    """A frozen base in 4 or 8 bits."""

    format: Literal["nf4", "fp4", "int8"]
    double_quant: bool = False
    shared: bool = False
    """The codes are stored as numbers that sharding takes (`bnb_4bit_quant_storage`), so that each GPU keeps a share of them."""
    compute: str = "bf16"
    """What the weights are unpacked to (`bnb_4bit_compute_dtype`)."""
    loaded: str = "bf16"
    """Dtype of what is not quantised before `prepare_model_for_kbit_training` turns its parameters, and not its buffers, to fp32."""

    @property
    def dtype(self) -> str:
        """The stored format's name in the parameter list."""
        return f"{self.format}-double" if self.double_quant and self.format != "int8" else self.format


@dataclass(frozen=True, slots=True)
class Images:
    """The images of a batch: alike in size."""

    per_sequence: int
    height: int
    width: int
    """Pixels, as the data set has them."""


@dataclass(frozen=True, slots=True)
class Sharded:
    """Weights, gradients and states cut into one share per GPU, and gathered block by block (FSDP)."""

    strategy: Literal["fsdp2", "fsdp"]
    """torch's `fully_shard`, or the older FullyShardedDataParallel."""
    ranks: int
    """GPUs that share one copy of the weights."""
    stored: str
    """Dtype of the shares; the recipe's own is that of the gathered weights and of the gradients on their way."""
    adapters: str = "fp32"
    """Dtype of the adapters' shares; the adapters' own is that of the gathered ones."""
    mixed: bool = False
    """Mixed precision of the sharding's own: what the model gives is lowered too."""
    reshard: bool = True
    """Gathered weights are let go after a block's forward (`reshard_after_forward`), and gathered again in the backward."""
    copies: int = 1
    """Groups of `ranks` GPUs, each with a copy of the weights, whose gradients are summed."""
    turn: Literal["only", "each", "first", "middle", "last"] = "only"
    """Which micro-batch runs: the only one; one whose gradients are reduced and added to shares that are there; or, where gradients stay whole until
    the last one's backward, the first, one in the middle, the last."""
    on_host: bool = False
    """Shares of weights, gradients and states lie in host memory."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How the run goes."""

    batch: int
    length: int
    dtype: str = "bf16"
    autocast: str | None = None
    adapters: Adapters | None = None
    quantized: QuantizedBase | None = None
    attention: Literal["eager", "sdpa", "flash_attention_2", "flash_attention_3"] = "sdpa"
    flash: bool = True
    """The card runs PyTorch's flash kernel; older ones take the memory-efficient kernel."""
    few_key_heads: bool = True
    """sdpa gets grouped key heads as they are instead of repeated ones."""
    flash_repeats: tuple[str, ...] = ()
    """Model types whose flash-attention 2 class repeats grouped key heads first."""
    narrow_logits: tuple[str, ...] = ()
    """Model types whose class gives the loss its logits in their own dtype."""
    one_mask: bool = False
    """Eager attention's mask of a batch without padding is one for all sequences."""
    position_tables: tuple[str, ...] = ()
    """Model types of which each layer holds a table of cosines and one of sines for every position."""
    position_masks: tuple[str, ...] = ()
    """Model types of which each layer holds a mask of every position by every position."""
    grouped_experts: bool = True
    """Experts are 3-D parameters that a grouped product uses; else modules of linear layers, one after another."""
    loss: Literal["eager", "triton", "chunked", "liger", "cce"] = "eager"
    logits: Logits = "padded labels"
    """How whole logits meet the labels."""
    scaled: bool = False
    """A scaler multiplies the loss before the backward pass."""
    keeps_outputs: bool = False
    """The logits that the model returned are held until the step is over."""
    kernels: Kernels = KERNELS["eager"]
    checkpointing: Literal["none", "full", "selective", "offload"] = "none"
    offloads: bool = False
    """What operations save for the backward pass goes to host memory, blocks' inputs under checkpointing."""
    reentrant: bool = False
    """Checkpointing of the older kind: the whole block runs again, and its graph is run backwards inside the outer one."""
    scratch: bool = False
    """Count what kernels allocate for their own length, as a GPU does and a recording of operations does not."""
    padded: bool = False
    accumulated: bool = False
    """Gradients of an earlier micro-batch are there already."""
    sharded: Sharded | None = None
    """None where each GPU has all weights."""
    images: Images | None = None
    """None where no sequence has an image: towers then stand by and do not run."""
    trained: frozenset[str] = PARTS
    """The parts of the model that are trained; with adapters, those that get some."""
