"""Single fused operations: what they keep, what they make, and what they write over."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from calc.autograd import attention, fused
from calc.autograd.storage import Ledger, recording
from calc.autograd.tensor import Leaf, Tensor, backward, empty, parameter

ROWS, WIDTH = 96, 40


def leaf(shape: tuple[int, ...], dtype: str = "bf16") -> Tensor:
    """A tensor that asks for a gradient."""
    made = empty(shape, dtype, "input")
    asking = Leaf(shape, dtype, made.storage)
    asking.requires_grad = True
    return asking


def made_by(build: Callable[[], Tensor], *, scratch: bool = False) -> tuple[int, int]:
    """Bytes that an operation makes in the forward pass and at most in the backward, its incoming gradient left out."""
    ledger = Ledger(scratch=scratch)
    with recording(ledger):
        before = ledger.total
        y = build()
        forward = ledger.total - before
        g = empty(y.shape, y.dtype, "incoming")
        ledger.begin("backward")
        standing = ledger.total
        backward(y, g)
        ledger.begin("end")
    return forward, ledger.segments[-1].peak - standing


@pytest.mark.parametrize(("apart", "expected"), [(False, 0), (True, 2 * ROWS * WIDTH)])
def test_a_norm_writes_its_gradient_over_the_incoming_one(apart: bool, expected: int) -> None:
    """Unless two norms share that one; the weight is frozen here, so nothing else is made."""
    weight = parameter((WIDTH,), "bf16", "weight", False)
    x = leaf((ROWS, WIDTH))

    forward, back = made_by(lambda: fused.rms_norm(x, weight, apart=apart))

    assert 2 * ROWS * WIDTH + 4 * ROWS == forward
    assert expected == back


def test_a_rotation_makes_nothing_in_either_direction() -> None:
    """It turns queries and keys where they lie."""
    x, cos, sin = leaf((2, 4, 24, 40)), empty((24, 40), "bf16", "cos"), empty((24, 40), "bf16", "sin")

    assert (0, 0) == made_by(lambda: fused.rotary(x, cos, sin))


def test_a_gated_product_writes_both_gradients_over_its_factors() -> None:
    """Only the product itself is made."""
    gate, up = leaf((ROWS, WIDTH)), leaf((ROWS, WIDTH))

    assert (2 * ROWS * WIDTH, 0) == made_by(lambda: fused.gated(gate, up, "silu"))


def test_in_place_cross_entropies_make_no_second_logits() -> None:
    """One number, and for Unsloth's kind a log-sum-exp and a loss for each row while it runs."""
    labels = empty((ROWS,), "i64", "labels")
    first, second = leaf((ROWS, WIDTH), "fp32"), leaf((ROWS, WIDTH), "fp32")

    assert (4, 0) == made_by(lambda: fused.cross_entropy_over_logits(first, labels))
    assert (4 + 4 * ROWS, 0) == made_by(lambda: fused.cross_entropy_over_logits_in_backward(second, labels))


@pytest.mark.parametrize("few", [4, 2])
def test_scratch_of_flash_attention(few: int) -> None:
    """q's gradient in fp32 with tokens padded to 128 and heads to 32, row sums, and every head's gradient of grouped keys and values."""
    batch, heads, length, width = 2, 4, 100, 40
    gradients = 2 * batch * length * width * (heads + 2 * few)
    scratch = 4 * batch * heads * 128 + 4 * batch * heads * 128 * 64
    grouped = 2 * 2 * batch * heads * length * width if few < heads else 0

    def run() -> Tensor:
        q = leaf((batch, heads, length, width))
        k, v = leaf((batch, few, length, width)), leaf((batch, few, length, width))
        return attention.flash(q, k, v)

    assert gradients == made_by(run)[1]
    assert gradients + scratch + grouped == made_by(run, scratch=True)[1]
