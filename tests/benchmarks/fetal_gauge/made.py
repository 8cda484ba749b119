"""Folders of fetal cases made in the test, one row a case."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from sonogauge.cases.geometry import encode_mask
from sonogauge.folders import Folder, Manifest, new_folder
from sonogauge.tables import to_facts

WIDTH, HEIGHT = 64, 48


def case(source: str, name: str, *, seed: int | None = None, **facts: Any) -> dict[str, Any]:
    """Return a row of the cases table.

    facts: labels (name -> value), boxes ([(category, x, y, w, h)]), masks (category -> boolean array), patient, split,
    provenance, measurements ({name: (value, unit)}), spacing, pixels, frames, meta.
    """
    number = seed if seed is not None else int(hashlib.sha256(f"{source}/{name}".encode()).hexdigest()[:8], 16)
    pixels = facts.get("pixels")
    if pixels is None:
        pixels = np.random.default_rng(number).integers(0, 200, (HEIGHT, WIDTH), dtype=np.uint8)
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "PNG")
    data = stream.getvalue()
    patient = facts.get("patient")
    digest = hashlib.sha256(pixels.tobytes()).hexdigest()
    spacing = facts.get("spacing")
    return {
        "case_id": f"{source}/{name}",
        "image": {"bytes": data, "path": f"{name}.png"},
        "media_type": "image/png",
        "sha256": hashlib.sha256(data).hexdigest(),
        "pixel_hash": digest,
        "width": pixels.shape[1],
        "height": pixels.shape[0],
        "frames": facts.get("frames", 1),
        "spacing": None if spacing is None else {"x": spacing, "y": spacing},
        "patient": patient,
        "group": f"{source}:{patient or facts.get('group') or 'image-' + digest[:12]}",
        "source": source,
        "licence": "test",
        "redistributable": True,
        "private": False,
        "provenance": facts.get("provenance", "clinical"),
        "reference_standard": "reader",
        "anatomy": "fetus",
        "labels": [{"name": key, "value": value} for key, value in facts.get("labels", {}).items()],
        "boxes": [
            dict(zip(("category", "x", "y", "w", "h"), (box[0], *map(float, box[1:])), strict=True))
            for box in facts.get("boxes", ())
        ],
        "masks": [
            encode_mask(mask, f"{category}-1", category) for category, mask in sorted(facts.get("masks", {}).items())
        ],
        "points": [],
        "measurements": [
            {"name": key, "value": value, "unit": unit} for key, (value, unit) in facts.get("measurements", {}).items()
        ],
        "texts": [],
        "demographics": [],
        "known_issues": [],
        "split": facts.get("split"),
        "meta": to_facts(facts.get("meta", {})),
    }


def write_cases(out: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    """Write a folder of cases."""
    with new_folder(out) as folder:
        folder.table("cases", 64).write(sorted(rows, key=lambda row: str(row["case_id"])))
        folder.finish(Manifest(kind="cases", maker="test", name=out.name))
    return out


PLANES = ("Fetal abdomen", "Fetal brain", "Fetal femur", "Fetal thorax", "Maternal cervix")
STRUCTURES = ("head", "abdomen", "arm", "legs")


def hospital(source: str, patients: int, frames: int, **facts: Any) -> list[dict[str, Any]]:
    """Return cases with a plane label and one to four boxes each, several frames a patient."""
    rows = []
    for patient in range(patients):
        for frame in range(frames):
            number = patient * frames + frame
            boxes = [
                (name, 4 + 3 * place, 6, 10 + 6 * ((number + place) % 4), 10 + 8 * ((number + place) % 3))
                for place, name in enumerate(STRUCTURES[: 1 + number % 4])
            ]
            rows.append(
                case(
                    source,
                    f"{patient:03d}_{frame:02d}",
                    patient=f"p{patient:03d}",
                    labels={"plane": PLANES[number % len(PLANES)]},
                    boxes=boxes,
                    **facts,
                )
            )
    return rows


def sweeps(source: str, number: int, frames: int) -> list[dict[str, Any]]:
    """Return phantom cases with a pose, grouped by sweep, without patients."""
    poses = ("huvf", "huvb", "hdvf", "hdvb")
    return [
        case(
            source,
            f"sweep{sweep:02d}_{frame:03d}",
            group=f"sweep {sweep}",
            labels={"orientation": poses[sweep % 4], "plane": ("AC_PLANE", "BPD_PLANE")[frame % 2]},
            boxes=[(STRUCTURES[frame % 4], 5, 5, 12 + frame % 20, 12 + sweep % 9)],
            provenance="phantom",
        )
        for sweep in range(number)
        for frame in range(frames)
    ]


def rows_of(bench: Path, table: str = "items", columns: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """Return the rows of a benchmark's table."""
    return list(Folder(bench, "benchmark").rows(table, list(columns) if columns else None))


def facts_of(row: Mapping[str, Any]) -> dict[str, str]:
    """Return the `meta` of a row."""
    return {one["name"]: one["value"] for one in row["meta"]}
