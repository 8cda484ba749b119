"""Small drawn images and masks for look-alike trees."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from sonogauge.folders import Folder
from sonogauge.sources.importer import import_cases

SIZE = (48, 40)  # width, height


def noise(seed: int, size: tuple[int, int] = SIZE, *, colour: bool = False) -> np.ndarray[Any, Any]:
    shape = (size[1], size[0], 3) if colour else (size[1], size[0])
    return np.random.default_rng(seed).integers(1, 256, shape, dtype=np.uint8)


def disc(x: float, y: float, radius: float, size: tuple[int, int] = SIZE) -> np.ndarray[Any, Any]:
    columns, rows = np.meshgrid(np.arange(size[0]) + 0.5, np.arange(size[1]) + 0.5)
    return np.asarray((columns - x) ** 2 + (rows - y) ** 2 <= radius**2)


def overlap(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> float:
    """Return intersection over union of two masks."""
    return float((one & other).sum() / (one | other).sum())


def save(path: Path, pixels: np.ndarray[Any, Any], **options: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    values = pixels.astype(np.uint8) * 255 if pixels.dtype == np.bool_ else pixels
    Image.fromarray(values).save(path, **options)
    return path


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode("utf-8"))
    return path


def png(pixels: np.ndarray[Any, Any]) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "PNG")
    return stream.getvalue()


def imported(source: str, folder: Path, **options: Any) -> tuple[dict[str, dict[str, Any]], Any]:
    """Import a folder and return its rows by name without the source, and the manifest."""
    out = folder.parent / f"{folder.name}.cases"
    manifest = import_cases(source, folder, out, overwrite=True, **options)
    rows = {row["case_id"].partition("/")[2]: row for row in Folder.open(out, "cases").rows("cases")}
    return rows, manifest


def labels(row: Mapping[str, Any]) -> dict[str, str]:
    return {one["name"]: one["value"] for one in row["labels"]}


def facts(row: Mapping[str, Any], column: str = "meta") -> dict[str, str]:
    return {one["name"]: one["value"] for one in row[column]}


def categories(row: Mapping[str, Any]) -> list[str]:
    return [one["category"] for one in row["masks"]]


def csv(header: str, *lines: str) -> str:
    return "\r\n".join((header, *lines)) + "\r\n"
