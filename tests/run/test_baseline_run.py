from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.run.tiny import bench, item

from sonogauge._errors import BadInput
from sonogauge.folders import Folder
from sonogauge.models.baselines import BASELINES, baseline_replies
from sonogauge.run import run

pytestmark = pytest.mark.part("run")


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    items = [item(n, form) for n in range(12) for form in ("choice", "place", "number", "text")]
    train = [item(n, "choice", split="train", reference={"choices": ("malignant",)}) for n in range(20, 23)]
    return bench(tmp_path / "bench", [*items, *train])


@pytest.mark.parametrize("name", BASELINES)
def test_replies_are_those_of_the_function(tiny: Path, tmp_path: Path, name: str) -> None:
    result = run(tiny, f"baseline/{name}", tmp_path / "run", seed=3)
    rows = Folder(result.path, "run").table("replies").to_pylist()
    items = sorted(
        (item(n, f) for n in range(12) for f in ("choice", "place", "number", "text")), key=lambda i: i.item_id
    )
    train = [item(n, "choice", split="train", reference={"choices": ("malignant",)}) for n in range(20, 23)]
    assert [row["item_id"] for row in rows] == [one.item_id for one in items]
    assert [row["text"] for row in rows] == baseline_replies(name, items, train, 3)
    assert {row["status"] for row in rows} == {"ok"}
    assert result.exit_code() == 0
    manifest = result.manifest
    assert manifest.parameters["model"] == f"baseline/{name}"
    assert manifest.counts["asked"] == {"split": "test", "tasks": None, "limit": None, "items": 48, "of": 48}


def test_a_run_grows(tiny: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    first = run(tiny, "baseline/random", out, limit=5)
    few = {row["item_id"] for row in Folder(out).rows("replies")}
    assert first.manifest.counts["asked"]["limit"] == 5
    run(tiny, "baseline/random", out, tasks=["DD"])
    second = run(tiny, "baseline/random", out, limit=20)
    rows = list(Folder(out).rows("replies"))
    assert few <= {row["item_id"] for row in rows}
    assert second.planned == 20
    whole = run(tiny, "baseline/random", out)
    fresh = run(tiny, "baseline/random", tmp_path / "fresh")
    assert Folder(out).table("replies").equals(Folder(fresh.path).table("replies"))
    assert whole.manifest.counts == fresh.manifest.counts


def test_partial_tasks_are_told(tiny: Path, tmp_path: Path) -> None:
    asked = run(tiny, "baseline/random", tmp_path / "run", tasks=["DD", "CVE"]).manifest.counts["asked"]
    assert asked == {"split": "test", "tasks": ["CVE", "DD"], "limit": None, "items": 24, "of": 48}


def test_another_identity_is_refused(tiny: Path, tmp_path: Path) -> None:
    run(tiny, "baseline/random", tmp_path / "run")
    before = (tmp_path / "run" / "replies.jsonl").read_bytes()
    with pytest.raises(BadInput, match="another model"):
        run(tiny, "baseline/majority", tmp_path / "run")
    with pytest.raises(BadInput, match="another seed: 0 there, 1 now"):
        run(tiny, "baseline/random", tmp_path / "run", seed=1)
    other = bench(tmp_path / "other", [item(1)])
    with pytest.raises(BadInput, match="another benchmark"):
        run(other, "baseline/random", tmp_path / "run")
    assert (tmp_path / "run" / "replies.jsonl").read_bytes() == before


def test_a_torn_last_line_is_cut_and_asked_again(tiny: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    run(tiny, "baseline/random", out)
    table = Folder(out).table("replies")
    log = out / "replies.jsonl"
    whole = log.read_bytes()
    log.write_bytes(whole[:-7])
    (out / "replies.parquet").unlink()
    run(tiny, "baseline/random", out)
    assert log.read_bytes() == whole
    assert Folder(out).table("replies").equals(table)


def test_a_broken_line_in_the_middle_is_named(tiny: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    run(tiny, "baseline/random", out)
    log = out / "replies.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join([*lines[:3], b"{}\n", *lines[3:]]))
    with pytest.raises(BadInput, match="row 4: broken line"):
        run(tiny, "baseline/random", out)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tasks": ["XX"]}, "no task 'XX'.*tasks: CVE, DD, LL, RG"),
        ({"limit": 0}, "limit 0"),
        ({"split": "val"}, "no item of split 'val'.*splits: test, train"),
    ],
)
def test_bad_choices(tiny: Path, tmp_path: Path, options: dict[str, object], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        run(tiny, "baseline/random", tmp_path / "run", **options)  # type: ignore[arg-type]
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("model", ["baseline/psychic", "nobody/x", "random", "baseline/"])
def test_no_such_model(tiny: Path, tmp_path: Path, model: str) -> None:
    with pytest.raises(BadInput, match=r"no baseline|no model provider|not a model name"):
        run(tiny, model, tmp_path / "run")


def test_a_foreign_folder_is_left_alone(tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("mine")
    with pytest.raises(BadInput, match="no run folder"):
        run(tiny, "baseline/random", tmp_path / "notes")
    with pytest.raises(BadInput, match="folder of benchmark, not of run"):
        run(tiny, "baseline/random", tiny)
    assert sorted(one.name for one in (tmp_path / "notes").iterdir()) == ["a.txt"]


def test_manifest_holds_the_benchmark(tiny: Path, tmp_path: Path) -> None:
    run(tiny, "baseline/oracle", tmp_path / "run")
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["inputs"] == [{"role": "benchmark", "path": str(tiny), "hash": Folder(tiny).manifest.hash}]
    assert manifest["kind"] == "run"
    assert manifest["tables"]["replies"]["rows"] == 48
