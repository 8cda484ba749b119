"""Answers that draw: kinds of error, sentences with their masks, IoU of a report, steps of an agent."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pycocotools import mask as coco
from tests.report.page.made_drawn import AGENT, HAND, HOSTILE, MadeDrawn, make_drawn
from tests.score.small import u2_item, write_bench, write_replies

from sonogauge.report import report
from sonogauge.report.page import Gallery, page_data
from sonogauge.report.page.trace import Traces, steps_of
from sonogauge.score import score

pytestmark = [pytest.mark.part("page"), pytest.mark.lookalike]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> MadeDrawn:
    return make_drawn(tmp_path_factory.mktemp("drawn"))


@pytest.fixture(scope="module")
def data(drawn: MadeDrawn) -> dict[str, Any]:
    return page_data(drawn.scores, gallery=Gallery(cases=10_000))


def _line(data: dict[str, Any], model: str) -> str:
    return next(str(number) for number, one in enumerate(data["lines"]) if model in json.dumps(one))


def _answers(data: dict[str, Any], model: str) -> dict[str, Any]:
    line = _line(data, model)
    return {one["id"]: one["answers"][line] for one in data["gallery"]["cases"] if line in one["answers"]}


def test_each_kind_of_error_is_told_and_counted(drawn: MadeDrawn, data: dict[str, Any]) -> None:
    answers = _answers(data, HAND)
    assert set(drawn.kinds) == {"missed", "format", "wrong_target", "wrong_right_pixels"}
    for kind, item_id in drawn.kinds.items():
        assert answers[item_id]["kinds"] == [kind]
    for folder, model in ((drawn.agent, AGENT), (drawn.hand, HAND)):
        rows = [row for row in pq.read_table(folder / "score_items.parquet").to_pylist() if row["protocol"] == "strict"]
        stored = Counter(name.removeprefix("error_") for row in rows for name, _ in row["values"] if "error_" in name)
        line = _line(data, model)
        assert {one["kind"]: one["n"][line] for one in data["gallery"]["kinds"] if line in one["n"]} == stored
        assert sum(stored.values()) > 2


def test_a_small_gallery_holds_every_kind(drawn: MadeDrawn, data: dict[str, Any]) -> None:
    small = page_data(drawn.scores, gallery=Gallery(cases=16))["gallery"]["cases"]
    held = {kind for one in small for answer in one["answers"].values() for kind in answer.get("kinds", ())}
    assert held == {one["kind"] for one in data["gallery"]["kinds"] if one["n"]}


def test_sentences_name_shapes_that_are_there(drawn: MadeDrawn, data: dict[str, Any]) -> None:
    case = next(one for one in data["gallery"]["cases"] if one["id"] == drawn.report)
    for value in (case, *case["answers"].values()):
        shapes = {one["id"]: one["d"] for one in value["shapes"]}
        cited = [name for one in value["sentences"] for name in one["masks"]]
        assert cited and all(shapes[name].startswith("M") for name in cited)
    (first, *_) = case["answers"][_line(data, HAND)]["sentences"]
    assert first["text"] == HOSTILE


def test_iou_of_a_report_as_pycocotools_counts_it(drawn: MadeDrawn, data: dict[str, Any]) -> None:
    items = {row["item_id"]: row for row in pq.read_table(drawn.bench / "items.parquet").to_pylist()}
    rows = pq.read_table(drawn.agent / "score_items.parquet").to_pylist()
    answers = _answers(data, AGENT)
    checked = 0
    for row in rows:
        predicted, reference = (
            (one or {}).get("masks") for one in (row["prediction"], items[row["item_id"]]["reference"])
        )
        if row["protocol"] != "strict" or row["task"] != "RPT" or not predicted or not reference:
            continue
        both = [
            coco.merge([{"size": one["size"], "counts": one["counts"].encode()} for one in masks])
            for masks in (predicted, reference)
        ]
        wanted = float(coco.iou([both[0]], [both[1]], [0])[0][0])
        assert answers[row["item_id"]]["iou"] == pytest.approx(wanted, rel=1e-4)
        checked += wanted > 0
    assert checked
    assert _answers(data, HAND)[drawn.report]["iou"] == 1


def test_the_steps_of_an_agent_are_those_of_its_trace(drawn: MadeDrawn, data: dict[str, Any]) -> None:
    traces = {
        row["item_id"]: json.loads(row["trace"]) for row in pq.read_table(drawn.run / "replies.parquet").to_pylist()
    }
    answers = _answers(data, AGENT)
    assert set(answers) == set(traces)
    scored = 0
    for item_id, raw in traces.items():
        steps = answers[item_id]["trace"]
        assert (steps["planner"], steps["segmenter"]) == ("rule", "otsu")
        assert [one["phrase"] for one in steps["plan"]["targets"]] == [one["phrase"] for one in raw["plan"]["targets"]]
        for shown, told in zip(steps["targets"], raw["targets"], strict=True):
            assert [one["area"] for one in shown["candidates"]] == [one["area_px"] for one in told["candidates"]]
            assert all(one["d"].startswith("M") for one in shown["candidates"] if one["area"])
            scored += len(shown["candidates"])
    assert scored
    assert not any("trace" in one for one in _answers(data, HAND).values())


def test_steps_past_the_budget_are_left_out_and_say_so() -> None:
    text = json.dumps({"plan": None, "targets": [], "faults": [{"step": "plan", "what": "none"}], "retries": 2})
    traces = Traces(250)
    first, second = traces(text, 4, 4), traces(text, 4, 4)
    assert first is not None and (first["retries"], first["faults"]) == (2, [{"step": "plan", "what": "none"}])
    assert second == {"cut": True}


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just(10**400),
    lambda kids: (
        st.lists(kids, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["targets", "candidates", "mask", "size", "counts", "score", "facts", "phrase", "report_outline"]
            ),
            kids,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(plan=_JSON, targets=st.lists(_JSON, max_size=3) | _JSON, more=_JSON)
def test_no_trace_breaks_a_page(plan: Any, targets: Any, more: Any) -> None:
    raw = {"plan": plan, "targets": targets, "faults": more, "replies": more, "segmenter": more, "retries": more}
    steps = steps_of(json.dumps(raw), 4, 4)
    assert steps is not None
    json.dumps(steps, allow_nan=False)


@pytest.mark.parametrize(
    "mask",
    [
        {"size": [4, 4], "counts": "99"},
        {"size": [4, 4], "counts": "\u00e9"},
        {"size": [10**9, 10**9], "counts": "0"},
        {"size": [4, 4], "counts": {"a": 1}},
        "52203",
    ],
)
def test_a_broken_candidate_is_listed_without_outline(mask: Any) -> None:
    text = json.dumps({"plan": None, "targets": [{"candidates": [{"score": 0.5, "mask": mask}]}]})
    steps = steps_of(text, 4, 4)
    assert steps is not None
    assert steps["targets"][0]["candidates"] == [{"score": 0.5, "area": None, "kept": False, "d": ""}]


def test_hostile_words_stay_data(drawn: MadeDrawn, tmp_path: Path) -> None:
    text = report(drawn.scores, tmp_path / "page.html", gallery=10_000)
    assert "<img src=x" not in text and "\\u003cimg src=x" in text
    assert text == report(drawn.scores, tmp_path / "again.html", gallery=10_000)


def test_facts_of_a_report_stand_beside_those_of_the_reference(tmp_path: Path) -> None:
    reference = "A hypoechoic mass of 12 mm is seen in the left breast. No calcification."
    reply = "A hypoechoic mass of 12 mm is seen in the right breast. Calcification. A cyst."
    items = [u2_item("RG", "39", 0, {"texts": (reference,)}), u2_item("DD", "21", 1, {"choices": ("benign",)})]
    bench = write_bench(tmp_path / "bench", items)
    replies = write_replies(tmp_path / "r.jsonl", {items[0].item_id: reply, items[1].item_id: "benign"})
    score(replies, bench=bench, out=tmp_path / "scores", scenarios="present", draws=200)
    cases = {one["id"]: one for one in page_data([tmp_path / "scores"])["gallery"]["cases"]}
    (answer,) = cases[items[0].item_id]["answers"].values()
    assert sorted((one["fact"], one["verdict"]) for one in answer["facts"]) == [
        ("breast lesion: calcification", "negation error"),
        ("breast lesion: hypoechoic", "correct"),
        ("breast: cyst", "hallucinated"),
        ("breast: mass", "side error"),
    ]
    (other,) = cases[items[1].item_id]["answers"].values()
    assert "facts" not in other
    text = report([tmp_path / "scores"], tmp_path / "page.html")
    assert "negation error" in text and "factTable" in text
