from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.report.made_scores import write_scores
from tests.report.page.made import Made
from typer.testing import CliRunner

from sonogauge._errors import BadInput
from sonogauge.cli import app
from sonogauge.report import report

pytestmark = pytest.mark.part("page")


def _run(*arguments: str | Path) -> str:
    result = CliRunner().invoke(app, ["report", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def test_the_ending_html_means_a_page(tmp_path: Path) -> None:
    scores = write_scores(tmp_path / "s")
    _run(scores, "--out", tmp_path / "r.html", "--gallery", "0")
    assert (tmp_path / "r.html").read_text("utf-8").startswith("<!doctype html>")
    _run(scores, "--out", tmp_path / "r.md")
    assert (tmp_path / "r.md").read_text("utf-8").startswith("# ")
    _run(scores, "--out", tmp_path / "r.txt", "--format", "page")
    assert (tmp_path / "r.txt").read_text("utf-8").startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("name", "start"),
    [("r.csv", "table,row,column,"), ("r.tex", "\\begin"), ("r.json", "{"), ("r.md", "#"), ("r", "#")],
)
def test_the_ending_tells_the_format(name: str, start: str, tmp_path: Path) -> None:
    report([write_scores(tmp_path / "s")], tmp_path / name)
    assert start in (tmp_path / name).read_text("utf-8")[:400]


@pytest.mark.parametrize(
    ("options", "told"),
    [({"out": "r.pdf"}, "no format goes by the ending '.pdf'"), ({"protocol": "foo", "out": "r.html"}, "'foo'")],
)
def test_an_unknown_ending_or_protocol_is_bad_input(options: dict[str, Any], told: str, tmp_path: Path) -> None:
    target = tmp_path / options.pop("out")
    with pytest.raises(BadInput, match=told):
        report([write_scores(tmp_path / "s")], target, **options)
    assert not target.exists()


def test_a_page_is_not_printed(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"--out report\.html"):
        _run(write_scores(tmp_path / "s"), "--format", "page")


def test_the_gallery_has_as_many_cases_as_asked(made: Made, tmp_path: Path) -> None:
    _run(made.good, "--out", tmp_path / "r.html", "--gallery", "3")
    assert (tmp_path / "r.html").read_text("utf-8").count('"disagree":') == 3


def test_a_folder_in_the_way_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "r.html").mkdir()
    with pytest.raises(BadInput, match="is a folder"):
        _run(write_scores(tmp_path / "s"), "--out", tmp_path / "r.html")
