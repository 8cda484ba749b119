"""What a killed command leaves beside its output is cleared by the next; what a running one uses is not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sonogauge._errors import BadInput
from sonogauge.folders import Folder, Manifest, new_folder
from tests.made_rows import full_row

pytestmark = pytest.mark.part("tables")

ROOT = Path(__file__).parent.parent
_PROGRAM = """
import os, signal, sys
from pathlib import Path
from sonogauge import folders
from sonogauge.folders import Manifest, new_folder
from tests.made_rows import full_row
out, when = Path(sys.argv[1]), sys.argv[2]
plain = os.rename
def rename(source, target):
    if when == "between" and Path(target) == out:
        os.kill(os.getpid(), signal.SIGKILL)
    plain(source, target)
os.rename = rename
with new_folder(out, overwrite=True) as folder:
    folder.table("items").write([full_row("items")])
    if when == "running":
        print("here", flush=True)
        sys.stdin.readline()
    if when == "inside":
        os.kill(os.getpid(), signal.SIGKILL)
    folder.finish(Manifest(kind="benchmark", maker="test"))
"""


def _start(out: Path, when: str) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", _PROGRAM, str(out), when]
    return subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _make(out: Path, rows: int = 3, *, overwrite: bool = False) -> None:
    with new_folder(out, overwrite=overwrite) as folder:
        folder.table("items").write(full_row("items", seed) | {"item_id": f"i{seed}"} for seed in range(rows))
        folder.finish(Manifest(kind="benchmark", maker="test"))


def test_what_a_killed_command_left_is_cleared(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with _start(out, "inside") as process:
        assert process.wait(60) == -signal.SIGKILL
    (left,) = os.listdir(tmp_path)
    assert left.startswith(".out.unfinished-")
    _make(tmp_path / "other")
    assert left in os.listdir(tmp_path)  # another output is no business of this one
    _make(out)
    assert sorted(os.listdir(tmp_path)) == ["other", "out"]


def test_what_was_about_to_be_replaced_comes_back(tmp_path: Path) -> None:
    out = tmp_path / "out"
    _make(out, rows=2)
    with _start(out, "between") as process:
        assert process.wait(60) == -signal.SIGKILL
    assert not out.exists()
    with pytest.raises(BadInput, match="exists already; pass --overwrite"):
        _make(out)
    assert os.listdir(tmp_path) == ["out"] and Folder(out).manifest.tables["items"].rows == 2
    _make(out, overwrite=True)
    assert Folder(out).manifest.tables["items"].rows == 3


def test_what_a_running_command_uses_stays(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with _start(out, "running") as process:
        assert process.stdout is not None and process.stdout.readline() == "here\n"
        _make(out)
        (left,) = (name for name in os.listdir(tmp_path) if name != "out")
        assert left.startswith(".out.unfinished-") and (tmp_path / left / "items.parquet").exists()
        process.communicate("\n", timeout=60)
        assert process.returncode == 0
    assert os.listdir(tmp_path) == ["out"] and Folder(out).manifest.tables["items"].rows == 1


@pytest.mark.parametrize(
    "name", [".out.settings", ".out.work", ".outer.unfinished-abcdefgh", ".other.unfinished-abcdefgh"]
)
def test_folders_of_other_names_are_left_alone(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    _make(tmp_path / "out")
    assert sorted(os.listdir(tmp_path)) == [name, "out"]


def test_a_link_of_that_name_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / ".out.unfinished-abcdefgh").symlink_to("precious")
    _make(tmp_path / "out")
    assert (tmp_path / "precious").is_dir()
