"""Writes folders in the layout of the U2-BENCH release, with images drawn here and no row of the release."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from PIL import Image

COLUMNS: Final = (
    "dataset_name",
    "img_data",
    "patient_id",
    "prompt",
    "anatomy_location",
    "demographic",
    "classification_task",
    "class_label",
    "options",
    "seg_data",
    "seg_channel_name",
    "gt_bbox",
    "keypoints",
    "measurement",
    "caption",
    "report",
    "notes",
)
FOLDERS: Final = {
    "DD": "disease_diagnosis",
    "VRA": "view_recognition_and_assessment",
    "LL": "lesion_localisation",
    "OD": "organ_detection",
    "KD": "keypoint_detection",
    "CVE": "clinical_value_estimation",
    "RG": "report_generation",
    "CG": "caption_generation",
}
PROSE: Final = {
    "dataset_name": "Example dataset name",
    "img_data": "base64 encoded image",
    "patient_id": "Unique patient identifier",
    "class_label": "Classification label",
    "gt_bbox": "Ground truth bounding box coordinates",
}


def image(seed: int, size: tuple[int, int] = (40, 20), kind: str = "PNG") -> bytes:
    """Return the file of a noise image; width and height of `size` in pixels."""
    pixels = np.random.default_rng(seed).integers(0, 256, (size[1], size[0]), dtype=np.uint8)
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, kind)
    return stream.getvalue()


def coded(data: bytes) -> str:
    """Return base64 text."""
    return base64.b64encode(data).decode("ascii")


def row(dataset: str, seed: int, **cells: str) -> dict[str, str]:
    """Return a row with an image of that seed."""
    return {"dataset_name": dataset, "img_data": coded(image(seed)), **cells}


def _quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"' if any(mark in cell for mark in '\t\n\r"') else cell


def write_tsv(
    folder: Path,
    task: str,
    name: str,
    rows: Iterable[Mapping[str, str]],
    columns: Sequence[str] = COLUMNS,
    newline: str = "\r\n",
) -> Path:
    """Write one file below the folder of a task and return its path."""
    path = folder / FOLDERS[task] / name
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = ["\t".join(columns), *("\t".join(_quoted(one.get(column, "")) for column in columns) for one in rows)]
    path.write_bytes((newline.join(lines) + newline).encode("utf-8"))
    return path
