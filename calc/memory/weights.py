"""Weights, adapters, master copies, gradients and buffers: what stands the whole step long.

Counts      every parameter tensor once, in the dtype that it is stored in.
Leaves out  what the optimizer keeps (optimizer_states.py).
Sources     the parameters that the forward pass asks for; bitsandbytes for 4-bit and 8-bit storage.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import prod

from calc.catalog.dtypes import DTYPES
from calc.catalog.quantization import QUANTIZED_FORMATS, QuantizedFormat
from calc.memory.breakdown import Component, Line
from calc.memory.optimizer_states import OptimizerStates
from calc.model.family import Architecture
from calc.model.parameters import Parameter
from calc.model.recipe import Recipe, Sharded
from calc.units import Bytes


def size(parameters: Iterable[Parameter]) -> Bytes:
    """Bytes of parameters as they are stored."""
    total = 0
    for p in parameters:
        if p.dtype in DTYPES:
            total += p.numel * int(DTYPES[p.dtype].size) * p.count
        else:
            row, double, codes = _format(p.dtype)
            total += int(row.bytes(p.shape[0], p.shape[1], double_quant=double, codes=codes)) * p.count
    return Bytes(total)


def _format(dtype: str) -> tuple[QuantizedFormat, bool, bool]:
    """Of a quantised dtype such as nf4-double the format, whether its scales are quantised too, and whether its codes are counted (not of -scales)."""
    name, *rest = dtype.split("-")
    return QUANTIZED_FORMATS[name], "double" in rest, "scales" not in rest


def rounding_line(parameters: Sequence[Parameter], states: OptimizerStates, granularity: int) -> Line:
    """What the allocator adds to weights and states when it rounds each tensor up to a multiple of `granularity`."""
    added = tensors = 0
    for p in parameters:
        each = int(size((replace(p, count=1),)))
        added += (-each % granularity) * p.count
        tensors += p.count
    for kept in states.of:
        for tensor in kept.tensors:
            if tensor.place == "device":
                added += (-int(tensor.held) % granularity) * kept.parameter.count
                tensors += kept.parameter.count
    return Line(
        "buffers", "Rounding of weights and states", Bytes(added), "exact", f"Σ (−bytes mod {granularity})", f"{tensors:,} tensors",
        "torch-caching-allocator", "PyTorch's allocator hands out multiples of 512 bytes.",
    )  # fmt: skip


def _by_dtype(parameters: Sequence[Parameter], component: Component, label: str, note: str) -> tuple[Line, ...]:
    groups: dict[str, list[Parameter]] = {}
    for p in parameters:
        groups.setdefault(p.dtype, []).append(p)
    lines = []
    for dtype, group in groups.items():
        count = sum(p.numel * p.count for p in group)
        if dtype not in DTYPES:
            row, double, codes = _format(dtype)
            text = f"{label if codes else 'Scales'}, {row.label}{', double quantised' if double else ''}"
            formula = f"Σ {row.formula(double_quant=double, codes=codes)}"
            lines.append(Line(component, text, size(group), "exact", formula, f"Σ n = {count:,}", row.source, note))
        else:
            each = int(DTYPES[dtype].size)
            lines.append(
                Line(
                    component,
                    f"{label}, {DTYPES[dtype].label}",
                    Bytes(count * each),
                    "exact",
                    f"P·{each}",
                    f"{count:,}·{each}",
                    "transformers",
                    note,
                )
            )
    return tuple(lines)


def weight_lines(parameters: Sequence[Parameter]) -> tuple[Line, ...]:
    """The model's own weights, trained or frozen."""
    own = [p for p in parameters if not _beside(p)]
    return _by_dtype(own, "weights", "Weights", "Every parameter tensor of the model, tied ones once.")


def _beside(p: Parameter) -> bool:
    """Adapters, and the trained copies that `modules_to_save` makes."""
    return p.role == "adapter"


def adapter_lines(parameters: Sequence[Parameter]) -> tuple[Line, ...]:
    """What is trained beside a frozen base."""
    return _by_dtype(
        [p for p in parameters if _beside(p)], "adapters", "Adapters", "Two matrices per adapted layer: r·(in + out)."
    )


def master_lines(parameters: Sequence[Parameter]) -> tuple[Line, ...]:
    """The fp32 copy of the trained weights that the optimizer works on."""
    count = sum(p.numel * p.count for p in parameters if p.trainable)
    return (
        Line(
            "master weights", "Master weights, float32", Bytes(4 * count), "exact", "P_t·4", f"{count:,}·4", "zero",
            "Kept beside the 16-bit weights so that small updates are not lost.",
        ),
    )  # fmt: skip


def flattening_line(groups: Sequence[Sequence[Parameter]]) -> Line:
    """What the step of a 16-bit optimizer with a master copy makes of the gradients: fp32 copies of a group's, and then one flat copy."""
    largest = max((sum(p.numel * p.count for p in group if p.trainable) for group in groups), default=0)
    return Line(
        "temporaries", "fp32 copies of the gradients, single and flat", Bytes(8 * largest), "modelled", "P_g·(4 + 4)", f"{largest:,}·(4 + 4)",
        "deepspeed-fp16-optimizer", "Made for one parameter group at a time, while the 16-bit gradients are still there.",
    )  # fmt: skip


