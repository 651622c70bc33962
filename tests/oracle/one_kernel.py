"""Operations that are one kernel on a GPU, though this build of torch would take them apart.

torch decomposes an operation when it knows a composite form and the build has no kernel for the device. On a real GPU
the kernel exists, so the parts and their temporaries never do. `decomposing()` finds such operations in the installed
torch (a kernel of the CPU's own, or a derivative of its own, beside the composite form); each must be a row of KERNELS
or of COMPOSITE_ON_CUDA_TOO, else the oracle refuses to measure.
"""

from __future__ import annotations

import torch

# What each kernel allocates: its outputs and nothing else.
KERNELS = {
    "silu_backward": lambda grad, x: torch.empty_like(x),
    "mish_backward": lambda grad, x: torch.empty_like(x),
    "native_channel_shuffle": lambda x, groups: torch.empty_like(x),
    "_fused_rms_norm": lambda x, shape, weight, eps: (
        torch.empty_like(x),
        x.new_empty([*x.shape[: x.dim() - len(shape)], *[1] * len(shape)], dtype=torch.float32),
    ),
}

# Composite on a CUDA build as well: native_functions.yaml gives them no CUDA kernel (their own kernels serve other
# devices or nested tensors), or they only make views.
COMPOSITE_ON_CUDA_TOO = {
    "chunk",
    "linear",
    "matmul",
    "matmul.out",
    "max_pool2d",
    "narrow",
    "value_selecting_reduction_backward",
}


def decomposing() -> list[str]:
    """Operations of the installed torch with a composite form beside a kernel or derivative of their own."""
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    found = []
    for name in torch._C._dispatch_get_all_op_names():
        if (
            name.startswith("aten::")
            and has(name, "CompositeImplicitAutograd")
            and (has(name, "CPU") or has(name, "Autograd"))
        ):
            found.append(name.removeprefix("aten::"))
    return sorted(found)


def register() -> torch.library.Library:
    """Give the pretended GPU its one-kernel forms. Keep what is returned, or they go again."""
    unknown = [name for name in decomposing() if name not in KERNELS and name not in COMPOSITE_ON_CUDA_TOO]
    if unknown:
        raise RuntimeError(
            f"torch {torch.__version__} decomposes {unknown} only because this build has no CUDA: "
            "add each to KERNELS, or to COMPOSITE_ON_CUDA_TOO after reading native_functions.yaml"
        )
    library = torch.library.Library("aten", "IMPL")
    for name, kernel in KERNELS.items():
        library.impl(name, kernel, "CUDA")
    return library
