"""What the planner must do quickly; `make bench` prints it. The map's scenario is also that of the map's test."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

from calc import Scenario
from calc.planner.fit_map import fit_map
from calc.planner.plans import plans
from calc.planner.suggestions import advice, pairs

MAP = (
    Scenario.model_validate(
        {
            "model": "meta-llama/Llama-3.1-70B",
            "plan": {"method": "qlora", "precision": "bf16-autocast", "gradient_checkpointing": "full"},
            "hardware": {"gpu": "h200-sxm"},
        }
    ),
    tuple(range(1, 41)),
    tuple(range(256, 41 * 256, 256)),
)
"""Scenario, micro-batches, lengths."""


def of_length(seq_len: int) -> Scenario:
    """An 8B model that does not fit; another length has nothing to share with the last."""
    plan = {"method": "lora", "precision": "bf16-autocast", "micro_batch_size": 4, "seq_len": seq_len}
    return Scenario.model_validate({"model": "meta-llama/Llama-3.1-8B", "plan": plan, "hardware": {"gpu": "rtx-4090"}})


def median_ms(call: Callable[[int], Any], times: int) -> float:
    """Median milliseconds of a call that is told how often it was called."""
    took = []
    for turn in range(times):
        start = time.perf_counter()
        call(turn)
        took.append(time.perf_counter() - start)
    return 1000 * statistics.median(took)


def measurements() -> Iterator[tuple[str, float, str]]:
    """Name, median in milliseconds, target."""
    yield "fit map, 1,600 cells with components, 70B QLoRA", median_ms(lambda _: fit_map(*MAP), 5), "700 ms"
    yield "every lever alone, 8B LoRA", median_ms(lambda turn: advice(of_length(2048 + turn)), 9), "150 ms"
    yield "best pairs, 8B LoRA", median_ms(lambda turn: pairs(advice(of_length(3072 + turn))), 3), "1500 ms"
    yield "best plan of each method, 8B", median_ms(lambda turn: plans(of_length(4096 + turn)), 3), "1000 ms"
