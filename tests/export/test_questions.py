"""A questions file leaves a benchmark and makes the same benchmark again, with what a review changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sonogauge import BadInput, build
from sonogauge.cli import app
from sonogauge.folders import Folder
from sonogauge.review import clean, export_review, import_review
from tests.benchmarks.medlesionvqa.made import annotation, write
from tests.review.made_reviews import by_hand, write_export
from tests.score.small import u2_item, write_bench

pytestmark = pytest.mark.part("export")


def _export(bench: Path, out: Path) -> Path:
    result = CliRunner().invoke(app, ["export", str(bench), "--format", "questions", "--out", str(out)])
    assert result.exit_code == 0, result.output
    return out / "questions.jsonl"


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("questions")
    rows = [annotation(root / "data", number, redistributable=True, licence="CC0") for number in range(6)]
    write(root / "data" / "annotations.jsonl", rows)
    build("medlesionvqa", root / "data", root / "bench", parameters={"val_share": 0.3})
    return root / "bench"


def test_the_file_makes_the_same_items(bench: Path, tmp_path: Path) -> None:
    file = _export(bench, tmp_path / "out")
    build("medlesionvqa", file, tmp_path / "again")
    items = [list(Folder(folder).rows("items")) for folder in (bench, tmp_path / "again")]
    assert items[0] == items[1] and len(items[0]) > 60
    cases = [
        [(row["case_id"], row["sha256"], row["patient"], row["group"]) for row in Folder(folder).rows("cases")]
        for folder in (bench, tmp_path / "again")
    ]
    assert cases[0] == cases[1]
    # Lesions, lists and raters are those of the annotations.
    one = json.loads(file.read_text("utf-8").splitlines()[0])
    assert [found["rater_id"] for found in one["disease"]["lists"]] == ["a1", "a2"]
    assert one["lesion"][0]["attributes"]["color"] == ["color-red", "color-pink"]


def test_what_a_review_changed_is_in_the_file(bench: Path, tmp_path: Path) -> None:
    items = {row["item_id"]: row for row in Folder(bench).rows("items")}
    wrong = next(name for name, row in items.items() if row["task"] == "judgement")
    unfit = next(name for name, row in items.items() if row["task"] == "short_answer")
    right = items[wrong]["reference"]["choices"][0]
    other = "no" if right == "yes" else "yes"
    export_review(bench, tmp_path / "e", "expert")
    ok = {"label": ["ok"], "image": ["ok"], "unit": ["ok"], "terms": ["ok"]}
    changes = {wrong: {"label": ["fault"], "correction": [other]}, unfit: {"image": ["fault"]}}
    votes = by_hand(tmp_path / "e", [1], lambda item_id, reviewer: ok | changes.get(item_id, {}))
    import_review(write_export(tmp_path / "a.json", votes), tmp_path / "e", tmp_path / "v")
    clean(bench, [tmp_path / "v"], tmp_path / "cleaned")
    lines = _export(tmp_path / "cleaned", tmp_path / "out").read_text("utf-8").splitlines()
    found = {row["question_id"]: row for row in map(json.loads, lines)}
    assert found.keys() == items.keys() - {unfit} and found[wrong]["gold"] == [other]


def test_images_that_may_not_leave_stay(tmp_path: Path) -> None:
    write(tmp_path / "data" / "annotations.jsonl", [annotation(tmp_path / "data", number) for number in range(2)])
    build("medlesionvqa", tmp_path / "data", tmp_path / "bench", parameters={"val_share": 0})
    file = _export(tmp_path / "bench", tmp_path / "out")
    assert file.read_text("utf-8").strip() == "" and not list((tmp_path / "out" / "images").iterdir())


def test_private_and_closed_images_leave_no_trace_of_their_own(tmp_path: Path) -> None:
    states = ({"redistributable": True, "licence": "CC0"}, {}, {"redistributable": True, "private": True})
    rows = [
        annotation(tmp_path / "data", number, **states[number % 3], patient_id=f"person-{number}")
        for number in range(6)
    ]
    write(tmp_path / "data" / "annotations.jsonl", rows)
    build("medlesionvqa", tmp_path / "data", tmp_path / "bench", parameters={"val_share": 0})
    file = _export(tmp_path / "bench", tmp_path / "out")
    content = b"".join(one.read_bytes() for one in sorted((tmp_path / "out").rglob("*")) if one.is_file())
    left = 0
    for case in Folder(tmp_path / "bench").rows("cases"):
        is_open = case["redistributable"] is True and not case["private"]
        left += is_open
        assert (case["image"]["bytes"] in content) == is_open, case["case_id"]
        assert (case["patient"].encode() in content) == is_open, case["case_id"]
        assert not (case["private"] and case["sha256"].encode() in content), case["case_id"]
    assert left == 2 and file.read_text("utf-8").count("\n") > 10


def test_other_benchmarks_have_no_questions_file(tmp_path: Path) -> None:
    other = write_bench(tmp_path / "bench", [u2_item("DD", "23", 1, {"choices": ("benign",)})])
    result = CliRunner().invoke(app, ["export", str(other), "--format", "questions", "--out", str(tmp_path / "out")])
    assert isinstance(result.exception, BadInput) and "use jsonl for others" in str(result.exception)
    assert not (tmp_path / "out").exists()
