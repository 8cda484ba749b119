"""The steps of an agent, as a page shows them: plan, phrases, candidates, scores, facts, faults, retries."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from sonogauge._errors import BadInput
from sonogauge.folders import Folder
from sonogauge.report.page.overlays import MOST_PIXELS, outline
from sonogauge.report.page.pack import short

# Characters of all traces together, as they stand in the page.
TRACE_BUDGET: Final = 1_500_000
MOST_TEXT: Final = 600
MOST_ROWS: Final = 20


def read_traces(path: Path, wanted: set[str]) -> dict[str, str]:
    """Return the traces of the unvaried replies of a run folder, by item; replies from a file have none."""
    if not path.is_dir():
        return {}
    rows = Folder(path, "run").rows("replies", ["item_id", "variant", "epoch", "rater_id", "trace"])
    return {
        row["item_id"]: row["trace"]
        for row in rows
        if row["item_id"] in wanted and row["trace"] and not (row["variant"] or row["epoch"] or row["rater_id"])
    }


class Traces:
    """Makes traces short and keeps all of them within one budget."""

    def __init__(self, budget: int = TRACE_BUDGET) -> None:
        self._left = budget

    def __call__(self, text: str, width: int, height: int) -> dict[str, Any] | None:
        """Return the steps of one trace, None if it tells no plan; past the budget only that it was left out."""
        steps = steps_of(text, width, height)
        if steps is None:
            return None
        length = len(json.dumps(steps, ensure_ascii=False))
        if length > self._left:
            return {"cut": True}
        self._left -= length
        return steps


def steps_of(text: str, width: int, height: int) -> dict[str, Any] | None:
    """Return the steps in a trace; whatever has another type than it should is left out.

    >>> steps_of('{"reasoning": "long"}', 4, 4), steps_of("[1", 4, 4)
    (None, None)
    """
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(raw, dict) or not {"plan", "targets"} <= set(raw):
        return None
    segmenter = raw.get("segmenter")
    plan = raw["plan"]
    return {
        "planner": _text(raw.get("planner")),
        "segmenter": _text(segmenter.get("name") if isinstance(segmenter, dict) else segmenter),
        "plan": _plan(plan) if isinstance(plan, dict) else None,
        "targets": [_target(one, width, height) for one in _dicts(raw["targets"])],
        "replies": [{name: _text(one.get(name)) for name in ("step", "status", "text")} for one in _said(raw)],
        "faults": [{name: _text(one.get(name)) for name in ("step", "what")} for one in _dicts(raw.get("faults"))],
        "retries": _number(raw.get("retries")) or 0,
        "fallback": raw.get("fallback") is True,
    }


def _said(raw: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{**one, "text": one.get("text") or one.get("error")} for one in _dicts(raw.get("replies"))]


def _plan(plan: Mapping[str, Any]) -> dict[str, Any]:
    outline_ = plan.get("report_outline")
    return {
        "by": _text(plan.get("by")),
        "task": _text(plan.get("task_type")),
        "draft": _text(plan.get("draft_answer")),
        "outline": [_text(one) for one in outline_[:MOST_ROWS]] if isinstance(outline_, list) else [],
        "targets": [
            {name: _text(one.get(name)) for name in ("category", "phrase", "reason")}
            for one in _dicts(plan.get("targets"))
        ],
    }


def _target(target: Mapping[str, Any], width: int, height: int) -> dict[str, Any]:
    facts = target.get("facts")
    return {
        "category": _text(target.get("category")),
        "phrase": _text(target.get("phrase")),
        "prompt": _text(target.get("prompt")),
        "cause": _text(target.get("cause")),
        "candidates": [
            {
                "score": _number(one.get("score")),
                "area": _number(one.get("area_px")),
                "kept": one.get("kept") is True,
                "d": _path(one.get("mask"), width, height),
            }
            for one in _dicts(target.get("candidates"))
        ],
        "facts": [
            [_text(name), _text(value)]
            for name, value in (list(facts.items())[:MOST_ROWS] if isinstance(facts, dict) else ())
            if name != "category"
        ],
    }


def _path(mask: Any, width: int, height: int) -> str:
    """Return the outline of a candidate; one that does not fit the image is not drawn."""
    if not isinstance(mask, dict) or mask.get("size") != [height, width] or not isinstance(mask.get("counts"), str):
        return ""
    if width * height > MOST_PIXELS:
        return ""
    try:
        return outline(mask)
    except BadInput:
        return ""


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [one for one in value[:MOST_ROWS] if isinstance(one, dict)] if isinstance(value, list) else []


def _text(value: Any) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    return text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]} …"


def _number(value: Any) -> float | int | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        return short(value)
    except OverflowError:
        return None
