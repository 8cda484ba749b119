"""The command line as a user meets it: a process of its own, exit codes, one line for bad input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.score.small import u2_item, write_bench, write_replies

pytestmark = pytest.mark.part("command line")

COMMANDS = ("build", "run", "score", "report", "demo", "benchmarks")


def sonogauge(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the command line."""
    code = "from sonogauge.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False
    )


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("cli")
    items = [
        u2_item("DD", "21", number, {"choices": ("benign" if number % 2 else "malignant",)}) for number in range(1, 31)
    ]
    write_bench(root / "bench", items)
    write_replies(root / "replies.jsonl", {item.item_id: "benign" for item in items})
    return root


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command: str) -> None:
    result = sonogauge(command, "--help")
    assert result.returncode == 0
    assert f"Example: sonogauge {command}" in " ".join(result.stdout.split())


def test_run_then_score_then_report(root: Path) -> None:
    result = sonogauge("run", root / "bench", "--model", "baseline/majority", "--out", root / "run")
    assert result.returncode == 0, result.stderr
    result = sonogauge("score", root / "run", "--scenarios", "present", "--out", root / "scores", "--draws", "200")
    assert result.returncode == 0, result.stderr
    assert "50.0%" in result.stdout
    assert "accuracy" in result.stdout
    for form in ("md", "csv", "latex", "json"):
        result = sonogauge("report", root / "scores", "--format", form)
        assert result.returncode == 0, result.stderr
        assert "accuracy" in result.stdout
    result = sonogauge("report", root / "scores", "--format", "csv", "--out", root / "table.csv")
    assert result.returncode == 0
    assert result.stdout == ""
    assert (root / "table.csv").read_text().count("\n") > 3


def test_json_is_all_there_is_on_standard_output(root: Path) -> None:
    result = sonogauge(
        "score",
        root / "bench",
        "--replies",
        root / "replies.jsonl",
        "--scenarios",
        "present",
        "--draws",
        "200",
        "--json",
    )
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert set(found) >= {
        "benchmark",
        "protocol",
        "scenarios",
        "partial",
        "tasks",
        "composites",
        "baselines",
        "failures",
    }
    assert found["tasks"]["DD"]["metrics"]["accuracy"]["value"] == 0.5


BAD = [
    (("score", "ROOT/nowhere"), "no such run folder or file"),
    (("score", "ROOT/bench"), "this is a folder of benchmark, not of run; `sonogauge run` makes one"),
    (("score", "ROOT/replies.jsonl"), "score --replies FILE BENCH"),
    (("run", "ROOT/bench", "--model", "baseline/clever", "--out", "ROOT/x"), "clever"),
    (("run", "ROOT/bench", "--model", "nobody/knows", "--out", "ROOT/x"), "nobody"),
    (("run", "ROOT/nowhere", "--model", "baseline/random", "--out", "ROOT/x"), "no such folder"),
    (("build", "u2bench", "--out", "ROOT/x"), "--data DIR"),
    (("build", "u3bench", "--data", "ROOT", "--out", "ROOT/x"), "known: "),
    (("build", "u2bench", "--data", "ROOT/nowhere", "--out", "ROOT/x"), "nowhere"),
    (("build", "u2bench", "--data", "ROOT/bench", "--out", "ROOT/x"), "bench"),
    (("report", "ROOT/bench"), "not of scores; `sonogauge score` makes one"),
    (("plan",), "--half-width"),
    (("report", "ROOT/bench", "--format", "pdf"), "known: "),
]


@pytest.mark.parametrize(("arguments", "line"), BAD, ids=[" ".join(one) for one, _ in BAD])
def test_bad_input_ends_with_one_line_and_exit_code_2(root: Path, arguments: tuple[str, ...], line: str) -> None:
    result = sonogauge(*(one.replace("ROOT", str(root)) for one in arguments))
    assert result.returncode == 2, (result.stdout, result.stderr)
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert line in result.stderr
    assert not (root / "x").exists()


def test_benchmarks_are_listed() -> None:
    result = sonogauge("benchmarks", "--json")
    assert result.returncode == 0
    found = {one["name"]: one for one in json.loads(result.stdout)}
    assert found["u2bench"]["scenarios"] == 51
    assert found["u2bench"]["licence"] == "CC BY-NC-ND 4.0"
    assert "synthetic" in found


