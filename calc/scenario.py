"""Scenario: everything that a visitor can choose, in one frozen object.

The link, the command line, exported files and golden tests are encodings of it. Each field's docstring is the help that a visitor
reads; its bounds are the bounds of the page's control. Defaults are what transformers 5.24 does when one types nothing, on one H100
with bf16 weights and 2,048 tokens, and they are frozen: a link of this schema version opens the same numbers for good.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, field_validator

from calc.catalog.frameworks import FRAMEWORKS
from calc.catalog.gpus import GPUS
from calc.catalog.optimizers import OPTIMIZERS

SCHEMA_VERSION = 1

Precision = Literal[
    "fp32", "bf16", "bf16-autocast", "bf16-mixed", "fp16-mixed", "fp16-autocast", "bf16-master", "fp16-master"
]
Checkpointing = Literal["none", "full", "selective", "offload"]
Attention = Literal["eager", "sdpa", "flash_attention_2", "flash_attention_3"]
Loss = Literal["eager", "triton", "chunked", "liger", "cce"]
Kernels = Literal["eager", "liger", "foak", "unsloth"]
Strategy = Literal["none", "ddp", "zero1", "zero2", "zero3", "fsdp", "fsdp2", "megatron"]
Offload = Literal["none", "optimizer", "all"]
Objective = Literal["sft"]
AdapterDType = Literal["fp32", "bf16", "fp16"]
QuantizedFormat = Literal["nf4", "fp4", "int8"]


class Frozen(BaseModel):
    """An input: immutable, hashable by value, unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)


class LoraAdapter(Frozen):
    """Two thin matrices beside each targeted layer; the layer itself stays fixed."""

    rank: Annotated[int, Field(ge=1, le=4096)] = 8
    """Inner width r of the adapter (PEFT: `r`). Memory of the adapter grows linearly with it."""
    alpha: Annotated[float, Field(gt=0, le=65536)] = 8
    """Scale of the adapter's output (PEFT: `lora_alpha`). It costs no memory."""
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Dropout before the adapter (PEFT: `lora_dropout`). Above 0 it keeps a mask and a copy of each adapted layer's input."""
    target_modules: (
        Literal["all-linear", "attention"] | tuple[Annotated[str, Field(min_length=1, max_length=80)], ...]
    ) = "all-linear"
    """Which linear layers get an adapter (PEFT: `target_modules`): every one but the head, the attention's, or a list of names."""
    modules_to_save: tuple[Annotated[str, Field(min_length=1, max_length=80)], ...] = ()
    """Layers trained whole beside the adapters (PEFT: `modules_to_save`), such as embed_tokens and lm_head after adding tokens."""
    adapter_dtype: AdapterDType = "fp32"
    """Format of the adapter's weights. PEFT makes them fp32 even on a bf16 base (`autocast_adapter_dtype=True`)."""
    use_dora: bool = False
    """Weight-decomposed LoRA (PEFT: `use_dora`): a magnitude vector per layer, and the whole weight rebuilt in each pass."""

    @field_validator("target_modules")
    @classmethod
    def _some_target(cls, value: Any) -> Any:
        if value == ():
            raise ValueError("name at least one layer to adapt, or use 'all-linear'")
        return value


class Quantization(Frozen):
    """How the frozen base is stored (bitsandbytes)."""

    format: QuantizedFormat = "nf4"
    """nf4 and fp4 hold 4 bits per weight and a scale per 64 weights; int8 holds 8 bits and a scale per row."""
    double_quant: bool = True
    """Quantise the scales too (`bnb_4bit_use_double_quant`): 4.127 instead of 4.5 bits per weight."""
    upcast_for_training: bool = False
    """Turn norms, embeddings and head to fp32 first (`prepare_model_for_kbit_training`), as many recipes do."""


class Sharding(Frozen):
    """How the run is spread over GPUs."""

    strategy: Strategy = "none"
    """What each GPU holds a share of: nothing (none, ddp), states (zero1), also gradients (zero2), also weights (zero3, fsdp)."""
    data_parallel: Annotated[int, Field(ge=1, le=65536)] = 1
    """Groups of GPUs that each see other data."""
    replicas: Annotated[int, Field(ge=1, le=65536)] = 1
    """Copies of the sharded weights, as one per machine (accelerate: `dp_replicate_size`; FSDP1: HYBRID_SHARD): each is shared by
    data_parallel / replicas GPUs."""
    reshard_after_forward: bool = True
    """Let a block's gathered weights go after its forward pass and gather them again in the backward (`fsdp_reshard_after_forward`; FSDP1:
    FULL_SHARD, else SHARD_GRAD_OP)."""
    sync_each_batch: bool = False
    """Reduce gradients with each micro-batch of an accumulated step, instead of keeping them whole until the last one (accelerate:
    `sync_each_batch`)."""
    tensor_parallel: Annotated[int, Field(ge=1, le=256)] = 1
    """GPUs that share each layer's matrices."""
    pipeline_parallel: Annotated[int, Field(ge=1, le=256)] = 1
    """GPUs that share the layers."""
    context_parallel: Annotated[int, Field(ge=1, le=256)] = 1
    """GPUs that share each sequence."""
    expert_parallel: Annotated[int, Field(ge=1, le=256)] = 1
    """GPUs that share the experts of a mixture."""
    offload: Offload = "none"
    """What lies in host memory: nothing, the optimizer, or weights and gradients too (FSDP: `fsdp_offload_params`)."""
    activation_offload: bool = False
    """Keep saved activations in host memory (TRL: `activation_offloading`)."""


