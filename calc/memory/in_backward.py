"""Optimizers that step inside the backward pass: what happens when a gradient is there, and which plans cannot do so."""

from __future__ import annotations

from typing import cast

from calc.autograd.tensor import Leaf
from calc.catalog.optimizers import OPTIMIZERS
from calc.memory import optimizer_step, step
from calc.memory.recipes import PRECISIONS, optimizer_of
from calc.memory.refused import Refused
from calc.model.parameters import Parameter, Role
from calc.scenario import Plan


class InBackward:
    """Called when a weight's gradient is there: the optimizer's temporaries come and go, then the gradient goes.

    LOMO does it one weight later: its hook for a weight updates those whose gradients are in place already.
    """

    def __init__(self, plan: Plan) -> None:
        self.optimizer, self.args = optimizer_of(plan), plan.optimizer_args
        self.scales_loss = self.optimizer.scales_loss
        self.waiting: Leaf | None = None

    def __call__(self, weight: Leaf) -> None:
        """A gradient is complete."""
        if self.optimizer.gradients_alive > 1:
            before, self.waiting = self.waiting, weight
        else:
            before = weight
        self._use(before)

    def finish(self) -> None:
        """The backward pass is over."""
        before, self.waiting = self.waiting, None
        self._use(before)

    def _use(self, weight: Leaf | None) -> None:
        if weight is None:
            return
        shape = tuple([int(size) for size in weight.shape])
        own = (Parameter(weight.name, shape, weight.dtype, cast(Role, weight.role)),)
        extra = optimizer_step.temporaries(self.optimizer, own, self.args).bytes
        if extra:
            step.scratch(int(extra))
        weight.grad = None


def stepping(plan: Plan) -> InBackward | None:
    """What steps inside the plan's backward pass; None where the optimizer steps after it."""
    return InBackward(plan) if optimizer_of(plan).frees_gradients else None


def refuse_in_backward(plan: Plan) -> None:
    """What cannot step weight by weight inside the backward pass, or is not modelled so. Raises `Refused`."""
    if not plan.optimizer_in_backward:
        return
    field = "plan.optimizer_in_backward"
    if OPTIMIZERS[plan.optimizer].frees_gradients:
        raise Refused(
            "steps_in_backward_already",
            f"{plan.optimizer} steps inside the backward pass by itself; leave it off.",
            field,
        )
    precision = PRECISIONS[plan.precision]
    if precision.scaler or precision.master:
        raise Refused(
            "step_in_backward",
            f"under {plan.precision} gradients are unscaled or cast all together before the step, so it cannot be taken weight by weight "
            "inside the backward pass; choose bf16.",
            field,
        )
