"""A mixture of experts as transformers runs it: a router that chooses, and experts held in 3-D parameters that a grouped product uses.

The experts are parameters of one module, not linear layers: what looks for linear layers (LoRA's all-linear, 4-bit replacement) passes
them by. Mirrors transformers 5.24.0 integrations/moe.py, grouped_mm_experts_forward: what it takes by default on a GPU since Ampere.
"""

from __future__ import annotations

from collections.abc import Callable

from calc.autograd.elementwise import activation, cast, mul, softmax
from calc.autograd.routing import gather, grouped_mm, normalized_in_place, summed_copies, topk, weighted
from calc.autograd.shapes import reshape, split
from calc.autograd.tensor import Tensor, empty
from calc.model.modules import Modules


def router(m: Modules, name: str, x: Tensor, *, normalize: bool, lowered: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """Softmax over all experts in fp32: the logits (rows, experts), and the k largest and their places, each (rows, k)."""
    logits = m.linear(name, x, m.c.num_experts, role="router")
    values, places = topk(softmax(cast(logits, "fp32")), m.c.num_experts_per_tok)
    if normalize:
        values = normalized_in_place(values)
    return logits, cast(values, logits.dtype) if lowered else values, places


def gated(m: Modules, x: Tensor) -> Tensor:
    """act(gate)·up of one tensor that holds the two side by side."""
    gate, up = split(x, (x.shape[1] // 2,) * 2)
    return mul(activation(gate, m.c.hidden_act), up)


def experts(
    m: Modules,
    name: str,
    x: Tensor,
    weights: Tensor,
    places: Tensor,
    width: int,
    *,
    gate: Callable[[Modules, Tensor], Tensor] = gated,
) -> Tensor:
    """Each row of x to its k experts and back, weighted and summed: (rows, hidden) in and out; weights and places are (rows, k)."""
    tokens, hidden = x.shape
    count = m.c.num_experts
    copies = tokens * m.c.num_experts_per_tok
    up_weight = m.weight(f"{name}.gate_up_proj", (count, 2 * width, hidden), "expert")
    down_weight = m.weight(f"{name}.down_proj", (count, hidden, width), "expert")
    sorted_places, order = empty((copies,), "i64", "sort"), empty((copies,), "i64", "sort")
    source = empty((copies,), "i64", "floor_divide")
    copied = gather(x, (copies, hidden), source)
    del source
    sorted_weights = gather(reshape(weights, (copies,)), (copies,), order)
    lowered_places = empty((copies,), "i32", "_to_copy")
    tokens_per_expert = empty((count,), "i32", "histc")
    offsets = empty((count,), "i32", "cumsum")
    y = grouped_mm(cast(copied, up_weight.dtype), up_weight, offsets)
    y = gate(m, y)
    y = grouped_mm(cast(y, down_weight.dtype), down_weight, offsets)
    out = weighted(y, reshape(sorted_weights, (copies, 1)))
    back = empty((copies,), "i64", "empty_like")
    counted = empty((copies,), "i64", "arange")
    del counted
    out = gather(out, (copies, hidden), back)
    result = cast(summed_copies(out, tokens), x.dtype)
    del sorted_places, order, copied, lowered_places, tokens_per_expert, offsets, y
    return result
