"""A small benchmark of our own annotations with scores of baselines and of made physicians."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from tests.benchmarks.medlesionvqa.made import annotation, write

from sonogauge import build, run, score
from sonogauge.folders import Folder
from sonogauge.items import Item
from sonogauge.models.baselines import baseline_replies

PATIENTS = 24


def bench(root: Path, **changes: Any) -> Path:
    """Build a benchmark of 48 images of 24 patients; val takes a quarter."""
    rows = [annotation(root / "data", number, **changes) for number in range(2 * PATIENTS)]
    write(root / "data" / "annotations.jsonl", rows)
    build("medlesionvqa", root / "data", root / "bench", parameters={"val_share": 0.25})
    return root / "bench"


def items_of(folder: Path, split: str) -> list[Item]:
    """Return the items of a split."""
    return [one for one in map(Item.from_row, Folder(folder, "benchmark").rows("items")) if one.split == split]


def scored(folder: Path, out: Path, baseline: str, split: str = "test") -> Path:
    """Run and score a baseline on a split."""
    run(folder, f"baseline/{baseline}", out / "run", split=split)
    score(out / "run", out=out / "scores", draws=200, baselines=False)
    return out / "scores"


def replies(
    items: list[Item], raters: dict[str, tuple[str, float]], seed: int = 0, share: float = 1.0
) -> Iterator[dict[str, Any]]:
    """Yield human replies: each rater is right with a probability and says something else otherwise."""
    right = baseline_replies("oracle", items, [])
    draw = np.random.default_rng(seed)
    for rater, (level, skill) in raters.items():
        for item, text in zip(items, right, strict=True):
            if draw.random() <= share:
                said = text if draw.random() < skill else "none of these"
                yield {"item_id": item.item_id, "rater_id": rater, "level": level, "text": said, "model": "physicians"}


def human_scores(folder: Path, out: Path, rows: list[dict[str, Any]], split: str) -> Path:
    """Score human replies."""
    out.mkdir(parents=True, exist_ok=True)
    (out / "humans.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    score(out / "humans.jsonl", bench=folder, out=out / "scores", split=split, draws=200, baselines=False)
    return out / "scores"
