"""What one forward pass keeps for backward, tensor by tensor, named in the symbols of the model's dimensions.

Tiny models only: their dimensions are chosen so that a storage's size says what it is.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import train_step
from models import MODELS
from torch._subclasses.fake_tensor import FakeTensorMode

DTYPES = {
    "torch.float32": "fp32",
    "torch.bfloat16": "bf16",
    "torch.float16": "fp16",
    "torch.int64": "i64",
    "torch.int32": "i32",
    "torch.uint8": "u8",
    "torch.bool": "bool",
    "torch.uint64": "u64",
    "torch.complex64": "c64",
}


def symbols(d: dict[str, int], plan: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """Sizes in elements by formula, the likelier first: N tokens, h hidden, i inner, H heads, K key heads, D head width,
    q = H·D, kv = K·D, V vocabulary, E experts, k experts per token, m expert width, s shared expert width, r rank."""
    B, S = plan["micro_batch_size"], plan["seq_len"]
    N, h, i, H, K, D, V = B * S, *(d[name] for name in "hiHKDV")
    q, kv = H * D, K * D
    yield from (
        ("N·h", N * h),
        ("N·q", N * q),
        ("N·kv", N * kv),
        ("N·i", N * i),
        ("N·(q+2kv)", N * (q + 2 * kv)),
        ("N·2i", N * 2 * i),
        ("N", N),
        ("N·H", N * H),
        ("N·K", N * K),
        ("N·H·S", N * H * S),
        ("N·S", N * S),
        ("B·H·⌈S⌉32", B * H * -(-S // 32) * 32),
        ("B·S·⌈S⌉16", B * S * -(-S // 16) * 16),
        ("S", S),
        ("N·V", N * V),
        ("N·(q+kv)", N * (q + kv)),
        ("N·(h+i)", N * (h + i)),
    )
    if "E" in d:
        E, k, m = d["E"], d["k"], d.get("m", i)
        yield from (
            ("N·E", N * E),
            ("N·k", N * k),
            ("N·k·h", N * k * h),
            ("N·k·m", N * k * m),
            ("N·k·2m", N * k * 2 * m),
            ("E", E),
            ("E·h", E * h),
            ("N·2m", N * 2 * m),
            ("N·m", N * m),
            ("N·E·h", N * E * h),
            ("N·E·m", N * E * m),
        )
        if "s" in d:
            yield "N·s", N * d["s"]
    if "lora" in plan:
        r = plan["lora"]["rank"]
        yield from (("N·r", N * r), ("r·h", r * h), ("r·q", r * q), ("r·kv", r * kv), ("r·i", r * i))
    yield from (
        ("S·D", S * D),
        ("S·D/2", S * D // 2),
        ("h·q", h * q),
        ("h·kv", h * kv),
        ("h·i", h * i),
        ("h·(q+2kv)", h * (q + 2 * kv)),
        ("h·2i", 2 * h * i),
        ("V·h", V * h),
        ("h", h),
        ("D", D),
        ("i", i),
        ("q", q),
        ("kv", kv),
        ("B·(S+1)", B * (S + 1)),
        ("1", 1),
        ("2", 2),
    )


def measure(case: dict[str, Any]) -> dict[str, Any]:
    """Bytes in all; by symbol outside the blocks and in each block; and every tensor with the module that saved it."""
    gc.collect()
    plan = case["plan"]
    names: dict[int, str] = {}
    for name, size in symbols(MODELS[case["model"]].symbols, plan):
        names.setdefault(size, name)
    with FakeTensorMode(allow_non_fake_inputs=True):
        step = train_step.Step(train_step.build_model(case["model"], plan), plan)
        with step.live:
            step.live.phase = "forward"
            loss = step.forward(step._batch(), observe=True)
        places: dict[int | None, list[list[Any]]] = {}
        for module, dtype, size in step.saved.alive():
            places.setdefault(train_step.block_of(module), []).append(
                [module, DTYPES[str(dtype)], names.get(size // dtype.itemsize, "bytes"), size]
            )
        del loss
    outside = places.pop(None, [])
    blocks = [sum_by_symbol(places[number]) for number in sorted(places)]
    return {
        "bytes": sum(t[3] for ts in [outside, *places.values()] for t in ts),
        "outside": sum_by_symbol(outside),
        "blocks": blocks,
        "outside_tensors": outside,
        "block_tensors": [places[number] for number in sorted(places)],
    }


def sum_by_symbol(tensors: list[list[Any]]) -> dict[str, int]:
    """Bytes per unit of each symbol ("N·h": 16 says 16 bytes for each of N·h elements)."""
    total: dict[str, int] = {}
    for _, dtype, symbol, size in tensors:
        total[symbol] = total.get(symbol, 0) + (size if symbol == "bytes" else BYTES[dtype])
    return total


BYTES = {"fp32": 4, "bf16": 2, "fp16": 2, "i64": 8, "i32": 4, "u8": 1, "bool": 1, "u64": 8, "c64": 8}
