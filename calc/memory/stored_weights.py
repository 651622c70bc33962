"""Weights that a repository stores quantised: what a plan can train on them, and what they take as they are.

Sources     transformers 5.24.0: `validate_quantization_for_training` and each quantizer's `is_trainable`, `validate_environment`,
            `merge_quantization_configs`; PEFT 0.21.2 for which quantised layers take adapters.
"""

from __future__ import annotations

from collections.abc import Sequence

from calc.catalog.gpus import Gpu
from calc.memory.breakdown import Line, Problem
from calc.memory.refused import Refused
from calc.model.parameters import Parameter
from calc.model.quantized_checkpoint import QuantizedCheckpoint, stored
from calc.scenario import FullFineTuning, Plan, QLora
from calc.units import Bytes

FP8_FROM = (8, 9)
"""NVIDIA compute capability from which FP8 products run; on older cards transformers loads bf16 weights instead."""


def as_stored(plan: Plan, checkpoint: QuantizedCheckpoint | None, gpu: Gpu) -> QuantizedCheckpoint | None:
    """The checkpoint whose weights stay quantised under a plan on a card; None where 16-bit weights are loaded."""
    if checkpoint is None or (plan.dequantize and checkpoint.method.dequantizes) or _too_old(checkpoint, gpu):
        return None
    return checkpoint


def _too_old(checkpoint: QuantizedCheckpoint, gpu: Gpu) -> bool:
    capability = gpu.compute_capability.split(".")
    if checkpoint.method.id != "fp8" or not all(part.isdigit() for part in capability):
        return False
    return tuple(int(part) for part in capability) < FP8_FROM


def stored_problems(plan: Plan, checkpoint: QuantizedCheckpoint | None, gpu: Gpu) -> tuple[Problem, ...]:
    """What the plan's owner should know of the stored weights. Raises `Refused` where the plan cannot train on them."""
    if checkpoint is None:
        if not plan.dequantize:
            return ()
        return (_note("not_quantized", "The weights are not stored quantised, so there is nothing to dequantise."),)
    label = checkpoint.method.label
    if plan.dequantize and not checkpoint.method.dequantizes:
        raise Refused(
            "cannot_dequantize",
            f"{label} weights cannot be loaded as 16-bit ones: {checkpoint.method.advice}.",
            "plan.dequantize",
        )
    if isinstance(plan, QLora) and checkpoint.method.id != "bitsandbytes":
        raise Refused(
            "already_quantized",
            f"the weights are stored in {label} already, and transformers does not quantise them again: choose lora, or start from the "
            "unquantised weights.",
            "plan.method",
        )
    if as_stored(plan, checkpoint, gpu) is None:
        why = "" if plan.dequantize else f": {gpu.name} has no FP8 products, so transformers loads it so"
        return (_note("dequantized", f"The weights are stored in {label} and counted as 16-bit ones{why}."),)
    if isinstance(plan, FullFineTuning):
        raise Refused("quantized_weights", f"{checkpoint.refusal}.", "plan.method")
    if not checkpoint.method.adapters:
        raise Refused(
            "no_adapters",
            f"transformers trains nothing on {label} weights, adapters included: {checkpoint.method.advice}.",
            "plan.method",
        )
    if checkpoint.base is None:
        return ()
    kind, double = checkpoint.base
    chosen = plan.quantization if isinstance(plan, QLora) else None
    if chosen is not None and chosen.format == kind and (kind == "int8" or chosen.double_quant == double):
        return ()
    how = f"quantization.format {kind}" + ("" if kind == "int8" else f", double_quant {str(double).lower()}")
    raise Refused(
        "stored_for_qlora",
        f"the weights are stored by bitsandbytes already: choose qlora with {how}, which is what loading them gives.",
        "plan.method",
    )


def _note(code: str, message: str) -> Problem:
    return Problem(code, message, "plan.dequantize", blocking=False)


def stored_line(parameters: Sequence[Parameter], checkpoint: QuantizedCheckpoint) -> Line:
    """The quantised matrices as they are loaded, scales included. Raises `Refused` for a format whose sizes are not known."""
    if checkpoint.format is None:
        raise Refused("not_modelled", f"the sizes of {checkpoint.method.label} weights are not modelled yet.", "model")
    held = stored(parameters, checkpoint)
    numbers = sum(p.numel * p.count for p in parameters)
    return Line(
        "weights", f"Weights, {checkpoint.method.label}", Bytes(held.bytes), "exact", "Σ packed weights and their scales",
        f"Σ n = {numbers:,}", "transformers", f"{checkpoint.format.bits} bits a weight, and what stands beside them.",
    )  # fmt: skip
