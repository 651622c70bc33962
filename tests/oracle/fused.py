"""Fused kernels and losses of Liger, TRL and cut cross-entropy on the pretended GPU.

Their Triton kernels write into tensors that Python code has allocated: with the launch left out, every byte is still there.
What depends on the card (Liger's norms keep one partial gradient per multiprocessor) is asked of an A100's 108.

A patch changes the model's classes for the whole process: cases with other kernels must be measured in another.
"""

from __future__ import annotations

import functools
import types
from typing import Any

import torch
import transformers.modeling_outputs
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
    if loss == "cce":
        model.forward = types.MethodType(cut_forward, model)
    if loss == "chunked":
        import trl.trainer.utils

        trl.trainer.utils.add_fused_lm_head(model, outputs=("log_probs", "entropy", "is_top1"))


def cut_forward(self: Any, input_ids: torch.Tensor, labels: torch.Tensor, **others: Any) -> Any:
    """A causal model's forward with cut cross-entropy in the place of head and loss, as patches of transformers' models put it there.

    What it compiles is one kernel with one result (the cap of logits), or sorts as eager code does.
    """
    outputs = self.model(input_ids=input_ids, **others)
    softcap = getattr(self.config, "final_logit_softcapping", None)
    loss = cut_cross_entropy().linear_cross_entropy(
        outputs[0], self.lm_head.weight, labels, softcap=softcap, shift=True
    )
    return transformers.modeling_outputs.CausalLMOutputWithPast(loss=loss)


@functools.cache
def cut_cross_entropy() -> Any:
    """The package, with nothing compiled."""
    compiled, torch.compile = torch.compile, lambda **options: lambda function: function
    import cut_cross_entropy
    import cut_cross_entropy.indexed_dot

    torch.compile = compiled
    cut_cross_entropy.indexed_dot.softcapping = lambda logits, softcap: torch.empty_like(logits)
    return cut_cross_entropy


def chunked_loss(model: torch.nn.Module, batch: dict[str, Any]) -> torch.Tensor:
    """The loss as TRL's SFTTrainer takes it from the fused head."""
    out = model(**batch, fused_lm_head=True)
    return (-out.log_probs).sum() / out.label_mask.sum().clamp(min=1)
