"""Optimizers that update each weight during the backward pass and keep no gradients: LOMO and AdaLomo."""

from __future__ import annotations

from calc.catalog.optimizers import steps
from calc.catalog.optimizers.row import GroupValue, Optimizer
from calc.catalog.optimizers.states import Factored

GROUP: dict[str, GroupValue] = {"clip_grad_norm": None, "clip_grad_value": None}
TWO_GRADIENTS = (
    "The hook of one parameter updates the one before it, so two neighbouring gradients exist at once. "
    "Clipping by norm would need a second backward pass."
)

ROWS = (
    Optimizer(
        "lomo",
        "LOMO",
        "LOMO",
        "lomo-optim",
        (),
        steps.LOMO,
        "oracle",
        "paper-lomo",
        "No state and no gradients: plain SGD fused into the backward pass, with SGD's quality.",
        (),
        GROUP,
        gradients_alive=2,
        accumulates=False,
        note=TWO_GRADIENTS,
    ),
    Optimizer(
        "adalomo",
        "AdaLomo",
        "LOMO",
        "lomo-optim",
        (Factored("exp_avg_sq_row", "exp_avg_sq_col", "exp_avg_sq"),),
        steps.ADALOMO,
        "oracle",
        "paper-adalomo",
        "LOMO with Adafactor's second moment; its authors report results near AdamW's.",
        (),
        {"eps": (1e-30, 1e-3), "weight_decay": 0.0, **GROUP},
        scales_loss=True,
        gradients_alive=2,
        accumulates=False,
        note=f"Its states are attributes of the optimizer and do not appear in state_dict(). {TWO_GRADIENTS}",
    ),
)
