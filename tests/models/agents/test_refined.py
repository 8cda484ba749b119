from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sonogauge._errors import BadInput
from sonogauge.cases.geometry import decode_mask
from sonogauge.folders import Folder
from sonogauge.items import Item
from sonogauge.models import load_model
from sonogauge.models.base import Outcome, Request
from sonogauge.run import run
from sonogauge.score import score

pytestmark = [pytest.mark.part("agents"), pytest.mark.lookalike]

Say = Callable[[Item, Any], str]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from sonogauge.benchmarks.synthetic.build import build_synthetic
    from sonogauge.benchmarks.ultrag.build import build_ultrag

    folder = tmp_path_factory.mktemp("refined")
    build_synthetic(folder / "raw", seed=0, patients=4, images_per_patient=2)
    build_ultrag(folder / "raw", folder / "bench")
    return folder / "bench"


class Saying:
    """A model that says what the test computes from the item."""

    name, revision, endpoint, options = "test/saying", "", "", {}

    def __init__(self, bench: Path, say: Say) -> None:
        self.items = {row["item_id"]: Item.from_row(row) for row in Folder(bench).rows("items")}
        self.say = say

    async def answer(self, request: Request) -> Outcome:
        return Outcome("ok", text=self.say(self.items[request.item_id], request))

    async def close(self) -> None:
        pass


def edges(mask: np.ndarray) -> tuple[int, int, int, int]:
    rows, columns = np.nonzero(mask)
    return int(columns.min()), int(rows.min()), int(columns.max()) + 1, int(rows.max()) + 1


def mille_box(item: Item, request: Any) -> str:
    boxes = []
    for row in item.reference["masks"]:
        mask = decode_mask(row)
        height, width = mask.shape
        left, top, right, bottom = edges(mask)
        boxes.append([1000 * top / height, 1000 * left / width, 1000 * bottom / height, 1000 * right / width])
    if not boxes:
        return json.dumps({"answer": "No target.", "predicted_mask": None})
    return json.dumps({"answer": "[SEG]", "predicted_mask": [{"box_2d": box} for box in boxes]})


def values(run_folder: Path, out: Path, **options: Any) -> dict[str, float | None]:
    score(run_folder, out=out, baselines=False, draws=100, **options)
    rows = Folder(out).rows("metrics")
    return {
        row["metric"]: row["value"]
        for row in rows
        if (row["protocol"], row["task"], row["dataset"], row["slice"]) == ("strict", "SEG", "", "")
    }


def test_boxes_of_a_run_become_masks_and_the_run_stays(bench: Path, tmp_path: Path) -> None:
    run(bench, Saying(bench, mille_box), tmp_path / "raw", tasks=["SEG"])
    before = (tmp_path / "raw" / "replies.parquet").read_bytes()
    raw = values(tmp_path / "raw", tmp_path / "raw-scores", coords="mille:yxyx")
    name = f"agent/refined?run={tmp_path / 'raw'}&segmenter=oracle:{bench}&coords=mille:yxyx"
    run(bench, name, tmp_path / "refined", tasks=["SEG"])
    refined = values(tmp_path / "refined", tmp_path / "scores")
    assert raw["iou"] is not None and raw["iou"] < 0.95
    assert refined["iou"] == 1.0 and refined["format_rate"] == 0.0
    assert (tmp_path / "raw" / "replies.parquet").read_bytes() == before
    options = Folder(tmp_path / "refined", "run").manifest.parameters["model_options"]
    assert options["model"] == "test/saying" and options["segmenter"]["name"] == "oracle"


