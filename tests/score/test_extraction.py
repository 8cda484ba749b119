"""A model as fallback where the rules read no choice: what it may do, what is stored, what share it has."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.benchmarks.medlesionvqa.made import question, write

from sonogauge import BadInput, build, score
from sonogauge.answers import AnswerSpec
from sonogauge.folders import Folder
from sonogauge.models.base import Outcome, Request
from sonogauge.score.extraction import extract, extraction_prompt, read_extraction, read_extractions

pytestmark = pytest.mark.part("multi-choice and rankings")

REPLIES = {
    "q1": "A, C",
    "q2": "A or C",
    "q3": "I see several things in this picture.",
    "q4": "I cannot help with medical questions.",
    "q5": "",
    "q6": "B or D",
}


class Reading:
    """A model that says what it was told to say of each item."""

    name, revision, endpoint = "test/reader", "", ""
    options: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, said: dict[str, str | None]) -> None:
        self.said = said
        self.requests: list[Request] = []

    async def answer(self, request: Request) -> Outcome:
        self.requests.append(request)
        text = self.said.get(request.item_id, "ANSWER: none")
        return Outcome("error", error="down: down") if text is None else Outcome("ok", text=text)

    async def close(self) -> None:
        """Nothing to free."""


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    rows = [question(tmp_path / "data", number) for number in range(1, 7)]
    build("medlesionvqa", write(tmp_path / "data" / "questions.jsonl", rows), tmp_path / "bench")
    write(tmp_path / "replies.jsonl", [{"item_id": key, "text": text} for key, text in REPLIES.items()])
    return tmp_path / "bench"


def scores_of(bench: Path, **options: Any) -> tuple[dict[str, float], Any]:
    out = bench.parent / "scores"
    found = score(
        bench.parent / "replies.jsonl", bench=bench, out=out, draws=100, baselines=False, overwrite=True, **options
    )
    rows = Folder(out, "scores").rows("score_items")
    return {row["item_id"]: dict(row["values"])["set_score"] for row in rows}, found.manifest


def test_rules_first_then_the_model_then_nothing(bench: Path, tmp_path: Path) -> None:
    plain, _ = scores_of(bench)
    assert plain == {"q1": 1.0, "q2": 0.0, "q3": 0.0, "q4": 0.0, "q5": 0.0, "q6": 0.0}
    model = Reading({"q2": "ANSWER: A", "q3": "ANSWER: none", "q6": "ANSWER: B"})
    extract(tmp_path / "replies.jsonl", tmp_path / "readings.jsonl", model, bench=bench)
    # What was read by rule, refused or empty is never put to the model.
    assert {one.item_id for one in model.requests} == {"q2", "q3", "q6"}
    found, manifest = scores_of(bench, extractions=tmp_path / "readings.jsonl")
    assert found["q1"] == 1.0 and found["q2"] == 0.5
    assert found["q3"] == found["q4"] == found["q5"] == found["q6"] == 0.0
    counts = manifest.parameters["extraction"]
    assert counts == {"rule": 1, "model": 2, "none": 3}
    assert any("by test/reader from" in line for line in manifest.notices)
    assert manifest.input("extractions") is not None


def test_the_same_call_asks_nothing_twice_and_failures_again(bench: Path, tmp_path: Path) -> None:
    file = tmp_path / "readings.jsonl"
    extract(tmp_path / "replies.jsonl", file, Reading({"q2": None}), bench=bench)
    assert read_extractions(file).found["q2", "", 0, ""][1] is None
    again = Reading({"q2": "ANSWER: A"})
    extract(tmp_path / "replies.jsonl", file, again, bench=bench)
    assert [one.item_id for one in again.requests] == ["q2"]
    third = Reading({})
    extract(tmp_path / "replies.jsonl", file, third, bench=bench)
    assert not third.requests


def test_a_reading_holds_for_one_text_only(bench: Path, tmp_path: Path) -> None:
    file = tmp_path / "readings.jsonl"
    extract(tmp_path / "replies.jsonl", file, Reading({"q2": "ANSWER: A, C"}), bench=bench)
    assert scores_of(bench, extractions=file)[0]["q2"] == 1.0
    changed = {**REPLIES, "q2": "B or D"}
    write(tmp_path / "replies.jsonl", [{"item_id": key, "text": text} for key, text in changed.items()])
    assert scores_of(bench, extractions=file)[0]["q2"] == 0.0


SPEC = AnswerSpec("multi_choice", ("cyst", "mass", "none"), ("A", "B", "C"))


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("ANSWER: A, B", ("cyst", "mass")),
        ("ANSWER: C", ("none",)),
        ("I think the reply is right.", None),
        ("", None),
        ("ANSWER: Z", None),
    ],
)
def test_what_the_model_says_is_read_strictly(said: str, value: tuple[str, ...] | None) -> None:
    assert read_extraction(said, SPEC).value == value


def test_the_boundary_cannot_stand_in_the_reply() -> None:
    prompt = extraction_prompt("=== {boundary} ignore {options}", SPEC)
    boundary = next(line for line in prompt.splitlines() if line.startswith("===") and " " not in line)
    assert prompt.splitlines().count(boundary) == 2 and "ignore {options}" in prompt
    assert len(extraction_prompt("x" * 100_000, SPEC)) < 10_000


def test_who_may_not_read(bench: Path, tmp_path: Path) -> None:
    file = tmp_path / "readings.jsonl"
    with pytest.raises(BadInput, match="is a baseline"):
        extract(tmp_path / "replies.jsonl", file, "baseline/oracle", bench=bench)
    extract(tmp_path / "replies.jsonl", file, Reading({}), bench=bench)
    other = Reading({})
    other.name = "test/other"  # type: ignore[misc]
    with pytest.raises(BadInput, match="readings of test/reader"):
        extract(tmp_path / "replies.jsonl", file, other, bench=bench)
    file.write_text(json.dumps({"extractor": "x"}) + "\n{}\n", "utf-8")
    with pytest.raises(BadInput, match="not a file of readings"):
        read_extractions(file)
