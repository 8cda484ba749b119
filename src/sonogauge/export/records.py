"""Records of questions: one line each with options, answer index, box and provenance, images as files beside them.

Source of the fields: specification of Fetal-Gauge, section 2. Any benchmark of questions about one image has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sonogauge.benchmarks.spec import SPEC_FILE, dump_spec
from sonogauge.export.card import write_card
from sonogauge.export.content import Content
from sonogauge.export.hf import CARD
from sonogauge.export.jsonl import IMAGES, write_images
from sonogauge.folders import FolderWriter, write_bytes
from sonogauge.hashes import canonical_json
from sonogauge.tables import from_facts

RECORDS_FILE: Final = "records.jsonl"
OPTIONAL: Final = ("scanner", "probe", "gestational_age", "country", "region")
UNKNOWN: Final = "unknown"


def write(content: Content, folder: FolderWriter) -> dict[str, int]:
    """Write records.jsonl, images/, benchmark.json and the card; return the rows of each."""
    images = write_images(content, folder.path / IMAGES)
    count = 0
    with (folder.path / RECORDS_FILE).open("w", encoding="utf-8", newline="\n") as stream:
        for item in content.items():
            names = [one["case_id"] for one in item["images"]]
            facts: Mapping[str, Any] = content.cases[names[0]] if names else {}
            files = [f"{IMAGES}/{content.file_name(name)}" for name in names]
            row = {**record(item, facts), "image_files": files, "canary": content.canary}
            stream.write(canonical_json(row) + "\n")
            count += 1
    write_bytes(folder.path / SPEC_FILE, dump_spec(content.spec).encode("utf-8"))
    write_bytes(folder.path / CARD, write_card(content, []).encode("utf-8"))
    return {RECORDS_FILE: count, IMAGES: images}


def record(item: Mapping[str, Any], case: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record of an item.

    item: row of the items table. case: licence, redistributable and provenance of its image. `answer_index` is None
    for an open answer, whose reference stands in `answer`; a fact that nobody gave is None, an optional one "unknown".
    """
    meta = from_facts(item["meta"])
    reference = {name: value for name, value in (item["reference"] or {}).items() if value is not None}
    choices = reference.get("choices")
    options = list(item["answer"]["options"] or ())
    provenance = meta.get("provenance") or case.get("provenance") or UNKNOWN
    box = [float(side) for side in meta["box_xywh"].split(",")] if "box_xywh" in meta else _box(reference)
    return {
        "question_id": item["item_id"],
        "image_id": item["images"][0]["case_id"] if item["images"] else None,
        "patient_id": meta.get("patient_id"),
        "group": item["group"],
        "source": item["source"],
        "split": item["split"],
        "task": item["task"],
        "question": item["question"],
        "options": options,
        "answer_index": options.index(choices[0]) if choices else None,
        "answer_label": choices[0] if choices else None,
        "answer": None if choices else reference,
        "raw_label": meta.get("raw_label"),
        "is_phantom": None if provenance == UNKNOWN else provenance == "phantom",
        "provenance": provenance,
        "box_xywh": box,
        "box_area_ratio": float(meta["box_area_ratio"]) if "box_area_ratio" in meta else None,
        "image_width": int(meta.get("image_width") or meta.get("width") or 0) or None,
        "image_height": int(meta.get("image_height") or meta.get("height") or 0) or None,
        "distractor_pool": meta.get("distractor_pool"),
        "random_state": int(meta["random_state"]) if "random_state" in meta else None,
        "label_level": meta.get("label_level"),
        "licence": case.get("licence"),
        "redistributable": bool(case.get("redistributable")),
        **{name: meta.get(name) or UNKNOWN for name in OPTIONAL},
    }


def _box(reference: Mapping[str, Any]) -> list[float] | None:
    boxes = reference.get("boxes") or []
    return [boxes[0][side] for side in ("x", "y", "w", "h")] if len(boxes) == 1 else None
