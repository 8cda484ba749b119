"""`inspect eval` on our tasks and our own run against one scripted server: the same replies, the same scores."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.inspect.bench import Script, built
from tests.run import tiny
from tests.run.server import Server, error
from tests.shared import require_extra

from sonogauge.folders import Folder
from sonogauge.score import score

pytestmark = [pytest.mark.part("inspect"), pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("inspect") / "bench")


@pytest.fixture
def server(bench: Path) -> Iterator[Server]:
    with Server(Script(bench)) as running:
        yield running


def inspect_eval(task: str, server: Server, folder: Path, *options: str) -> tuple[int, str, list[Path]]:
    """Return exit status, output and logs of `inspect eval`, as its users call it."""
    command = [
        sys.executable,
        "-m",
        "inspect_ai",
        "eval",
        task,
        "--model",
        "openai-api/lab/m",
        "--log-dir",
        str(folder),
    ]
    variables = {**os.environ, "LAB_BASE_URL": server.url, "LAB_API_KEY": "k", "INSPECT_DISPLAY": "plain"}
    done = subprocess.run([*command, *options], env=variables, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr, sorted(folder.glob("*.eval"))


def kept(metrics: list[dict[str, Any]]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """All values with their intervals and counts, without the names of the models."""
    return {
        tuple(row[name] for name in ("origin", "protocol", "task", "dataset", "slice", "metric"))
        + ((row["model"],) if row["origin"] == "baseline" else ()): tuple(
            row[name] for name in ("value", "low", "high", "n", "valid", "groups", "signature")
        )
        for row in metrics
    }


def test_the_same_replies_give_the_same_scores(bench: Path, server: Server, tmp_path: Path) -> None:
    require_extra("inspect", "inspect_ai")
    from inspect_ai.log import read_eval_log

    from sonogauge.inspect.judging import values_of
    from sonogauge.run import run

    _, said, logs = inspect_eval(
        "sonogauge/synthetic", server, tmp_path / "logs", "-T", f"bench={bench}", "-T", "draws=200", "--no-log-images"
    )
    assert len(logs) == 1, said
    run(bench, "openai-api/lab/m", tmp_path / "run", model_options={"base_url": server.url, "api_key": "k"}, retries=0)

    theirs, ours = score(logs[0], draws=200), score(tmp_path / "run", draws=200)
    endings = ours.manifest.counts["statuses"]
    assert set(endings) == {"ok", "truncated", "error"}
    assert theirs.manifest.counts == ours.manifest.counts
    assert kept(theirs.metrics) == kept(ours.metrics)

    # What Inspect itself computed and shows, with our metrics.
    log = read_eval_log(logs[0])
    assert log.results is not None
    shown = {name: metric.value for name, metric in log.results.scores[0].metrics.items()}
    assert shown == pytest.approx(values_of(ours.spec, ours.metrics), nan_ok=True, abs=1e-12)
    assert log.samples is not None
    reasons = Counter(row["reason"] for row in _score_items(bench, logs[0], tmp_path))
    assert Counter((one.scores or {})["strict"].metadata["reason"] for one in log.samples) == reasons
    assert "data:image" not in logs[0].read_bytes().decode("latin-1")


def _score_items(bench: Path, log: Path, folder: Path) -> list[dict[str, Any]]:
    score(log, bench=bench, out=folder / "scores", draws=100, baselines=False)
    return list(Folder(folder / "scores").rows("score_items"))


def test_every_request_fails(bench: Path, tmp_path: Path) -> None:
    require_extra("inspect", "inspect_ai")
    with Server(lambda asked, nth: error(400, "no")) as broken:
        # Its exit status says nothing: Inspect ends with 0 whatever failed.
        _, said, logs = inspect_eval(
            "sonogauge/benchmark", broken, tmp_path / "logs", "-T", f"bench={bench}", "--limit", "5", "--epochs", "2"
        )
    assert len(logs) == 1, said
    found = score(logs[0], draws=100, scenarios="present", baselines=False)
    assert found.manifest.counts["statuses"] == {"error": 10}
    assert found.manifest.counts["failures"]["strict"] == {"error": 10}
    assert found.manifest.counts["valid"] == 0


@pytest.mark.parametrize(
    ("task", "options", "said"),
    [
        ("sonogauge/u2bench", (), "a folder of synthetic, not of u2bench; use sonogauge/synthetic"),
        ("sonogauge/synthetic", ("-T", "tasks=XX"), "no task 'XX' in this benchmark; tasks: "),
    ],
)
def test_a_mistake_is_told_in_one_line(
    bench: Path, server: Server, tmp_path: Path, task: str, options: tuple[str, ...], said: str
) -> None:
    require_extra("inspect", "inspect_ai")
    status, output, logs = inspect_eval(task, server, tmp_path, "-T", f"bench={bench}", *options)
    assert status != 0
    assert said in " ".join(output.split())
    assert "Traceback" not in output
    assert not logs


def test_a_missing_bench_is_told_in_one_line(server: Server, tmp_path: Path) -> None:
    require_extra("inspect", "inspect_ai")
    status, output, _ = inspect_eval("sonogauge/u2bench", server, tmp_path)
    assert status != 0 and "pass -T bench=DIR" in " ".join(output.split()) and "Traceback" not in output


def test_private_images_need_a_word_of_the_user(tmp_path: Path) -> None:
    require_extra("inspect", "inspect_ai")
    from inspect_ai._util.error import PrerequisiteError

    from sonogauge.benchmarks.spec import SPEC_FILE, dump_spec, load_spec
    from sonogauge.inspect.registry import benchmark

    cases = [tiny.case(f"case-{n:04d}", tiny.picture(n), private=n == 2, source="ward 7") for n in range(3)]
    folder = tiny.bench(tmp_path / "bench", [tiny.item(n) for n in range(3)], cases)
    (folder / SPEC_FILE).write_text(dump_spec(load_spec("synthetic")), "utf-8")
    with pytest.raises(PrerequisiteError, match=r"private images \(source ward 7\) .*; pass -T allow_upload=true"):
        benchmark(bench=str(folder))
    assert len(benchmark(bench=str(folder), allow_upload=True).dataset) == 3
