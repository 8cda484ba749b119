"""How a run is going: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

_EVERY: Final = 15.0  # seconds between plain lines


class Silent:
    """Shows nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def ended(self, entry: Mapping[str, Any]) -> None:
        """Take note of nothing."""

    def say(self, line: str) -> None:
        """Say nothing."""


class Shown(Silent):
    """Shows rate, coverage, failures by kind, tokens, cost and time left on standard error.

    total: questions of this call; done: those that had ended before.
    """

    def __init__(self, total: int, done: int = 0, console: Console | None = None) -> None:
        self._console = console or Console(file=sys.stderr)
        self._total, self._done, self._before = total, done, done
        self._good = 0
        self._failures: Counter[str] = Counter()
        self._tokens = [0, 0]
        self._cost: float | None = None
        self._start = self._spoke = time.monotonic()
        self._bar: Progress | None = None
        if self._console.is_terminal:
            self._bar = Progress(
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.description}"),
                TimeRemainingColumn(),
                console=self._console,
                refresh_per_second=4,
            )
            self._task = self._bar.add_task("", total=total, completed=done)

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.update(self._task, completed=self._done, description=self.summary())
            self._bar.stop()
        else:
            self._plain()

    def ended(self, entry: Mapping[str, Any]) -> None:
        """Count a question that ended and show the state when it is due."""
        self._done += 1
        if entry["status"] == "error":
            self._failures[(entry["error"] or "unknown").partition(":")[0]] += 1
        else:
            self._good += 1
        self._tokens[0] += entry["input_tokens"] or 0
        self._tokens[1] += entry["output_tokens"] or 0
        if entry["cost"] is not None:
            self._cost = (self._cost or 0.0) + entry["cost"]
        now = time.monotonic()
        if self._bar is not None:
            if now - self._spoke >= 0.25:
                self._spoke = now
                self._bar.update(self._task, completed=self._done, description=self.summary())
        elif now - self._spoke >= _EVERY:
            self._plain()

    def summary(self) -> str:
        """Return rate, coverage, failures, tokens and cost in one line."""
        asked = self._done - self._before
        rate = asked / max(1e-9, time.monotonic() - self._start)
        parts = [f"{rate:.1f}/s"]
        if asked:
            parts.append(f"replied {100 * self._good / asked:.1f} %")
        parts += [f"{kind} {count}" for kind, count in self._failures.most_common()]
        if any(self._tokens):
            parts.append(f"tokens {self._tokens[0]:,} in {self._tokens[1]:,} out")
        if self._cost is not None:
            parts.append(f"${self._cost:.4f}")
        return ", ".join(parts)

    def _plain(self) -> None:
        self._spoke = time.monotonic()
        asked = self._done - self._before
        left = (self._total - self._done) * (self._spoke - self._start) / asked if asked else None
        tail = f", {left:.0f} s left" if left else ""
        self._console.print(f"{self._done}/{self._total}, {self.summary()}{tail}", highlight=False, soft_wrap=True)

    def say(self, line: str) -> None:
        """Print a line above the bar."""
        self._console.print(line, highlight=False, soft_wrap=True, markup=False)
