"""Annotations as Label Studio writes them, made with its SDK where it is installed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.score.small import u2_item, write_bench

from sonogauge.review import labelstudio

Answers = Mapping[str, Sequence[str] | str]


def bench_of(tmp_path: Path, items: int = 12) -> Path:
    made = [u2_item("DD", "23", number, {"choices": ("benign",)}) for number in range(items)]
    return write_bench(tmp_path / "bench", made)


def by_hand(
    export: Path, reviewers: Sequence[int], answer: Callable[[str, int], Answers | None]
) -> list[dict[str, Any]]:
    """Return an export written by hand: `answer(item_id, reviewer)` gives words by field, None = cancelled."""
    tasks = json.loads((export / labelstudio.TASKS).read_text("utf-8"))
    out = []
    for number, task in enumerate(tasks, start=1):
        annotations = []
        for reviewer in reviewers:
            words = answer(task["data"]["item_id"], reviewer)
            result = [
                {
                    "id": f"r{number}{reviewer}{name}",
                    "from_name": name,
                    "to_name": "shown_question",
                    "type": "textarea" if isinstance(value, str) else "choices",
                    "value": {"text": [value]} if isinstance(value, str) else {"choices": list(value)},
                }
                for name, value in (words or {}).items()
            ]
            annotations.append(
                {
                    "id": number * 100 + reviewer,
                    "completed_by": reviewer,
                    "was_cancelled": words is None,
                    "result": result,
                    "lead_time": 3.2,
                    "created_at": "2026-01-01T00:00:00Z",
                }
            )
        out.append({"id": number, "data": task["data"], "annotations": annotations, "drafts": [], "predictions": []})
    return out


def write_export(path: Path, tasks: Any) -> Path:
    path.write_text(json.dumps(tasks, ensure_ascii=False), "utf-8")
    return path
