"""A benchmark folder made in the test: items as given, one grey image a case."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from sonogauge.answers import AnswerSpec
from sonogauge.answers.place import PLACES
from sonogauge.benchmarks.spec import SPEC_FILE, BenchmarkSpec, dump_spec, load_spec
from sonogauge.folders import Manifest, new_folder
from sonogauge.items import Item, ItemImage


def u2_item(task: str, dataset: str, number: int, reference: dict[str, Any] | None, **facts: Any) -> Item:
    """Return an item of a U2-BENCH scenario; patient = number unless `patient` says otherwise."""
    scenario = load_spec("u2bench").scenario(task, dataset)
    assert scenario is not None
    form = load_spec("u2bench").tasks[task].form
    options = PLACES if form == "place" else scenario.options
    if scenario.null_allowed:
        options = ("null",)
    source = f"u2bench/{scenario.source}"
    return Item(
        item_id=f"{task}/{dataset}/{number:04d}",
        task=task,
        dataset=dataset,
        source=source,
        group=f"{source}:{facts.get('patient', number)}",
        split=facts.get("split", "test"),
        images=(ItemImage(f"case-{number:04d}"),),
        question="?",
        prompt_id=f"u2bench/{task.lower()}-{dataset}@1",
        answer=AnswerSpec(form, tuple(options), (), scenario.low, scenario.high, scenario.unit, scenario.tolerance),
        reference=reference or {},
        reference_state=facts.get("state", "ok" if reference else "absent"),
        chance=1 / len(options) if form in ("choice", "place") else None,
        determinable=scenario.determinable,
        meta=facts.get("meta", {}),
    )


def write_bench(out: Path, items: Iterable[Item], spec: BenchmarkSpec | None = None) -> Path:
    """Write a benchmark folder of these items."""
    spec = spec or load_spec("u2bench")
    rows = sorted((item.to_row() for item in items), key=lambda row: row["item_id"])
    cases = sorted({image["case_id"] for row in rows for image in row["images"]})
    with new_folder(out) as folder:
        folder.table("cases").write(
            {
                "case_id": case,
                "image": {"bytes": case.encode(), "path": None},
                "sha256": hashlib.sha256(case.encode()).hexdigest(),
            }
            for case in cases
        )
        folder.table("items").write(rows)
        (folder.path / SPEC_FILE).write_text(dump_spec(spec), "utf-8")
        folder.finish(Manifest(kind="benchmark", maker="tests", name=spec.name, version=spec.version))
    return out


def write_replies(path: Path, texts: dict[str, str | None] | Sequence[dict[str, Any]]) -> Path:
    """Write JSON lines of replies: item id to text (None = a request that failed), or whole rows."""
    if isinstance(texts, dict):
        rows: Sequence[dict[str, Any]] = [
            {"item_id": item_id, "text": text} if text is not None else {"item_id": item_id, "status": "error"}
            for item_id, text in texts.items()
        ]
    else:
        rows = texts
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def value_of(rows: Sequence[dict[str, Any]], metric: str, task: str, dataset: str = "", **facts: str) -> dict[str, Any]:
    """Return the one metric row that matches; slices and variants are empty unless given."""
    wanted = {"metric": metric, "task": task, "dataset": dataset, "slice": "", "variant": "", "protocol": "strict"}
    wanted |= {"origin": "computed"} | facts
    found = [row for row in rows if all(row[name] == value for name, value in wanted.items())]
    assert len(found) == 1, (wanted, len(found))
    return found[0]
