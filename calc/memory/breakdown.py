"""The answer: lines that explain themselves, the instants of the step, and the verdict.

Every figure a visitor sees is one `Line`: label, bytes, formula, the same formula with this run's numbers, source and certainty.
The page, the command line, the exports and the tests read these objects; there is no second copy of a formula.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from calc.units import Bytes

Component = Literal[
    "weights",
    "master weights",
    "adapters",
    "gradients",
    "optimizer states",
    "activations",
    "logits and loss",
    "temporaries",
    "buffers",
]
COMPONENTS: tuple[Component, ...] = (
    "weights",
    "master weights",
    "adapters",
    "gradients",
    "optimizer states",
    "activations",
    "logits and loss",
    "temporaries",
    "buffers",
)
Certainty = Literal["exact", "modelled", "allowance"]
Verdict = Literal["fits", "tight", "does_not_fit", "impossible"]
InstantName = Literal[
    "load", "forward", "loss", "backward", "end of backward", "optimizer step", "evaluation", "save", "resume"
]


Text = str | Callable[[], str]
"""A text, or how to write it when someone opens the line."""


@dataclass(frozen=True, slots=True, init=False, eq=False)
class Line:
    """One amount of memory with its whole reason."""

    component: Component
    label: str
    """Plain words."""
    bytes: Bytes
    certainty: Certainty
    source: str
    """Id in `calc.catalog.sources`."""
    note: str
    """What is counted, what is left out, what would remove it."""
    _formula: Text
    _numbers: Text

    def __init__(
        self,
        component: Component,
        label: str,
        bytes: Bytes,
        certainty: Certainty,
        formula: Text,
        numbers: Text,
        source: str,
        note: str = "",
    ) -> None:
        for name, value in (
            ("component", component), ("label", label), ("bytes", bytes), ("certainty", certainty),
            ("_formula", formula), ("_numbers", numbers), ("source", source), ("note", note),
        ):  # fmt: skip
            object.__setattr__(self, name, value)

    @property
    def formula(self) -> str:
        """In the field's symbols: N·(16h + 4q + ...)."""
        return self._formula if isinstance(self._formula, str) else self._formula()

    @property
    def numbers(self) -> str:
        """The same formula with this run's numbers."""
        return self._numbers if isinstance(self._numbers, str) else self._numbers()


@dataclass(frozen=True, slots=True)
class Instant:
    """One moment of the step and everything alive at it."""

    name: InstantName
    allocated: Bytes
    lines: tuple[Line, ...]
    """One line per component at least; they sum to `allocated`."""
    operation: str = ""
    """The operation that is running when this instant is at its highest: "mm input grad of down_proj"."""


@dataclass(frozen=True, slots=True)
class Span:
    """A figure that is known only as a range."""

    low: Bytes
    expected: Bytes
    high: Bytes


@dataclass(frozen=True, slots=True)
class Peak:
    """The highest instant, and what the allocator and the driver show then."""

    allocated: Bytes
    """What torch's max_memory_allocated reports on the worst rank."""
    instant: InstantName
    reserved: Span
    """What the caching allocator holds."""
    device: Span
    """What nvidia-smi shows: reserved plus the CUDA context."""


@dataclass(frozen=True, slots=True)
class ParameterCount:
    """Parameters in four numbers."""

    total: int
    trainable: int
    active: int
    """Used for one token (mixtures of experts use a part)."""
    embedding: int


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that keeps the plan from running, or that its owner should know."""

    code: str
    message: str
    """One sentence that says what to do."""
    field: str = ""
    """Path of the scenario field: plan.attention."""
    blocking: bool = True


@dataclass(frozen=True, slots=True)
class Host:
    """Memory of the machine beside the GPU."""

    training: Bytes
    load: Bytes


@dataclass(frozen=True, slots=True)
class Breakdown:
    """Everything that one training step needs on the worst GPU."""

    parameters: ParameterCount
    peak: Peak
    instants: tuple[Instant, ...]
    lines: tuple[Line, ...]
    """The lines of the peak instant; they sum to `peak.allocated`."""
    host: Host
    capacity: Bytes
    """What CUDA can hand out on this card."""
    verdict: Verdict
    headroom: Bytes
    """Capacity less the expected device figure; negative when it does not fit."""
    problems: tuple[Problem, ...]
