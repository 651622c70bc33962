"""Levers: single changes of a plan that may lower its peak, one a row, each with what it costs.

A row says what to change and what that costs in time and in quality, with the source. How many bytes it saves is never
written down: `calc.planner.suggestions` asks `estimate` for the changed scenario.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from calc.catalog.optimizers import OPTIMIZERS
from calc.catalog.table import Table
from calc.link import by_path, nested
from calc.scenario import FullFineTuning, Lora, LoraAdapter, QLora, Scenario

Kind = Literal[
    "loss", "kernels", "checkpointing", "attention", "optimizer", "batch", "length", "precision", "method", "adapter",
    "base", "padding", "offload", "sharding", "backward",
]  # fmt: skip
"""What a lever changes. Two of one kind exclude each other."""

Risk = Literal["same", "small", "changes"]
"""Same result up to rounding; a small difference by its authors' own account; another thing is trained."""
RISKS: tuple[Risk, ...] = ("same", "small", "changes")

Change = Callable[[Scenario], Scenario | None]
"""The changed scenario; None where the plan has it already, or has no place for it."""

METHODS = {"full": FullFineTuning, "lora": Lora, "qlora": QLora}


@dataclass(frozen=True, slots=True)
class Time:
    """What a change does to the time per token, as a factor: 1.25 is a quarter longer."""

    low: float
    high: float | None
    """None where nobody has published how long it may get."""
    sources: tuple[str, ...]
    """Ids in `calc.catalog.sources`."""
    reading: str
    """What was measured, or how the figure follows."""

    @property
    def expected(self) -> float:
        """The middle of the range; its low end where there is no high one."""
        return self.low if self.high is None else (self.low + self.high) / 2


@dataclass(frozen=True, slots=True)
class Lever:
    """One change and its price."""

    id: str
    label: str
    kind: Kind
    change: Change
    risk: Risk
    quality: str
    """What it does to the result, in words."""
    quality_source: str
    """Id in `calc.catalog.sources`."""
    time: Time | None = None
    """None where nobody has published the time of this change alone."""
    installs: str = ""
    """What must be installed for it."""
    searched: bool = False
    """Whether the search for a whole plan tries it."""


def with_values(scenario: Scenario, values: Mapping[str, Any]) -> Scenario:
    """The scenario with other values, by dotted path. What the method has no place for is an error of `Scenario`."""
    given = by_path({"model": scenario.model, "plan": scenario.plan, "hardware": scenario.hardware})
    return Scenario.model_validate(nested(given | dict(values)))


def value_at(scenario: Scenario, path: str) -> Any:
    """What a field holds, by dotted path; None where the method has no such field."""
    return by_path({"plan": scenario.plan, "hardware": scenario.hardware}).get(path)


def setting(path: str, value: Any, *, only_from: tuple[Any, ...] = ()) -> Change:
    """Set one field; only from one of these values, where any are given."""

    def change(scenario: Scenario) -> Scenario | None:
        now = value_at(scenario, path)
        if now is None or now == value or (only_from and now not in only_from):
            return None
        return with_values(scenario, {path: value})

    return change


def where_sharded(path: str, value: Any) -> Change:
    """Set one field of a plan under which each GPU stores a share of the weights."""
    change = setting(path, value)
    return lambda scenario: change(scenario) if scenario.plan.sharding.strategy in ("fsdp", "fsdp2") else None


def _keeps_whole_gradients(scenario: Scenario) -> bool:
    """Whether gradients stay whole on each GPU until the last micro-batch of a step."""
    return scenario.plan.sharding.strategy == "fsdp2" and scenario.plan.gradient_accumulation_steps > 1


def mapped(path: str, to: Mapping[Any, Any]) -> Change:
    """Set one field to what its value leads to."""

    def change(scenario: Scenario) -> Scenario | None:
        now = value_at(scenario, path)
        return with_values(scenario, {path: to[now]}) if now in to else None

    return change


