"""Metrics of boxes and points as answers to "where is it?": overlap with the reference box, and pointing at it.

Statistics [sum, items]: `box_iou`, `box_iou_50`, `pointing`; an answer that cannot be read counts 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from sonogauge.metrics.masks import mean_metric

Corners = tuple[float, float, float, float]
IOU_HIT: Final = 0.5
_SOURCE: Final = "Everingham et al. 2010, doi:10.1007/s11263-009-0275-4 (IoU); Zhang et al. 2018 (pointing game)"

box_iou = mean_metric(
    "box_iou",
    "Mean intersection over union of the answered and the reference box, the best of several.",
    source=_SOURCE,
)
box_iou_50 = mean_metric(
    "box_iou_50", "Share of answered boxes with an IoU of at least 0.5.", interval="proportion", source=_SOURCE
)
pointing = mean_metric(
    "pointing",
    "Share of answers whose point, else the centre of whose box or mask, lies in the reference.",
    interval="proportion",
    source=_SOURCE,
)


def corners(box: Mapping[str, float]) -> Corners:
    """Return left, top, right, bottom of an upright box given by x, y, w, h.

    >>> corners({"x": 1, "y": 2, "w": 3, "h": 4})
    (1, 2, 4, 6)
    """
    return box["x"], box["y"], box["x"] + box["w"], box["y"] + box["h"]


def iou(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the intersection over union of two boxes given by their corners; 0 where both are empty.

    >>> round(iou((0, 0, 2, 2), (1, 1, 3, 3)), 4), iou((0, 0, 1, 1), (0, 0, 1, 1)), iou((0, 0, 0, 0), (0, 0, 0, 0))
    (0.1429, 1.0, 0.0)
    """
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    inside = max(0.0, width) * max(0.0, height)
    total = _area(one) + _area(other) - inside
    return inside / total if total > 0 else 0.0


def _area(box: Sequence[float]) -> float:
    return max(0.0, box[2] - box[0]) * max(0.0, box[3] - box[1])


def best_iou(box: Sequence[float], references: Iterable[Sequence[float]]) -> float:
    """Return the largest IoU of a box with any reference."""
    return max((iou(box, one) for one in references), default=0.0)


def points_at(x: float, y: float, references: Iterable[Sequence[float]]) -> bool:
    """Tell whether a point lies in any reference box, its border included.

    >>> points_at(1, 1, [(0, 0, 1, 1)]), points_at(2, 1, [(0, 0, 1, 1)])
    (True, False)
    """
    return any(one[0] <= x <= one[2] and one[1] <= y <= one[3] for one in references)
