"""Distances between the outlines of two masks: HD95 and the normalised surface distance of one pair.

The outline of a mask is the mask minus its erosion by the four neighbours, and what lies outside the image counts as
outside the mask. Tools differ here (surface-distance weighs elements of the outline by their length, MedPy pools both
directions before the percentile), so the variant stands in every signature (`VARIANT`).
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sonogauge.metrics.base import Array

VARIANT: Final = "outline:4-neighbours,directed:max,percentile:linear"
TOLERANCE: Final = 2.0  # pixels
# Up to one outline pixel in so many of the box, a search among points is quicker than a distance for every pixel.
_POINTS: Final = 40

Mask = NDArray[np.bool_]


def outline(mask: Mask) -> Mask:
    """Return the outline of a mask: its pixels with a side on the outside.

    >>> outline(np.ones((3, 3), dtype=bool)).astype(int).tolist()
    [[1, 1, 1], [1, 0, 1], [1, 1, 1]]
    """
    inner = np.zeros_like(mask)
    inner[1:-1, 1:-1] = mask[1:-1, 1:-1] & mask[:-2, 1:-1] & mask[2:, 1:-1] & mask[1:-1, :-2] & mask[1:-1, 2:]
    return mask & ~inner


def outline_distances(
    reference: Mask, predicted: Mask, spacing: tuple[float, float] = (1.0, 1.0)
) -> tuple[Array, Array]:
    """Return the distances of the reference's outline to the predicted one, and the other way round.

    spacing: length of a pixel along x and y. Both masks must have a pixel.

    Raises:
        ValueError: an empty mask, or masks of two sizes.
    """
    if reference.shape != predicted.shape:
        raise ValueError(f"masks of shapes {reference.shape} and {predicted.shape}")
    box = shared_box(reference, predicted)
    # Distances run between pixels of the outlines alone, so the box that holds both masks gives the same.
    first, second = outline(reference[box]), outline(predicted[box])
    if not first.any() or not second.any():
        raise ValueError("a mask without a pixel has no outline")
    ours, theirs = np.argwhere(first), np.argwhere(second)
    if len(ours) + len(theirs) <= first.size / _POINTS:
        from scipy.spatial import KDTree

        scale = np.array([spacing[1], spacing[0]])
        ours_at, theirs_at = ours * scale, theirs * scale
        there, back = KDTree(theirs_at).query(ours_at)[0], KDTree(ours_at).query(theirs_at)[0]
        return np.asarray(there, dtype=np.float64), np.asarray(back, dtype=np.float64)
    return _distances(second, first, spacing), _distances(first, second, spacing)


def shared_box(reference: Mask, predicted: Mask) -> tuple[slice, slice]:
    """Return the rows and columns of the box that holds both masks; empty for two empty masks."""
    both = reference | predicted
    rows, columns = np.flatnonzero(both.any(axis=1)), np.flatnonzero(both.any(axis=0))
    if not len(rows):
        return slice(0, 0), slice(0, 0)
    return slice(int(rows[0]), int(rows[-1]) + 1), slice(int(columns[0]), int(columns[-1]) + 1)


def _distances(edge: Mask, to: Mask, spacing: tuple[float, float]) -> Array:
    """Return the distance of every pixel of the outline `to` to the nearest pixel of the outline `edge`."""
    if math.isclose(*spacing, rel_tol=1e-9):
        import cv2

        found = cv2.distanceTransform((~edge).astype(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_PRECISE)
        return np.asarray(found[to], dtype=np.float64) * spacing[0]
    from scipy.ndimage import distance_transform_edt

    return np.asarray(distance_transform_edt(~edge, sampling=(spacing[1], spacing[0]))[to], dtype=np.float64)


def hd95(
    reference: Mask,
    predicted: Mask,
    spacing: tuple[float, float] = (1.0, 1.0),
    distances: tuple[Array, Array] | None = None,
) -> float:
    """Return the larger of the two directed 95th percentiles of outline distances, in the unit of the spacing.

    Both masks empty: 0; one empty: the diagonal of the image. distances: of `outline_distances`, where known already.

    >>> mask = np.zeros((5, 9), dtype=bool); mask[1:4, 1:4] = True
    >>> hd95(mask, np.roll(mask, 4, axis=1))
    4.0
    """
    if not reference.any() or not predicted.any():
        return diagonal(reference.shape, spacing) if reference.any() or predicted.any() else 0.0
    there, back = outline_distances(reference, predicted, spacing) if distances is None else distances
    return float(max(np.percentile(there, 95), np.percentile(back, 95)))


def nsd(
    reference: Mask,
    predicted: Mask,
    tolerance: float = TOLERANCE,
    spacing: tuple[float, float] = (1.0, 1.0),
    distances: tuple[Array, Array] | None = None,
) -> float:
    """Return the share of both outlines that lies within `tolerance` of the other one (Nikolov et al. 2021).

    Both masks empty: 1; one empty: 0.

    >>> mask = np.zeros((5, 9), dtype=bool); mask[1:4, 1:4] = True
    >>> nsd(mask, np.roll(mask, 1, axis=1)), nsd(mask, np.roll(mask, 4, axis=1))
    (1.0, 0.375)
    """
    if not reference.any() or not predicted.any():
        return float(not reference.any() and not predicted.any())
    there, back = outline_distances(reference, predicted, spacing) if distances is None else distances
    within = int((there <= tolerance).sum() + (back <= tolerance).sum())
    return within / (len(there) + len(back))


def diagonal(shape: tuple[int, ...], spacing: tuple[float, float] = (1.0, 1.0)) -> float:
    """Return the diagonal of an image of shape (rows, columns), in the unit of the spacing.

    >>> diagonal((3, 4))
    5.0
    """
    return math.hypot(shape[0] * spacing[1], shape[1] * spacing[0])
