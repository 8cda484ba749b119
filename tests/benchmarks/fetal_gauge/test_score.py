"""A build run and scored end to end: boxes, points, measures, totals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.benchmarks.fetal_gauge.made import case, hospital, rows_of, write_cases

import sonogauge
from sonogauge.build.fetal_gauge.build import build_fetal_gauge

pytestmark = [pytest.mark.part("fetal-gauge build"), pytest.mark.lookalike]


def _replies(path: Path, texts: dict[str, str]) -> Path:
    path.write_text("".join(json.dumps({"item_id": key, "text": text}) + "\n" for key, text in texts.items()), "utf-8")
    return path


def _values(scores: Any) -> dict[tuple[str, str], dict[str, Any]]:
    return {
        (row["task"], row["metric"]): row
        for row in scores.metrics
        if row["origin"] == "computed" and not row["dataset"] and not row["slice"] and row["scenario_set"] == "all"
    }


@pytest.mark.parametrize("form", ["box", "point"])
def test_boxes_and_points_of_vl(form: str, tmp_path: Path) -> None:
    rows = [
        case("s", f"{number}", boxes=[("head", 8 + number, 6, 32, 24)], patient=f"p{number}") for number in range(4)
    ]
    write_cases(tmp_path / "cases", rows)
    build_fetal_gauge(tmp_path / "cases", tmp_path / "b", parameters={"tasks": ["VL"], "vl_answer": form})
    texts = {}
    for number, row in enumerate(rows_of(tmp_path / "b")):
        box = row["reference"]["boxes"][0]
        left, top = box["x"] / 64 * 1000, box["y"] / 48 * 1000
        right, bottom = (box["x"] + box["w"]) / 64 * 1000, (box["y"] + box["h"]) / 48 * 1000
        if number == 3:
            texts[row["item_id"]] = "not visible"
        elif form == "box":
            texts[row["item_id"]] = json.dumps([left, top, right, bottom])
        else:
            texts[row["item_id"]] = json.dumps([(left + right) / 2, (top + bottom) / 2])
    values = _values(sonogauge.score(_replies(tmp_path / "r.jsonl", texts), bench=tmp_path / "b", draws=200))
    assert values["VL", "pointing"]["value"] == 0.75 and values["VL", "pointing"]["n"] == 4
    if form == "box":
        assert values["VL", "box_iou"]["value"] == pytest.approx(0.75, abs=1e-6)
        assert values["VL", "box_iou_50"]["value"] == 0.75
    else:
        assert ("VL", "box_iou") not in values


def test_totals_are_micro_and_macro_and_leave_out_the_own_tasks(tmp_path: Path) -> None:
    rows = hospital("clinic", 10, 3)
    for row in rows:
        row["measurements"] = [{"name": "head circumference", "value": 180.0, "unit": "mm"}]
        row["spacing"] = {"x": 0.3, "y": 0.3}
    write_cases(tmp_path / "cases", rows)
    build_fetal_gauge(tmp_path / "cases", tmp_path / "b")
    texts, right = {}, {"PI": [0, 0], "VG": [0, 0]}
    for number, row in enumerate(rows_of(tmp_path / "b")):
        if row["answer"]["form"] != "choice":
            texts[row["item_id"]] = "180" if row["task"] == "MS" else "[0, 0, 10, 10]"
            continue
        good = number % (3 if row["task"] == "PI" else 5) == 0
        place = row["answer"]["options"].index(row["reference"]["choices"][0])
        texts[row["item_id"]] = row["answer"]["letters"][place if good else place - 1]
        right[row["task"]][0] += good
        right[row["task"]][1] += 1
    values = _values(sonogauge.score(_replies(tmp_path / "r.jsonl", texts), bench=tmp_path / "b", draws=200))
    shares = {task: hits / n for task, (hits, n) in right.items()}
    assert values["", "overall_micro"]["value"] == pytest.approx(
        sum(hits for hits, _ in right.values()) / sum(n for _, n in right.values())
    )
    assert values["", "overall_macro"]["value"] == pytest.approx(sum(shares.values()) / 2)
    assert values["", "overall_micro"]["n"] == sum(n for _, n in right.values())
    assert values["MS", "rmse_scaled"]["value"] == 0.0
