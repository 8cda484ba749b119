"""The formats: each read back by a reader of its own, also with hostile names."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict
from rich.console import Console
from tests.report.made_scores import beside, model_rows, write_scores

from sonogauge.report import View, render, report, show, view_scores
from sonogauge.report.cells import DASH, Cell, Column, Table

pytestmark = pytest.mark.part("report")

HOSTILE = [
    "pipe|new\nline\r\n<img src=x onerror=alert(1)>",
    "[click](javascript:alert(1)) `code` **bold** __x__",
    '=HYPERLINK("http://x","y")',
    "@SUM(A1)",
    "\\input{/etc/passwd} $x$ 50% & # _ ~ ^ {",
    "[red]markup[/red] \x1b[31m\u202eevil",
    "超声模型 ünï",
]


class _Closed(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Metric(_Closed):
    value: float | None
    low: float | None
    high: float | None
    signature: str
    why_null: str | None


class Counted(_Closed):
    n: int
    valid: int
    excluded: int
    metrics: dict[str, Metric]


class TaskScores(Counted):
    datasets: dict[str, Counted]


class Total(_Closed):
    value: float | None
    low: float | None
    high: float | None


class Document(_Closed):
    """The object that DESIGN.md fixes for `score --json`, written down a second time."""

    benchmark: str
    protocol: str
    scenarios: str
    partial: bool
    tasks: dict[str, TaskScores]
    composites: dict[str, Total]
    baselines: dict[str, dict[str, float | None]]
    failures: dict[str, int]


def cells_of(line: str) -> list[str]:
    """Split a Markdown row at its unescaped pipes."""
    return re.split(r"(?<!\\)\|", line)[1:-1]


def made_view(name: str) -> View:
    table = Table.of(
        "made",
        name,
        [Column("Model"), Column(name), Column("Value", right=True)],
        [[Cell(text=name), Cell(text="x"), Cell(value=-0.5, unit="plain", notes=(name,))]],
        [name],
    )
    return View(name, (("model", name),), (name,), (table,), ({"name": name},))


def test_json_is_the_declared_object(tmp_path: Path) -> None:
    folder = write_scores(tmp_path / "s")
    found = Document.model_validate_json(report([folder], format="json"))
    dd = found.tasks["DD"]
    assert (found.benchmark, found.protocol, found.scenarios, found.partial) == ("toy", "strict", "all", True)
    assert (dd.n, dd.valid, dd.excluded) == (112, 109, 1)
    assert (dd.metrics["accuracy"].value, dd.metrics["accuracy"].low) == (0.5625, 0.5125)
    assert (dd.datasets["03"].n, dd.datasets["03"].metrics["macro_f1"].value) == (100, 0.6)
    assert found.tasks["RG"].metrics["bleu4"].why_null == "missing data sets: 39"
    assert found.composites["u2"].value == 0.2253
    assert found.baselines["majority"] == {"DD": 0.59, "CVE": None}
    assert found.failures == {"ambiguous": 2, "empty": 3, "refusal_policy": 0}


def test_json_of_several_folders_is_a_list(tmp_path: Path) -> None:
    folders = [write_scores(tmp_path / name, name) for name in "ab"]
    found = json.loads(report(folders, format="json"))
    assert [Document.model_validate(one).benchmark for one in found] == ["toy", "toy"]


def test_csv_reads_back_every_number_in_full(tmp_path: Path) -> None:
    folder = write_scores(tmp_path / "s")
    rows = list(csv.DictReader(io.StringIO(report([folder], format="csv"))))
    found = {
        tuple(one[name] for name in ("model", "task", "dataset", "slice", "metric")): one
        for one in rows
        if one["metric"]
    }
    for made in [*model_rows("vendor/model-1"), *beside()]:
        # A baseline's data set shows up where it is the best of those that do not read; the oracle is never.
        if made["origin"] == "baseline" and made["dataset"]:
            continue
        one = found[tuple(made[name] for name in ("model", "task", "dataset", "slice", "metric"))]
        for name in ("value", "low", "high", "chance"):
            assert (float(one[name]) if one[name] else None) == made[name]
        for name in ("n", "valid", "excluded", "groups"):
            assert (int(one[name]) if one[name] else None) == made[name]
        assert one["why_null"] == (made["why_null"] or "")
        assert one["origin"] == made["origin"]
    failures = {one["row"]: one["value"] for one in rows if one["table"] == "failures" and one["column"] == "Replies"}
    assert failures == {"ambiguous": "2", "empty": "3"}


@pytest.mark.parametrize("name", HOSTILE)
def test_markdown_keeps_its_columns_and_no_markup_of_names(tmp_path: Path, name: str) -> None:
    folders = [write_scores(tmp_path / "a", name), write_scores(tmp_path / "b", "plain")]
    text = report(folders)
    widths: set[int] = set()
    for line in text.splitlines():
        if line.startswith("|"):
            widths.add(len(cells_of(line)))
        else:
            assert len(widths) <= 1, "all rows of a table have the same number of cells"
            widths = set()
    assert "<" not in text
    assert not re.search(r"(?<!\\)\]\(", text)
    assert "\x1b" not in text and "\u202e" not in text


@pytest.mark.parametrize("name", HOSTILE)
def test_csv_holds_no_formula(tmp_path: Path, name: str) -> None:
    folder = write_scores(tmp_path / "s", name)
    text = report([folder], format="csv")
    number = re.compile(r"-?\d+(\.\d+)?(e-?\d+)?")
    rows = list(csv.reader(io.StringIO(text)))
    assert {len(one) for one in rows} == {len(rows[0])}
    for one in rows:
        for cell in one:
            assert number.fullmatch(cell) or not cell.startswith(("=", "+", "-", "@", "\t", "\r"))


def test_negative_numbers_stay_numbers_in_csv(tmp_path: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(report([write_scores(tmp_path / "s")], format="csv"))))
    difference = next(one for one in rows if one["column"] == "Difference")
    assert float(difference["value"]) == -0.0275


@pytest.mark.parametrize("name", HOSTILE)
def test_latex_is_balanced_and_escaped(tmp_path: Path, name: str) -> None:
    check_latex(report([write_scores(tmp_path / "s", name), write_scores(tmp_path / "t", "b")], format="latex"))


COMMANDS = {
    *("begin", "end", "caption", "toprule", "midrule", "bottomrule", "par", "footnotesize", "raggedright", "item"),
    *("textbackslash", "textasciitilde", "textasciicircum", "textless", "textgreater", "textbar", "textquotedbl"),
    *("textasciigrave", "textsuperscript", "downarrow", "linewidth"),
}


def check_latex(text: str) -> None:
    body = "\n".join(line for line in text.splitlines() if not line.startswith("%"))
    plain = re.sub(r"\\\\|\\[{}$&#_%]", "", body)
    assert plain.count("{") == plain.count("}")
    assert set(re.findall(r"\\([a-zA-Z]+)", plain)) <= COMMANDS
    assert not set('#_%~^<>|"`') & set(plain)
    assert plain.count("$") == 2 * plain.count("$\\downarrow$")
    opened = re.findall(r"\\begin\{(\w+)\}", body)
    assert sorted(opened) == sorted(re.findall(r"\\end\{(\w+)\}", body))
    for block in re.findall(r"\\begin\{tabular\}\{([lr]+)\}\n(.*?)\\end\{tabular\}", body, re.DOTALL):
        for line in block[1].splitlines():
            if line.endswith("\\\\"):
                assert len(re.findall(r"(?<!\\)&", line)) == len(block[0]) - 1


@given(st.text(max_size=40))
def test_any_name_survives_every_format(name: str) -> None:
    view = made_view(name)
    rows = [line for line in render(view, "md").splitlines() if line.startswith("|")]
    assert {len(cells_of(line)) for line in rows} == {3}
    check_latex(render(view, "latex"))
    table = list(csv.reader(io.StringIO(render(view, "csv"))))
    assert {len(one) for one in table} == {len(table[0])}
    assert json.loads(render(view, "json")) == {"name": name}


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_terminal_cuts_no_number_short(tmp_path: Path, width: int) -> None:
    view = view_scores([write_scores(tmp_path / "s", "[bold]m[/bold] :warning:")])
    stream = io.StringIO()
    show(view, Console(file=stream, width=width, color_system=None), keys=None)
    text = stream.getvalue()
    assert "…" not in text
    assert "[bold]m[/bold] :warning:" in text
    assert "56.2%" in text
    assert max(len(line) for line in text.splitlines()) <= width


def test_terminal_says_which_columns_it_left_out(tmp_path: Path) -> None:
    view = view_scores([write_scores(tmp_path / "s")])
    stream = io.StringIO()
    show(view, Console(file=stream, width=100, color_system=None), keys=["tasks"])
    text = stream.getvalue()
    assert "Left out for want of width: " in text
    assert "Totals" not in text


def test_footnotes_are_numbered_in_reading_order() -> None:
    cells = [[Cell(unit="plain", notes=("b",)), Cell(unit="plain", notes=("a", "b")), Cell(value=0.5, unit="percent")]]
    table = Table.of("x", "X", [Column("1"), Column("2"), Column("3")], cells)
    assert table.texts == [[DASH + "¹", DASH + "¹,²", "50.0%"]]
    assert table.lines == ["¹ b", "² a"]


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (0.48214, "percent", "48.2%"),
        (1.0, "percent", "100.0%"),
        (0.026812, "percent2", "2.68%"),
        (-0.00001, "percent", "0.0%"),
        (0.22526, "total", "0.2253"),
        (0.37119, "plain", "0.371"),
        (-0.0004, "plain", "0.000"),
        (123.456, "natural", "123"),
        (12.345, "natural", "12.3"),
        (0.01234, "natural", "0.01"),
        (7, "count", "7"),
        (None, "percent", DASH),
    ],
)
def test_numbers_read_well(value: float | None, unit: str, shown: str) -> None:
    assert Cell(value=value, unit=unit).shown == shown  # type: ignore[arg-type]
