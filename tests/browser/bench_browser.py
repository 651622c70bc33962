"""How long a visitor waits, in headless Chromium on the real server: opening, one move of a slider, the fit map."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

sys.path.insert(0, str(Path(__file__).parent))

from chromium import installed
from conftest import DESKTOP, FLAGS, ROOT, answers, free_port

LORA = "v=1&model=meta-llama/Llama-3.1-8B&method=lora&gpu=h100-sxm&batch=4"
LLAMA_70B = "v=1&model=meta-llama/Llama-3.1-70B&method=lora&gpu=b200"
MOVES = 15
SHOWN = """
(() => {
  const parts = ['h1', '.figure', '.st-key-lines', '.main-svg']
  const shown = (window.plimsollShown = {})
  const look = () => {
    for (const part of parts) if (!(part in shown) && document.querySelector(part)) shown[part] = performance.now()
    requestAnimationFrame(look)
  }
  look()
})()
"""
"""Notes when each part of the page is there first, in milliseconds since the page was asked for."""
WATCH = """
() => {
  const verdict = () => document.querySelector('.st-key-bottom_verdict').innerText
  const before = verdict()
  window.plimsollPainted = new Promise((resolve) => {
    let start = 0
    window.addEventListener('keydown', () => { start = performance.now() }, { capture: true, once: true })
    const seen = new MutationObserver(() => {
      if (verdict() === before) return
      seen.disconnect()
      requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - start)))
    })
    seen.observe(document.body, { subtree: true, childList: true, characterData: true })
  })
}
"""
"""From then on `plimsollPainted` tells the milliseconds from the next key to the frame after the one that shows another verdict."""


@contextmanager
def server() -> Iterator[str]:
    """The app in a process of its own, without a network."""
    port = free_port()
    command = [sys.executable, "-m", "streamlit", "run", "app.py", f"--server.port={port}", "--server.address=127.0.0.1",
               "--server.fileWatcherType=none"]  # fmt: skip
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            address = f"http://127.0.0.1:{port}"
            assert answers(f"{address}/_stcore/health", 60)
            yield address
        finally:
            process.terminate()
            process.wait(10)


def opened(browser: Browser, address: str) -> tuple[float, float]:
    """Milliseconds from the address to verdict and figures, and to the chart, in a browser that was never there, by its own clock."""
    context = browser.new_context(viewport=DESKTOP)  # type: ignore[arg-type]
    page = context.new_page()
    page.add_init_script(SHOWN)
    page.goto(address)
    page.locator(".main-svg").first.wait_for()
    page.locator(".figure").first.wait_for()
    page.wait_for_timeout(500)
    shown = page.evaluate("window.plimsollShown")
    context.close()
    return max(shown["h1"], shown[".figure"], shown[".st-key-lines"]), shown[".main-svg"]


def moves(page: Page, address: str) -> tuple[list[float], list[float]]:
    """Milliseconds to paint, and until the server's last message has arrived, of each move of the slider."""
    sent: list[float] = []
    received: list[float] = []

    def listen(socket: object) -> None:
        socket.on("framesent", lambda _: sent.append(time.perf_counter()))  # type: ignore[attr-defined]
        socket.on("framereceived", lambda _: received.append(time.perf_counter()))  # type: ignore[attr-defined]

    page.on("websocket", listen)
    page.goto(address)
    page.locator(".main-svg").first.wait_for()
    page.wait_for_timeout(1500)
    slider = page.locator(".st-key-batch input[type=range]")
    slider.focus()
    painted, served = [], []
    for move in range(MOVES):
        sent.clear()
        received.clear()
        page.evaluate(WATCH)
        page.keyboard.press("ArrowLeft" if move % 2 else "ArrowRight")
        painted.append(page.evaluate("window.plimsollPainted"))
        page.wait_for_timeout(600)
        served.append(1000 * (received[-1] - sent[0]))
    return painted, served


def mapped(page: Page, address: str) -> float:
    """Milliseconds from a click on the page's name to the fit map of a 70B model."""
    page.goto(f"{address}/?{LLAMA_70B}")
    page.locator(".main-svg").first.wait_for()
    page.wait_for_timeout(1000)
    link = page.locator("a", has_text="Batch and sequence").first
    start = time.perf_counter()
    link.click()
    page.locator(".st-key-fit_map .hm image, .st-key-fit_map .heatmaplayer image").first.wait_for(state="attached")
    return 1000 * (time.perf_counter() - start)


def measurements() -> Iterator[tuple[str, float, str]]:
    """Medians, or the one first visit; nothing where there is no browser."""
    path = installed()
    if path is None:
        return
    with sync_playwright() as playwright, server() as address:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        answered, drawn = opened(browser, address)
        yield "opening the app that was just started: the answer", answered, "3000 ms"
        yield "opening the app that was just started: its chart", drawn, "reported"
        later = [opened(browser, address) for _ in range(5)]
        yield "opening the app, later: the answer", statistics.median(one for one, _ in later), "3000 ms"
        yield "opening the app, later: its chart", statistics.median(one for _, one in later), "reported"
        page = browser.new_context(viewport=DESKTOP).new_page()  # type: ignore[arg-type]
        painted, served = moves(page, f"{address}/?{LORA}")
        yield "a slider's move, until the last message is in the browser", statistics.median(served), "reported"
        yield "a slider's move, until the verdict is painted", statistics.median(painted), "reported"
        times = [mapped(browser.new_context(viewport=DESKTOP).new_page(), address) for _ in range(5)]  # type: ignore[arg-type]
        yield "the fit map of a 70B model, from the click to the screen", statistics.median(times), "1500 ms"
        browser.close()
