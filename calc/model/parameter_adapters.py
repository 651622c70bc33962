"""Adapters on bare parameters: what PEFT does where transformers 5 holds experts and routers in parameters instead of linear layers.

For model types whose layers of version 4 became such parameters, PEFT turns target modules by their old names, and all-linear, into targets
on the parameters. Their adapter is added to the whole parameter: a second copy of all experts, which the backward pass keeps.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from calc.autograd.elementwise import add, cast, scale
from calc.autograd.linear import baddbmm, mm
from calc.autograd.shapes import reordered, reshape
from calc.autograd.tensor import Shape, Tensor, empty

if TYPE_CHECKING:
    from calc.model.modules import Modules

QWEN, MIXTRAL = ("gate_proj", "up_proj", "down_proj"), ("w1", "w3", "w2")
OLD_NAMES: Mapping[str, tuple[str, str, str]] = {
    **dict.fromkeys(
        (
            "afmoe", "deepseek_v2", "deepseek_v3", "deepseek_v32", "dots1", "ernie4_5_moe", "glm4_moe", "glm4_moe_lite", "glm_moe_dsa",
            "glm4v_moe", "longcat_flash", "solar_open", "mellum", "qwen3_moe", "beam", "qwen3_next", "hunyuan_v1_moe", "flex_olmo", "olmoe",
            "sarvam_mla", "exaone_moe", "cohere2_moe",
        ),
        QWEN,
    ),
    **dict.fromkeys(("mixtral", "minimax", "minimax_m2"), MIXTRAL),
}  # fmt: skip
"""The layers of an expert in version 4, by model type: the two that became `gate_up_proj`, and the one that became `down_proj`. PEFT 0.21.2,
utils/transformers_weight_conversion.py; the router was `gate` in all of them."""
FUSED = 2
"""Old layers in one parameter: its adapter is as many times as wide."""


def converted(
    model_type: str, targets: tuple[str, ...] | str, parameters: bool
) -> tuple[frozenset[str], frozenset[str]]:
    """Which layers get no adapter of their own any more, by the last part of their name, and which parameters get one instead.

    `parameters`: experts are bare parameters, as since transformers 5.
    """
    old = OLD_NAMES.get(model_type)
    if old is None or not parameters or targets == "attention":
        return frozenset(), frozenset()
    meant = {*old, "gate"} if targets == "all-linear" else {target.rpartition(".")[2] for target in targets}
    chosen = {
        name
        for name, layers in (("gate_up_proj", old[:FUSED]), ("down_proj", old[FUSED:]), ("gate", ("gate",)))
        if meant.issuperset(layers)
    }
    return frozenset((*old, "gate")), frozenset(chosen)


def factor_shapes(name: str, shape: Shape, rank: int) -> tuple[Shape, Shape]:
    """Shapes of lora_A and lora_B of a parameter (experts, out, in) or (out, in): all experts' side by side."""
    inner = shape[-1]
    wide = rank * (FUSED if name.endswith("gate_up_proj") else 1) * (shape[0] if len(shape) == 3 else 1)
    return (wide, inner), (shape[-2], wide)


class Adapted:
    """A parameter of all experts, (experts, out, in), that is made anew for each pass: itself plus the product of two thin stacks."""

    __slots__ = ("base", "left", "m", "right")

    def __init__(self, m: Modules, base: Tensor, first: Tensor, second: Tensor) -> None:
        experts, out, inner = base.shape
        rank = first.shape[0] // experts
        self.m, self.base = m, base
        self.left = cast(reordered(second, (experts, out, rank)), base.dtype)
        self.right = cast(reshape(first, (experts, rank, inner)), base.dtype)
        _tried = empty(base.shape, base.dtype, "baddbmm")  # torch tries a parametrization once when it is registered

    def whole(self) -> Tensor:
        """The parameter with its adapter."""
        to = self.m.recipe.autocast
        base, left, right = self.base, self.left, self.right
        if to is not None:
            right, left, base = cast(right, to), cast(left, to), cast(base, to)
        return baddbmm(base, left, right, base.shape)


def adapted_experts(m: Modules, weights: Mapping[str, Tensor]) -> dict[str, Adapted]:
    """Those of the experts' parameters that have an adapter, the last one first, as the wrappers stand around each other."""
    return {
        name: Adapted(m, base, *_factors(m, name, base))
        for name, base in weights.items()
        if name.rpartition(".")[2] in m.adapted_parameters
    }


def adapted_router(m: Modules, name: str, weight: Tensor) -> tuple[Tensor, list[Tensor]]:
    """A router's weight (experts, hidden) with its adapter, if it has one, and what the wrapper holds while the router runs."""
    if name.rpartition(".")[2] not in m.adapted_parameters:
        return weight, []
    first, second = _factors(m, name, weight)
    lowered = m.lowered(first)
    change = cast(scale(mm(m.lowered(second), lowered, transposed=True)), weight.dtype)
    _tried = empty(weight.shape, weight.dtype, "add")
    del _tried
    return add(weight, change), [change]


def _factors(m: Modules, name: str, base: Tensor) -> tuple[Tensor, Tensor]:
    adapters = m.recipe.adapters
    assert adapters is not None
    first, second = factor_shapes(name, base.shape, adapters.rank)
    return (
        m.weight(f"{name}.lora_A.weight", first, "adapter", dtype=adapters.dtype, trainable=True),
        m.weight(f"{name}.lora_B.weight", second, "adapter", dtype=adapters.dtype, trainable=True),
    )
