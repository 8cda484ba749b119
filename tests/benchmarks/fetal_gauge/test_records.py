"""Records of the questions, one JSON object a line, with every field of the schema."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.benchmarks.fetal_gauge.made import hospital, rows_of, sweeps, write_cases

from sonogauge.build.fetal_gauge.build import build_fetal_gauge
from sonogauge.export import export

pytestmark = [pytest.mark.part("fetal-gauge build"), pytest.mark.lookalike]

FIELDS = {
    *("question_id", "image_id", "patient_id", "source", "split", "task", "question", "options", "answer_index"),
    *("answer_label", "raw_label", "is_phantom", "provenance", "box_xywh", "box_area_ratio", "image_width"),
    *("image_height", "distractor_pool", "random_state", "label_level", "licence", "redistributable"),
}


def test_records_hold_every_field_and_leave_out_what_may_not_go(tmp_path: Path) -> None:
    write_cases(tmp_path / "cases" / "clinic", hospital("clinic", 5, 3))
    closed = [{**row, "redistributable": False} for row in sweeps("phantom", 4, 3)]
    write_cases(tmp_path / "cases" / "phantom", closed)
    build_fetal_gauge(tmp_path / "cases", tmp_path / "bench")
    done = export(tmp_path / "bench", "records", tmp_path / "out")
    lines = (tmp_path / "out" / "records.jsonl").read_text("utf-8").splitlines()
    records = {row["question_id"]: row for row in map(json.loads, lines)}
    items = {row["item_id"]: row for row in rows_of(tmp_path / "bench")}
    assert {row["source"] for row in records.values()} == {"clinic"} and done.withheld == sum(
        row["source"] == "phantom" for row in items.values()
    )
    for name, row in records.items():
        assert set(row) >= FIELDS and row["licence"] == "test" and row["redistributable"] is True
        item = items[name]
        assert row["question"] == item["question"] and row["is_phantom"] is False
        assert row["patient_id"].startswith("p") and row["country"] == "unknown"
        if item["answer"]["form"] == "choice":
            assert row["options"][row["answer_index"]] == row["answer_label"] == item["reference"]["choices"][0]
        else:
            assert row["answer_index"] is None and row["answer"]["boxes"]
        if row["task"] in ("VG", "VL"):
            x, y, w, h = row["box_xywh"]
            assert w >= 8 and h >= 8 and x + w <= row["image_width"] and y >= 0
        if row["task"] == "VG":
            assert row["box_area_ratio"] == pytest.approx(w * h / (row["image_width"] * row["image_height"]), abs=1e-6)
        for file in row["image_files"]:
            assert (tmp_path / "out" / file).is_file()
