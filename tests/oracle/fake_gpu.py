"""A GPU without a GPU. Import before anything imports torch.

It loads the shim that pretends one CUDA device, gives that device its one-kernel operations, lets autocast run on it, and
picks the attention kernel as torch's C++ picks it on an Ampere card (where no CUDA build exists, the choice is lost).
"""

from __future__ import annotations

import ctypes
import os
import pathlib
import warnings

os.environ |= {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    "TOKENIZERS_PARALLELISM": "false",
    "BITSANDBYTES_NOWELCOME": "1",
}
warnings.filterwarnings("ignore")
ctypes.CDLL(str(pathlib.Path(__file__).with_name("build") / "fakecuda.so"))

import one_kernel  # noqa: E402
import torch  # noqa: E402
import torch._meta_registrations  # noqa: E402
import torch.cuda.amp.common  # noqa: E402
from torch.nn import functional  # noqa: E402

KERNELS = one_kernel.register()
torch.cuda.amp.common.amp_definitely_not_available = lambda: False
torch.cuda.is_bf16_supported = lambda *args, **kwargs: True
torch.cuda.get_device_capability = lambda *args, **kwargs: (8, 0)
# Dispatch modes are per thread: backward must run in this one to be seen.
torch.autograd.set_multithreading_enabled(False)

aten = torch.ops.aten


def grouped_mm_any_dtype(meta):
    """torch._grouped_mm on a GPU falls back to a loop of matrix products for what is not bf16; its shape function refuses.

    The loop writes into one output of the same shape, so that shape is asked of bf16 stand-ins.
    """

    def shaped(
        mat_a, mat_b, scale_a, scale_b, offs=None, bias=None, scale_result=None, out_dtype=None, use_fast_accum=False
    ):
        if scale_a is not None or mat_a.dtype == torch.bfloat16:
            return meta(mat_a, mat_b, scale_a, scale_b, offs, bias, scale_result, out_dtype, use_fast_accum)
        stand_ins = (torch.empty_like(t, dtype=torch.bfloat16) for t in (mat_a, mat_b))
        out = meta(*stand_ins, None, None, offs, bias, scale_result, None, use_fast_accum)
        return torch.empty_like(out, dtype=out_dtype or mat_a.dtype)

    return shaped


torch._meta_registrations._meta_grouped_mm_common = grouped_mm_any_dtype(
    torch._meta_registrations._meta_grouped_mm_common
)
on_cpu = functional.scaled_dot_product_attention


def attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    """scaled_dot_product_attention with the kernel choice of sdp_utils.cpp on an Ampere GPU.

    No mask, 16-bit and a head of at most 256: flash (heads padded to a multiple of 8). Else the memory-efficient kernel,
    with a boolean mask turned into an additive one, padded to a multiple of 16 and expanded. Grouped heads without
    flash: the math path.
    """
    if query.device.type != "cuda":
        return on_cpu(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
    if torch.is_autocast_enabled("cuda"):  # the operation is on autocast's list, above where we stand
        dtype = torch.get_autocast_dtype("cuda")
        query, key, value = query.to(dtype), key.to(dtype), value.to(dtype)
        if attn_mask is not None and attn_mask.dtype != torch.bool:
            attn_mask = attn_mask.to(dtype)
    width = query.shape[-1]
    half = query.dtype in (torch.float16, torch.bfloat16)
    if attn_mask is None and half and width <= 256 and width == value.shape[-1]:
        scale = scale if scale is not None else width**-0.5
        if pad := -width % 8:
            query, key, value = (functional.pad(t, (0, pad)) for t in (query, key, value))
        out = aten._scaled_dot_product_flash_attention(query, key, value, dropout_p, is_causal, False, scale=scale)[0]
        return out[..., :width] if pad else out
    if enable_gqa:
        return on_cpu(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=True)
    if attn_mask is not None:
        if attn_mask.dtype == torch.bool:
            attn_mask = torch.zeros_like(attn_mask, dtype=query.dtype).masked_fill_(
                attn_mask.logical_not(), float("-inf")
            )
        columns = attn_mask.shape[-1]
        if pad := -columns % 16:
            attn_mask = functional.pad(attn_mask, (0, pad))[..., :columns]
        attn_mask = attn_mask.expand(query.shape[0], query.shape[1], query.shape[2], key.shape[2])
    training = torch.is_grad_enabled() and (query.requires_grad or key.requires_grad or value.requires_grad)
    return aten._scaled_dot_product_efficient_attention(
        query, key, value, attn_mask, training, dropout_p, is_causal, scale=scale
    )[0]


functional.scaled_dot_product_attention = attention
