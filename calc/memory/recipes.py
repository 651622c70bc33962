"""A plan as what frameworks do: which dtypes, what autocast casts, which kernels a card and a version take."""

from __future__ import annotations

from dataclasses import dataclass, replace

from calc.catalog.frameworks import FRAMEWORKS
from calc.catalog.gpus import Gpu
from calc.catalog.kernels import KERNELS
from calc.catalog.optimizers import OPTIMIZERS, Optimizer
from calc.catalog.table import Table
from calc.model.recipe import PARTS, Adapters, Images, QuantizedBase, Recipe, Sharded
from calc.scenario import FullFineTuning, Plan, QLora


@dataclass(frozen=True, slots=True)
class Precision:
    """What one word of `plan.precision` means."""

    id: str
    weights: str
    """Dtype of the weights (with adapters: of the frozen base)."""
    autocast: str | None
    """Dtype that autocast lowers products to."""
    master: bool
    """An fp32 copy of the trained weights that the optimizer works on."""
    scaler: bool
    """A GradScaler stands by."""
    flags: str
    """The flags that lead to it."""


PRECISIONS = Table(
    "precision",
    Precision("fp32", "fp32", None, False, False, "dtype=float32, neither bf16 nor fp16"),
    Precision("bf16", "bf16", None, False, False, "dtype=bfloat16, no bf16 flag (torchtune and litgpt: bf16-true)"),
    Precision("bf16-autocast", "bf16", "bf16", False, False, "dtype=bfloat16 and bf16=True"),
    Precision("bf16-mixed", "fp32", "bf16", False, False, "dtype=float32 and bf16=True"),
    Precision("fp16-mixed", "fp32", "fp16", False, True, "dtype=float32 and fp16=True"),
    Precision("fp16-autocast", "fp16", "fp16", False, True, "dtype=float16 and fp16=True, adapters in fp32"),
    Precision("bf16-master", "bf16", None, True, False, "DeepSpeed bf16.enabled, Megatron --bf16"),
    Precision("fp16-master", "fp16", None, True, True, "DeepSpeed fp16.enabled, Megatron --fp16"),
)


def recipe(plan: Plan, gpu: Gpu, *, scratch: bool = False) -> Recipe:
    """The run that a plan asks for on a card; `scratch` counts what kernels allocate for their own length, as a card does."""
    precision = PRECISIONS[plan.precision]
    framework = FRAMEWORKS[plan.framework]
    dtype = precision.weights
    adapters = quantized = None
    if not isinstance(plan, FullFineTuning):
        adapters = Adapters(
            rank=plan.lora.rank,
            targets=plan.lora.target_modules,
            dropout=plan.lora.dropout,
            dtype=plan.lora.adapter_dtype,
            saved_modules=plan.lora.modules_to_save,
            dora=plan.lora.use_dora,
        )
    if isinstance(plan, QLora):
        quantized = QuantizedBase(
            format=plan.quantization.format,
            double_quant=plan.quantization.double_quant,
            compute=precision.autocast or dtype,
            loaded=dtype,
        )
        if plan.quantization.upcast_for_training:
            dtype = "fp32"
    autocast, sharding, sharded = precision.autocast, plan.sharding, None
    if sharding.strategy in ("fsdp", "fsdp2"):
        sharded = Sharded(
            sharding.strategy,
            sharding.data_parallel // sharding.replicas,
            dtype,
            adapters="fp32" if adapters is None else adapters.dtype,
            mixed=autocast is not None,
            reshard=sharding.reshard_after_forward,
            copies=sharding.replicas,
            turn="only" if plan.gradient_accumulation_steps == 1 else "each" if sharding.sync_each_batch else "last",
            on_host=sharding.offload == "all",
        )
        if adapters is not None and autocast is not None:
            adapters = replace(adapters, dtype=autocast)
        dtype, autocast = autocast or dtype, None  # the sharding lowers the weights itself when it gathers them
    return Recipe(
        batch=plan.micro_batch_size,
        length=plan.seq_len,
        dtype=dtype,
        autocast=autocast,
        sharded=sharded,
        scaled=precision.scaler,
        adapters=adapters,
        quantized=quantized,
        attention=plan.attention,
        flash=flash_runs(gpu),
        few_key_heads=framework.grouped_keys == "as they are"
        or (framework.grouped_keys == "as the card takes them" and flash_runs(gpu)),
        flash_repeats=framework.flash_repeats,
        narrow_logits=framework.narrow_logits,
        one_mask=framework.one_mask,
        position_tables=framework.position_tables,
        position_masks=framework.position_masks,
        grouped_experts=framework.grouped_experts,
        loss=plan.loss,
        logits=framework.logits,
        keeps_outputs=framework.keeps_outputs,
        kernels=KERNELS[plan.kernels],
        scratch=scratch,
        checkpointing=plan.gradient_checkpointing,
        offloads=plan.gradient_checkpointing == "offload" or sharding.activation_offload,
        reentrant=framework.reentrant_checkpointing,
        padded=plan.padded,
        images=images(plan),
        trained=frozenset(part for part in PARTS if getattr(plan.images, f"train_{part}")),
        accumulated=plan.gradient_accumulation_steps > 1,
    )


def micro_batches(how: Recipe, number: int) -> tuple[Recipe, ...]:
    """The micro-batches of a step whose moments may be the highest: the last one, and one before it where sharded gradients are reduced later."""
    if how.sharded is None or how.sharded.turn != "last":
        return (how,)
    earlier = replace(how.sharded, turn="middle" if number > 2 else "first")
    return how, replace(how, sharded=earlier, accumulated=number > 2)


def optimizer_of(plan: Plan) -> Optimizer:
    """The optimizer, as the plan runs it."""
    row = OPTIMIZERS[plan.optimizer]
    return row.in_backward if plan.optimizer_in_backward else row


def images(plan: Plan) -> Images | None:
    """The images of a batch; None where it has none."""
    given = plan.images
    return Images(given.per_sequence, given.height, given.width) if given.per_sequence else None


FLASH_FROM = 8
"""NVIDIA compute capability from which PyTorch's flash kernel runs; older cards take the memory-efficient one."""


def flash_runs(gpu: Gpu) -> bool:
    """Whether flash attention runs on the card. Cards of other vendors are taken to have their own flash kernel."""
    major = gpu.compute_capability.partition(".")[0]
    return not major.isdigit() or int(major) >= FLASH_FROM
