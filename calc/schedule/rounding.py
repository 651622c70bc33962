"""What rounding does to training.

Updates lost in bf16, decay that vanishes, epsilon and beta2 that round away, loss scaling.

Symbols: w a weight, lr the learning rate, m the format's mantissa bits, σ the weights' standard deviation, wd the
weight decay. Sources: rounding as IEEE 754 has it (to nearest, ties to even); checked against torch on a million
weights (tests).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from calc.catalog.dtypes import FloatFormat
from calc.catalog.table import Table
from calc.schedule.expression import Formula
from calc.schedule.phases import Schedule

Store = Literal["nearest", "stochastic", "kahan", "fp32 master"]


def ulp(value: float, held: FloatFormat) -> float:
    """Distance between neighbours of a value in a format."""
    if value == 0:
        return held.smallest
    exponent = max(math.frexp(abs(value))[1] - 1, 1 - held.bias)
    return math.ldexp(1.0, exponent - held.mantissa_bits)


def rounded(value: float, held: FloatFormat) -> float:
    """The value as the format keeps it: to nearest, ties to even.

    Past the largest value it is infinity, or NaN in formats that have none.

    >>> from calc.catalog.dtypes import FLOAT_FORMATS
    >>> rounded(0.999, FLOAT_FORMATS["bf16"])
    1.0
    >>> rounded(1e-8, FLOAT_FORMATS["fp16"]), rounded(65_520, FLOAT_FORMATS["fp16"])
    (0.0, inf)
    """
    if value == 0 or not math.isfinite(value):
        return value
    if abs(value) >= held.overflow:
        return math.copysign(math.inf if held.top == "infinity" else math.nan, value)
    step = ulp(value, held)
    return round(value / step) * step  # round() halves to even; the division by a power of two is exact


# Half the distance to a neighbour of w is 2^(floor(log2 |w|) − m − 1); a step of lr exceeds it below t.
THRESHOLD = Formula("2 ** (floor(log2(lr)) + m + 2)")
MOVED = Formula("erf(t / (sigma * sqrt(2)))", {"t": THRESHOLD.expression})


def frozen_from(update: float, held: FloatFormat) -> float:
    """Weights of at least this magnitude do not move under an update of this size.

    It is below half the distance to their neighbours.
    """
    return THRESHOLD.at({"m": held.mantissa_bits}, "lr")(update)


@dataclass(frozen=True, slots=True)
class MovedShare:
    """A share of weights with its reason."""

    share: float
    threshold: float
    """Weights from here on are frozen."""
    formula: str
    numbers: str


def moved_share(learning_rate: float, *, sigma: float, held: FloatFormat) -> MovedShare:
    """Share of the weights that one step moves, if they are normal around 0 with standard deviation `sigma`.

    Adam's steps are about the learning rate. Weights below `frozen_from` move, the others round back to where they
    were.
    """
    inputs = {"m": held.mantissa_bits, "sigma": sigma}
    if learning_rate <= 0:
        return MovedShare(0.0, 0.0, "0", "0")
    share = MOVED.at(inputs, "lr")(learning_rate)
    return MovedShare(
        share, frozen_from(learning_rate, held), MOVED.typeset(), MOVED.typeset({**inputs, "lr": learning_rate})
    )


def average_share_moved(schedule: Schedule, *, sigma: float, held: FloatFormat, points: int = 1000) -> float:
    """Share of weights moved by an average step of a run: the rate falls, so fewer move towards its end.

    0 for a run of no steps.
    """
    shares = [moved_share(schedule.at(step), sigma=sigma, held=held).share for step in schedule.sampled(points)]
    return sum(shares) / len(shares) if shares else 0.0


def walked(start: float, update: float, steps: int, *, held: FloatFormat, store: Store) -> float:
    """A weight after equal steps down, kept in one of four ways.

    Stochastic rounding is given by its mean, which is the exact value.
    """
    weight = rounded(start, held)
    match store:
        case "fp32 master" | "stochastic":
            return weight - steps * update
        case "nearest":
            for _ in range(steps):
                weight = rounded(weight - update, held)
            return weight
        case "kahan":
            carried = 0.0
            for _ in range(steps):
                due = carried - update  # added at full precision, as a fused kernel does; only what is kept is rounded
                before, weight = weight, rounded(weight + due, held)
                carried = rounded(due + (before - weight), held)
            return weight


@dataclass(frozen=True, slots=True)
class Remedy:
    """A way to keep updates that rounding would lose."""

    id: str
    label: str
    bytes_per_parameter: int
    """On top of a 16-bit weight."""
    how: str
    """What to type or install."""
    source: str


REMEDIES = Table(
    "remedy",
    Remedy("fp32-master", "fp32 weights under autocast", 2, "dtype=float32 with bf16=True", "mixed-precision"),
    Remedy(
        "stochastic",
        "Stochastic rounding",
        0,
        "torchao optimizers with bf16_stochastic_round=True",
        "torchao-stochastic",
    ),
    Remedy("kahan", "Kahan summation", 2, "torch-optimi, or adamw_anyprecision with use_kahan_summation", "kahan-bf16"),
    Remedy("lora", "Adapters in fp32", 2, "PEFT: autocast_adapter_dtype=True, its default", "peft"),
)


def decay_moves_from(held: FloatFormat) -> tuple[float, float]:
    """lr · wd above which a weight decay moves weights stored in a format: the luckiest weights, and all of them.

    w · (1 − lr · wd) differs from w only if lr · wd · |w| is more than half the distance to a neighbour, which is
    between 2^−(m+2) and 2^−(m+1) of w.
    """
    return 2.0 ** -(held.mantissa_bits + 2), 2.0 ** -(held.mantissa_bits + 1)


def average_is_stuck(beta2: float, held: FloatFormat) -> bool:
    """Whether a second moment stored in a format stops decaying: 1 · beta2 rounds back to 1."""
    return rounded(beta2, held) >= 1.0


def decays_below(held: FloatFormat) -> float:
    """A beta below this moves every average stored in a format: 1 less half the distance from 1 to the next value."""
    return 1 - held.epsilon / 2


@dataclass(frozen=True, slots=True)
class LossScaler:
    """How a loss scale moves.

    Up after a run of good steps, down when a gradient overflows, and that step is skipped.
    """

    id: str
    label: str
    initial: float
    growth_interval: int
    """Good steps until it doubles."""
    hysteresis: int
    """Overflows until it halves."""
    source: str

    def scale_after(self, overflows: Iterable[bool]) -> float:
        """The scale after steps that overflowed or not, in order."""
        scale, good, patience = self.initial, 0, self.hysteresis
        for overflowed in overflows:
            if overflowed:
                good, patience = 0, patience - 1
                if patience <= 0:
                    scale, patience = scale / 2, self.hysteresis
            else:
                good += 1
                if good == self.growth_interval:
                    scale, good = scale * 2, 0
        return scale

    def smallest_kept(self, held: FloatFormat) -> float:
        """Gradients up to half the smallest value over the scale are lost to 0."""
        return held.smallest / 2 / self.initial


LOSS_SCALERS = Table(
    "loss scaler",
    LossScaler("torch", "torch GradScaler", 65536.0, 2000, 1, "grad-scaler"),
    LossScaler("deepspeed", "DeepSpeed dynamic loss scale", 65536.0, 1000, 2, "deepspeed-config"),
)
