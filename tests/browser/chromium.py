"""A real Chromium: an installed one, else Debian's when root, else Playwright's own."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import lru_cache
from typing import Any, Final

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
    """Return the path of a Chromium, installing one if need be; None = Playwright's own, raise if that fails too."""
    if found := _installed():
        return found
    if hasattr(os, "geteuid") and os.geteuid() == 0 and shutil.which("apt-get"):
        quiet: dict[str, Any] = {"check": False, "capture_output": True, "timeout": 280}
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(["apt-get", "update", "-qq"], env=environment, **quiet)
        subprocess.run(
            ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium"], env=environment, **quiet
        )
        if found := _installed():
            return found
    import sys

    subprocess.run(
        [sys.executable, "-m", "playwright", "install", "chromium"], check=True, capture_output=True, timeout=280
    )
    return None


def _installed() -> str | None:
    named = os.environ.get("SONOGAUGE_CHROMIUM")
    return named or next((path for name in NAMES if (path := shutil.which(name))), None)


def launch(playwright: Any) -> Any:
    """Start the browser, headless; a context manager."""
    return playwright.chromium.launch(executable_path=find_or_install(), args=list(FLAGS))
