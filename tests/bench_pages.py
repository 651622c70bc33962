"""The server's share of one move on the Fit page: the script from its first line to its last, in this process, without a browser."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from streamlit.logger import set_log_level
from streamlit.testing.v1 import AppTest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from pages.parts import frame, state  # noqa: E402

LORA = {"v": "1", "model": "meta-llama/Llama-3.1-8B", "method": "lora", "gpu": "h100-sxm", "batch": "4"}
MOVES = 25


def measurements() -> Iterator[tuple[str, float, str]]:
    """The slider on its way, and where it is let go: then levers and address follow."""
    yield "one move of a slider on the Fit page, server's share", moved(live=True), "60 ms"
    yield "letting it go: levers, tables and address too", moved(live=False), "reported"


def moved(*, live: bool) -> float:
    """The median run in milliseconds after a new micro-batch, each time another one."""
    took: list[float] = []
    script = frame.main
    set_log_level("ERROR")  # it warns of everything that a browser would ask for

    def timed() -> None:
        start = time.perf_counter()
        script()
        took.append(time.perf_counter() - start)

    frame.main = timed
    try:
        page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120)
        for name, value in LORA.items():
            page.query_params[name] = value
        page.run()
        assert not page.exception
        took.clear()
        for move in range(MOVES):
            page.session_state[state._KEPT] = page.session_state[state._KEPT] | {"plan.micro_batch_size": 5 + move}
            page.session_state[state._TOUCHED], page.session_state[state._LIVE] = True, live
            page.run()
    finally:
        frame.main = script
    return 1000 * statistics.median(took)
