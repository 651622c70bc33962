"""Optimizer states and the temporaries of a step: real optimizers on a small real model, on the CPU.

A case names Hugging Face's `optim` and goes through the Trainer's own factory, or a class and its arguments. The shapes of
the model lie on both sides of the thresholds that optimizers have (4,096 elements, blocks of 256).
"""

from __future__ import annotations

import gc
import importlib
import os
import tempfile
import warnings
from collections.abc import Iterator
from typing import Any

os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error", "BITSANDBYTES_NOWELCOME": "1"}
warnings.filterwarnings("ignore")

import bitsandbytes  # noqa: E402
import optimi.stableadamw  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from live_bytes import LiveBytes  # noqa: E402
from models import MODELS  # noqa: E402

# Calls that need CUDA and allocate nothing of the optimizer's.
torch.cuda.synchronize = lambda *args, **kwargs: None
torch.cuda.current_device = lambda: "cpu"
torch.Tensor.cuda = lambda self, *args, **kwargs: self
torch.compile = lambda function=None, **options: function if function is not None else (lambda wrapped: wrapped)
bitsandbytes.optim.optimizer.Optimizer8bit.prefetch_state = lambda self, parameter: None
optimi.stableadamw._default_to_triton = lambda parameters: False

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
TARGETS = [r".*self_attn.*", r".*mlp.*"]
LOW_RANK = ("galore", "apollo")


def build(case: dict[str, Any], model: torch.nn.Module) -> Any:
    """The optimizer of a case over the model's parameters."""
    if "class" in case:
        module, _, name = case["class"].rpartition(".")
        parameters = [p for p in model.parameters() if p.ndim == 2 or not case.get("matrices_only")]
        return getattr(importlib.import_module(module), name)(parameters, **case["args"])
    low_rank = case["optim"].startswith(LOW_RANK)
    arguments = transformers.TrainingArguments(
        output_dir=tempfile.mkdtemp(),
        optim=case["optim"],
        optim_args=case.get("optim_args"),
        report_to="none",
        use_cpu=True,
        optim_target_modules=TARGETS if low_rank else None,
    )
    trainer = transformers.Trainer(model=model, args=arguments, train_dataset=[{"input_ids": [1, 2], "labels": [1, 2]}])
    trainer.create_optimizer()
    return trainer.optimizer


def states(optimizer: Any, model: torch.nn.Module) -> Iterator[tuple[str, str, torch.Tensor]]:
    """(parameter, state, tensor) of everything an optimizer keeps, wherever it keeps it."""
    names = {id(p): name for name, p in model.named_parameters()}
    if hasattr(optimizer, "optimizer_dict"):  # one inner optimizer per parameter
        for inner in optimizer.optimizer_dict.values():
            yield from states(inner, model)
        return
    kept = dict(optimizer.state)
    for group in optimizer.param_groups:  # GrokAdamW
        kept |= group.get("state", {})
    for parameter, state in kept.items():
        if isinstance(state, dict):
            for key, value in state.items():
                yield from tensors(names.get(id(parameter), "?"), str(key), value)
    for attribute, value in vars(optimizer).items():  # AdaLomo
        if attribute.startswith("exp_avg"):
            for key, tensor in value.items():
                yield from tensors(str(key), attribute, tensor)


def tensors(name: str, key: str, value: Any) -> Iterator[tuple[str, str, torch.Tensor]]:
    """Plain tensors in a state: of a tensor subclass its parts, of a list or a projector its members."""
    if hasattr(value, "__tensor_flatten__"):
        for part in value.__tensor_flatten__()[0]:
            yield from tensors(name, f"{key}.{part}", getattr(value, part))
    elif isinstance(value, torch.Tensor):
        yield name, key, value
    elif isinstance(value, list | tuple):
        for index, member in enumerate(value):
            yield from tensors(name, f"{key}[{index}]", member)
    elif hasattr(value, "__dict__"):
        for part, member in vars(value).items():
            yield from tensors(name, f"{key}.{part}", member)


def measure(case: dict[str, Any]) -> dict[str, Any]:
    """State bytes in all and by parameter; the most bytes that a second step allocates beside them; gradients left alive."""
    bitsandbytes.optim.GlobalOptimManager._instance = None  # it remembers parameters by id across optimizers
    torch.manual_seed(0)
    row = MODELS[case["model"]]
    model = transformers.AutoModelForCausalLM.from_config(
        getattr(transformers, row.config)(**row.given), dtype=DTYPES[case["dtype"]]
    )
    model.config.use_cache = False
    model.train()
    optimizer = build(case, model)
    if hasattr(optimizer, "train"):
        optimizer.train()
    ids = torch.randint(0, 1000, (2, 8))
    in_backward = type(optimizer).__name__ in ("Lomo", "AdaLomo", "LayerWiseDummyOptimizer")
    temporary = None
    for _ in range(2):
        loss = model(input_ids=ids, labels=ids).loss
        if hasattr(optimizer, "fused_backward"):
            optimizer.fused_backward(loss, 1e-3)
        else:
            loss.backward()
        del loss
        alive = sum(p.grad is not None for p in model.parameters())
        if not in_backward:
            gc.collect()
            live = LiveBytes("cpu")
            for _, _, tensor in states(optimizer, model):
                live.count(tensor)
            for parameter in model.parameters():
                live.count(parameter)
                live.count(parameter.grad)
            before = live.live
            live.forget_peaks()
            with live:
                optimizer.step()
            temporary = live.peaks["load"].bytes - max(before, live.live)
            optimizer.zero_grad(set_to_none=True)
    kept: dict[str, dict[str, list[Any]]] = {}
    counted: dict[int, int] = {}
    for name, key, tensor in states(optimizer, model):
        shared = id(tensor) in counted
        counted[id(tensor)] = tensor.numel() * tensor.element_size()
        kept.setdefault(name, {})[key] = [str(tensor.dtype).removeprefix("torch."), list(tensor.shape)] + [
            "shared"
        ] * shared
    return {
        "class": f"{type(optimizer).__module__}.{type(optimizer).__name__}",
        "parameters": sum(p.numel() for p in model.parameters()),
        "state_bytes": sum(counted.values()),
        "states": kept,
        "step_temporary_bytes": temporary,
        "gradients_after_backward": alive,
    }
