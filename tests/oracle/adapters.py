"""PEFT's adapters on tensors without numbers.

`Module.to` cannot move fake parameters, and everything is made on the right device anyway: so PEFT's moves are left out and
its casts are done by putting new parameters in place, as `autocast_adapter_dtype` and `_move_adapter_to_device_of_base_layer`
would.
"""

from __future__ import annotations

import collections
import copy
import types
from typing import Any

import peft
import peft.tuners.tuners_utils
import peft.utils.other
import torch

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
EVERY_ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj")


def wrap(model: torch.nn.Module, plan: dict[str, Any]) -> torch.nn.Module:
    """The model with the adapters of `plan["lora"]` (words of the product's Scenario)."""
    lora = plan["lora"]
    target = lora["target_modules"]
    config = peft.LoraConfig(
        task_type="CAUSAL_LM" if hasattr(model, "prepare_inputs_for_generation") else None,
        r=lora["rank"],
        lora_alpha=lora.get("alpha", 32),
        lora_dropout=lora.get("dropout", 0.0),
        target_modules=target if target == "all-linear" else list(EVERY_ATTENTION if target == "attention" else target),
        modules_to_save=list(lora["modules_to_save"]) or None if "modules_to_save" in lora else None,
        use_dora=lora.get("use_dora", False),
    )
    moves, to = peft.tuners.tuners_utils.BaseTunerLayer._move_adapter_to_device_of_base_layer, torch.nn.Module.to
    peft.tuners.tuners_utils.BaseTunerLayer._move_adapter_to_device_of_base_layer = _follow_base
    torch.nn.Module.to = lambda self, *args, **kwargs: self
    peft.utils.other.copy = types.SimpleNamespace(copy=copy.copy, deepcopy=_copied)
    try:
        device = next(model.parameters()).device
        with torch.device(device):
            wrapped = peft.get_peft_model(model, config, autocast_adapter_dtype=False)
    finally:
        peft.tuners.tuners_utils.BaseTunerLayer._move_adapter_to_device_of_base_layer, torch.nn.Module.to = moves, to
    for name, module in wrapped.named_modules():
        if ".lora_" in name:  # copies in modules_to_save keep the base dtype
            _cast(module, DTYPES[lora.get("adapter_dtype", "fp32")])
    return wrapped


def _copied(module: torch.nn.Module) -> torch.nn.Module:
    """The trained copy that `modules_to_save` makes of a layer. (A deep copy would follow a fake tensor to memory it has not.)"""
    new = copy.copy(module)
    new.__dict__ = {
        key: value.copy() if isinstance(value, dict | collections.OrderedDict) else value
        for key, value in module.__dict__.items()
    }
    for name, parameter in module._parameters.items():
        if parameter is not None:
            new._parameters[name] = torch.nn.Parameter(
                torch.empty_like(parameter), requires_grad=parameter.requires_grad
            )
    return new


def _cast(module: torch.nn.Module, dtype: torch.dtype) -> None:
    for name, parameter in list(module._parameters.items()):
        if parameter is not None and parameter.dtype.is_floating_point and parameter.dtype != dtype:
            module._parameters[name] = torch.nn.Parameter(
                parameter.detach().to(dtype), requires_grad=parameter.requires_grad
            )


def _follow_base(self, adapter_name: str, device=None) -> None:
    """A new adapter takes the base weight's floating dtype."""
    weight = self.get_base_layer().weight
    for name in self.adapter_layer_names:
        layers = getattr(self, name, None)
        if weight.dtype.is_floating_point and isinstance(layers, torch.nn.ModuleDict) and adapter_name in layers:
            for module in layers[adapter_name].modules():
                _cast(module, weight.dtype)
