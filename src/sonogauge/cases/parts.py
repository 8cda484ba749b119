"""The parts of a mask and its share of the image."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from sonogauge.cases.geometry import Mask, box_of_mask


def components(mask: Mask, min_area: int = 1) -> list[Mask]:
    """Return the connected parts of a mask (pixels touch at sides or corners), the largest first.

    min_area: parts of fewer pixels are left out. Parts of one size come in reading order.

    >>> [int(part.sum()) for part in components(np.array([[1, 0, 1], [1, 0, 0]], dtype=bool))]
    [2, 1]
    """
    from scipy.ndimage import label

    numbered, count = label(mask, structure=np.ones((3, 3), dtype=bool))
    areas = np.bincount(numbered.ravel(), minlength=count + 1)
    order = sorted(range(1, count + 1), key=lambda number: (-int(areas[number]), number))
    return [np.asarray(numbered == number) for number in order if areas[number] >= min_area]


def union(masks: Iterable[Mask]) -> Mask | None:
    """Return where any of the masks is true, None for no mask."""
    total: Mask | None = None
    for mask in masks:
        total = mask.copy() if total is None else total | mask
    return total


def boxes_of(mask: Mask, category: str, rule: str = "union", min_area: int = 1) -> list[dict[str, Any]]:
    """Return the upright boxes of a mask as rows of `tables.BOX`.

    rule: union = one box around all, largest = around the largest part, each = one for each part.

    >>> mask = np.array([[1, 0, 0, 1, 1]], dtype=bool)
    >>> [box["w"] for box in boxes_of(mask, "x")], [box["w"] for box in boxes_of(mask, "x", "each")]
    ([5.0], [2.0, 1.0])
    """
    if rule == "union":
        chosen = [mask]
    elif rule in ("largest", "each"):
        chosen = components(mask, min_area)[: 1 if rule == "largest" else None]
    else:
        raise ValueError(f"no rule '{rule}'")
    return [box for part in chosen if (box := box_of_mask(part, category)) is not None]
