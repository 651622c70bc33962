"""What keeps a plan from running, and what its owner should know: each one sentence that says what to do."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from calc.catalog.frameworks import FRAMEWORKS
from calc.catalog.gpus import Gpu
from calc.catalog.kernels import CUT_HEADS, KERNELS
from calc.catalog.optimizers import OPTIMIZERS
from calc.catalog.optimizers.row import BadArgument
from calc.catalog.table import UnknownName
from calc.memory.breakdown import Problem
from calc.memory.images import image_problems, refuse_images
from calc.memory.in_backward import refuse_in_backward
from calc.memory.offloaded import refuse_offload
from calc.memory.recipes import PRECISIONS, flash_runs, optimizer_of, recipe
from calc.memory.refused import Refused
from calc.memory.sharded import refuse_sharded_model, refuse_sharding, sharding_notes
from calc.memory.stored_weights import as_stored, stored_problems
from calc.model.adapters import WITHOUT_ADAPTER, layer_of, targeted
from calc.model.attention import FLASH_HEAD_DIM
from calc.model.counting import of_architecture
from calc.model.family import Architecture
from calc.model.parameter_adapters import FUSED, OLD_NAMES, converted
from calc.model.parameters import Parameter
from calc.scenario import FullFineTuning, Plan, QLora, Scenario

__all__ = ["Refused", "problems", "refuse_targets"]


def problems(scenario: Scenario, model: Architecture | None, gpu: Gpu) -> tuple[Problem, ...]:
    """Problems of a plan whose memory can be told all the same. Raises `Refused` where it cannot.

    Without a model those of the plan alone: for an architecture of which only the parameters are known.
    """
    _refuse(scenario, gpu)
    plan = scenario.plan
    found: list[Problem] = []
    if model is None:
        refuse_sharded_model(plan, None, tuple)
    else:
        found += stored_problems(plan, model.checkpoint, gpu)
        _refuse_on(plan, model)
        found += image_problems(plan, model)
        kept = as_stored(plan, model.checkpoint, gpu)
        if kept is not None and kept.base is None:
            raise Refused(
                "activations_not_modelled",
                f"adapters can be trained on {kept.method.label} weights, but the activations of such layers are not modelled yet",
                "model",
            )
    found += sharding_notes(plan)
    precision = PRECISIONS[plan.precision]
    halves = {precision.weights, precision.autocast}
    if "bf16" in halves and gpu.bf16 is False:
        found.append(
            Problem(
                "no_bf16",
                f"{gpu.name} has no bf16 arithmetic: choose fp16-mixed, or fp16-autocast with adapters.",
                "plan.precision",
            )
        )
    if plan.attention.startswith("flash") and not flash_runs(gpu):
        found.append(
            Problem(
                "no_flash_attention",
                f"FlashAttention-2 needs an Ampere card or newer; on {gpu.name} choose sdpa.",
                "plan.attention",
            )
        )
    if model is not None and _falls_back(scenario, model, gpu):
        found.append(
            Problem(
                "every_score",
                f"Only PyTorch's own formula takes grouped key heads here, and it holds every attention score: {plan.seq_len:,} by "
                f"{plan.seq_len:,} for each head. A card from Ampere on with 16-bit numbers spares them.",
                "plan.attention",
                blocking=False,
            )
        )
    if model is not None and model.family.packages:
        found.append(
            Problem(
                "without_kernels",
                f"This is {model.name} on torch's own operations, as transformers runs it without {' and '.join(model.family.packages)}; "
                "kernels of an installed package keep other tensors, mostly fewer.",
                "model",
                blocking=False,
            )
        )
    if model is not None and model.family.mended:
        found.append(
            Problem(
                "class_is_mended",
                f"The class of {model.name} in transformers 5.24.0 ends with an AttributeError, since its text model's output has no "
                f"{model.family.mended}; this is its step where that is mended.",
                "model",
                blocking=False,
            )
        )
    if (
        model is not None
        and "adapters by name in the tower" in model.family.gaps
        and not isinstance(plan, FullFineTuning)
        and plan.lora.target_modules != "all-linear"
    ):
        found.append(
            Problem(
                "named_in_the_tower",
                f"PEFT stops at these names, which layers of a class that it does not know have too in {model.name}'s towers; give it a pattern "
                "that begins with the language model. Adapters of that alone are counted here.",
                "plan.lora.target_modules",
                blocking=False,
            )
        )
    if model is not None and not isinstance(plan, FullFineTuning):
        _, bare = converted(model.model_type, plan.lora.target_modules, FRAMEWORKS[plan.framework].grouped_experts)
        if "gate_up_proj" in bare or "down_proj" in bare:
            found.append(
                Problem(
                    "adapted_experts",
                    "PEFT adapts the experts' parameters here, and each layer keeps an adapted copy of all its experts for the backward "
                    "pass; target the attention's layers to leave the experts alone.",
                    "plan.lora.target_modules",
                    blocking=False,
                )
            )
    optimizer = optimizer_of(plan)
    if optimizer.blocked:
        nearest = f" The nearest that can: {optimizer.instead}." if optimizer.instead else ""
        found.append(
            Problem(
                "optimizer_blocked",
                f"{optimizer.label} cannot run here: {optimizer.blocked}.{nearest}",
                "plan.optimizer",
            )
        )
    if not optimizer.accumulates and plan.gradient_accumulation_steps > 1:
        found.append(
            Problem(
                "no_accumulation",
                f"{optimizer.label} uses gradients inside the backward pass, so gradient accumulation has nothing to add up; set it to 1.",
                "plan.gradient_accumulation_steps",
            )
        )
    for argument in optimizer.missing(plan.optimizer_args):
        found.append(
            Problem("missing_argument", f"{optimizer.label} needs optim_args {argument.name}.", "plan.optimizer_args")
        )
    limit = None if model is None else model.context
    if limit is not None and plan.seq_len > limit:
        found.append(
            Problem(
                "beyond_context",
                f"The model's positions end at {limit:,} tokens; {plan.seq_len:,} need position scaling.",
                "plan.seq_len",
                blocking=False,
            )
        )
    return tuple(found)


def _falls_back(scenario: Scenario, model: Architecture, gpu: Gpu) -> bool:
    """Whether sdpa gets grouped key heads that neither the flash nor the memory-efficient kernel takes."""
    plan, dims = scenario.plan, model.dims
    if plan.attention != "sdpa" or plan.padded or dims.num_key_value_heads == dims.num_attention_heads:
        return False
    how = recipe(plan, gpu)
    return how.few_key_heads and ((how.autocast or how.dtype) == "fp32" or not how.flash)


def _refuse(scenario: Scenario, gpu: Gpu) -> None:
    plan = scenario.plan
    not_modelled = {
        "plan.sharding": any(
            n > 1
            for n in (
                plan.sharding.tensor_parallel, plan.sharding.pipeline_parallel, plan.sharding.context_parallel,
                plan.sharding.expert_parallel,
            )
        ),
    }  # fmt: skip
    for field, refused in not_modelled.items():
        if refused:
            raise Refused(
                "not_modelled",
                f"{field} is not modelled yet beyond one GPU and its plain forms; set it back to its default.",
                field,
            )
    refuse_in_backward(plan)
    refuse_sharding(scenario)
    try:
        OPTIMIZERS[plan.optimizer].settings(plan.optimizer_args)
    except (UnknownName, BadArgument) as error:
        raise Refused("bad_optimizer_args", f"{error}.", "plan.optimizer_args") from None
    precision = PRECISIONS[plan.precision]
    if plan.attention.startswith("flash") and precision.weights == "fp32" and precision.autocast is None:
        raise Refused(
            "flash_needs_half", "FlashAttention works on 16-bit numbers; choose bf16, or sdpa.", "plan.attention"
        )
    if plan.precision == "fp16-autocast" and isinstance(plan, FullFineTuning):
        raise Refused(
            "fp16_weights_trained",
            "fp16 weights cannot be trained under a GradScaler; choose fp16-mixed, or train adapters.",
            "plan.precision",
        )
    if isinstance(plan, QLora) and precision.master:
        raise Refused(
            "master_with_adapters",
            "a master copy is not kept for adapters; choose bf16 or bf16-autocast.",
            "plan.precision",
        )
    if not gpu.capacity:
        raise Refused("no_capacity", f"{gpu.name} has no known capacity.", "hardware.gpu")


def _refuse_on(plan: Plan, model: Architecture) -> None:
    """What the model's class, or what is replaced in it, does not take."""
    if plan.attention not in model.family.attentions:
        can = ", ".join(model.family.attentions)
        raise Refused(
            "attention_refused",
            f"transformers refuses {plan.attention} for {model.name}; it takes {can}.",
            "plan.attention",
        )
    if plan.gradient_checkpointing != "none" and not model.family.checkpoints:
        raise Refused(
            "checkpointing_refused",
            f"transformers cannot checkpoint the layers of {model.name}; choose none.",
            "plan.gradient_checkpointing",
        )
    if plan.attention.startswith("flash") and model.dims.widest_head > FLASH_HEAD_DIM:
        raise Refused(
            "head_too_wide",
            f"FlashAttention takes heads of up to {FLASH_HEAD_DIM}, not {model.dims.widest_head}; choose sdpa.",
            "plan.attention",
        )
    _refuse_gaps(plan, model)
    _refuse_kernels(plan, model)
    refuse_images(plan, model)
    refuse_offload(plan, model)
    refuse_sharded_model(plan, model, lambda: _parameters(model))
    refuse_parameter_adapters(plan, model.model_type)
    refuse_layers(plan, model.model_type, model.name)
    if not isinstance(plan, FullFineTuning) and plan.lora.target_modules != "all-linear":
        refuse_targets(plan, model.model_type, model.name, _parameters(model))


