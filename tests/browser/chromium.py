"""A real Chromium: an installed one, else Debian's when root, else Playwright's own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from filelock import FileLock

NAMES: Final = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
# No sandbox in a container; nothing that calls home.
FLAGS: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@lru_cache
def find_or_install() -> str | None:
    """Return the path of a Chromium, installing one if need be; None = Playwright's own.

    Raises:
        subprocess.SubprocessError: none is installed and none can be had.
    """
    if found := _installed():
        return found
    # Several workers of one test run must not install at once.
    with FileLock(Path(tempfile.gettempdir()) / "sonogauge-chromium.lock"):
        return _installed() or _from_debian() or _from_playwright()


def _from_debian() -> str | None:
    if os.name != "posix" or os.geteuid() != 0 or not shutil.which("apt-get"):
        return None
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", "chromium"]):
        subprocess.run(["apt-get", *command], env=environment, check=False, capture_output=True, timeout=250)
    return _installed()


def _from_playwright() -> None:
    command = [sys.executable, "-m", "playwright", "install", "chromium"]
    subprocess.run(command, check=True, capture_output=True, timeout=250)


def _installed() -> str | None:
    named = os.environ.get("SONOGAUGE_CHROMIUM")
    return named or next((path for name in NAMES if (path := shutil.which(name))), None)


def launch(playwright: Any) -> Any:
    """Start the browser, headless; a context manager."""
    return playwright.chromium.launch(executable_path=find_or_install(), args=list(FLAGS))
