"""Frozen bases in bitsandbytes' formats on the pretended GPU.

The modules, autograd functions and quantisation states are bitsandbytes' own; only the numbers are missing. Its CUDA
kernels are called from Python code that allocates around them: that code's allocations are repeated here, operation by
operation (`PARTS`), since under fake tensors only the shape of its result would be seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import bitsandbytes as bnb
import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.nn import functional

torch._C._cuda_getCurrentRawStream = lambda device: 0  # asked for when the module below is imported
from bitsandbytes.backends.cuda import ops as cuda  # noqa: E402

BLOCK, NESTED_BLOCK = 64, 256
FUSED_UP_TO = 1536
"""Tokens up to which the fused 4-bit product may be taken, as bitsandbytes decides by shape for an A100; above, weights are
always unpacked first."""
A100 = (108, 8, 0)
cuda._gpu_dispatch_props = lambda device: A100


def quantise(model: torch.nn.Module, quantization: dict[str, Any], compute: torch.dtype) -> None:
    """Put quantised linears in place of all but the head, as `from_pretrained(quantization_config=…)` leaves them."""
    head = model.get_output_embeddings()
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if type(child) is torch.nn.Linear and child is not head:
                new = int8(child) if quantization["format"] == "int8" else four_bit(child, quantization, compute)
                setattr(parent, name, new)
    model.is_loaded_in_8bit = quantization["format"] == "int8"
    model.is_loaded_in_4bit = not model.is_loaded_in_8bit
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    if quantization.get("upcast_for_training"):  # prepare_model_for_kbit_training
        for module in model.modules():
            for name, parameter in list(module._parameters.items()):
                if parameter is not None and parameter.dtype in (torch.bfloat16, torch.float16):
                    module._parameters[name] = torch.nn.Parameter(parameter.detach().float(), requires_grad=False)
        model.tie_weights()


def four_bit(linear: torch.nn.Linear, quantization: dict[str, Any], compute: torch.dtype) -> torch.nn.Module:
    weight, device = linear.weight, linear.weight.device
    blocks = -(-weight.numel() // BLOCK)
    state = {
        "shape": weight.shape,
        "blocksize": BLOCK,
        "quant_type": quantization["format"],
        "dtype": weight.dtype,
        "code": torch.empty(16, device=device),
    }
    if quantization["double_quant"]:
        nested = bnb.functional.QuantState(
            absmax=torch.empty(-(-blocks // NESTED_BLOCK), device=device),
            blocksize=NESTED_BLOCK,
            code=torch.empty(256, device=device),
            dtype=torch.float32,
        )
        state |= {
            "absmax": torch.empty(blocks, dtype=torch.uint8, device=device),
            "offset": torch.empty((), device=device),
            "state2": nested,
        }
    else:
        state |= {"absmax": torch.empty(blocks, device=device)}
    with (
        unset_fake_temporarily()
    ):  # its own parameter class takes no fake tensor; the real one of 1 x 1 is put away again
        new = bnb.nn.Linear4bit(1, 1, bias=False, compute_dtype=compute, quant_type=quantization["format"])
    storage = getattr(torch, quantization.get("quant_storage", "uint8"))
    numel = (weight.numel() + 1) // 2 // storage.itemsize
    packed = torch.nn.Parameter(torch.empty(numel, 1, dtype=storage, device=device), requires_grad=False)
    new.quant_state = packed.quant_state = bnb.functional.QuantState(**state)
    packed.compress_statistics, packed.quant_type = quantization["double_quant"], quantization["format"]
    return dressed(new, linear, packed)


def int8(linear: torch.nn.Linear) -> torch.nn.Module:
    with unset_fake_temporarily():
        new = bnb.nn.Linear8bitLt(1, 1, bias=False, has_fp16_weights=False, threshold=6.0)
    codes = torch.nn.Parameter(
        torch.empty(linear.weight.shape, dtype=torch.int8, device=linear.weight.device), requires_grad=False
    )
    codes.CB = None
    new.state.CB, new.state.SCB = codes.data, torch.empty(linear.weight.shape[0], device=linear.weight.device)
    return dressed(new, linear, codes)


def dressed(new: torch.nn.Module, linear: torch.nn.Linear, weight: torch.nn.Parameter) -> torch.nn.Module:
    new._parameters["weight"], new._parameters["bias"] = weight, linear.bias
    new.in_features, new.out_features = linear.in_features, linear.out_features
    new.train(linear.training)
    return new


def state_tensors(model: torch.nn.Module) -> list[torch.Tensor]:
    """Tensors of quantisation states, which are no parameters of the module."""
    found: list[torch.Tensor] = []
    for module in model.modules():
        weight = getattr(module, "weight", None)
        state = getattr(weight, "quant_state", None) or getattr(module, "quant_state", None)  # lost by a share
        if state is not None:
            found += [state.absmax, state.code]
            if state.nested:
                found += [state.offset, state.state2.absmax, state.state2.code]
        if isinstance(module, bnb.nn.Linear8bitLt):
            found += [module.state.CB, module.state.SCB]
    return found


def whole(model: torch.nn.Module) -> Iterator[torch.nn.Parameter]:
    """4-bit weights stored as integers, which accelerate leaves out of the sharding."""
    for module in model.modules():
        if isinstance(module, bnb.nn.Linear4bit) and not module.weight.is_floating_point():
            yield module.weight


def give_back(module: Any) -> None:
    """bitsandbytes' `fix_4bit_weight_quant_state_from_module`, for weights that FSDP has gathered, without its parameter class."""
    if getattr(module.weight, "quant_state", None) is None:
        module.weight.quant_state = module.quant_state