def test_the_list_of_commands_says_whole_sentences() -> None:
    for arguments in (("--help",), ("review", "--help")):
        shown = sonogauge(*arguments).stdout.partition("Commands:")[2]
        assert len(shown.splitlines()) > 4
        assert "..." not in shown


def test_metrics_models_and_analyses_are_listed_and_explained() -> None:
    from sonogauge.analyses.api import NAMES
    from sonogauge.metrics import METRICS
    from sonogauge.models import MODELS
    from sonogauge.models.segmenters import SEGMENTERS

    metrics = json.loads(sonogauge("metrics", "--json").stdout)
    assert [one["name"] for one in metrics] == list(METRICS)
    assert all(len(one["meaning"]) > 10 and "sums:" not in one["meaning"] for one in metrics)
    models = json.loads(sonogauge("models", "--json").stdout)
    prefixes = {one["model"].partition("/")[0] for one in models["providers"]} | set(models["through_inspect"])
    assert {*prefixes, "baseline"} == set(MODELS)
    assert list(models["segmenters"]) == list(SEGMENTERS)
    analyses = json.loads(sonogauge("analyses", "--json").stdout)
    assert {one["name"] for one in analyses} == set(NAMES)
    assert not any(word in one["meaning"] for one in analyses for word in ("analysis 1", "section"))
    for command in ("metrics", "models", "analyses"):
        lines = sonogauge(command).stdout.splitlines()
        assert len(lines) > 15
        assert not [line for line in lines if line.endswith(": .")]


def test_scores_with_gaps_name_the_way_on(root: Path) -> None:
    whole = sonogauge("score", root / "bench", "--replies", root / "replies.jsonl")
    assert "--scenarios present" in whole.stderr
    present = sonogauge("score", root / "bench", "--replies", root / "replies.jsonl", "--scenarios", "present")
    assert present.returncode == 0
    assert "--scenarios present" not in present.stderr


def test_a_pipe_gets_utf_8_whatever_the_locale(root: Path) -> None:
    out = root / "utf-8-scores"
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    for arguments in (
        ["score", root / "bench", "--replies", root / "replies.jsonl", "--model", "modèle", "--out", out],
        ["report", out],
    ):
        code = "from sonogauge.cli import main; main()"
        command = [sys.executable, "-c", code, *map(str, arguments)]
        result = subprocess.run(command, capture_output=True, timeout=120, check=False, env=environment)
        assert result.returncode == 0, result.stderr
        assert "modèle" in result.stdout.decode("utf-8")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("arguments", [["benchmarks"], ["--version"], ["score", "BENCH", "--replies", "REPLIES"]])
def test_a_full_disk_is_told_in_one_line(root: Path, arguments: list[str]) -> None:
    places = {"BENCH": str(root / "bench"), "REPLIES": str(root / "replies.jsonl")}
    command = [sys.executable, "-c", "from sonogauge.cli import main; main()", *(places.get(a, a) for a in arguments)]
    with open("/dev/full", "w") as full:
        result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    assert result.returncode == 1
    assert result.stderr.strip().splitlines()[-1].startswith("error: ") and "No space left" in result.stderr
    assert "Traceback" not in result.stderr and "Exception ignored" not in result.stderr


def test_a_seed_below_nought_is_refused(root: Path) -> None:
    result = sonogauge("score", root / "bench", "--replies", root / "replies.jsonl", "--seed", "-1")
    assert result.returncode == 2 and "Traceback" not in result.stderr


def test_an_import_tells_no_row_of_zeros(tmp_path: Path) -> None:
    from PIL import Image

    (tmp_path / "scans").mkdir()
    Image.new("L", (40, 30), 90).save(tmp_path / "scans" / "a.png")
    result = sonogauge("import", "folder", tmp_path / "scans", "--private", "--out", tmp_path / "cases")
    assert result.returncode == 0
    assert "files read: 1, files not read: 0, dropped: 0" in result.stdout
    assert "cases: 1, patients: 0" in result.stdout
    assert "masks" not in result.stdout and "boxes" not in result.stdout
