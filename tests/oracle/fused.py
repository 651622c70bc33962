"""Fused kernels and losses of Liger and TRL on the pretended GPU.

Their Triton kernels write into tensors that Python code has allocated: with the launch left out, every byte is still there.
What depends on the card (Liger's norms keep one partial gradient per multiprocessor) is asked of an A100's 108.

A patch changes the model's classes for the whole process: cases with other kernels must be measured in another.
"""

from __future__ import annotations

import types
from typing import Any

import torch
import triton
import triton.runtime.autotuner
import triton.runtime.jit

A100 = types.SimpleNamespace(
    name="NVIDIA A100-SXM4-80GB",
    major=8,
    minor=0,
    multi_processor_count=108,
    total_memory=85_899_345_920,
    warp_size=32,
    max_threads_per_multi_processor=2048,
    shared_memory_per_multiprocessor=167_936,
)


def never_launch() -> None:
    for launcher in (
        triton.runtime.jit.JITFunction,
        triton.runtime.autotuner.Autotuner,
        triton.runtime.autotuner.Heuristics,
    ):
        launcher.run = lambda self, *args, **kwargs: None
    torch.cuda.get_device_properties = lambda *args, **kwargs: A100
    torch.cuda.current_device = lambda: 0
    torch.cuda._exchange_device = torch.cuda._maybe_exchange_device = lambda device: 0


def patch(model: torch.nn.Module, plan: dict[str, Any]) -> None:
    """Give the model the kernels and the loss that the plan names."""
    never_launch()
    loss, kernels = plan.get("loss", "eager"), plan.get("kernels", "eager")
    if "liger" in (loss, kernels) or loss == "triton":
        import liger_kernel.utils

        liger_kernel.utils.infer_device = lambda: "cuda"
        from liger_kernel.transformers.monkey_patch import _apply_liger_kernel_to_instance

        fused = kernels == "liger"
        mlp = "geglu" if model.config.model_type.startswith("gemma") else "swiglu"
        _apply_liger_kernel_to_instance(
            model=model,
            rope=fused,
            rms_norm=fused,
            **{mlp: fused},
            cross_entropy=loss == "triton",
            fused_linear_cross_entropy=loss == "liger",
        )
    if loss == "chunked":
        import trl.trainer.utils

        trl.trainer.utils.add_fused_lm_head(model, outputs=("log_probs", "entropy", "is_top1"))


def chunked_loss(model: torch.nn.Module, batch: dict[str, Any]) -> torch.Tensor:
    """The loss as TRL's SFTTrainer takes it from the fused head."""
    out = model(**batch, fused_lm_head=True)
    return (-out.log_probs).sum() / out.label_mask.sum().clamp(min=1)