bnb.nn.modules.fix_4bit_weight_quant_state_from_module = give_back


def gemm_4bit(
    A, B, shape, absmax, blocksize, quant_type, bias=None, absmax_8bit=None, absmax_code=None, absmax_offset=None
):
    """backends/cuda/ops.py: above FUSED_UP_TO tokens scales and weight are unpacked and F.linear is called; below, one kernel."""
    tokens = A.numel() // A.shape[-1]
    if (
        tokens <= FUSED_UP_TO
        and shape[1] % blocksize == 0
        and cuda._gemm_4bit_use_custom_cuda(0, A.dtype, tokens, shape[0], shape[1])
    ):
        return A.new_empty(*A.shape[:-1], shape[0])
    if absmax_8bit is not None:
        unpacked = torch.empty_like(absmax_8bit, dtype=torch.float32)
        absmax = unpacked + absmax_offset  # noqa: F841  (alive beside the weight)
    weight = torch.empty(shape, dtype=A.dtype, device=A.device)
    return functional.linear(A, weight, bias)


def int8_vectorwise_quant(A, threshold=0.0):
    """The same file: absolute values and a mask to look for outliers, of which none are taken to be found."""
    stats = torch.empty(A.numel() // A.shape[-1], device=A.device)
    codes = torch.empty(A.shape, device=A.device, dtype=torch.int8)
    columns = None
    if threshold > 0.0:
        outliers = A.abs() >= threshold
        outliers.any()
        columns = torch.empty(0, device=A.device, dtype=torch.int64)
    return codes, stats, columns


def int8_scaled_mm(A, B, row_stats, col_stats, bias=None, dtype=None):
    """An int32 product, made fp16, then the dtype that was asked for."""
    product = torch.empty(*A.shape[:-1], B.shape[0], device=A.device, dtype=torch.int32)
    out = torch.empty_like(product, dtype=torch.float16)
    if bias is not None and bias.dtype != torch.float16:
        out.add_(bias)
    return out.to(dtype or torch.float16)


def int8_mixed_scaled_mm(A, CA, CB, SCA, SCB, outlier_cols=None, bias=None):
    """The same when outliers were looked for and not found."""
    none = torch.empty(0, device=A.device, dtype=A.dtype)
    return int8_scaled_mm(CA, CB, SCA, SCB, bias=bias, dtype=A.dtype), none


PARTS = {
    torch.ops.bitsandbytes.gemm_4bit.default: gemm_4bit,
    torch.ops.bitsandbytes.int8_vectorwise_quant.default: int8_vectorwise_quant,
    torch.ops.bitsandbytes.int8_scaled_mm.default: int8_scaled_mm,
    torch.ops.bitsandbytes.int8_mixed_scaled_mm.default: int8_mixed_scaled_mm,
}
