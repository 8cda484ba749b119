"""Folders of cases made in a test: speckled pictures with a dark disc, patients, labels, whatever a test asks for."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from sonogauge.cases.geometry import box_of_mask, encode_mask
from sonogauge.folders import Manifest, new_folder
from sonogauge.tables import to_facts

Pixels = NDArray[np.uint8]


def picture(number: int, side: int = 128) -> Pixels:
    """Return a speckled picture that no other number gives, with bright layers and blobs of its own."""
    random = np.random.default_rng([7, number])
    coarse = cv2.resize(random.random((6, 6)).astype(np.float32), (side, side), interpolation=cv2.INTER_CUBIC)
    fine = cv2.GaussianBlur(random.random((side, side)).astype(np.float32), (0, 0), 1.2)
    return np.clip(60 + 90 * coarse + 400 * (fine - 0.5), 0, 255).astype(np.uint8)


def disc(side: int, x: float, y: float, radius: float) -> NDArray[np.bool_]:
    """Return a mask of a disc; x, y, radius in fractions of the side."""
    rows, columns = np.mgrid[0:side, 0:side] / side
    return np.asarray((rows - y) ** 2 + (columns - x) ** 2 <= radius**2)


def png(pixels: Pixels) -> bytes:
    """Return a picture as PNG."""
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "PNG")
    return stream.getvalue()


def case(
    name: str, pixels: Pixels | bytes, masks: Mapping[str, NDArray[np.bool_]] | None = None, **facts: Any
) -> dict[str, Any]:
    """Return a row of the cases table; `labels` and `meta` as dicts, every other column as it is."""
    data = pixels if isinstance(pixels, bytes) else png(pixels)
    height, width = (128, 128) if isinstance(pixels, bytes) else pixels.shape[:2]
    masks = masks or {}
    source = facts.get("source", "made")
    boxes = [box for category, mask in masks.items() if (box := box_of_mask(mask, category)) is not None]
    row: dict[str, Any] = {
        "case_id": f"{source}/{name}",
        "image": {"bytes": data, "path": f"{name}.png"},
        "media_type": "image/png",
        "sha256": hashlib.sha256(data).hexdigest(),
        "pixel_hash": hashlib.sha256(data if isinstance(pixels, bytes) else pixels.tobytes()).hexdigest(),
        "width": width,
        "height": height,
        "frames": 1,
        "spacing": {"x": 0.1, "y": 0.1},
        "patient": f"p-{name}",
        "group": f"{source}:p-{name}",
        "source": source,
        "licence": "CC0",
        "redistributable": True,
        "private": False,
        "provenance": "simulated",
        "reference_standard": "algorithm",
        "anatomy": "breast",
        "masks": [encode_mask(mask, f"{category}-1", category) for category, mask in masks.items()],
        "boxes": boxes,
        "points": [],
        "measurements": [],
        "texts": [],
        "known_issues": [],
    }
    row |= facts
    row["labels"] = [{"name": key, "value": value} for key, value in facts.get("labels", {}).items()]
    row["meta"] = to_facts(facts.get("meta", {}))
    return row


def write_cases(out: Path, rows: Iterable[dict[str, Any]], rows_per_group: int = 8) -> Path:
    """Write a folder of cases."""
    with new_folder(out) as folder:
        table = folder.table("cases", rows_per_group=rows_per_group)
        for row in sorted(rows, key=lambda one: str(one["case_id"])):
            table.write([row])
        folder.finish(Manifest(kind="cases", maker="test", name="made"))
    return out


def breast_cases(count: int, source: str = "made") -> list[dict[str, Any]]:
    """Return cases of as many patients: a third normal, a third benign, a third malignant, a disc where not normal."""
    rows = []
    for number in range(count):
        pixels = picture(number)
        kind = ("normal", "benign", "malignant")[number % 3]
        masks = {}
        if kind != "normal":
            mask = disc(128, 0.25 + 0.5 * (number % 2), 0.3 + 0.05 * (number % 7), 0.1)
            pixels = np.where(mask, pixels // 4, pixels).astype(np.uint8)
            masks = {"lesion": mask}
        rows.append(
            case(
                f"{number:03d}",
                pixels,
                masks,
                source=source,
                labels={"pathology": kind},
                measurements=[{"name": "diameter", "value": 2.0 + number / 10, "unit": "mm"}],
                texts=[{"kind": "report", "text": f"Report {number}.", "language": "en"}],
            )
        )
    return rows
