"""Drawn shapes to masks: polygons, ellipses, rectangles in pixel coordinates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from sonogauge.cases.geometry import Mask
from sonogauge.sources.findings import Regions
from sonogauge.sources.media import MAX_PIXELS, MediaFault

MAX_POINTS: Final = 100_000


def polygon_mask(points: Sequence[tuple[float, float]], width: int, height: int) -> Mask:
    """Return the filled polygon of points x, y; what lies outside the image is cut off.

    Coordinates count from the outer corner of the first pixel, as CVAT and COCO have it.

    Raises:
        MediaFault: fewer than three points, too many, or one that is no number.

    >>> polygon_mask([(1, 1), (4, 1), (4, 3), (1, 3)], 6, 5).sum()
    np.int64(6)
    """
    if len(points) < 3:
        raise MediaFault("polygon of fewer than three points")
    if len(points) > MAX_POINTS or width * height > MAX_PIXELS:
        raise MediaFault("polygon too large")
    if not all(math.isfinite(x) and math.isfinite(y) for x, y in points):
        raise MediaFault("polygon with a point that is no number")
    from pycocotools import mask as coco

    limit = 4.0 * max(width, height)
    flat = [float(min(max(value, -limit), limit)) for x, y in points for value in (x, y)]
    codes = coco.frPyObjects([flat], height, width)
    return np.asarray(coco.decode(codes)[:, :, 0], dtype=bool)


def box_of_points(points: Sequence[tuple[float, float]]) -> tuple[float, float, float, float]:
    """Return x, y, width, height of the upright box around points.

    >>> box_of_points([(1, 2), (4, 8)])
    (1, 2, 3, 6)
    """
    xs, ys = [x for x, _ in points], [y for _, y in points]
    return min(xs), min(ys), max(xs) - min(xs), max(ys) - min(ys)


def ellipse_points(cx: float, cy: float, rx: float, ry: float, degrees: float = 0.0) -> list[tuple[float, float]]:
    """Return 90 points on an ellipse, turned by `degrees` clockwise in the image."""
    turn = math.radians(degrees)
    found = []
    for step in range(90):
        angle = 2 * math.pi * step / 90
        x, y = rx * math.cos(angle), ry * math.sin(angle)
        found.append((cx + x * math.cos(turn) - y * math.sin(turn), cy + x * math.sin(turn) + y * math.cos(turn)))
    return found


@dataclass(frozen=True, slots=True)
class Shape:
    """A drawn thing. kind: polygon, box (two corners), points (a key point each) or line; points: x, y in pixels."""

    category: str
    kind: str
    points: tuple[tuple[float, float], ...]


def draw(shapes: Sequence[Shape], width: int, height: int) -> Regions:
    """Return shapes as regions of an image: polygons as masks, boxes as boxes, points as points; lines are noted.

    Raises:
        MediaFault: a coordinate that is no number.
    """
    found = Regions()
    for shape in shapes:
        if not all(math.isfinite(value) for point in shape.points for value in point):
            raise MediaFault("shape with a coordinate that is no number")
        if shape.kind == "polygon" and len(shape.points) >= 3:
            found.masks.append((shape.category, polygon_mask(shape.points, width, height)))
        elif shape.kind == "box" and len(shape.points) == 2:
            found.boxes.append((shape.category, *box_of_points(shape.points)))
        elif shape.kind == "points":
            found.points += [(shape.category, x, y) for x, y in shape.points]
        else:
            found.notes.append(f"a {shape.kind} of '{shape.category}' was left out")
    return found
