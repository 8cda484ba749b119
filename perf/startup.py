"""Start-up: `sonogauge --help` in at most 0.3 s, the whole demo in under a minute."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

HELP_GOAL = 0.3
DEMO_GOAL = 60.0
COMMAND = [sys.executable, "-c", "from sonogauge.cli import main; main()"]


def seconds(*arguments: str) -> float:
    """Run the command line once and return its wall time."""
    start = time.perf_counter()
    subprocess.run([*COMMAND, *arguments], check=True, capture_output=True)
    return time.perf_counter() - start


def main() -> int:
    """Print one line per goal and the worst ratio."""
    seconds("--help")  # compiles the byte code
    helps = median(seconds("--help") for _ in range(9))
    print(f"sonogauge --help: {helps:.3f} s, median of 9 (goal {HELP_GOAL} s)")
    with tempfile.TemporaryDirectory() as folder:
        demo = seconds("demo", "--out", str(Path(folder) / "demo"))
    print(f"sonogauge demo: {demo:.1f} s (goal {DEMO_GOAL:.0f} s)")
    worst = min(HELP_GOAL / helps, DEMO_GOAL / demo)
    print(f"ratio startup: {worst:.2f}")
    return 0 if worst >= 1 else 1


if __name__ == "__main__":
    sys.exit(main())
