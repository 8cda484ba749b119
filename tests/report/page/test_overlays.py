"""Outlines against the masks they come from: the path is filled again by another library."""

from __future__ import annotations

import re

import numpy as np
import pytest
from PIL import Image, ImageChops, ImageDraw

from sonogauge._errors import BadInput
from sonogauge.cases.geometry import encode_mask
from sonogauge.report.page.overlays import outline, shapes_of

pytestmark = pytest.mark.part("page")


def _filled(path: str, height: int, width: int) -> np.ndarray:
    """Fill a path by the even-odd rule, four times enlarged and scaled down."""
    scale = 4
    total = Image.new("1", (width * scale, height * scale))
    for part in re.findall(r"M([^Z]*)Z", path):
        points = [tuple(float(one) for one in pair.split()) for pair in part.split("L")]
        layer = Image.new("1", total.size)
        ImageDraw.Draw(layer).polygon([(x * width * scale, y * height * scale) for x, y in points], fill=1)
        total = ImageChops.logical_xor(total, layer)
    return np.asarray(total.convert("L").resize((width, height), Image.Resampling.BOX)) > 127


def _iou(one: np.ndarray, other: np.ndarray) -> float:
    return float((one & other).sum() / (one | other).sum())


def test_an_ellipse_keeps_its_outline() -> None:
    y, x = np.mgrid[:120, :160]
    mask = ((x - 70) / 50) ** 2 + ((y - 50) / 30) ** 2 < 1
    assert _iou(_filled(outline(encode_mask(mask, "m", "c")), 120, 160), mask) > 0.97


def test_a_hole_stays_a_hole_and_parts_stay_apart() -> None:
    mask = np.zeros((100, 100), dtype=bool)
    mask[10:60, 10:60] = True
    mask[25:45, 25:45] = False
    mask[70:90, 70:95] = True
    path = outline(encode_mask(mask, "m", "c"))
    assert path.count("M") == 3
    assert _iou(_filled(path, 100, 100), mask) > 0.97


def test_an_empty_mask_has_no_outline() -> None:
    assert outline(encode_mask(np.zeros((5, 7), dtype=bool), "m", "c")) == ""


def test_shapes_are_fractions_of_the_image() -> None:
    row = {
        "boxes": [{"category": "lesion", "x": 10.0, "y": 20.0, "w": 50.0, "h": 40.0}],
        "points": [{"name": "tip", "x": 100.0, "y": 25.0}, {"name": "lost", "x": None, "y": None}],
        "masks": None,
    }
    assert shapes_of(row, 200, 100, "case") == [
        {"role": "case", "kind": "box", "label": "lesion", "x": 0.05, "y": 0.2, "w": 0.25, "h": 0.4},
        {"role": "case", "kind": "point", "label": "tip", "x": 0.5, "y": 0.25},
    ]
    assert shapes_of(row, 0, 0, "case") == []


def test_a_broken_mask_says_so_and_breaks_nothing() -> None:
    broken = {"mask_id": "m", "category": "lesion", "size": [4, 4], "counts": "99"}
    (shape,) = shapes_of({"masks": [broken]}, 4, 4, "case")
    assert shape["kind"] == "broken" and "run lengths" in shape["label"]
    huge = {"mask_id": "m", "category": "c", "size": [100_000, 100_000], "counts": "0"}
    with pytest.raises(BadInput, match="too large"):
        outline(huge)
