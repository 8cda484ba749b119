"""Inspect's viewer on one log."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Final

_PORT: Final = 7575
_PATIENCE: Final = 30.0  # seconds for the server to come up


def view(log: Path, *, port: int = _PORT, browse: Callable[[str], object] = webbrowser.open) -> int:
    """Serve a log with Inspect's viewer until interrupted, open a browser on it, and return the exit code.

    port: on this machine alone. browse: opens an address.
    """
    with tempfile.TemporaryDirectory() as folder:
        # The viewer lists a folder, without links: give it one that holds this log and nothing else.
        shutil.copyfile(log, Path(folder) / log.name)
        command = [sys.executable, "-m", "inspect_ai", "view", "start", "--log-dir", folder, "--port", str(port)]
        with subprocess.Popen(command) as server:
            waiting = threading.Thread(target=_open, args=(server, f"http://127.0.0.1:{port}", browse), daemon=True)
            waiting.start()
            try:
                return server.wait()
            except KeyboardInterrupt:
                server.terminate()
                server.wait()
                return 0


def _open(server: subprocess.Popen[bytes], address: str, browse: Callable[[str], object]) -> None:
    end = time.monotonic() + _PATIENCE
    while server.poll() is None and time.monotonic() < end:
        try:
            with urllib.request.urlopen(address, timeout=2):
                browse(address)
                return
        except OSError:
            time.sleep(0.2)
