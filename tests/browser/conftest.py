"""The real server on a free port, the fake Hub beside it, and Chromium in front.

`CHROMIUM` names another browser than the installed one. Every page fails its test when the console shows an error or a
request leaves this machine.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from chromium import installed
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright

ROOT = Path(os.path.abspath(__file__)).parents[2]
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
PATIENCE = 30_000
"""Milliseconds that a busy machine is given for what takes a fraction of a second on an idle one."""
expect.set_options(timeout=PATIENCE)
DESKTOP = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(item.fspath).parent == Path(__file__).parent:
            item.add_marker(pytest.mark.browser)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(address: str, seconds: float) -> bool:
    """Whether something answers there before the time is up."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            urllib.request.urlopen(address, timeout=2).read()
        except OSError as error:
            if hasattr(error, "code"):
                return True
            time.sleep(0.1)
        else:
            return True
    return False


@contextmanager
def app(log: Path, hub: str) -> Iterator[str]:
    """The app in a process of its own, with this Hub; no traceback may come out of it."""
    port = free_port()
    command = [
        sys.executable, "-m", "streamlit", "run", "app.py", f"--server.port={port}", "--server.address=127.0.0.1",
        "--server.fileWatcherType=none", "--client.showErrorDetails=full",
    ]  # fmt: skip
    environment = os.environ | {"HF_ENDPOINT": hub, "HF_TOKEN": "hf_TheOperatorsOwnTokenNeverLentToAnyone"}
    with log.open("w") as out, subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=out, env=environment) as process:
        try:
            address = f"http://127.0.0.1:{port}"
            assert answers(f"{address}/_stcore/health", 60), log.read_text()
            yield address
        finally:
            process.terminate()
            process.wait(10)
    assert "Traceback" not in log.read_text(), log.read_text()


@pytest.fixture(scope="session")
def fake_hub() -> Iterator[str]:
    """The fake Hub of the Hub's own tests, by its address."""
    port = free_port()
    script = ROOT / "tests" / "hub" / "fake_hub.py"
    with subprocess.Popen([sys.executable, str(script), "--port", str(port)], stdout=subprocess.DEVNULL) as process:
        try:
            assert answers(f"http://127.0.0.1:{port}/", 20)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


@pytest.fixture(scope="session")
def base(fake_hub: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The app's address."""
    with app(tmp_path_factory.mktemp("app") / "log.txt", fake_hub) as address:
        yield address


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    path = installed()
    if path is None:
        pytest.fail("no browser found: install Chromium, or name one in CHROMIUM")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def desktop(chromium: Browser) -> Iterator[BrowserContext]:
    """One browser profile for the tests that leave nothing behind in it: its cache makes the second page fast."""
    context = chromium.new_context(viewport=DESKTOP, locale="en-US", color_scheme="light")
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    yield context
    context.close()


# Opening a deep link, Streamlit's own script looks for the server under that path first, then at the root.
PROBES = re.compile(r"/\w+/_stcore/(health|host-config)$")


def watched(page: Page) -> list[str]:
    """What a page must not do: errors in the console, requests to another machine."""
    seen: list[str] = []

    def told(message: ConsoleMessage) -> None:
        where = message.location["url"]
        if message.type == "error" and not PROBES.search(where):
            seen.append(f"{message.text} {where}")

    page.on("pageerror", lambda error: seen.append(str(error)))
    page.on("console", told)
    here = ("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:")
    page.on("request", lambda request: None if request.url.startswith(here) else seen.append(request.url))
    return seen


def settled(page: Page) -> Page:
    """Wait until the server has finished and the controls are drawn."""
    page.locator("h1").first.wait_for()
    if page.locator(".st-key-scenario").count():
        page.locator(".st-key-batch input[type=range]").wait_for()
    page.locator('[data-testid="stApp"][data-test-script-state="notRunning"]').wait_for()
    return page


@pytest.fixture
def visit(desktop: BrowserContext, base: str) -> Iterator[Callable[..., Page]]:
    """Open a path of the app in a new tab, a new session of the server."""
    opened: list[tuple[Page, list[str]]] = []

    def open_page(path: str = "/", *, context: BrowserContext = desktop, address: str = base) -> Page:
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        opened.append((page, watched(page)))
        page.goto(address + path)
        return settled(page)

    yield open_page
    for page, seen in opened:
        if page.is_closed():
            continue
        exceptions = page.locator('[data-testid="stException"]').all_inner_texts()
        page.close()
        assert not exceptions
        assert not seen
