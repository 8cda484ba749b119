"""What a box or a point counts against reference boxes; see `metrics.boxes`."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from sonogauge.answers import AnswerSpec, Parsed
from sonogauge.items import Item
from sonogauge.metrics.base import Array
from sonogauge.metrics.boxes import IOU_HIT, best_iou, corners, points_at

_UNITS: Final = {"": 1000.0, "mille": 1000.0, "unit": 1.0}


class BoxCounter:
    """Statistics of boxes: `box_iou`, `box_iou_50`, `pointing` [sum, items]; a hit is an IoU of at least 0.5."""

    names: tuple[str, ...] = ("box_iou", "box_iou_50", "pointing")

    def __init__(self, spec: AnswerSpec, parameters: dict[str, Any]) -> None:
        if spec.unit not in _UNITS:
            raise ValueError(f"boxes and points are scored in thousandths or fractions, not in '{spec.unit}'")
        self._unit = _UNITS[spec.unit]
        self._rows: list[tuple[float, ...]] = []

    def add(self, item: Item, parsed: Parsed) -> dict[str, float]:
        """Count one item."""
        size = item.image_size
        if size is None:
            raise KeyError("no image size")
        references = [corners(box) for box in item.reference["boxes"]]
        row = tuple(0.0 for _ in self.names)
        # A word ("not visible") is an answer that shows nothing.
        if parsed.valid and not isinstance(parsed.value, str):
            scaled = [value / self._unit * size[place % 2] for place, value in enumerate(parsed.value)]
            row = self._values(scaled, references)
        self._rows.append(row)
        return {**dict(zip(self.names, row, strict=True)), "correct": row[1] if len(row) > 1 else row[0]}

    def _values(self, answered: list[float], references: list[tuple[float, float, float, float]]) -> tuple[float, ...]:
        overlap = best_iou(answered, references)
        x, y = (answered[0] + answered[2]) / 2, (answered[1] + answered[3]) / 2
        return overlap, float(overlap >= IOU_HIT), float(points_at(x, y, references))

    def take(self) -> dict[str, Array]:
        """Return the statistics of the items added since the last call."""
        rows = np.array(self._rows, dtype=np.float64).reshape(-1, len(self.names))
        self._rows = []
        ones = np.ones(len(rows))
        return {name: np.stack([rows[:, place], ones], axis=-1) for place, name in enumerate(self.names)}


class PointCounter(BoxCounter):
    """Statistic of points: `pointing` [sum, items]."""

    names = ("pointing",)

    def _values(self, answered: list[float], references: list[tuple[float, float, float, float]]) -> tuple[float, ...]:
        return (float(points_at(answered[0], answered[1], references)),)
