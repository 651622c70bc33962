"""What schedules must do quickly; `make bench` prints it."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator

from calc.schedule.kinds import SCHEDULES


def million() -> None:
    """Draw a schedule of a million steps from a thousand of them."""
    schedule = SCHEDULES["warmup_stable_decay"].schedule(
        learning_rate=1e-4, warmup_steps=12_345, steps=1_000_000, options={"num_decay_steps": 200_001}
    )
    for step in schedule.sampled(1000):
        schedule.at(step)


def measurements() -> Iterator[tuple[str, float, str]]:
    """Name, median milliseconds, target."""
    took = []
    for _ in range(20):
        start = time.perf_counter()
        million()
        took.append(time.perf_counter() - start)
    yield "drawing a schedule of 1,000,000 steps", 1000 * statistics.median(took), "100 ms"
