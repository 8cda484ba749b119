"""Questions written by a scripted model: kept, filtered for every reason, and replaced by templates."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sonogauge._errors import BadInput
from sonogauge.benchmarks.ultrag.vocabulary import load_category
from sonogauge.benchmarks.ultrag.writer import filter_questions, read_list
from sonogauge.build import build
from sonogauge.cases.geometry import encode_mask
from sonogauge.folders import Folder, Manifest, new_folder
from sonogauge.items import Item
from sonogauge.models import load_model
from sonogauge.models.base import Outcome, Request
from sonogauge.models.question_writer import ModelWriter

pytestmark = pytest.mark.part("ultrag")

MASKS = [
    {"mask_id": "a", "category": "thyroid nodule", "pathology_label": "benign"},
    {"mask_id": "b", "category": "thyroid", "pathology_label": "not_applicable"},
]


def question(text: str, answer: str = "A nodule.", ids: Any = ("a",), **more: Any) -> dict[str, Any]:
    return {"question": text, "answer": answer, "evidence_mask_ids": list(ids) if ids is not None else None, **more}


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        (question("Where is the nodule?"), None),
        (question("Is the nodule benign?", "Yes, benign."), None),
        (question("What lies in the thyroid?", "A nodule.", ["a", "b"]), None),
        ("text", "not an object"),
        (question(" "), "empty"),
        (question("Where is the nodule?", ""), "empty"),
        (question("Where is the nodule?", ids=[]), "no evidence"),
        (question("Where is the nodule?", ids=None), "no evidence"),
        (question("Where is the nodule?", ids=["z"]), "unknown mask"),
        (question("Where is the nodule?", ids=[["a"]]), "unknown mask"),
        (question("What lies in the thyroid?"), "not carried by its masks"),
        (question("Is the nodule malignant?"), "not carried by its masks"),
        (question("What is this?", "Something."), "names no region"),
        (question("Does the nodule need a biopsy?"), "diagnostic claim"),
        (question("Which TI-RADS grade has the nodule?"), "diagnostic claim"),
        (question("How many cm is the nodule?", "2 cm"), "physical measurement"),
        (question("Is the nodule in the left lobe?"), "laterality"),
        (question("Which mask ID has the nodule?"), "metadata"),
        (question("Is the nodule in the test split?"), "metadata"),
    ],
)
def test_the_filter(written: Any, reason: str | None) -> None:
    kept, dropped = filter_questions([written], [dict(one) for one in MASKS], load_category("Thyroid"))
    assert dropped == ({reason: 1} if reason else {}) and len(kept) == (reason is None)
    assert all(one["requires_grounding"] and one["evidence_source"] == "image_and_mask" for one in kept)


def test_repeated_questions_are_dropped_once() -> None:
    twice = [question("Where is the nodule?"), question("where is the NODULE")]
    kept, dropped = filter_questions(twice, [dict(one) for one in MASKS], load_category("Thyroid"))
    assert len(kept) == 1 and dropped == {"repeated": 1}


def test_lists_in_replies() -> None:
    assert read_list('```json\n[{"a": 1}]\n```') == [{"a": 1}]
    assert read_list('{"questions": [1]}') == [1]
    assert read_list("none") is None and read_list("]x[") is None


class Scripted:
    """A model that says what it is told, in turn, and keeps what it was asked."""

    name, revision, endpoint, options = "scripted/a", "r1", "", {}

    def __init__(self, replies: Iterator[Outcome]) -> None:
        self._replies = replies
        self.asked: list[Request] = []

    async def answer(self, request: Request) -> Outcome:
        self.asked.append(request)
        return next(self._replies)

    async def close(self) -> None:
        return None


GOOD = [
    question("Is a nodule visible?", "Yes.", ["m1"], answer_type="yes_no"),
    question("Where is the nodule?", "In the upper-left part.", ["m1"], answer_type="location"),
    question("How many nodules are there?", "1", ["m1"], answer_type="count"),
    question("What is the label of the nodule?", "benign", ["m1"], answer_type="classification"),
    question("How does the nodule look?", "Oval.", ["m1"], answer_type="strange"),
]


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    """Two images of one made-up source that lies in the tables."""
    pixels = np.zeros((60, 90), dtype=bool)
    pixels[5:15, 5:25] = True
    with new_folder(tmp_path / "cases") as folder:
        folder.table("cases").write(
            {
                "case_id": f"tn3k/{number}",
                "image": {"bytes": b"image", "path": f"{number}.png"},
                "media_type": "image/png",
                "width": 90,
                "height": 60,
                "frames": 1,
                "group": f"tn3k:{number}",
                "source": "tn3k",
                "labels": [{"name": "pathology", "value": "benign"}],
                "masks": [encode_mask(pixels, "x", "nodule")],
            }
            for number in range(2)
        )
        folder.finish(Manifest(kind="cases", maker="test"))
    return tmp_path / "cases"


def test_a_model_writes_and_templates_stand_by(cases: Path, tmp_path: Path) -> None:
    model = Scripted(iter([Outcome("ok", json.dumps(GOOD)), Outcome("ok", json.dumps([*GOOD[:3], "x"]))]))
    found = build("ultrag", cases, tmp_path / "bench", writer=ModelWriter(model))
    assert found.parameters["writer"] == "scripted/a@r1"
    records = [json.loads(line) for line in (tmp_path / "bench/records/Thyroid.jsonl").read_text().splitlines()]
    assert [one["annotation_source"] for one in records] == ["api", "fallback"]
    assert records[1]["annotation"]["api_error"] == "3 questions left by the filter (not an object 1)"
    own = records[0]["annotation"]["grounded_vqa"]
    assert [one["answer_type"] for one in own] == ["yes_no", "location", "count", "classification", "open"]
    # The writer saw m1; the record cites the mask by its full id.
    assert own[0]["evidence_mask_ids"] == [records[0]["masks"][0]["mask_id"]]
    asked = model.asked[0]
    assert asked.generation["temperature"] == 0.2 and asked.images[0].data == b"image"
    assert not any(word in asked.prompt for word in ("tn3k", "TN3K", "train", "test_img", ".png", "_ann"))
    items = [Item.from_row(row) for row in Folder(tmp_path / "bench").rows("items")]
    assert {item.meta["annotation_source"] for item in items if item.task == "VQA"} == {"api", "fallback"}


@pytest.mark.parametrize(
    ("outcome", "why"),
    [
        (Outcome("error", error="timeout: 60 s"), "timeout: 60 s"),
        (Outcome("truncated", "[{"), "the reply is truncated"),
        (Outcome("ok", "I cannot."), "reply is no list of 4 to 6 questions"),
        (Outcome("ok", json.dumps(GOOD[:2])), "reply is no list of 4 to 6 questions"),
        (Outcome("ok", json.dumps(GOOD + GOOD)), "reply is no list of 4 to 6 questions"),
    ],
)
def test_failures_of_the_writer(cases: Path, tmp_path: Path, outcome: Outcome, why: str) -> None:
    build("ultrag", cases, tmp_path / "bench", writer=ModelWriter(Scripted(iter([outcome, outcome]))))
    record = json.loads((tmp_path / "bench/records/Thyroid.jsonl").read_text().splitlines()[0])
    assert record["annotation"]["api_error"] == why and len(record["annotation"]["grounded_vqa"]) == 6


@pytest.mark.parametrize(
    ("endpoint", "allowed", "leaves"),
    [
        ("https://far.example.org", False, False),
        ("https://far.example.org", True, True),
        ("http://127.0.0.1:8000", False, True),
        ("", False, True),
    ],
)
def test_private_images_reach_no_writer_elsewhere_unasked(
    cases: Path, tmp_path: Path, endpoint: str, allowed: bool, leaves: bool
) -> None:
    table = Folder(cases).table("cases").to_pylist()
    with new_folder(tmp_path / "private") as folder:
        folder.table("cases").write([{**row, "private": number == 1} for number, row in enumerate(table)])
        folder.finish(Manifest(kind="cases", maker="test"))
    model = Scripted(iter([Outcome("ok", json.dumps(GOOD))] * 2))
    model.endpoint = endpoint
    writer = ModelWriter(model, allow_upload=allowed)
    if leaves:
        build("ultrag", tmp_path / "private", tmp_path / "bench", writer=writer)
    else:
        with pytest.raises(BadInput, match=r"private images would leave for https://far\.example\.org"):
            build("ultrag", tmp_path / "private", tmp_path / "bench", writer=writer)
        assert not (tmp_path / "bench").exists()
    assert len(model.asked) == 2 * leaves


def test_a_baseline_cannot_write() -> None:
    with pytest.raises(BadInput, match="cannot write questions"):
        ModelWriter(load_model("baseline/oracle"))
    with pytest.raises(ValueError, match="boom"):
        asyncio.run(ModelWriter(Scripted(iter([Outcome("error", error="boom")]))).write("p", b"", "image/png", (1, 1)))
