"""Which plans with saved activations in host memory are modelled, and what keeps the others from being so."""

from __future__ import annotations

from calc.catalog.frameworks import FRAMEWORKS
from calc.memory.refused import Refused
from calc.model.family import Architecture
from calc.model.vision import Seeing
from calc.scenario import Plan


def offloads(plan: Plan) -> bool:
    """Whether saved activations go to host memory."""
    return plan.gradient_checkpointing == "offload" or plan.sharding.activation_offload


def refuse_offload(plan: Plan, model: Architecture) -> None:
    """What is not modelled of a plan that keeps saved activations in host memory. Raises `Refused`."""
    if not offloads(plan):
        return
    field = (
        "plan.gradient_checkpointing"
        if plan.gradient_checkpointing == "offload"
        else "plan.sharding.activation_offload"
    )
    if FRAMEWORKS[plan.framework].reentrant_checkpointing:
        raise Refused(
            "framework_not_modelled",
            f"activations in host memory are modelled for transformers 5 only, not for {FRAMEWORKS[plan.framework].label}.",
            "plan.framework",
        )
    if plan.sharding.strategy not in ("none", "ddp"):
        raise Refused(
            "offload_under_sharding",
            f"activations in host memory are not modelled under {plan.sharding.strategy} yet; choose ddp, or keep them on the GPU.",
            field,
        )
    if (
        model.family.loss is not None
        or isinstance(model.dims, Seeing)
        or "activations in host memory" in model.family.gaps
    ):
        raise Refused(
            "model_not_modelled",
            f"{model.name} with activations in host memory is not modelled yet; choose gradient checkpointing full.",
            field,
        )
    if plan.gradient_checkpointing in ("none", "selective"):
        _refuse_without_checkpointing(plan, model)
    if "a mask beside activations in host memory" in model.family.gaps and (plan.padded or plan.attention == "eager"):
        raise Refused(
            "model_not_modelled",
            f"{model.name} hands its mask to each layer, which is not modelled with activations in host memory; choose sdpa without padding.",
            field,
        )


def _refuse_without_checkpointing(plan: Plan, model: Architecture) -> None:
    """Where every saved tensor goes its own way: the order in which operations save theirs is known of what was recorded."""
    field = "plan.sharding.activation_offload"
    if "offload without checkpointing" in model.family.gaps:
        raise Refused(
            "model_not_modelled",
            f"{model.name} with each saved tensor in host memory is not modelled yet; choose gradient checkpointing offload.",
            field,
        )
    if plan.loss in ("chunked", "cce") or plan.kernels != "eager":
        raise Refused(
            "kernels_not_modelled",
            "replaced kernels are not modelled with each saved tensor in host memory yet; choose gradient checkpointing offload.",
            field,
        )
