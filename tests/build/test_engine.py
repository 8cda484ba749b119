"""Threads and a Ray cluster give the same tables; killed workers and killed commands lose nothing."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sonogauge._errors import BadInput
from sonogauge.build.engine import Engine, LocalEngine, make_engine
from sonogauge.build.from_recipe import build_from_recipe
from sonogauge.build.recipe import QualityRule
from sonogauge.build.shards import WorkFolder, read_arrow, shards_of
from sonogauge.build.stages.quality import Examine
from sonogauge.folders import Folder
from tests.build.made_cases import breast_cases, write_cases
from tests.build.test_recipe import DX, recipe_of
from tests.shared import require_extra

pytestmark = pytest.mark.part("engines")

BOXED = {
    "title": "box",
    "question": "boxed",
    "options": ["lesion", "vessel"],
    "template": "What is in the red box?\n{answer_format}",
}


def batches(count: int) -> Iterator[pa.RecordBatch]:
    for number in range(count):
        yield pa.RecordBatch.from_pydict({"n": [number]})


def test_threads_keep_the_order_and_take_few_batches_ahead() -> None:
    taken: list[int] = []
    done: list[int] = []

    def source() -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(batches(30)):
            taken.append(number)
            assert number - len(done) <= 4
            yield batch

    def slow_when_even(batch: pa.RecordBatch) -> pa.RecordBatch:
        time.sleep(0.002 if batch.column(0)[0].as_py() % 2 == 0 else 0)
        return batch

    engine = LocalEngine(2)
    for result in engine.map_batches(slow_when_even, source()):
        done.append(result.column(0)[0].as_py())
    engine.close()
    assert done == taken == list(range(30))


def test_a_failure_of_a_batch_ends_the_stage() -> None:
    def fail(batch: pa.RecordBatch) -> pa.RecordBatch:
        raise ValueError("broken")

    engine = LocalEngine(2)
    with pytest.raises(ValueError, match="broken"):
        list(engine.map_batches(fail, batches(5)))
    engine.close()
    assert threading.active_count() < 20


def test_unknown_engines_are_refused() -> None:
    with pytest.raises(BadInput, match="no engine 'dask'; known: local, ray"):
        make_engine("dask")


class Counting:
    """An engine that counts the rows it is given, and may give up after some."""

    name = "counting"

    def __init__(self, most: int = 10**9) -> None:
        self._inner = LocalEngine(1)
        self._most = most
        self.rows = 0

    def map_batches(self, function: Any, source: Any) -> Iterator[pa.RecordBatch]:
        for batch in source:
            if self.rows >= self._most:
                raise KeyboardInterrupt
            self.rows += batch.num_rows
            yield function(batch)

    def close(self) -> None:
        self._inner.close()


def test_a_repeated_command_goes_on_at_the_finished_shards(tmp_path: Path) -> None:
    cases = Folder(write_cases(tmp_path / "cases", breast_cases(40)))
    stage, out = Examine(QualityRule()), tmp_path / "bench"
    first: Engine = Counting(most=24)
    with pytest.raises(KeyboardInterrupt), WorkFolder(out) as work:
        work.run(first, stage, cases, rows=8)
    kept = sorted(out.parent.glob(".bench.work/*.arrow"))
    assert 2 <= len(kept) <= 4
    second = Counting()
    with WorkFolder(out) as work:
        paths = work.run(second, stage, cases, rows=8)
        assert second.rows == 40 - 8 * len(kept)
        found = [row for path in paths for batch in read_arrow(path) for row in batch.to_pylist()]
        third = Counting()
        work.run(third, Examine(QualityRule(min_side=50)), cases, rows=8)
        assert third.rows == 40  # another rule is other work
    assert [row["case_id"] for row in found] == [row["case_id"] for row in cases.rows("cases", ["case_id"])]
    assert not list(tmp_path.glob(".bench*"))


def test_shards_cover_every_row_once(tmp_path: Path) -> None:
    cases = write_cases(tmp_path / "cases", breast_cases(21), rows_per_group=4)
    shards = shards_of(cases / "cases.parquet", 8)
    assert [(one.start, one.rows) for one in shards] == [(0, 8), (8, 8), (16, 5)]
    assert [group for one in shards for group in one.groups] == list(range(6))


def test_two_commands_on_one_output_are_refused(tmp_path: Path) -> None:
    second = WorkFolder(tmp_path / "bench")
    with WorkFolder(tmp_path / "bench"), pytest.raises(BadInput, match="another command builds this folder"), second:
        pass


def test_a_command_killed_in_its_second_stage_ends_when_repeated(tmp_path: Path) -> None:
    write_cases(tmp_path / "cases", breast_cases(24))
    file = recipe_of(tmp_path, {"DX": DX, "BX": BOXED})
    whole = build_from_recipe(file, tmp_path / "whole")
    program = textwrap.dedent(
        """
        import os, signal, sys
        from sonogauge.build import from_recipe
        from sonogauge.build.stages import drawing
        drawing._draw = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        from_recipe.build_from_recipe(sys.argv[1], sys.argv[2])
        """
    )
    killed = subprocess.run([sys.executable, "-c", program, str(file), str(tmp_path / "bench")], check=False)
    assert killed.returncode == -signal.SIGKILL
    shards = list(tmp_path.glob(".bench.work/*.arrow"))
    assert shards and not (tmp_path / "bench").exists()
    engine = Counting()
    again = build_from_recipe(file, tmp_path / "bench", engine=engine)
    assert engine.rows == 24  # the drawing alone; the first stage was found
    assert again.hash == whole.hash
    left = [one.name for one in tmp_path.iterdir() if one.name.startswith(".bench.work")]
    assert left == []


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A Ray cluster of this machine with two workers."""
    require_extra("ray", "ray")
    engine = make_engine("ray", 2)
    yield engine
    engine.close()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_ray_cluster_gives_the_same_tables(tmp_path: Path, cluster: Any) -> None:
    write_cases(tmp_path / "cases", breast_cases(60))
    file = recipe_of(tmp_path, {"DX": DX, "BX": BOXED}, split={"small_source": 0})
    here = build_from_recipe(file, tmp_path / "here")
    there = build_from_recipe(file, tmp_path / "there", engine=cluster)
    assert there.tables == here.tables
    assert there.hash == here.hash


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_killed_worker_changes_nothing(tmp_path: Path, cluster: Any) -> None:
    marker = tmp_path / "killed"

    class DyingOnce(Examine):
        def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
            if "made/030" in batch.column("case_id").to_pylist() and not marker.exists():
                marker.write_text(str(os.getpid()), "utf-8")
                os.kill(os.getpid(), signal.SIGKILL)
            return super().__call__(batch)

    cases = Folder(write_cases(tmp_path / "cases", breast_cases(60)))
    rows = {}
    for name, engine, stage in (
        ("here", LocalEngine(2), Examine(QualityRule())),
        ("there", cluster, DyingOnce(QualityRule())),
    ):
        with WorkFolder(tmp_path / name) as work:
            paths = work.run(engine, stage, cases)
            rows[name] = [row for path in paths for batch in read_arrow(path) for row in batch.to_pylist()]
    assert int(marker.read_text("utf-8")) != os.getpid()
    assert rows["there"] == rows["here"]
    assert len(rows["here"]) == 60


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.mark.slow
def test_a_cluster_elsewhere_is_reached_by_its_address(tmp_path: Path) -> None:
    require_extra("ray", "ray")
    write_cases(tmp_path / "cases", breast_cases(24))
    file = recipe_of(tmp_path, {"DX": DX})
    here = build_from_recipe(file, tmp_path / "here")
    port = free_port()
    environment = {**os.environ, "RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}
    ray = [sys.executable, "-c", "from ray.scripts.scripts import main; main()"]
    head = ["start", "--head", "--block", f"--port={free_port()}", f"--ray-client-server-port={port}"]
    # Sockets lie below it, whose names must be short.
    scratch = tempfile.mkdtemp(prefix="ray")
    limits = [f"--temp-dir={scratch}", "--num-cpus=2", "--include-dashboard=false", "--object-store-memory=200000000"]
    # A session of its own, so that all its processes can be ended together.
    cluster = subprocess.Popen(
        [*ray, *head, *limits],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        _wait_for(port)
        command = [sys.executable, "-c", "from sonogauge.cli import main; main()", "build", str(file)]
        # The port opens before the cluster can serve a client.
        for _ in range(5):
            done = subprocess.run(
                [*command, "--out", str(tmp_path / "there"), "--engine", f"ray://127.0.0.1:{port}"],
                env=environment,
                capture_output=True,
                text=True,
                check=False,
                timeout=100,
            )
            if "no Ray cluster" not in done.stderr:
                break
            time.sleep(5)
    finally:
        os.killpg(cluster.pid, signal.SIGKILL)
        cluster.wait()
        shutil.rmtree(scratch, ignore_errors=True)
    assert done.returncode == 0, done.stderr
    assert Folder(tmp_path / "there").manifest.hash == here.hash


def _wait_for(port: int) -> None:
    for _ in range(600):
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise TimeoutError(f"nothing listens on {port}")