@lru_cache(maxsize=64)
def _parameters(model: Architecture) -> tuple[Parameter, ...]:
    return of_architecture(model).parameters


def refuse_parameter_adapters(plan: Plan, model_type: str) -> None:
    """What PEFT cannot do with an adapter of a bare parameter, as it makes them for experts."""
    if isinstance(plan, FullFineTuning):
        return
    targets = plan.lora.target_modules
    _, parameters = converted(model_type, targets, FRAMEWORKS[plan.framework].grouped_experts)
    pair = OLD_NAMES.get(model_type, ())[:FUSED]
    named = [] if isinstance(targets, str) else [name for name in pair if any(t.endswith(name) for t in targets)]
    if FRAMEWORKS[plan.framework].grouped_experts and len(named) == 1:
        raise Refused(
            "half_of_a_pair",
            f"{' and '.join(pair)} are one parameter here, so PEFT adapts both or neither: name the other beside {named[0]}, or leave it out.",
            "plan.lora.target_modules",
        )
    if parameters and (plan.lora.dropout or plan.lora.use_dora):
        what = ("LoRA dropout", "plan.lora.dropout") if plan.lora.dropout else ("DoRA", "plan.lora.use_dora")
        raise Refused(
            "parameter_adapters",
            f"PEFT adapts the experts themselves here, for which it has no {what[0]}: do without it, or adapt the attention's layers only.",
            what[1],
        )


