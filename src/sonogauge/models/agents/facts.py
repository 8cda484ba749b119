"""What masks say: the facts from which the agent writes, and against which it checks what was written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from sonogauge.benchmarks.ultrag.facts import grid_cell
from sonogauge.cases.geometry import Mask, box_of_mask, encode_mask
from sonogauge.cases.parts import components

_MIN_PART: Final = 10  # pixels; smaller specks are no object of their own


@dataclass(frozen=True, eq=False)
class TargetFacts:
    """A target as it was found, or not found.

    mask: union of its instances, None if nothing was found. score: the best. box_xywh and area (pixels), area_ratio (of
    the image) and cell ("upper-left", …) are of the union; largest: its largest instance, or connected part where there
    is one instance, and the box of that; parts: how many of those there are.
    """

    category: str
    mask: Mask | None
    score: float | None = None
    box_xywh: tuple[float, float, float, float] | None = None
    area: int = 0
    area_ratio: float = 0.0
    cell: str = ""
    parts: int = 0
    largest: Mask | None = None
    largest_xywh: tuple[float, float, float, float] | None = None

    @property
    def found(self) -> bool:
        """Whether there is a mask."""
        return self.mask is not None

    @property
    def long_axis(self) -> float:
        """The longer side of the box of the largest part in pixels."""
        return max(self.largest_xywh[2:]) if self.largest_xywh else 0.0

    @property
    def short_axis(self) -> float:
        """The shorter side of the box of the largest part in pixels."""
        return min(self.largest_xywh[2:]) if self.largest_xywh else 0.0

    def told(self) -> dict[str, Any]:
        """Return the facts as JSON values, without pixels."""
        if self.mask is None:
            return {"category": self.category, "has_mask": False}
        return {
            "category": self.category,
            "has_mask": True,
            "score": None if self.score is None else round(self.score, 6),
            "box_xywh": list(self.box_xywh or ()),
            "long_axis_px": self.long_axis,
            "short_axis_px": self.short_axis,
            "area_px": self.area,
            "area_percent": round(100 * self.area_ratio, 2),
            "extent": extent_word(self.area_ratio),
            "cell": self.cell,
            "parts": self.parts,
        }


def extent_word(area_ratio: float) -> str:
    """Return small, moderate or broad.

    >>> [extent_word(share) for share in (0.09, 0.1, 0.25)]
    ['small', 'moderate', 'broad']
    """
    return "small" if area_ratio < 0.10 else "moderate" if area_ratio < 0.25 else "broad"


def facts_of(category: str, masks: Sequence[Mask], score: float | None, cell: str) -> TargetFacts:
    """Return the facts of a target from the masks of its instances.

    cell: "box" = the middle of the box, "centroid" = of the mask.
    """
    union = np.logical_or.reduce(masks) if masks else None
    box = None if union is None else box_of_mask(union, category)
    if union is None or box is None:
        return TargetFacts(category, None)
    height, width = union.shape
    if cell == "centroid":
        rows, columns = np.nonzero(union)
        x, y = float(columns.mean()) + 0.5, float(rows.mean()) + 0.5
    else:
        x, y = box["x"] + box["w"] / 2, box["y"] + box["h"] / 2
    area = int(union.sum())
    parts = list(masks) if len(masks) > 1 else components(union, _MIN_PART) or [union]
    largest = max(parts, key=lambda part: int(part.sum()))
    own = box_of_mask(largest, category) or box
    return TargetFacts(
        category,
        union,
        score,
        (box["x"], box["y"], box["w"], box["h"]),
        area,
        area / union.size,
        grid_cell(x, y, width, height),
        len(parts),
        largest,
        (own["x"], own["y"], own["w"], own["h"]),
    )


def union_of(facts: Sequence[TargetFacts]) -> Mask | None:
    """Return the union of the masks of some targets, None if there is none."""
    masks = [one.mask for one in facts if one.mask is not None]
    return np.logical_or.reduce(masks) if masks else None


def rle(mask: Mask | None) -> Mapping[str, Any] | None:
    """Return a mask as an answer holds it, None for no mask."""
    if mask is None:
        return None
    code = encode_mask(mask, "", "")
    return {"type": "rle", "size": code["size"], "counts": code["counts"]}
