"""Optimizers that step inside the backward pass on the pretended GPU: torchtune's way with torch's own, transformers' layer by layer, LOMO."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from typing import Any

import apollo_torch.random_projector
import bitsandbytes.functional
import fake_gpu  # noqa: F401  (before torch)
import torch
import transformers

# Kernels that write into tensors allocated in Python, and random numbers of a generator that a build without CUDA lacks.
bitsandbytes.functional.optimizer_update_32bit = lambda *args, **kwargs: None
bitsandbytes.functional.optimizer_update_8bit_blockwise = lambda *args, **kwargs: None
apollo_torch.random_projector.stable_randn = lambda shape, seed, device=None, dtype=torch.float32: torch.randn(
    shape, device=device, dtype=dtype
)
torch.cuda.synchronize = lambda *args, **kwargs: None


class EachItsOwn:
    """An optimizer for each parameter, run by a hook as soon as its gradient is there (torchtune: `optimizer_in_bwd`)."""

    def __init__(self, parameters: list[torch.nn.Parameter], build: Callable[[list[torch.nn.Parameter]], Any]):
        own = {parameter: build([parameter]) for parameter in parameters}

        def step(parameter: torch.nn.Parameter) -> None:
            own[parameter].step()
            own[parameter].zero_grad()

        for parameter in parameters:
            parameter.register_post_accumulate_grad_hook(step)

    def step(self) -> None:
        """Everything is done already."""

    def zero_grad(self, set_to_none: bool) -> None:
        """Nothing is left."""


class FromTransformers:
    """What the Trainer makes of an `optim` that steps in the backward pass."""

    def __init__(self, model: torch.nn.Module, plan: dict[str, Any]):
        os.environ["WANDB_DISABLED"] = "true"
        arguments = transformers.TrainingArguments(
            output_dir=tempfile.mkdtemp(),
            optim=plan["optimizer"],
            optim_args=",".join(f"{name}={value}" for name, value in plan.get("optimizer_args", {}).items()) or None,
            report_to="none",
            use_cpu=True,
            optim_target_modules=None if "lomo" in plan["optimizer"] else "all-linear",
        )
        build, options = transformers.Trainer.get_optimizer_cls_and_kwargs(arguments, model)
        if "optimizer_dict" in options:  # the hooks hold the optimizers
            options.pop("params", None)
            self.own = options["optimizer_dict"]
            return
        optimizer = build(**options)
        self.fused_backward = lambda loss: optimizer.fused_backward(loss, 1e-4)

    def step(self) -> None:
        """Everything is done already."""

    def zero_grad(self, set_to_none: bool) -> None:
        """Nothing is left."""
