"""What every test run prints at its end: how many tests were skipped for want of data or of an extra."""

from __future__ import annotations

import os
from typing import Any

import hypothesis
import pytest

from tests.shared import ABSENT_DATA, ABSENT_EXTRA


def _in_ci() -> bool:
    return os.environ.get("CI", "").lower() not in ("", "0", "false")


def _skips(config: pytest.Config, prefix: str) -> int:
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None:
        return 0
    # A skipped report carries (file, line, "Skipped: reason").
    reports = reporter.stats.get("skipped", [])
    return sum(isinstance(one.longrepr, tuple) and f"Skipped: {prefix}" in one.longrepr[2] for one in reports)


# No test fails for being slow: times belong into perf/. CI draws the same examples in every run, a developer new ones.
hypothesis.settings.register_profile(
    "sonogauge",
    deadline=None,
    derandomize=_in_ci(),
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("sonogauge")


# Before the reporter's own hook, which prints the summary.
@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run in CI that skipped tests because a declared extra is missing."""
    if hasattr(session.config, "workerinput"):
        return
    if _in_ci() and _skips(session.config, ABSENT_EXTRA) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print the counts of skips by cause."""
    if config.option.collectonly:
        return
    data, extra = _skips(config, ABSENT_DATA), _skips(config, ABSENT_EXTRA)
    counts = {word: len(terminalreporter.stats.get(word, [])) for word in ("passed", "failed", "error", "skipped")}
    terminalreporter.section("what ran and what was skipped")
    terminalreporter.line(", ".join(f"{word}: {count}" for word, count in counts.items()))
    terminalreporter.line(f"skipped for absent shared data: {data}")
    verdict = " (a failure, because CI is set)" if extra and _in_ci() else ""
    terminalreporter.line(f"skipped for a missing extra: {extra}{verdict}")
    terminalreporter.line(f"skipped for another reason: {counts['skipped'] - data - extra}")
