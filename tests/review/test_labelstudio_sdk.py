"""Label Studio's own SDK validates what we export and writes what we import."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.review.made_reviews import bench_of, write_export
from tests.score.made_judges import made, text_item
from tests.score.small import u2_item, write_bench
from tests.shared import require_extra

from sonogauge.folders import Folder
from sonogauge.items import ItemImage
from sonogauge.review import export_review, import_review
from sonogauge.review.forms import FORMS
from sonogauge.review.labelstudio import CONFIG, TASKS

pytestmark = [pytest.mark.part("review"), pytest.mark.lookalike]


@pytest.fixture(scope="module")
def sdk() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return require_extra("test", "label_studio_sdk.label_interface")


def _annotated(sdk: Any, export: Path, reviewers: list[int], words: Any) -> list[dict[str, Any]]:
    """Return the export as the SDK's own classes write it: controls make the regions, models make the tasks."""
    from label_studio_sdk.label_interface.objects import AnnotationValue, TaskValue

    interface = sdk.LabelInterface((export / CONFIG).read_text("utf-8"))
    out = []
    for number, task in enumerate(json.loads((export / TASKS).read_text("utf-8")), start=1):
        annotations = []
        for reviewer in reviewers:
            regions = []
            for name, value in words(task["data"]["item_id"], reviewer).items():
                control = interface.get_control(name)
                region = control.label(text=[value]) if control.tag == "TextArea" else control.label(value)
                regions.append(region._dict())
            annotation = AnnotationValue(completed_by=reviewer, result=regions).model_dump()
            assert interface.validate_annotation(annotation)
            annotations.append(annotation)
        out.append({"id": number, **TaskValue(data=task["data"], annotations=annotations, predictions=[]).model_dump()})
    return out


@pytest.mark.parametrize("form", sorted(FORMS))
def test_the_sdk_accepts_config_and_tasks(tmp_path: Path, sdk: Any, form: str) -> None:
    run = None
    if FORMS[form].needs_replies:
        run, bench = made(tmp_path, {"AR/001": "<b>eczema</b> & more"}, [text_item(1, "psoriasis")])
    else:
        bench = bench_of(tmp_path, 3)
    export_review(bench, tmp_path / "e", form, run=run)
    interface = sdk.LabelInterface((tmp_path / "e" / CONFIG).read_text("utf-8"))
    interface.validate()
    for task in json.loads((tmp_path / "e" / TASKS).read_text("utf-8")):
        assert interface.validate_task(task)
    assert {control.name for control in interface.controls} == {one.name for one in FORMS[form].fields}


def test_items_of_several_images_are_accepted(tmp_path: Path, sdk: Any) -> None:
    one, two = (u2_item("DD", "23", number, {"choices": ("benign",)}) for number in (1, 2))
    pair = replace(two, images=(ItemImage("case-0002"), ItemImage("case-0003")))
    export_review(write_bench(tmp_path / "bench", [one, pair]), tmp_path / "e", "answer")
    interface = sdk.LabelInterface((tmp_path / "e" / CONFIG).read_text("utf-8"))
    interface.validate()
    tasks = json.loads((tmp_path / "e" / TASKS).read_text("utf-8"))
    assert [len(task["data"]["images"]) for task in tasks] == [1, 2]
    assert all(interface.validate_task(task) for task in tasks)


def test_what_the_sdk_writes_is_imported(tmp_path: Path, sdk: Any) -> None:
    export_review(bench_of(tmp_path, 3), tmp_path / "e", "expert", views=2)

    def words(item_id: str, reviewer: int) -> dict[str, Any]:
        wrong = item_id.endswith("2") and reviewer == 2
        own: dict[str, Any] = {name: ["ok"] for name in ("image", "unit", "terms")}
        own["label"] = ["fault" if wrong else "ok"]
        return own | ({"comment": "besser: bösartig", "cause": ["wrong label"]} if wrong else {})

    file = write_export(tmp_path / "a.json", _annotated(sdk, tmp_path / "e", [1, 2], words))
    done = import_review(file, tmp_path / "e", tmp_path / "v")
    assert (done.rows, done.reviewers, done.short) == (24, 2, 0)
    faults = [row for row in Folder(tmp_path / "v").rows("votes") if row["vote"] == "fault"]
    assert [(row["item_id"][-1], row["reviewer"], row["cause"], row["comment"]) for row in faults] == [
        ("2", "reviewer-2", "wrong label", "besser: bösartig")
    ]


def test_a_sample_annotation_of_the_sdk_is_imported(tmp_path: Path, sdk: Any) -> None:
    """The SDK fills a form at random by its own schema of our configuration."""
    export_review(bench_of(tmp_path, 2), tmp_path / "e", "engineer")
    interface = sdk.LabelInterface((tmp_path / "e" / CONFIG).read_text("utf-8"))
    annotation = interface.generate_sample_annotation()
    assert annotation is not None
    tasks = json.loads((tmp_path / "e" / TASKS).read_text("utf-8"))
    file = write_export(tmp_path / "a.json", [{"id": 1, **tasks[0], "annotations": [annotation]}])
    import_review(file, tmp_path / "e", tmp_path / "v")
    assert {row["question"] for row in Folder(tmp_path / "v").rows("votes")} == {"files", "metadata"}
