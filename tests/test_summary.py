"""The last lines of a test run, and what a skip does to it; each case runs pytest on a small project."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.shared import ROOT

PROGRAM = """
import pytest
from tests.shared import require_extra, shared_data

def test_real(): assert shared_data("busi").is_dir()
def test_extra(): require_extra("segment", "no_such_module.inside")
def test_other(): pytest.skip("not today")
def test_good(): assert require_extra("core", "json.decoder").JSONDecoder
"""


def outcome(folder: Path, *, workers: str, **environment: str) -> tuple[int, str]:
    """Return exit code and output of pytest on PROGRAM in a folder that has no `../shared`."""
    project = folder / "clone"
    (project / "tests").mkdir(parents=True)
    for name in ("__init__.py", "conftest.py", "shared.py"):
        (project / "tests" / name).write_text((ROOT / "tests" / name).read_text("utf-8"), "utf-8")
    (project / "pyproject.toml").write_text('[tool.pytest.ini_options]\npythonpath = ["."]\n')
    (project / "tests" / "test_it.py").write_text(PROGRAM)
    base = {name: value for name, value in os.environ.items() if name not in ("CI", "SONOGAUGE_SHARED")}
    base = {name: value for name, value in base.items() if not name.startswith("PYTEST")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--import-mode=importlib", "-p", "no:cacheprovider", "-n", workers],
        cwd=project,
        env=base | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("workers", ["0", "2"])
def test_skips_are_counted_by_cause(tmp_path: Path, workers: str) -> None:
    code, text = outcome(tmp_path, workers=workers)
    assert code == 0, text
    assert "passed: 1, failed: 0, error: 0, skipped: 3" in text
    assert "skipped for absent shared data: 1\n" in text
    assert "skipped for a missing extra: 1\n" in text
    assert "skipped for another reason: 1\n" in text


def test_a_missing_extra_fails_the_run_in_ci(tmp_path: Path) -> None:
    code, text = outcome(tmp_path, workers="2", CI="true")
    assert code == 1, text
    assert "skipped for a missing extra: 1 (a failure, because CI is set)" in text


def test_shared_data_that_was_named_but_is_missing_fails(tmp_path: Path) -> None:
    code, text = outcome(tmp_path, workers="0", SONOGAUGE_SHARED=str(tmp_path / "nowhere"))
    assert code == 1, text
    assert "passed: 1, failed: 1, error: 0, skipped: 2" in text
    assert f"SONOGAUGE_SHARED is {tmp_path / 'nowhere'}, but" in text


def test_shared_data_beside_the_clone_is_found(tmp_path: Path) -> None:
    (tmp_path / "shared" / "data" / "busi").mkdir(parents=True)
    code, text = outcome(tmp_path, workers="0")
    assert code == 0, text
    assert "passed: 2, failed: 0, error: 0, skipped: 2" in text