def test_points_and_phrases_are_prompts_too(bench: Path, tmp_path: Path) -> None:
    def say(item: Item, request: Any) -> str:
        masks = item.reference["masks"]
        if not masks:
            return json.dumps({"answer": "No target.", "predicted_mask": None})
        if len({one["category"] for one in masks}) == 1 and len(masks) == 1:
            rows, columns = np.nonzero(decode_mask(masks[0]))
            middle = len(rows) // 2
            point = [int(columns[middle]) + 0.5, int(rows[middle]) + 0.5, 1]
            return json.dumps({"answer": "[SEG]", "predicted_mask": {"type": "points", "points": [point]}})
        phrases = [{"type": "text", "phrase": name} for name in sorted({one["category"] for one in masks})]
        return json.dumps({"answer": "[SEG]", "predicted_mask": phrases})

    run(bench, Saying(bench, say), tmp_path / "raw", tasks=["SEG"])
    assert values(tmp_path / "raw", tmp_path / "raw-scores")["iou"] == 0.0
    run(bench, f"agent/refined?run={tmp_path / 'raw'}&segmenter=oracle:{bench}", tmp_path / "all", tasks=["SEG"])
    assert values(tmp_path / "all", tmp_path / "all-scores")["iou"] == 1.0
    # A segmenter that takes boxes alone leaves both as they are.
    run(bench, f"agent/refined?run={tmp_path / 'raw'}&segmenter=box-fill", tmp_path / "none", tasks=["SEG"])
    texts = [[row["text"] for row in Folder(tmp_path / one).rows("replies")] for one in ("raw", "none")]
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    "mask", [{"polygon": [1, 1, 9, 1, 9, 9]}, {"type": "circle"}, {"bbox": [float("nan"), 1, 2, 3]}, None]
)
def test_what_is_no_prompt_is_passed_on_as_it_is(bench: Path, tmp_path: Path, mask: Any) -> None:
    said = json.dumps({"answer": "[SEG]", "predicted_mask": mask}) + " as asked"
    run(bench, Saying(bench, lambda item, request: said), tmp_path / "raw", limit=3)
    run(bench, f"agent/refined?run={tmp_path / 'raw'}&segmenter=box-fill", tmp_path / "refined", limit=3)
    assert {row["text"] for row in Folder(tmp_path / "refined").rows("replies")} == {said}


def test_sentences_of_a_report_are_redrawn_one_by_one(bench: Path, tmp_path: Path) -> None:
    sentence = {"section": "Findings", "text": "A lesion.", "finding_type": "x"}
    rows = [{**sentence, "predicted_mask": {"box": [10, 10, 60, 50]}}, {**sentence, "predicted_mask": None}]
    run(bench, Saying(bench, lambda *_: json.dumps({"report": rows})), tmp_path / "raw", tasks=["RPT"])
    run(bench, f"agent/refined?run={tmp_path / 'raw'}&segmenter=ellipse", tmp_path / "refined", tasks=["RPT"])
    for row in Folder(tmp_path / "refined").rows("replies"):
        first, second = json.loads(row["text"])["report"]
        area = int(decode_mask(first["predicted_mask"]).sum())
        assert abs(area - np.pi / 4 * 50 * 40) < 40 and second["predicted_mask"] is None
        assert json.loads(row["trace"])["causes"] == {"drawn": 1}


def test_failures_have_a_cause(bench: Path, tmp_path: Path) -> None:
    run(bench, Saying(bench, mille_box), tmp_path / "raw", tasks=["SEG"], limit=2)
    name = f"agent/refined?run={tmp_path / 'raw'}&segmenter=http:http://127.0.0.1:9&coords=mille:yxyx"
    with pytest.raises(BadInput):
        load_model(name.replace("127.0.0.1:9", ""))
    for wrong in ("run=/no/such&segmenter=otsu", "segmenter=otsu", f"run={tmp_path / 'raw'}", "run=x&segmenter=y&z=1"):
        with pytest.raises(BadInput):
            load_model(f"agent/refined?{wrong}")
    with pytest.raises(BadInput, match="coords"):
        load_model(f"agent/refined?run={tmp_path / 'raw'}&segmenter=otsu&coords=guess")
    # Items that the run was never asked are told apart from those it failed on.
    run(bench, f"agent/refined?run={tmp_path / 'raw'}&segmenter=otsu", tmp_path / "more", tasks=["SEG"], limit=4)
    errors = [row["error"] for row in Folder(tmp_path / "more").rows("replies") if row["status"] == "error"]
    assert errors and all(one.startswith("refined_missing") for one in errors)
