"""Weights that bitsandbytes has really quantised, on the CPU: every tensor that stays."""

from __future__ import annotations

import os
from typing import Any

os.environ["BITSANDBYTES_NOWELCOME"] = "1"

import bitsandbytes
import torch


def measure(case: dict[str, Any]) -> dict[str, Any]:
    """Bytes of a quantised linear weight by part, and in all."""
    torch.manual_seed(0)
    weight = bitsandbytes.nn.Params4bit(
        torch.randn(case["out"], case["in"], dtype=torch.bfloat16),
        requires_grad=False,
        quant_type=case["format"],
        compress_statistics=case["double_quant"],
    )
    quantised = weight._quantize("cpu") if weight.quant_state is None else weight
    state = quantised.quant_state
    parts = {"weight": quantised, "absmax": state.absmax, "code": state.code}
    if state.nested:
        parts |= {"offset": state.offset, "nested absmax": state.state2.absmax, "nested code": state.state2.code}
    measured = {name: tensor.numel() * tensor.element_size() for name, tensor in parts.items()}
    return {
        "parts": measured,
        "bytes": sum(measured.values()),
        "blocksize": state.blocksize,
        "nested_blocksize": state.state2.blocksize if state.nested else 0,
    }
