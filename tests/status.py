"""Make docs/status.md from the test markers: `python -m tests.status` writes it, `--check` compares it."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterable
from typing import Final, NamedTuple

import pytest

from tests.parts import PARTS
from tests.shared import ROOT

STATUS: Final = ROOT / "docs" / "status.md"
HEAD: Final = """\
# What is proven

Made from the markers of the tests by `make status`; do not edit. A part is *proven on real data* when a test runs it on
real files (those tests are skipped where the shared files are absent), *on look-alikes* when tests run it only on
made-up, simulated or hand-written data, *untested* when no test names it. The columns count test functions.

| part | what it promises | state | tests on real data | tests on look-alikes |
|---|---|---|---|---|
"""


class Marked(NamedTuple):
    """A test function with its part; the many cases of one parametrised function count once."""

    function: str
    part: str
    real: bool


class _Collector:
    def __init__(self) -> None:
        self.tests: set[Marked] = set()
        self.unknown: set[str] = set()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            for mark in item.iter_markers("part"):
                part = str(mark.args[0])
                function = item.nodeid.partition("[")[0]
                self.tests.add(Marked(function, part, item.get_closest_marker("real") is not None))
                if part not in PARTS:
                    self.unknown.add(f"{function}: no part '{part}' in tests/parts.py")


def render(tests: Iterable[Marked]) -> str:
    """Return docs/status.md for the given tests.

    >>> lines = render([Marked("a", "answers", True), Marked("b", "answers", False)]).splitlines()
    >>> print(*(line for line in lines if line.startswith("| answers |")))
    | answers | asking and strict parsing, one module per answer form | proven on real data | 1 | 1 |
    """
    tests = list(tests)
    lines = []
    for part, promise in PARTS.items():
        real = len({one.function for one in tests if one.part == part and one.real})
        made = len({one.function for one in tests if one.part == part and not one.real})
        state = "proven on real data" if real else "proven on look-alikes" if made else "**untested**"
        lines.append(f"| {part} | {promise} | {state} | {real} | {made} |\n")
    return HEAD + "".join(lines)


def collect() -> _Collector:
    """Collect all tests of the repository without running them."""
    collector, printed = _Collector(), io.StringIO()
    with contextlib.redirect_stdout(printed):
        code = pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider", "--rootdir", str(ROOT)], [collector])
    if code != pytest.ExitCode.OK:
        text = printed.getvalue()
        sys.exit(f"{text[max(0, text.find(' ERRORS ')) :]}\nthe tests cannot be collected")
    return collector


def main(arguments: list[str]) -> int:
    """Write docs/status.md, or with `--check` compare it; return the exit code."""
    collector = collect()
    for line in sorted(collector.unknown):
        print(line, file=sys.stderr)
    if collector.unknown:
        return 1
    text = render(collector.tests)
    if "--check" not in arguments:
        STATUS.write_text(text, "utf-8")
        print(f"wrote {STATUS.relative_to(ROOT)}")
        return 0
    if not STATUS.is_file() or STATUS.read_text("utf-8") != text:
        print("docs/status.md does not say what the tests say; run `make status` and commit it", file=sys.stderr)
        return 1
    print("docs/status.md is up to date")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
