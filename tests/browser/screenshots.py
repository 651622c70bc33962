"""Make the README's screenshots from the running app: `make screenshots`."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from chromium import installed
from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "assets" / "screenshots"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
DESKTOP, PHONE = (1280, 800), (390, 844)
SHOTS = {
    "fit": ("", DESKTOP, "light"),
    "fit-dark": ("", DESKTOP, "dark"),
    "fit-phone": ("", PHONE, "light"),
    "optimizers": ("optimizers", DESKTOP, "light"),
    "batch": ("batch", DESKTOP, "light"),
    "precision": ("precision", DESKTOP, "light"),
    "schedule": ("schedule", DESKTOP, "light"),
    "compare": ("compare", DESKTOP, "light"),
}
"""File name: page, size, colour scheme."""


def shoot(browser: Browser, address: str, name: str) -> None:
    """One page, when its script has run and its charts are drawn."""
    page_path, (width, height), scheme = SHOTS[name]
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)  # type: ignore[arg-type]
    page = context.new_page()
    page.goto(f"{address}/{page_path}")
    page.wait_for_selector('[data-testid="stApp"][data-test-script-state="notRunning"]', timeout=60_000)
    page.wait_for_timeout(3000)
    page.screenshot(path=FOLDER / f"{name}.png")
    context.close()


def main(names: list[str]) -> None:
    """Start the app, take the shots, stop it."""
    FOLDER.mkdir(exist_ok=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "streamlit",
        "run",
        "app.py",
        "--server.port",
        str(port),
        "--server.headless",
        "true",
    ]
    server = subprocess.Popen(command, cwd=ROOT, env={**os.environ, "HF_HUB_OFFLINE": "1"})
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(100):
            try:
                urllib.request.urlopen(f"{address}/_stcore/health", timeout=2).read()
                break
            except OSError:
                time.sleep(0.3)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=installed(), args=FLAGS)
            for name in names or SHOTS:
                shoot(browser, address, name)
            browser.close()
    finally:
        server.terminate()


if __name__ == "__main__":
    main(sys.argv[1:])
