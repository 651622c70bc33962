"""Medians of what must be quick: `make bench`. Times are of this machine; the targets stand beside them."""

from __future__ import annotations

import importlib.util
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

LLAMA_70B = {
    "model_type": "llama", "vocab_size": 128256, "hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 80,
    "num_attention_heads": 64, "num_key_value_heads": 8, "max_position_embeddings": 131072,
}  # fmt: skip
PLANS: dict[str, dict[str, Any]] = {
    "full": {"method": "full"},
    "full, checkpointed": {"method": "full", "gradient_checkpointing": "full"},
    "LoRA": {"method": "lora"},
    "QLoRA, checkpointed": {"method": "qlora", "gradient_checkpointing": "full", "precision": "bf16-autocast"},
}


def median_ms(call: Callable[[], Any], times: int) -> float:
    """Median milliseconds of one call."""
    took = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        took.append(time.perf_counter() - start)
    return 1000 * statistics.median(took)


def estimates() -> Iterator[tuple[str, float, str]]:
    """`estimate` of a 70B model."""
    from calc import Scenario, estimate

    for name, plan in PLANS.items():
        # Another length each time: runs on shapes are shared between plans, and a fresh one is what counts.
        scenarios = iter(
            [
                Scenario.model_validate({"model": {"config": LLAMA_70B}, "plan": {**plan, "seq_len": 2048 + n}})
                for n in range(301)
            ]
        )
        estimate(next(scenarios))
        yield f"estimate of a 70B model, {name}", median_ms(lambda: estimate(next(scenarios)), 300), "2 ms"  # noqa: B023


def imports() -> Iterator[tuple[str, float, str]]:
    """Importing the library beyond pydantic, in fresh interpreters."""
    code = "import time, pydantic; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"
    took = [
        float(subprocess.run([sys.executable, "-c", code.format("calc.memory.estimate")], capture_output=True, text=True, check=True, cwd=ROOT).stdout)
        for _ in range(9)
    ]  # fmt: skip
    yield "import of calc beyond pydantic", 1000 * statistics.median(took), "300 ms"


def maps() -> Iterator[tuple[str, float, str]]:
    """The fit map of 40 x 40 cells for a 70B model, from nothing."""
    from calc import Scenario
    from calc.memory.surface import Surface

    for name, plan in PLANS.items():
        scenario = Scenario.model_validate({"model": {"config": LLAMA_70B}, "plan": plan})

        def whole(scenario: Scenario = scenario) -> None:
            surface = Surface(scenario)
            for batch in range(1, 41):
                for length in range(256, 41 * 256, 256):
                    surface.verdict(batch, length)

        yield f"fit map of 1,600 cells, {name}", median_ms(whole, 5), "700 ms"


def others() -> Iterator[tuple[str, float, str]]:
    """What the other folders bring: every tests/**/bench_*.py has a function `measurements`."""
    for path in sorted((ROOT / "tests").rglob("bench_*.py")):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield from module.measurements()


def main() -> None:
    """Print every measurement beside its target."""
    print(f"{'what':<58} {'median':>10}   target")
    for group in (imports, estimates, maps, others):
        for name, milliseconds, target in group():
            print(f"{name:<58} {milliseconds:>7.2f} ms   {target}", flush=True)


if __name__ == "__main__":
    main()
