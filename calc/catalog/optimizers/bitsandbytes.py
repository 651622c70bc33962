"""Optimizers of bitsandbytes: 32-bit and block-wise 8-bit states, in GPU memory or paged."""

from __future__ import annotations

from calc.catalog.optimizers import steps
from calc.catalog.optimizers.row import Argument, GroupValue, Optimizer
from calc.catalog.optimizers.states import Blockwise, StateRule, Wide

TWO_STATES: dict[str, GroupValue] = {
    "betas": (0.9, 0.999),
    "eps": 1e-8,
    "weight_decay": 0.01,
    "alpha": 0.0,
    "t_alpha": None,
    "t_beta3": None,
}
GROUPS: dict[str, dict[str, GroupValue]] = {
    "AdamW": TWO_STATES,
    "AdEMAMix": {**TWO_STATES, "betas": (0.9, 0.999, 0.9999), "alpha": 5.0},
    "Lion": {"betas": (0.9, 0.999), "eps": 0.0, "weight_decay": 0},
    "RMSprop": {"betas": (0.99, 0), "eps": 1e-8, "weight_decay": 0},
}
COPIES: dict[str, tuple[int, ...]] = {"AdamW": (1, 1), "AdEMAMix": (2, 1), "Lion": (1,), "RMSprop": (1,)}
"""Moments held in each state tensor."""
PAPERS = {"AdamW": "paper-adamw", "AdEMAMix": "paper-ademamix", "Lion": "paper-lion", "RMSprop": "paper-rmsprop"}
ARGUMENTS: dict[str, tuple[Argument, ...]] = {
    "AdamW": (),
    "AdEMAMix": (
        Argument("beta1", "number", 0.9, "Memory of the fast average."),
        Argument("beta2", "number", 0.999, "Memory of the mean square."),
        Argument("beta3", "number", 0.9999, "Memory of the slow average."),
        Argument("alpha", "number", 5.0, "Weight of the slow average."),
        Argument("eps", "number", 1e-8, "Added to the root."),
        Argument("t_alpha", "number", 0, "Steps over which alpha grows; 0: at once."),
        Argument("t_beta3", "number", 0, "Steps over which beta3 grows; 0: at once."),
    ),
    "Lion": (),
    "RMSprop": (
        Argument("alpha", "number", 0.99, "Memory of the mean square."),
        Argument("eps", "number", 1e-8, "Added to the root."),
        Argument("momentum", "number", 0.0, "Weight of past gradients."),
        Argument("weight_decay", "number", 0.0, "Decay of the weights."),
    ),
}
COSTS = {
    32: "fp32 states whatever the weights are: 16-bit weights do not halve them.",
    8: "A quarter of the fp32 state; its authors report the same quality. One kernel, no copies.",
}
EMBEDDINGS = "The Trainer keeps every embedding's state 32-bit, so a large vocabulary stays costly."
PAGED = "States of 100,000 elements and more lie in CUDA managed memory, which the driver can move to the host."


def _states(family: str, bits: int, paged: bool) -> tuple[StateRule, ...]:
    rule = Wide if bits == 32 else Blockwise
    return tuple(rule(index, copies, paged) for index, copies in enumerate(COPIES[family], 1))


def _row(name: str, family: str, bits: int, paged: bool = False) -> Optimizer:
    return Optimizer(
        name,
        f"{family}, {'paged ' if paged else ''}{bits}-bit states (bitsandbytes)",
        family,
        "bitsandbytes",
        _states(family, bits, paged),
        steps.IN_PLACE,
        "bitsandbytes",
        "paper-adam8bit" if bits == 8 else PAPERS[family],
        COSTS[bits],
        ARGUMENTS[family],
        GROUPS[family],
        ("step",),
        note=" ".join(text for text, holds in ((EMBEDDINGS, bits == 8), (PAGED, paged)) if holds),
    )


ROWS = (
    _row("adamw_bnb_8bit", "AdamW", 8),
    _row("adamw_8bit", "AdamW", 8),
    _row("paged_adamw_32bit", "AdamW", 32, paged=True),
    _row("paged_adamw_8bit", "AdamW", 8, paged=True),
    _row("ademamix", "AdEMAMix", 32),
    _row("ademamix_8bit", "AdEMAMix", 8),
    _row("paged_ademamix_32bit", "AdEMAMix", 32, paged=True),
    _row("paged_ademamix_8bit", "AdEMAMix", 8, paged=True),
    _row("lion_32bit", "Lion", 32),
    _row("lion_8bit", "Lion", 8),
    _row("paged_lion_32bit", "Lion", 32, paged=True),
    _row("paged_lion_8bit", "Lion", 8, paged=True),
    _row("rmsprop_bnb", "RMSprop", 32),
    _row("rmsprop_bnb_32bit", "RMSprop", 32),
    _row("rmsprop_bnb_8bit", "RMSprop", 8),
)
