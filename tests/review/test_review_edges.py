"""Reviews at the edge: files that cannot be used, bad options, rules of decision."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.review.made_reviews import bench_of, write_export

from sonogauge._errors import BadInput
from sonogauge.folders import Folder
from sonogauge.review import decide, export_review, import_review

pytestmark = [pytest.mark.part("review"), pytest.mark.lookalike]


def _task(**changes: Any) -> dict[str, Any]:
    result = [{"from_name": "files", "to_name": "question", "type": "choices", "value": {"choices": ["ok"]}}]
    task = {
        "data": {"item_id": "DD/23/0000", "form": "engineer"},
        "annotations": [{"completed_by": 1, "result": result}],
    }
    return task | changes


def _with(value: Any, **annotation: Any) -> dict[str, Any]:
    result = [{"from_name": "files", "to_name": "question", "type": "choices", "value": value}]
    return _task(annotations=[{"completed_by": 1, "result": result} | annotation])


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ("nonsense", "no list of tasks"),
        ([], "no list of tasks"),
        ([1], "row 1: no task of Label Studio"),
        ([{"item_id": "x", "annotator": 1}], "it has no data"),
        ([_task(annotations=None)], "no annotations"),
        ([_task(data={"item_id": "other", "form": "engineer"})], "no item 'other' in this export"),
        ([_task(data={"item_id": ["x"], "form": "engineer"})], "no item"),
        ([_task(data={"item_id": "DD/23/0000", "form": "expert"})], "a task of the form 'expert'"),
        ([_with({"choices": ["splendid"]})], "field 'files': 'splendid' was not offered"),
        ([_with({"choices": ["ok", "fault"]})], "2 answers to one question"),
        ([_with({"choices": [3]})], "no choices in its value"),
        ([_with(None)], "no choices in its value"),
        ([_with({"choices": ["ok"]}, completed_by=None)], "without reviewer"),
        ([_with({"choices": ["ok"]}, completed_by=True)], "without reviewer"),
        ([_with({"choices": ["ok"]}, result={})], "an annotation without result"),
        ([_task(), _task()], "row 2: two forms of reviewer-1"),
        ([_task(annotations=[])], "no answer in it"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, tasks: Any, message: str) -> None:
    export_review(bench_of(tmp_path, 2), tmp_path / "e", "engineer")
    file = write_export(tmp_path / "bad.json", tasks)
    with pytest.raises(BadInput, match=message):
        import_review(file, tmp_path / "e", tmp_path / "v")
    assert not (tmp_path / "v").exists()


def test_reviewers_may_be_objects_and_foreign_fields_are_passed_over(tmp_path: Path) -> None:
    export_review(bench_of(tmp_path, 1), tmp_path / "e", "engineer")
    task = _with({"choices": ["ok"]}, completed_by={"id": 7, "email": "a@example.org"})
    task["annotations"][0]["result"].append({"type": "relation", "from_id": "a"})
    task["annotations"][0]["result"].append({"from_name": "elsewhere", "value": 3})
    import_review(write_export(tmp_path / "a.json", [task]), tmp_path / "e", tmp_path / "v")
    assert [row["reviewer"] for row in Folder(tmp_path / "v").rows("votes")] == ["reviewer-7"]


def test_bad_options(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, 2)
    for options, message in (
        ({"form": "nurse"}, "no form 'nurse'"),
        ({"form": "expert", "format": "doccano"}, "no format 'doccano'"),
        ({"form": "expert", "views": 0}, "0 views"),
        ({"form": "expert", "tasks": ["XX"]}, "no item to show"),
    ):
        with pytest.raises(BadInput, match=message):
            export_review(bench, tmp_path / "e", **options)
    with pytest.raises(BadInput, match="no rule"):
        decide([], rule="dice")  # type: ignore[arg-type]


def test_decisions_by_majority_unanimity_and_views() -> None:
    def rows(*votes: str) -> list[dict[str, Any]]:
        return [
            {"item_id": "i", "reviewer": f"r{n}", "role": "expert", "question": "label", "vote": vote}
            for n, vote in enumerate(votes)
        ]

    def how(*votes: str, **options: Any) -> tuple[str | None, str]:
        (one,) = decide(rows(*votes), **options)
        return one.vote, one.how

    assert how("ok", "ok", "fault") == ("ok", "majority")
    assert how("ok", "ok", "fault", rule="unanimous") == (None, "open")
    assert how("ok", "fault") == (None, "open")
    assert how("ok", "ok", views=3) == (None, "short")
    assert how("ok") == ("ok", "unanimous")
    with pytest.raises(BadInput, match="voted twice"):
        decide([*rows("ok"), *rows("fault")])