def unscaling_line(temporaries: int) -> Line:
    """What a GradScaler adds to the optimizer's step: its scale turned round in fp64 before the step, or beside the step its inverse, a flag and
    the flag's copy."""
    size = max(2 * 8 - temporaries, 3 * 4)
    return Line(
        "temporaries", "GradScaler: inverse scale and overflow flag", Bytes(size), "exact", "max(2·8 − temporaries, 3·4)",
        f"max(2·8 − {temporaries:,}, 3·4)", "oracle",
    )  # fmt: skip


def gradient_line(parameters: Sequence[Parameter]) -> Line:
    """Gradients of everything that is trained, in the dtype of the weight."""
    trained: dict[str, int] = {}
    for p in parameters:
        if p.trainable:
            trained[p.dtype] = trained.get(p.dtype, 0) + p.numel * p.count
    total = sum(n * int(DTYPES[dtype].size) for dtype, n in trained.items())
    numbers = " + ".join(f"{n:,}·{int(DTYPES[dtype].size)}" for dtype, n in trained.items())
    return Line(
        "gradients", "Gradients", Bytes(total), "exact", "P_t·b", numbers, "torch-derivatives",
        "One gradient per trained parameter, in its dtype.",
    )  # fmt: skip


_CUT = {
    "fsdp2": "each tensor is cut along its first dimension, the last parts padded",
    "fsdp": "the tensors of a block lie one after another in a flat one, which is cut",
}
"""How the strategies of `calc.model.sharding` part the weights."""


def share_line(line: Line, sharded: Sharded) -> Line:
    """The same line where it is what one of several GPUs stores."""
    note = (
        f"The largest of {sharded.ranks} shares, that of the first GPU: {_CUT[sharded.strategy]}. {line.note}".rstrip()
    )
    return Line(
        line.component, f"{line.label}, one share of {sharded.ranks}", line.bytes, line.certainty, line.formula, line.numbers,
        "torch-fsdp", note,
    )  # fmt: skip


def bucket_line(parameters: Sequence[Parameter]) -> Line:
    """Buckets of DDP, which gradients are copied into and summed over the GPUs in; leaves out the map of used parameters, 4 bytes a tensor."""
    gradients = gradient_line(parameters)
    return Line(
        "gradients", "Buckets that gradients are summed in (DDP)", gradients.bytes, "exact", gradients.formula, gradients.numbers, "torch-ddp",
        "There from the first step on, beside the gradients; gradient_as_bucket_view=True would let the two share their memory.",
    )  # fmt: skip


def model_buffer_lines(model: Architecture, run: Recipe) -> tuple[Line, ...]:
    """Buffers of the model."""
    dtype = run.dtype if run.quantized is None else run.quantized.loaded
    sharded = run.sharded
    size = int(DTYPES[dtype if sharded is None else sharded.stored].size)
    own = model.family.buffers(model.dims, size)
    if sharded is not None and sharded.strategy == "fsdp" and sharded.stored != run.dtype:
        own = own * int(DTYPES[run.dtype].size) // size  # the older FSDP lowers buffers too, in the first forward pass
    lines = [
        Line("buffers", "Buffers of the model", Bytes(own), "exact", "2·(D/2)·4", f"{own:,}", "transformers", "Rotary frequencies and the like."),
    ]  # fmt: skip
    layers, positions, head = len(model.dims.kinds), model.context or 0, model.dims.head_dim
    if model.model_type in run.position_tables:
        lines.append(
            Line(
                "buffers", "Cosines and sines of every position, in each layer", Bytes(layers * 2 * positions * head * size), "exact", "L·2·P·D·b",
                f"{layers}·2·{positions:,}·{head}·{size}", "transformers", "As releases before 4.45 keep them, whatever the length of the batch.",
            )
        )  # fmt: skip
    if model.model_type in run.position_masks:
        lines.append(
            Line(
                "buffers", "Masks of every position by every position, in each layer", Bytes(layers * (positions**2 + size)), "exact", "L·(P² + b)",
                f"{layers}·({positions:,}² + {size})", "transformers", "As releases before 5 keep them.",
            )
        )  # fmt: skip
    return tuple(lines)


def batch_lines(model: Architecture | None, run: Recipe, scaler: bool) -> tuple[Line, ...]:
    """The batch, and what scales its loss."""
    tokens = run.batch * run.length
    lines = [
        Line(
            "buffers", "Token ids and mask" if run.padded else "Token ids", Bytes(8 * tokens * (2 if run.padded else 1)), "exact",
            "2·8·N" if run.padded else "8·N", f"{'2·' if run.padded else ''}8·{tokens:,}", "oracle", "int64; labels are taken from the same tensor.",
        ),
    ]  # fmt: skip
    for one in () if model is None else model.family.given(model.dims, run):
        size, each = prod(one.shape), int(DTYPES[one.dtype].size)
        lines.append(
            Line("buffers", one.label, Bytes(size * each), "exact", "n·b", f"{size:,}·{each}", "oracle", "As the image processor makes them.")
        )  # fmt: skip
    if scaler:
        lines.append(
            Line(
                "buffers",
                "GradScaler",
                Bytes(8),
                "exact",
                "4 + 4",
                "4 + 4",
                "torch-derivatives",
                "Scale and growth tracker.",
            )
        )
    return tuple(lines)
