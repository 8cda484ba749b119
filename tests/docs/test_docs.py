"""The documentation: it builds without a warning, its commands exist, its examples print what it says."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

import pytest
from tests.shared import ROOT, require_extra

pytestmark = pytest.mark.part("docs")

PAGES: Final = sorted((ROOT / "docs").glob("*.md"))
_BLOCK: Final = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.M | re.S)
_ANYTHING: Final = "…"


def blocks(page: Path) -> list[tuple[str, str, str]]:
    """Language, title and text of each code block."""
    return [(hit[1], hit[2] or "", hit[3]) for hit in _BLOCK.finditer(page.read_text("utf-8"))]


RUNNABLE: Final = [page for page in PAGES if any(kind == "console" for kind, _, _ in blocks(page))]


def test_there_are_pages_that_can_be_run() -> None:
    assert {page.stem for page in RUNNABLE} >= {"predictions", "intervals"}


@pytest.mark.slow
@pytest.mark.parametrize("page", RUNNABLE, ids=lambda page: page.stem)
def test_examples_print_what_the_page_says(page: Path, tmp_path: Path) -> None:
    for kind, title, text in blocks(page):
        if title:
            (tmp_path / title).write_text(text, "utf-8")
        if kind != "console":
            continue
        for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
            command, _, said = part.partition("\n")
            _compare(said, _run(command, tmp_path), f"{page.name}: {command}")


def _run(command: str, folder: Path) -> list[str]:
    words = shlex.split(command)
    assert words[0] == "sonogauge", "only our own commands are run"
    program = [sys.executable, "-c", "from sonogauge.cli import main; main()", *words[1:]]
    done = subprocess.run(program, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return [" ".join(line.split()) for line in done.stdout.splitlines()]


def _compare(said: str, printed: list[str], where: str) -> None:
    """Each line of the page must come next, or after "…" somewhere later; the start of a line is enough."""
    at, skipping = 0, False
    for line in (" ".join(one.split()) for one in said.splitlines()):
        if line == _ANYTHING:
            skipping = True
            continue
        found = next((n for n in range(at, len(printed)) if line and printed[n].startswith(line)), None)
        assert found is not None, f"{where} does not print '{line}' but\n" + "\n".join(printed)
        assert skipping or found == at, f"{where} prints more before '{line}': {printed[at:found]}"
        at, skipping = found + 1, False
    assert skipping or not any(printed[at:]), f"{where} prints more: {printed[at:]}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_shown_exists_with_its_options(page: Path) -> None:
    import typer

    from sonogauge.cli import app

    for _, _, text in blocks(page):
        for line in text.replace("\\\n", " ").splitlines():
            words = line.removeprefix("$ ").partition(" #")[0].split()
            if words[:1] != ["sonogauge"]:
                continue
            command, rest = typer.main.get_command(app), words[1:]
            while rest and hasattr(command, "commands"):
                command = command.commands[rest.pop(0)]
            known = {option for one in command.params for option in (*one.opts, *one.secondary_opts)}
            assert {word.partition("=")[0] for word in words if word.startswith("--")} <= {*known, "--help"}, line


def test_the_reference_names_every_command_and_option() -> None:
    import runpy

    import typer

    from sonogauge.cli import app

    generator = runpy.run_path(str(ROOT / "docs" / "gen" / "commands.py"))
    text = generator["reference"]()
    names_shown = [name for name, _ in generator["every_command"](typer.main.get_command(app))]
    assert {"score", "review export"} <= set(names_shown)
    for name, command in generator["every_command"](typer.main.get_command(app)):
        section = text.split(f"## sonogauge {name}\n")[1].split("\n## ")[0]
        for one in command.params:
            names = [] if one.name == "help" else one.opts if one.param_type_name == "option" else []
            assert all(f"`{option}`" in section for option in names), (name, one.name)


class _Links(HTMLParser):
    """What a page makes a browser fetch by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        facts = dict(attrs)
        if tag in ("script", "img", "iframe", "source"):
            self.fetched.append(facts.get("src") or "")
        if tag == "link" and facts.get("rel") in ("stylesheet", "icon", "preconnect", "preload"):
            self.fetched.append(facts.get("href") or "")


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_fetches_nothing(tmp_path: Path) -> None:
    require_extra("docs", "mkdocs")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "WARNING" not in done.stderr
    built = sorted((tmp_path / "site").glob("*.html"))
    assert {one.stem for one in built} >= {page.stem for page in PAGES}
    for page in built:
        links = _Links()
        links.feed(page.read_text("utf-8"))
        assert not [one for one in links.fetched if one.startswith(("http:", "https:", "//"))], page.name
    reference = (tmp_path / "site" / "commands.html").read_text("utf-8")
    assert "--max-failures" in reference
    assert "bootstrap" in (tmp_path / "site" / "api.html").read_text("utf-8")
