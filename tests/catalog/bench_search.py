"""What the catalogue must do quickly; `make bench` prints it."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator

from calc.catalog.models import search


def measurements() -> Iterator[tuple[str, float, str]]:
    """Name, median milliseconds, target."""
    search("")
    took = []
    for _ in range(50):
        start = time.perf_counter()
        search("llama 3.1 8b instruct")
        took.append(time.perf_counter() - start)
    yield "one keystroke of the model search", 1000 * statistics.median(took), "5 ms"
