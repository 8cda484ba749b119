"""Tables of predictions as files, and how a test scores them."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from openpyxl import Workbook

from sonogauge.score.table import TableScores, score_table

DRAWS = 200


ROWS: list[dict[str, Any]] = [
    {"case": f"c{number}", "patient": f"p{number // 2}", "label": label, "reply": reply, "sex": "fm"[number % 2]}
    for number, (label, reply) in enumerate(
        [
            ("benign", "benign"),
            ("benign", "The answer is benign."),
            ("benign", "malignant"),
            ("malignant", "Malignant"),
            ("malignant", "I cannot determine this from the image."),
            ("malignant", "malignant"),
            ("malignant", ""),
            ("benign", "benign"),
        ]
        * 6
    )
]


def write(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    names = list(rows[0])
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(list(rows)), path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    elif path.suffix == ".json":
        path.write_text(json.dumps(list(rows)), "utf-8")
    elif path.suffix == ".xlsx":
        book = Workbook()
        sheet = book.active
        assert sheet is not None
        sheet.append(names)
        for row in rows:
            sheet.append([row[name] for name in names])
        book.save(path)
    else:
        with path.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, names, delimiter="\t" if path.suffix == ".tsv" else ",")
            writer.writeheader()
            writer.writerows(rows)
    return path


def score(path: Path, **options: Any) -> TableScores:
    options = {"truth": "label", "prediction": "reply", "answer": "choice", "draws": DRAWS} | options
    return score_table(path, **options)


def value(scores: TableScores, name: str) -> float:
    found = scores.values[name].estimate.value
    assert found is not None, scores.values[name].estimate.why_null
    return found


def never_bare(found: Any) -> None:
    if isinstance(found, dict):
        if "value" in found and found["value"] is None:
            assert found["why_null"]
        for one in found.values():
            never_bare(one)
    elif isinstance(found, float):
        assert math.isfinite(found)