class Images(Frozen):
    """Images in the sequences, for models that see them, and which parts of such a model are trained."""

    per_sequence: Annotated[int, Field(ge=0, le=1000)] = 0
    """Images in each sequence; 0 trains on text alone. Their tokens are part of the sequence length."""
    height: Annotated[int, Field(ge=1, le=16384)] = 448
    """Height in pixels, as the data set has it; the image processor of the model makes its own size of it."""
    width: Annotated[int, Field(ge=1, le=16384)] = 448
    """Width in pixels, as the data set has it."""
    train_text: bool = True
    """Train the text model (with adapters: adapt it); off freezes it (`requires_grad_(False)` on language_model)."""
    train_vision: bool = True
    """Train the vision tower (with adapters: adapt it); off freezes it (LLaMA-Factory: `freeze_vision_tower`)."""
    train_projector: bool = True
    """Train the projector between them (with adapters: adapt it); off freezes it (LLaMA-Factory: `freeze_multi_modal_projector`)."""


class Training(Frozen):
    """What every method has in common. The defaults are those of transformers 5.24's TrainingArguments."""

    precision: Precision = "bf16"
    """What weights and arithmetic are; with adapters it speaks of the frozen base."""
    optimizer: str = "adamw_torch_fused"
    """Hugging Face's `optim`."""
    optimizer_args: dict[str, str | int | float | bool] = Field(default_factory=dict, max_length=20)
    """Hugging Face's `optim_args`: rank, momentum, amsgrad, foreach and such."""
    optimizer_in_backward: bool = False
    """Step weight by weight inside the backward pass and let each gradient go at once (torchtune: `optimizer_in_bwd`)."""
    micro_batch_size: Annotated[int, Field(ge=1, le=65536)] = 8
    """Sequences per GPU in one forward pass (`per_device_train_batch_size`)."""
    seq_len: Annotated[int, Field(ge=1, le=16_777_216)] = 2048
    """Tokens per sequence, padding included (TRL: `max_length`). The longest batch sets the peak. An encoder-decoder gets a source and a target of
    this length each."""
    gradient_accumulation_steps: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    """Forward passes per optimizer step. It does not multiply activations, but gradients live on between them."""
    gradient_checkpointing: Checkpointing = "none"
    """Keep only each block's input and run the block again in the backward pass (`gradient_checkpointing`)."""
    attention: Attention = "sdpa"
    """Hugging Face's `attn_implementation`."""
    loss: Loss = "eager"
    """How head and cross-entropy are computed: whole logits in fp32 (eager), in place (triton), in pieces (chunked), fused (liger),
    inside kernels (cce)."""
    kernels: Kernels = "eager"
    """Replaced layer kernels: none, Liger's (`use_liger_kernel`), the fused-ops-and-kernels plug-in's, or Unsloth's."""
    images: Images = Images()
    padded: bool = False
    """Batches hold padding, so attention gets a mask and leaves its leanest kernel."""
    dequantize: bool = False
    """Load a repository's quantised weights as 16-bit ones (`dequantize=True` of its quantisation config): then all can be trained."""
    objective: Objective = "sft"
    """What is trained for. Preference and reward objectives are refused until they are modelled."""
    framework: str = "transformers-5.24"
    """The version whose behaviour is modelled."""
    sharding: Sharding = Sharding()

    @field_validator("optimizer")
    @classmethod
    def _known_optimizer(cls, value: str) -> str:
        return OPTIMIZERS[value].id

    @field_validator("framework")
    @classmethod
    def _known_framework(cls, value: str) -> str:
        return FRAMEWORKS[value].id


class FullFineTuning(Training):
    """Every weight is trained."""

    method: Literal["full"] = "full"


class Lora(Training):
    """The base is frozen; adapters beside its linear layers are trained."""

    method: Literal["lora"] = "lora"
    lora: LoraAdapter = LoraAdapter()


class QLora(Training):
    """The base is frozen and quantised; adapters beside its linear layers are trained."""

    method: Literal["qlora"] = "qlora"
    lora: LoraAdapter = LoraAdapter()
    quantization: Quantization = Quantization()


def _method(value: Any) -> str:
    return str(value.get("method", "full") if isinstance(value, dict) else getattr(value, "method", "full"))


Plan = Annotated[
    Annotated[FullFineTuning, Tag("full")] | Annotated[Lora, Tag("lora")] | Annotated[QLora, Tag("qlora")],
    Discriminator(
        _method, custom_error_type="unknown_method", custom_error_message="method is one of full, lora, qlora"
    ),
]


class Hardware(Frozen):
    """The machine."""

    gpu: str = "h100-sxm"
    """The card, by its id in the GPU table."""
    num_gpus: Annotated[int, Field(ge=1, le=65536)] = 1
    """How many cards."""

    @field_validator("gpu")
    @classmethod
    def _known_gpu(cls, value: str) -> str:
        return GPUS[value].id


class ConfigModel(Frozen):
    """A model given by its config.json."""

    config: dict[str, Any]
    """The content of a config.json."""
    id: Annotated[str, Field(max_length=200)] = ""
    """A name to show."""


class PathModel(Frozen):
    """A config.json on this machine (command line only)."""

    path: Annotated[str, Field(min_length=1, max_length=4096)]
    """Where it lies."""


class Scenario(Frozen):
    """A model, a plan and a machine: the whole question."""

    schema_version: ClassVar[int] = SCHEMA_VERSION

    model: Annotated[str, Field(min_length=1, max_length=200)] | ConfigModel | PathModel
    """A catalogue or Hub id, or a config.json."""
    plan: Plan = FullFineTuning()
    hardware: Hardware = Hardware()
