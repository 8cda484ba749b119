"""COCO: the images with their boxes and masks, one annotation file for each part."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from sonogauge.export.card import write_card
from sonogauge.export.content import Content
from sonogauge.export.hf import CARD, open_cases
from sonogauge.export.jsonl import IMAGES, write_images
from sonogauge.folders import FolderWriter, write_bytes
from sonogauge.hashes import canonical_json

_COLUMNS = ["case_id", "width", "height", "masks", "boxes", "group", "source", "licence"]


def write(content: Content, folder: FolderWriter) -> dict[str, int]:
    """Write images/, annotations/instances_PART.json and the card; return annotations per file and the images.

    A mask gives one annotation with its run-length code, its area and its box; a box without a mask of the same
    category and place gives one without pixels. Ids count from 1 in the order of the cases and categories.
    """
    parts: dict[str, set[str]] = defaultdict(set)
    for item in content.items():
        for image in item["images"]:
            parts[image["case_id"]].add(item["split"] or "test")
    rows = [row for batch in open_cases(content, _COLUMNS) for row in batch.to_pylist()]
    names = sorted({one["category"] or "" for row in rows for one in (*(row["masks"] or ()), *(row["boxes"] or ()))})
    categories = {name: number for number, name in enumerate(names, start=1)}
    licences = {name: number for number, name in enumerate(sorted({row["licence"] or "" for row in rows}), start=1)}
    files = {IMAGES: write_images(content, folder.path / IMAGES)}
    for part in sorted({part for found in parts.values() for part in found}):
        images: list[dict[str, Any]] = []
        annotations: list[dict[str, Any]] = []
        for number, row in enumerate(rows, start=1):
            if part not in parts[row["case_id"]]:
                continue
            images.append(
                {
                    "id": number,
                    "file_name": content.file_name(row["case_id"]),
                    "width": row["width"],
                    "height": row["height"],
                    "license": licences[row["licence"] or ""],
                    "case_id": row["case_id"],
                    "group": row["group"],
                    "source": row["source"],
                }
            )
            for one in _annotations(row):
                category = categories[one.pop("category")]
                annotations.append({"id": len(annotations) + 1, "image_id": number, "category_id": category, **one})
        document = {
            "info": {"description": content.spec.title, "version": content.spec.version, "canary": content.canary},
            "licenses": [{"id": number, "name": name, "url": ""} for name, number in licences.items()],
            "categories": [{"id": number, "name": name, "supercategory": ""} for name, number in categories.items()],
            "images": images,
            "annotations": annotations,
        }
        name = f"annotations/instances_{part}.json"
        write_bytes(folder.path / name, canonical_json(document).encode("utf-8") + b"\n")
        files[name] = len(annotations)
    write_bytes(folder.path / CARD, write_card(content, []).encode("utf-8"))
    return files


def _annotations(row: dict[str, Any]) -> list[dict[str, Any]]:
    from pycocotools import mask as coco

    found = []
    covered = set()
    for mask in row["masks"] or ():
        code = {"size": list(mask["size"]), "counts": mask["counts"].encode("ascii")}
        box = [float(value) for value in coco.toBbox(code)]
        covered.add((mask["category"], *box))
        found.append(
            {
                "category": mask["category"] or "",
                "segmentation": {"size": list(mask["size"]), "counts": mask["counts"]},
                "area": float(coco.area(code)),
                "bbox": box,
                "iscrowd": 0,
            }
        )
    for box in row["boxes"] or ():
        sides = [float(box[side]) for side in ("x", "y", "w", "h")]
        if (box["category"], *sides) not in covered:
            found.append(
                {
                    "category": box["category"] or "",
                    "segmentation": [],
                    "area": sides[2] * sides[3],
                    "bbox": sides,
                    "iscrowd": 0,
                }
            )
    return found
