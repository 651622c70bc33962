"""A mixture of experts as transformers runs it: a router that chooses, and experts held in 3-D parameters that a grouped product uses.

The experts are parameters of one module, not linear layers: what looks for linear layers (4-bit replacement, LoRA's all-linear unless
PEFT knows the model type) passes them by. Mirrors transformers 5.24.0 integrations/moe.py, grouped_mm_experts_forward: what it takes by default on a GPU since Ampere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from calc.autograd.elementwise import add_in_place, cast, mul, softmax
from calc.autograd.linear import mm
from calc.autograd.routing import gather, grouped_mm, normalized_in_place, summed_copies, topk, weighted
from calc.autograd.shapes import reshape, split
from calc.autograd.tensor import Tensor, empty
from calc.model.activations import activated
from calc.model.config import Config, ConfigError
from calc.model.family import Dims
from calc.model.modules import Modules
from calc.model.parameter_adapters import adapted_experts, adapted_router

Routed = tuple[Tensor, Tensor, Tensor]
"""The router's logits (rows, experts), and for each row the weights and places of its k experts, each (rows, k)."""


@dataclass(frozen=True)
class MixtureDims(Dims):
    """Sizes of a mixture of experts."""

    num_experts: int = 0
    num_experts_per_tok: int = 0
    moe_intermediate_size: int = 0
    """Width of one expert."""
    shared_intermediate_size: int = 0
    """Width of the experts that every token passes, together; 0 for none."""
    norm_topk_prob: bool = True
    """Whether the weights of the chosen experts are made to sum to one."""
    n_group: int = 0
    """Groups of experts, of which a token may use the best `topk_group`; 0 for none."""
    topk_group: int = 0
    head_bias: bool = False
    """Bias of the head."""
    clip_qkv: bool = False
    """Whether queries, keys and values are clipped."""


def router(m: Modules, name: str, x: Tensor, *, lowered: bool = True) -> Routed:
    """Softmax over all experts in fp32, then the k largest, normalised if the config says so: Mixtral and those after it."""
    c = m.c
    logits = routed_logits(m, name, x)
    values, places = topk(softmax(cast(logits, "fp32")), c.num_experts_per_tok)
    if c.norm_topk_prob:
        values = normalized_in_place(values)
    return logits, cast(values, logits.dtype) if lowered else values, places


def routed_logits(
    m: Modules, name: str, x: Tensor, *, dtype: str | None = None, outside_autocast: bool = False
) -> Tensor:
    """The router's product, with a weight of its own dtype if it has one: it is a parameter, so PEFT's adapter is added to the weight."""
    weight = m.weight(f"{name}.weight", (m.c.num_experts, x.shape[-1]), "router", dtype=dtype)
    whole, held = adapted_router(m, name, weight)
    logits = mm(x, whole) if outside_autocast else m.product(x, whole)
    del held
    return logits


def gated(m: Modules, x: Tensor) -> Tensor:
    """act(gate)·up of one tensor that holds the two side by side."""
    gate, up = split(x, (x.shape[1] // 2,) * 2)
    return mul(activated(m, gate, m.c.hidden_act), up)


def experts(
    m: Modules,
    name: str,
    x: Tensor,
    routed: Routed,
    *,
    width: int | None = None,
    first: str = "gate_up_proj",
    gate: Callable[[Modules, Tensor], Tensor] = gated,
    bias: bool = False,
    transposed: bool = False,
) -> Tensor:
    """Each row of x to its k experts and back, weighted and summed: (rows, hidden) in and out.

    `first` names the first matrix, which has a half for the gate unless it is called up_proj; `bias`: each expert adds one; `transposed`: its matrices are (in, out), as in gpt-oss.
    """
    c = m.c
    _, weights, places = routed
    tokens, hidden = x.shape
    count, copies = c.num_experts, tokens * c.num_experts_per_tok
    width = c.moe_intermediate_size if width is None else width

    down, up = f"{name}.down_proj", f"{name}.{first}"
    wide = width if first == "up_proj" else 2 * width
    stacks = {
        of: m.weight(of, (count, inner, out) if transposed else (count, out, inner), "expert")
        for of, out, inner in ((up, wide, hidden), (down, hidden, width))
    }
    adapted = adapted_experts(m, {down: stacks[down], up: stacks[up]}) if m.adapted_parameters else {}

    sorted_places, order = empty((copies,), "i64", "sort"), empty((copies,), "i64", "sort")
    source = empty((copies,), "i64", "floor_divide")
    copied = gather(x, (copies, hidden), source)
    del source
    sorted_weights = gather(reshape(weights, (copies,)), (copies,), order)
    lowered_places = empty((copies,), "i32", "_to_copy")
    tokens_per_expert = empty((count,), "i32", "histc")
    offsets = empty((count,), "i32", "cumsum")
    biases = _biases(m, f"{up}_bias", wide, sorted_places) if bias else None
    raising = adapted[up].whole() if up in adapted else stacks[up]
    y = _product(copied, raising, offsets, biases, transposed)
    y = gate(m, y)
    biases = _biases(m, f"{down}_bias", hidden, sorted_places) if bias else None
    lowering = adapted[down].whole() if down in adapted else stacks[down]
    y = _product(y, lowering, offsets, biases, transposed)
    out = weighted(y, reshape(sorted_weights, (copies, 1)))
    back = empty((copies,), "i64", "empty_like")
    counted = empty((copies,), "i64", "arange")
    del counted
    out = gather(out, (copies, hidden), back)
    summed = out.dtype if m.recipe.autocast is None else "fp32"  # autocast sums in fp32
    result = cast(summed_copies(out, tokens, summed), x.dtype)
    del places, order, copied, lowered_places, tokens_per_expert, y, biases  # until its frame ends, it holds them all
    return result


def _biases(m: Modules, name: str, width: int, places: Tensor) -> Tensor:
    """Each copy's expert's bias."""
    return gather(m.weight(name, (m.c.num_experts, width), "expert"), (places.shape[0], width), places)


def _product(x: Tensor, weight: Tensor, offsets: Tensor, biases: Tensor | None, transposed: bool) -> Tensor:
    """Each group of copies times its expert, plus the biases if there are any."""
    y = grouped_mm(cast(x, weight.dtype), weight, offsets, transposed=transposed)
    return y if biases is None else add_in_place(y, biases)


def chosen(
    config: Config,
    *names: str,
    default: int | None = None,
    top: int | None = None,
    per_token: Sequence[str] = ("num_experts_per_tok",),
) -> tuple[int, int]:
    """How many experts a layer has, and how many of them a token passes. `default` and `top` are the class's own, None if it has none."""
    experts = required(config, *names, default=default, high=65536)
    k = required(config, *per_token, default=top, high=65536)
    if k > experts:
        raise ConfigError(per_token[0], f"should not exceed {names[0]} ({experts}), not {k}")
    return experts, k


def required(config: Config, *names: str, default: int | None, high: int) -> int:
    """A whole number that the config must give if the class has no default for it."""
    return config.integer(*names, high=high) if default is None else config.integer(*names, default=default, high=high)