def refuse_layers(plan: Plan, model_type: str, name: str) -> None:
    """Layers that PEFT puts no adapter on in this type."""
    if isinstance(plan, FullFineTuning) or model_type not in WITHOUT_ADAPTER:
        return
    targets = plan.lora.target_modules
    convolution = [] if targets == "all-linear" else ["conv1d"]
    meant = [layer for layer in ("out_proj", *convolution) if targeted(layer, targets)]
    if meant:
        raise Refused(
            "no_adapter_here",
            f"PEFT puts no adapter on {' and '.join(meant)} of {name}, since kernels would pass it by: name the other layers, such as in_proj.",
            "plan.lora.target_modules",
        )


def refuse_targets(plan: Plan, model_type: str, name: str, parameters: Iterable[Parameter]) -> None:
    """Adapters need a layer or a parameter to stand beside, as PEFT insists."""
    if isinstance(plan, FullFineTuning):
        return
    targets = plan.lora.target_modules
    elsewhere, chosen = converted(model_type, targets, FRAMEWORKS[plan.framework].grouped_experts)
    layers = [layer for p in parameters if (layer := layer_of(p)) is not None]
    if not chosen and not any(
        targeted(layer, targets) and layer.rpartition(".")[2] not in elsewhere for layer in layers
    ):
        known = ", ".join(dict.fromkeys(layer.rpartition(".")[2] for layer in layers))
        raise Refused(
            "no_such_layer",
            f"no layer of {name} is meant by these target modules; its layers are {known[:250]}.",
            "plan.lora.target_modules",
        )


