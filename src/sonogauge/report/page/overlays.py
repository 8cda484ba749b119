"""Annotations as shapes over an image: outlines of masks, boxes, points, in fractions of the image."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from sonogauge._errors import BadInput

# Outlines are simplified to this share of the longer side: finer than a thumbnail can show.
TOLERANCE: Final = 0.003
MOST_PIXELS: Final = 50_000_000
MOST_SHAPES: Final = 60


def shapes_of(row: Mapping[str, Any], width: int, height: int, role: str) -> list[dict[str, Any]]:
    """Return the shapes of a case, a reference or a prediction.

    Args:
        row: with "masks", "boxes" and "points" as in `tables.CASES` and `tables.VALUE`; absent or null ones are none.
        width: of the native image, in pixels.
        height: of the native image, in pixels.
        role: whose shapes they are: "case", "reference" or "prediction".

    Returns:
        Dicts with role, kind (mask, box, point), label and geometry: `d` an SVG path, or x, y, w, h; all in fractions.
        A mask has its `id` too.
    """
    if width <= 0 or height <= 0:
        return []
    found = [
        *_masks(row.get("masks") or ()),
        *(
            {"kind": "box", "label": box["category"] or "", **_box(box, width, height)}
            for box in row.get("boxes") or ()
        ),
        *(
            {
                "kind": "point",
                "label": point["name"] or "",
                "x": _near(point["x"] / width),
                "y": _near(point["y"] / height),
            }
            for point in row.get("points") or ()
            if point["x"] is not None and point["y"] is not None
        ),
    ]
    return [{"role": role, **shape} for shape in found[:MOST_SHAPES]]


def _near(value: float) -> float:
    return round(float(value), 4)


def _box(box: Mapping[str, Any], width: int, height: int) -> dict[str, float]:
    sides = {"x": width, "y": height, "w": width, "h": height}
    return {name: _near((box[name] or 0.0) / side) for name, side in sides.items()}


def _masks(masks: Iterable[Mapping[str, Any]]) -> Iterable[dict[str, Any]]:
    for mask in masks:
        label = mask["category"] or mask["mask_id"] or ""
        try:
            yield {"kind": "mask", "label": label, "id": mask["mask_id"] or "", "d": outline(mask)}
        except BadInput as error:
            yield {"kind": "broken", "label": f"{label}: {error}"}


def outline(row: Mapping[str, Any]) -> str:
    """Return the outline of a mask as an SVG path in fractions of its size; holes are part of the path.

    >>> outline({"mask_id": "m", "category": "c", "size": [4, 4], "counts": "52203"})
    'M.25 .25L.25 .75L.75 .75L.75 .25Z'

    Raises:
        BadInput: broken run lengths, or a mask too large to draw.
    """
    import cv2
    import numpy as np

    from sonogauge.cases.geometry import decode_mask

    height, width = (int(side) for side in row["size"])
    if height * width > MOST_PIXELS:
        raise BadInput(f"a mask of {width} x {height} pixels is too large to draw", field="masks")
    mask = decode_mask(row).astype(np.uint8)
    if not mask.any():
        return ""
    # Twice the size and half a pixel out: a contour then runs around pixels, not through their centres.
    scale = 2 if max(height, width) <= 2048 else 1
    large = np.kron(mask, np.ones((scale, scale), dtype=np.uint8)) if scale == 2 else mask
    contours, _ = cv2.findContours(large, cv2.RETR_CCOMP, cv2.CHAIN_APPROX_SIMPLE)
    parts = []
    for contour in contours:
        simple = cv2.approxPolyDP(contour, TOLERANCE * max(large.shape), True)[:, 0, :].astype(float)
        if len(simple) < 3:
            continue
        # Points are pixel indices; the right and lower edges lie one further.
        middle = simple.mean(axis=0)
        points = (simple + (simple > middle)) / (large.shape[1], large.shape[0])
        steps = "L".join(f"{_fraction(x)} {_fraction(y)}" for x, y in points)
        parts.append(f"M{steps}Z")
    return "".join(parts)


def _fraction(value: float) -> str:
    return f"{value:.3f}".rstrip("0").rstrip(".").removeprefix("0") or "0"