def halved(path: str, least: int) -> Change:
    """Half of a number, no less than `least`."""

    def change(scenario: Scenario) -> Scenario | None:
        now = value_at(scenario, path)
        return with_values(scenario, {path: max(least, now // 2)}) if now is not None and now > least else None

    return change


def optimizer(name: str) -> Change:
    """Another optimizer, with its own arguments: those that it must be given, the others left to it."""
    required = {argument.name: argument.default for argument in OPTIMIZERS[name].arguments if argument.required}

    def change(scenario: Scenario) -> Scenario | None:
        if scenario.plan.optimizer == name:
            return None
        return with_values(scenario, {"plan.optimizer": name, "plan.optimizer_args": required})

    return change


def micro_batch(size: Callable[[int], int]) -> Change:
    """A smaller micro-batch, and as many more steps of accumulation: the global batch stays what it is."""

    def change(scenario: Scenario) -> Scenario | None:
        now = scenario.plan.micro_batch_size
        smaller = size(now)
        if smaller >= now or now % smaller:
            return None
        steps = scenario.plan.gradient_accumulation_steps * (now // smaller)
        return with_values(scenario, {"plan.micro_batch_size": smaller, "plan.gradient_accumulation_steps": steps})

    return change


ADAPTER = LoraAdapter(rank=16, alpha=32)
"""The adapter that a lever adds: rank 16 on every linear layer."""
_FROZEN_BASE = {"bf16-master": "bf16-autocast", "fp16-master": "fp16-autocast", "fp16-mixed": "fp16-autocast",
                "bf16-mixed": "bf16-autocast"}  # fmt: skip
"""What the precision of trained weights becomes when the base is frozen and needs no fp32 copy."""


def method(name: Literal["full", "lora", "qlora"]) -> Callable[[Scenario], Scenario]:
    """The same run by another method; what the methods share stays as it is."""

    def changed(scenario: Scenario) -> Scenario:
        plan = scenario.plan
        if plan.method == name:
            return scenario
        kind = METHODS[name]
        given: dict[str, Any] = {
            field: getattr(plan, field) for field in FullFineTuning.model_fields if field != "method"
        }
        if kind is not FullFineTuning:
            given["precision"] = _FROZEN_BASE.get(plan.precision, plan.precision)
            given["lora"] = ADAPTER if isinstance(plan, FullFineTuning) else plan.lora
        return Scenario(model=scenario.model, plan=kind(**given), hardware=scenario.hardware)

    return changed


def to_method(name: Literal["lora", "qlora"], *, only_from: str) -> Change:
    """Another method, from one."""
    return lambda scenario: method(name)(scenario) if scenario.plan.method == only_from else None


_OPTIMIZERS: tuple[tuple[str, Risk, Time | None, bool], ...] = (
    ("adamw_torch_fused", "same", None, True),
    ("paged_adamw_32bit", "same",
     Time(1.0, None, ("paper-qlora",), "as fast as unpaged at batch 16; slower once pages move, which nobody has timed"), False),
    ("adamw_8bit", "small", Time(1.0, 1.05, ("torchtune-readme", "paper-adam8bit"), "7,309 to 6,960 tokens/s on an A100"), True),
    ("paged_adamw_8bit", "small",
     Time(1.0, None, ("paper-qlora",), "as fast as unpaged at batch 16; slower once pages move, which nobody has timed"), True),
    ("adamw_torch_8bit", "small", None, True),
    ("adamw_torch_4bit", "small", None, True),
    ("adafactor", "changes", None, True),
    ("lion_8bit", "changes", None, False),
    ("apollo_adamw", "changes", None, False),
    ("galore_adamw_8bit", "changes", None, False),
    ("adalomo", "changes", None, False),
    ("lomo", "changes", None, False),
)  # fmt: skip
"""Optimizers worth trying for their memory, the closest to AdamW first. What each costs is its row in `OPTIMIZERS`."""


def _optimizer_levers() -> tuple[Lever, ...]:
    return tuple(
        Lever(
            f"optimizer-{name}", OPTIMIZERS[name].label, "optimizer", optimizer(name), risk, OPTIMIZERS[name].cost,
            OPTIMIZERS[name].paper, time, "" if OPTIMIZERS[name].library in ("torch", "transformers") else OPTIMIZERS[name].library,
            searched,
        )
        for name, risk, time, searched in _OPTIMIZERS
    )  # fmt: skip


LEVERS: Table[Lever] = Table(
    "lever",
    Lever("loss-liger", "Liger's fused loss", "loss", setting("plan.loss", "liger"), "same",
          "The same loss up to rounding; whole logits never exist, so a metric that reads them cannot be had.", "liger",
          Time(0.99, 1.01, ("fms-acceleration",), "Llama 3 8B at 4,096 tokens on an A100, with and without"),
          "liger-kernel", True),
    Lever("loss-chunked", "Loss in pieces", "loss", setting("plan.loss", "chunked"), "same",
          "The same loss up to rounding.", "torchtune-readme",
          Time(0.98, 1.0, ("torchtune-readme",), "8,998 to 9,174 tokens/s on an A100"), "", True),
    Lever("loss-triton", "Loss in place", "loss", setting("plan.loss", "triton"), "same",
          "The same loss up to rounding; the gradient takes the logits' place.", "fms-acceleration"),
    Lever("loss-cce", "Cut cross-entropy", "loss", setting("plan.loss", "cce"), "small",
          "The same loss up to rounding; gradients too small for 16 bits are left out, without a difference in its authors' training curves. Whole logits "
          "never exist.", "cut-cross-entropy", None, "cut-cross-entropy"),
    Lever("kernels-liger", "Liger's kernels", "kernels", setting("plan.kernels", "liger"), "same",
          "The same layers up to rounding.", "liger",
          Time(0.81, 0.91, ("liger",), "10 to 24 % more tokens/s on four A100, the fused loss included"), "liger-kernel"),
    Lever("kernels-foak", "Fused ops and kernels", "kernels", setting("plan.kernels", "foak"), "same",
          "The same layers up to rounding.", "fms-acceleration",
          Time(0.87, 1.01, ("fms-acceleration",), "five models on an A100, with and without"), "fms-acceleration-foak"),
    Lever("kernels-unsloth", "Unsloth's kernels", "kernels", setting("plan.kernels", "unsloth"), "same",
          "The same layers up to rounding.", "unsloth-guide", None, "unsloth"),
    Lever("checkpointing-selective", "Selective checkpointing", "checkpointing",
          setting("plan.gradient_checkpointing", "selective", only_from=("none",)), "same",
          "The same gradients: of each block's forward, half of the products run twice, attention once.", "torchtitan",
          Time(1.17, 1.25, ("kaplan",), "by FLOPs 7/6 in full fine-tuning and 5/4 with adapters")),
    Lever("checkpointing-full", "Gradient checkpointing", "checkpointing",
          setting("plan.gradient_checkpointing", "full", only_from=("none", "selective")), "same",
          "The same gradients: each block's forward runs twice.", "transformers-checkpointing",
          Time(1.2, 1.5, ("transformers-checkpointing", "torchtune-readme", "kaplan"),
               "measured 1.2 and 1.27; by FLOPs 4/3 in full fine-tuning and 3/2 with adapters"), "", True),
    Lever("checkpointing-offload", "Checkpoints in host memory", "checkpointing",
          setting("plan.gradient_checkpointing", "offload"), "same",
          "The same gradients: each block's forward runs twice.", "torchtune-readme",
          Time(1.2, 1.55, ("torchtune-readme", "transformers-checkpointing"),
               "checkpointing, and 7,309 to 7,301 tokens/s for the way to the host and back")),
    Lever("activations-on-host", "Activations in host memory", "offload",
          setting("plan.sharding.activation_offload", True), "same", "The same gradients.", "torchtune-readme",
          Time(1.0, None, ("torchtune-readme",), "7,309 to 7,301 tokens/s on an A100; a slower link to the host costs more")),
    Lever("step-in-backward", "Step inside the backward pass", "backward",
          setting("plan.optimizer_in_backward", True), "small",
          "No clipping by the global norm, which the Trainer does by default; each gradient goes as soon as its weight is updated.",
          "torchtune-readme",
          Time(0.99, 1.0, ("torchtune-readme",), "7,210 to 7,309 tokens/s on an A100"), "torchtune"),
    Lever("shares-on-host", "Weights and states in host memory", "offload",
          where_sharded("plan.sharding.offload", "all"), "same",
          "The same gradients; the optimizer steps on the CPU, and each block's weights come over PCIe.", "torch-fsdp"),
    Lever("shares-let-go", "Gathered weights let go", "sharding",
          where_sharded("plan.sharding.reshard_after_forward", True), "same",
          "The same gradients; each block's weights are gathered twice.", "torch-fsdp"),
    Lever("base-shared", "4-bit base in shares", "base", where_sharded("plan.quantization.quant_storage", "bfloat16"), "same",
          "The same weights; codes stored as bfloat16 are shared out, and gathered block by block.", "torch-fsdp"),
    Lever("shares-each-batch", "Gradients reduced with each micro-batch", "sharding",
          lambda scenario: setting("plan.sharding.sync_each_batch", True)(scenario) if _keeps_whole_gradients(scenario) else None, "same",
          "The same gradients; they are sent once for each micro-batch.", "torch-fsdp"),
    Lever("shares-once", "One copy over all GPUs", "sharding",
          where_sharded("plan.sharding.replicas", 1), "same",
          "The same gradients; weights are gathered over the slower links between machines too.", "torch-fsdp"),
    Lever("attention-flash", "FlashAttention 2", "attention",
          setting("plan.attention", "flash_attention_2", only_from=("eager", "sdpa")), "same",
          "Exact attention, in another order of sums.", "flash-attention",
          Time(0.33, 1.0, ("flash-attention",), "1.15 to 3 times as fast as plain attention, end to end; as fast as sdpa"),
          "flash-attn", True),
    Lever("attention-sdpa", "PyTorch's sdpa", "attention", setting("plan.attention", "sdpa", only_from=("eager",)), "same",
          "Exact attention, in another order of sums.", "flash-attention",
          Time(0.33, 0.87, ("flash-attention",), "1.15 to 3 times as fast as plain attention, end to end"), "", True),
    Lever("batch-half", "Half the micro-batch", "batch", micro_batch(lambda now: max(1, now // 2)), "same",
          "The same mean gradient; the global batch is kept by accumulation.", "transformers",
          Time(1.01, 1.07, ("fms-acceleration",), "batch 4 against 8, at 4,096 tokens on an A100; short sequences cost more")),
    Lever("batch-one", "Micro-batch 1", "batch", micro_batch(lambda now: 1), "same",
          "The same mean gradient; the global batch is kept by accumulation.", "transformers",
          Time(1.01, None, ("fms-acceleration",), "1.01 to 1.07 for each halving at 4,096 tokens; short sequences cost more")),
    Lever("padding", "No padding", "padding", setting("plan.padded", False), "same",
          "Pack the samples, or group them by length; the same tokens are learned.", "trl",
          Time(0.3, 1.0, ("torchtune-readme",), "up to 3.4 times the tokens/s, as much as there was padding")),
    *_optimizer_levers(),
    Lever("precision-plain", "bf16 without autocast", "precision", setting("plan.precision", "bf16", only_from=("bf16-autocast",)),
          "small", "Norms, softmax and loss lose autocast's fp32; the weights are the same.", "mixed-precision"),
    Lever("precision-bf16", "bf16 weights", "precision",
          mapped("plan.precision", {"fp32": "bf16-autocast", "bf16-mixed": "bf16-autocast", "bf16-master": "bf16-autocast"}),
          "changes", "Updates smaller than a bf16 step of the weight are lost: at small learning rates most of them.",
          "kahan-bf16"),
    Lever("length-half", "Half the length", "length", halved("plan.seq_len", 128), "changes",
          "Longer samples are cut off; no difference where no sample is as long.", "trl"),
    Lever("adapter-rank", "Half the rank", "adapter", halved("plan.lora.rank", 1), "changes",
          "Less room to learn; small data sets seldom fill it.", "lora-without-regret"),
    Lever("adapter-attention", "Adapters on the attention only", "adapter",
          setting("plan.lora.target_modules", "attention", only_from=("all-linear",)), "changes",
          "Learns less than adapters on every layer, even at a higher rank.", "lora-without-regret"),
    Lever("adapter-bf16", "bf16 adapters", "adapter", setting("plan.lora.adapter_dtype", "bf16", only_from=("fp32",)), "small",
          "Updates smaller than a bf16 step of the weight are lost.", "kahan-bf16"),
    Lever("adapter-dropout", "No adapter dropout", "adapter", setting("plan.lora.dropout", 0.0), "small",
          "Less regularisation; without it nothing but the input is kept.", "peft"),
    Lever("adapter-dora", "LoRA instead of DoRA", "adapter", setting("plan.lora.use_dora", False), "changes",
          "The magnitudes are no longer trained.", "peft"),
    Lever("adapter-modules", "Adapters alone", "adapter", setting("plan.lora.modules_to_save", ()), "changes",
          "Embeddings and head stay fixed: new tokens cannot be learned.", "peft"),
    Lever("base-double", "Double quantisation", "base", setting("plan.quantization.double_quant", True), "small",
          "Its authors report no loss of quality.", "paper-qlora"),
    Lever("base-nf4", "4-bit base", "base", setting("plan.quantization.format", "nf4", only_from=("int8",)), "small",
          "Its authors report the quality of 16 bits after training the adapters.", "paper-qlora"),
    Lever("base-upcast", "Norms and embeddings as they are", "base", setting("plan.quantization.upcast_for_training", False),
          "small", "Norms, embeddings and head stay in 16 bits.", "peft"),
    Lever("method-lora", "LoRA, rank 16", "method", to_method("lora", only_from="full"), "changes",
          "Small data sets are learned as well as by full fine-tuning, large ones less.", "lora-learns-less",
          Time(0.54, 0.92, ("torchtune-readme", "fms-acceleration"), "Llama 3.1 8B on an RTX 4090; Mistral 7B on an A100"), "peft"),
    Lever("method-qlora", "QLoRA, rank 16", "method", to_method("qlora", only_from="full"), "changes",
          "As LoRA; its authors report no further loss from the 4-bit base.", "paper-qlora",
          Time(0.68, 1.05, ("torchtune-readme", "fms-acceleration"), "Llama 3.1 8B on an RTX 4090; Mistral 7B on an A100"),
          "peft, bitsandbytes"),
    Lever("method-quantize", "4-bit base (QLoRA)", "method", to_method("qlora", only_from="lora"), "small",
          "Its authors report the quality of LoRA on 16 bits.", "paper-qlora",
          Time(1.05, 2.5, ("qwen-readme",), "Qwen 7B on an A100: 2.5 at 256 tokens, 1.35 at 2,048, 1.05 at 8,192"), "bitsandbytes"),
)  # fmt: skip
