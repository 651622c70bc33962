"""Find a Chromium for the browser tests, or install one: prints its path, or says clearly what is missing.

Order: `CHROMIUM`, an installed browser, Debian's package when we may install it, Playwright's own download.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def installed() -> str | None:
    """A browser that is there already."""
    given = os.environ.get("CHROMIUM")
    if given:
        return given if Path(given).exists() else None
    for name in NAMES:
        found = shutil.which(name)
        if found:
            return found
    own = sorted((Path.home() / ".cache/ms-playwright").glob("chromium-*/chrome-linux*/chrome"))
    return str(own[-1]) if own else None


def install() -> None:
    """Debian's package where we are root and have apt-get, else Playwright's download."""
    if shutil.which("apt-get") and os.geteuid() == 0:
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run(["apt-get", "update", "-q"], check=False, **quiet)
        subprocess.run(["apt-get", "install", "-y", "-q", "chromium", "fonts-noto-cjk"], check=False, **quiet)
    if installed() is None:
        subprocess.run([sys.executable, "-m", "playwright", "install", "chromium"], check=False)


def main() -> int:
    """0 when there is a browser."""
    if installed() is None:
        print("No Chromium yet; installing one ...")
        install()
    found = installed()
    if found is None:
        print(
            "The browser tests need Chromium, and it could be neither found nor installed. Install a package called chromium, "
            "or set CHROMIUM to the path of a Chrome or Chromium."
        )
        return 1
    print(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
