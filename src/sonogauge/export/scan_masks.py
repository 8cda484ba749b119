"""The mask of the scan itself, computed from an image by named steps.

Source of the steps and of their order for each set: the converters of the package `ultrabench` 1.0.1, which use
scikit-image; here they are written with scipy and give the same pixels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.bool_]
Step = str | dict[str, int | str]

_CROSS: Final = np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]], dtype=np.bool_)
_LOCAL_SIGMA: Final = (3 - 1) / 6  # of a window of three pixels
_EDGE: Final = 1e-9


def scan_mask(image: NDArray[np.uint8], steps: Sequence[Step]) -> Mask:
    """Return where the scan is.

    image: grey values (rows, columns). steps: names of `STEPS`, each alone or with its one number or word; the first
    is `above` or `local` and makes the mask.

    >>> image = np.zeros((5, 7), dtype=np.uint8); image[1, 1] = image[3, 5] = 9
    >>> int(scan_mask(image, [{"above": 1}, "hull"]).sum())
    7
    """
    mask: NDArray[Any] = image
    for step in steps:
        name, value = (step, None) if isinstance(step, str) else next(iter(step.items()))
        mask = STEPS[name](mask) if value is None else STEPS[name](mask, value)
    return np.asarray(mask, dtype=np.bool_)


def _above(image: NDArray[Any], value: int) -> Mask:
    return np.asarray(image > value)


def _local(image: NDArray[Any]) -> Mask:
    from scipy.ndimage import gaussian_filter

    return np.asarray(image > gaussian_filter(image.astype(np.float64), _LOCAL_SIGMA, mode="reflect"))


def _small_parts(mask: Mask, size: int) -> Mask:
    from scipy.ndimage import label

    parts, _ = label(mask)
    return np.asarray((np.bincount(parts.ravel()) < size)[parts] & mask)


def _objects(mask: Mask, size: int) -> Mask:
    return mask & ~_small_parts(mask, size)


def _holes(mask: Mask, size: int) -> Mask:
    return mask | _small_parts(~mask, size)


def _erode(mask: Mask, times: int) -> Mask:
    from scipy.ndimage import binary_erosion

    return np.asarray(binary_erosion(mask, _CROSS, iterations=times, border_value=1))


def _dilate(mask: Mask, times: int) -> Mask:
    from scipy.ndimage import binary_dilation

    return np.asarray(binary_dilation(mask, _CROSS, iterations=times))


def _largest(mask: Mask) -> Mask:
    from scipy.ndimage import label

    parts, number = label(mask, np.ones((3, 3)))
    return np.asarray(parts == 1 + int(np.argmax(np.bincount(parts.ravel())[1:]))) if number else mask


def _mirror(mask: Mask, how: str) -> Mask:
    """Mirror a half on the other; in an odd width the middle column belongs to the right half, as in the converters."""
    width = mask.shape[1]
    left, right = mask[:, : width // 2], mask[:, width // 2 :]
    if how == "both":
        return mask | np.fliplr(mask)
    larger_is_left = left.sum() > right.sum()
    smaller_is_left = left.sum() < right.sum()
    keep_left = larger_is_left if how == "larger" else smaller_is_left
    whole = np.hstack((left, np.fliplr(left)) if keep_left else (np.fliplr(right), right))
    if whole.shape[1] < width:
        whole = np.hstack((whole, np.zeros((len(whole), 1), dtype=np.bool_)))
    return np.asarray(whole[:, :width])


def _hull(mask: Mask) -> Mask:
    """Return the convex hull of the pixels, each a diamond half a pixel around its centre; its edge belongs to it."""
    from scipy.spatial import ConvexHull

    rows = np.flatnonzero(mask.any(axis=1))
    if not len(rows):
        return mask
    first = mask[rows].argmax(axis=1)
    last = mask.shape[1] - 1 - mask[rows, ::-1].argmax(axis=1)
    ends = np.concatenate([np.column_stack([rows, first]), np.column_stack([rows, last])]).astype(np.float64)
    points = np.concatenate([ends + shift for shift in ((-0.5, 0), (0.5, 0), (0, -0.5), (0, 0.5))])
    y, x = np.ogrid[: mask.shape[0], : mask.shape[1]]
    inside = np.ones(mask.shape, dtype=np.bool_)
    for along_y, along_x, offset in ConvexHull(points).equations:
        inside &= along_y * y + along_x * x + offset <= _EDGE
    return inside


STEPS: Final[dict[str, Callable[..., Mask]]] = {
    "above": _above,
    "local": _local,
    "objects": _objects,
    "holes": _holes,
    "erode": _erode,
    "dilate": _dilate,
    "largest": _largest,
    "mirror": _mirror,
    "hull": _hull,
}
