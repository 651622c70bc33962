"""Optimizers that keep their moments in a low-rank projection of the gradient: GaLore and APOLLO."""

from __future__ import annotations

from dataclasses import replace

from calc.catalog.optimizers import steps
from calc.catalog.optimizers.bitsandbytes import TWO_STATES
from calc.catalog.optimizers.pytorch import ADAFACTOR_GROUP, ADAFACTOR_STATES, BETA1, MOMENTS
from calc.catalog.optimizers.row import Argument, GroupValue, Optimizer
from calc.catalog.optimizers.states import Blockwise, LowRank, Scalar, StateRule

TARGETS = Argument(
    "target_modules",
    "modules",
    "all-linear",
    "Layers that are projected (`optim_target_modules`); the rest keeps whole states. The Trainer wants it named.",
    required=True,
)
RANK = Argument("rank", "count", 128, "Rank k of the projection.")
GAP = Argument("update_proj_gap", "count", 200, "Steps between renewals of the projection.")
SIDE = Argument(
    "proj_type", "choice", "std", "Which side of a matrix is projected; std takes the shorter one.",
    ("std", "reverse_std", "left", "right"),
)  # fmt: skip
GALORE_ARGUMENTS = (TARGETS, RANK, GAP, Argument("scale", "number", 0.25, "Factor on the update."), SIDE)
APOLLO_ARGUMENTS = (
    TARGETS,
    RANK,
    GAP,
    Argument("scale", "number", 1.0, "Factor on the update."),
    SIDE,
    Argument("proj", "choice", "random", "A random projection, or singular vectors.", ("random", "svd")),
    Argument("scale_type", "choice", "channel", "One scale per channel, or per tensor.", ("channel", "tensor")),
)
LOOP_GROUP: dict[str, GroupValue] = {"betas": (0.9, 0.999), "eps": 1e-6, "weight_decay": 0.0, "correct_bias": True}
EIGHT_BIT: tuple[StateRule, ...] = (
    Blockwise(1, embeddings_stay_wide=False),
    Blockwise(2, embeddings_stay_wide=False),
    Scalar("unorm_vec", "fp32", shape=(1,)),
)
VIEW = (
    "In fp32 the projection is a slice of a whole singular factor, which stays in memory with it: "
    "min(r, c)² elements instead of k·min(r, c)."
)
HOOKS = "A hook updates each parameter and frees its gradient during the backward pass."


def _layerwise(row: Optimizer, blocked: str = "", instead: str = "") -> Optimizer:
    """The same optimizer with one instance per parameter, run in the backward pass."""
    return replace(
        row.in_backward,
        id=f"{row.id}_layerwise",
        label=f"{row.label}, layer by layer",
        cost=f"{row.cost} {HOOKS}",
        blocked=blocked,
        instead=instead,
    )


GALORE_COST = "Much less state at a quality near AdamW's, its authors report; each renewal runs an SVD per target."
GALORE = Optimizer(
    "galore_adamw",
    "GaLore AdamW",
    "GaLore",
    "galore-torch",
    (LowRank(MOMENTS),),
    steps.GALORE_ADAMW,
    "oracle",
    "paper-galore",
    GALORE_COST,
    GALORE_ARGUMENTS,
    LOOP_GROUP,
    ("step",),
    "targets",
    note=VIEW,
)
GALORE_8BIT = Optimizer(
    "galore_adamw_8bit",
    "GaLore AdamW, 8-bit states",
    "GaLore",
    "galore-torch, bitsandbytes",
    (LowRank(EIGHT_BIT),),
    steps.GALORE_ADAMW_8BIT,
    "oracle",
    "paper-galore",
    GALORE_COST,
    GALORE_ARGUMENTS,
    TWO_STATES,
    ("step",),
    "targets",
    note=f"The Trainer does not keep embeddings 32-bit here. {VIEW}",
)
GALORE_ADAFACTOR = Optimizer(
    "galore_adafactor",
    "GaLore Adafactor",
    "GaLore",
    "galore-torch",
    (LowRank(ADAFACTOR_STATES, computes_in="fp32"),),
    steps.GALORE_ADAFACTOR,
    "oracle",
    "paper-galore",
    "Hardly smaller than Adafactor alone, whose states are small already.",
    (*GALORE_ARGUMENTS, BETA1),
    ADAFACTOR_GROUP,
    ("step",),
    "targets",
    note=f"Gradients are turned to fp32 first, so this holds for 16-bit weights too. {VIEW}",
)
APOLLO = Optimizer(
    "apollo_adamw",
    "APOLLO AdamW",
    "APOLLO",
    "apollo-torch",
    (LowRank(MOMENTS, svd=False, extra=(Scalar("scaled_grad"),)),),
    steps.APOLLO,
    "oracle",
    "paper-apollo",
    "SGD-like memory at AdamW-level quality, its authors report; random projections, so no SVD.",
    APOLLO_ARGUMENTS,
    LOOP_GROUP,
    ("seed", "step"),
    "targets",
)

ROWS = (
    GALORE,
    GALORE_8BIT,
    GALORE_ADAFACTOR,
    _layerwise(GALORE),
    _layerwise(GALORE_8BIT),
    _layerwise(
        GALORE_ADAFACTOR,
        "galore_adafactor_layerwise stops at once: the Trainer passes a learning rate, and Adafactor refuses one while "
        "relative_step is on, which the Trainer turns off only for galore_adafactor",
        "galore_adafactor",
    ),
    APOLLO,
    _layerwise(APOLLO),
)