def _refuse_gaps(plan: Plan, model: Architecture) -> None:
    """What the family says of itself that it does not model."""
    asked = {
        "fp16 weights": ("plan.precision", PRECISIONS[plan.precision].weights == "fp16", "choose bf16, or fp16-mixed"),
        "a quantised base": ("plan.method", isinstance(plan, QLora), "choose lora"),
        "releases before 5": (
            "plan.framework",
            FRAMEWORKS[plan.framework].reentrant_checkpointing,
            "choose transformers-5.24",
        ),
        "other losses": ("plan.loss", plan.loss != "eager", "choose loss eager"),
    }
    for gap, (field, wanted, instead) in asked.items():
        if wanted and gap in model.family.gaps:
            raise Refused("not_modelled", f"{model.name} with {gap} is not modelled yet: {instead}.", field)
    precision = PRECISIONS[plan.precision]
    if "16-bit arithmetic" in model.family.gaps and (precision.autocast or precision.weights != "fp32"):
        raise Refused(
            "class_fails",
            f"transformers' class of {model.name} runs in fp32 only: in 16 bits a product meets two dtypes, and under autocast masked scores "
            "are a number that 16 bits cannot hold; choose fp32.",
            "plan.precision",
        )
    if "autocast over 16-bit weights" in model.family.gaps and precision.autocast and precision.weights != "fp32":
        raise Refused(
            "class_fails",
            f"under autocast over 16-bit weights {model.name} adds up numbers of two dtypes, which PyTorch refuses; choose bf16 or bf16-mixed.",
            "plan.precision",
        )
    if (
        "all-linear adapters in the tower" in model.family.gaps
        and not isinstance(plan, FullFineTuning)
        and plan.lora.target_modules == "all-linear"
        and plan.images.train_vision
    ):
        raise Refused(
            "not_modelled",
            f"all-linear adapts the convolution of {model.name}'s patches too, which is not modelled yet; freeze the vision tower, or name "
            "layers: q_proj, k_proj, v_proj, o_proj, qkv.",
            "plan.lora.target_modules",
        )
    if "adapters on every linear layer" in model.family.gaps and not isinstance(plan, FullFineTuning):
        targets = plan.lora.target_modules
        if targets == "all-linear" or "router" in targets:
            raise Refused(
                "class_fails",
                f"the router of {model.name} hands back two results, which PEFT's adapters cannot add to; name other layers: q_proj, k_proj, "
                "v_proj, o_proj, gate_proj, up_proj, down_proj.",
                "plan.lora.target_modules",
            )


def _refuse_kernels(plan: Plan, model: Architecture) -> None:
    """Fused kernels know some architectures only, and not every version computes every loss."""
    if plan.kernels not in KERNELS:
        raise Refused(
            "kernels_not_modelled",
            f"{plan.kernels} replaces the whole forward pass, which is not modelled yet; the nearest kernels are liger's.",
            "plan.kernels",
        )
    row = KERNELS[plan.kernels]
    if row.model_types is not None and model.model_type not in row.model_types:
        raise Refused(
            "kernels_unknown_model",
            f"{row.label} kernels are modelled for {', '.join(row.model_types)}, not for {model.model_type}; choose kernels eager.",
            "plan.kernels",
        )
    if plan.loss == "liger" and model.model_type not in row.head_types:
        raise Refused(
            "fused_head_refused",
            f"the fused head is modelled for {', '.join(row.head_types)}, not for {model.model_type}; choose loss triton.",
            "plan.loss",
        )
    if (
        row.adapters
        and isinstance(plan, QLora)
        and all(targeted(f"mlp.{part}_proj", plan.lora.target_modules) for part in ("gate", "up", "down"))
    ):
        raise Refused(
            "fused_adapters_not_modelled",
            f"{row.label} kernels fuse adapters of the feed-forward layers too, which is not modelled yet; adapt the attention's only.",
            "plan.lora.target_modules",
        )
    if (
        not FRAMEWORKS[plan.framework].grouped_experts
        and getattr(model.text, "num_experts", 0) > 0
        and model.model_type != "mixtral"
    ):
        raise Refused(
            "experts_not_modelled",
            f"before version 5 each expert was a module of its own, which is modelled for mixtral only, not for {model.model_type}.",
            "plan.framework",
        )
    if plan.loss == "cce":
        _refuse_cut(plan, model)
    if plan.loss == "chunked" and not FRAMEWORKS[plan.framework].chunked_loss:
        raise Refused(
            "no_chunked_loss",
            f"the trainers on {FRAMEWORKS[plan.framework].label} have no chunked loss; choose loss liger.",
            "plan.loss",
        )


def _refuse_cut(plan: Plan, model: Architecture) -> None:
    """Cut cross-entropy knows some heads, and its backward kernel takes hidden states in 16 bits only."""
    if model.model_type not in CUT_HEADS:
        raise Refused(
            "fused_head_refused",
            f"cut cross-entropy is modelled for {', '.join(CUT_HEADS)}, not for {model.model_type}; choose loss triton.",
            "plan.loss",
        )
    # FSDP's own mixed precision gathers the weights in 16 bits, so the hidden states have them too.
    narrowed = plan.sharding.strategy in ("fsdp", "fsdp2") and plan.precision == "bf16-mixed"
    if PRECISIONS[plan.precision].weights == "fp32" and not narrowed:
        raise Refused(
            "cut_needs_half",
            f"cut cross-entropy's backward kernel takes hidden states in 16 bits only, and under {plan.precision} they are fp32; choose bf16 or "
            "bf16-autocast, or loss liger.",
            "plan.loss",
        )
    if FRAMEWORKS[plan.framework].reentrant_checkpointing:
        raise Refused(
            "framework_not_modelled",
            f"cut cross-entropy is modelled for transformers 5 only, not for {FRAMEWORKS[plan.framework].label}.",
            "plan.framework",
        )
