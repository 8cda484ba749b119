"""Simulated images whose answers are drawn, with scores of an agent and of hand-made replies, one of each kind."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sonogauge.benchmarks.synthetic.build import build_synthetic
from sonogauge.benchmarks.ultrag.build import build_ultrag
from sonogauge.folders import Folder
from sonogauge.items import Item
from sonogauge.models.drawing import mask_json
from sonogauge.run import run
from sonogauge.score import score
from sonogauge.score.inputs import read_items
from sonogauge.score.replies import ReplySource

AGENT: Final = "agent/ultrag?planner=rule&segmenter=otsu&box=fan&vocab_source=dataset_card"
HAND: Final = "hand/made"
HOSTILE: Final = "</script><img src=x onerror=alert(1)> & <b>bold</b>"


@dataclass(frozen=True)
class MadeDrawn:
    """The folders; `report` names an item whose hand-made report opens with HOSTILE, `kinds` an item of each kind."""

    bench: Path
    agent: Path
    hand: Path
    run: Path
    report: str
    kinds: dict[str, str]

    @property
    def scores(self) -> list[Path]:
        """Both scores folders."""
        return [self.agent, self.hand]


def _report(item: Item, masks: dict[str, Any]) -> str:
    kinds = json.loads(item.meta["finding_types"])
    sentences = [
        {
            "section": "Findings",
            "text": HOSTILE if at == 0 else str(one["text"]),
            "finding_type": kind,
            "predicted_mask": mask_json([masks[name] for name in one["mask_ids"] or ()]),
        }
        for at, (one, kind) in enumerate(zip(item.reference["sentences"], kinds, strict=True))
    ]
    return json.dumps({"report": sentences})


def _faulty(item: Item, kinds: dict[str, str]) -> str | None:
    """Return a reply with a kind of error that `kinds` still lacks, and note it there."""
    drawn = mask_json(list(item.reference["masks"]))
    corner = {"type": "bbox", "bbox_xywh": [0, 0, 3, 3]}
    replies = {
        "missed": ("mask", json.dumps({"answer": "Nothing.", "predicted_mask": None})),
        "format": ("mask", "I cannot say"),
        "wrong_target": ("mask", json.dumps({"answer": "[SEG]", "predicted_mask": corner})),
        "wrong_right_pixels": ("grounded", json.dumps({"answer": "a submarine", "predicted_mask": drawn})),
    }
    for kind, (form, text) in replies.items():
        if item.answer.form == form and kind not in kinds:
            kinds[kind] = item.item_id
            return text
    return None


def make_drawn(root: Path) -> MadeDrawn:
    """Build the benchmark, run the agent on a few items of each task, and score it and replies made by hand."""
    build_synthetic(root / "cases", patients=6, seed=3)
    bench = root / "bench"
    build_ultrag(root / "cases", bench)
    run(bench, AGENT, root / "run", limit=12)
    _, items = read_items(Folder(bench, "benchmark"), ReplySource("x", [], "", bench))
    rows, report = [], ""
    kinds: dict[str, str] = {}
    for item in items:
        masks = {one["mask_id"]: one for one in item.reference["masks"] or ()}
        if item.answer.form == "grounded_report":
            text = _report(item, masks)
            report = report or (item.item_id if masks else "")
        else:
            answer = (item.reference["texts"] or ["[SEG]"])[0]
            right = json.dumps({"answer": answer, "predicted_mask": mask_json(list(masks.values()))})
            text = (_faulty(item, kinds) if masks else None) or right
        rows.append({"item_id": item.item_id, "text": text})
    (root / "hand.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    score(root / "run", out=root / "scores-agent", draws=200)
    score(root / "hand.jsonl", bench=bench, out=root / "scores-hand", model=HAND, draws=200)
    return MadeDrawn(bench, root / "scores-agent", root / "scores-hand", root / "run", report, kinds)
