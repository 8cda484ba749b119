"""Images that are masks: two values, an outline, class numbers or colours, in a lossy format or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sonogauge.cases.geometry import Mask
from sonogauge.sources.media import MediaFault

THRESHOLD: Final = 127
# A filled outline is much larger than its line; a filled region hardly grows.
_GROWN: Final = 1.5
FAR: Final = 60.0  # Euclidean distance in RGB beyond which a pixel is no shade of a declared colour


@dataclass(frozen=True, slots=True)
class Snapped:
    """Masks by category and how many pixels lay far from every declared colour or class."""

    masks: dict[str, Mask]
    far: int = 0
    notes: tuple[str, ...] = field(default=())


def grey(pixels: NDArray[Any]) -> NDArray[Any]:
    """Return one channel of a mask image: its own, or the largest of its colours; alpha is left out."""
    if pixels.ndim == 2:
        return pixels
    if pixels.ndim == 3 and pixels.shape[2] in (1, 2):
        return np.asarray(pixels[:, :, 0])
    if pixels.ndim == 3 and pixels.shape[2] in (3, 4):
        return np.asarray(pixels[:, :, :3].max(axis=2))
    raise MediaFault("mask is no image of one plane")


def binary(pixels: NDArray[Any], threshold: int = THRESHOLD) -> Mask:
    """Return where a two-valued mask says object: values over `threshold`, or 1 where the largest value is 1.

    >>> binary(np.array([[0, 3, 252]], dtype=np.uint8)).tolist()
    [[False, False, True]]
    >>> binary(np.array([[0, 1]], dtype=np.uint8)).tolist()
    [[False, True]]
    """
    plane = grey(pixels)
    if plane.dtype == np.bool_:
        return np.asarray(plane, dtype=np.bool_)
    return np.asarray(plane > (0 if plane.size and plane.max() <= 1 else threshold))


def fill_outline(mask: Mask) -> Mask:
    """Return a mask with its holes filled: an outline becomes the region inside it.

    An outline that leaves the image is closed along the border, one with a gap of a pixel or two across the gap.

    >>> ring = np.ones((3, 3), dtype=bool); ring[1, 1] = False
    >>> fill_outline(ring).all()
    np.True_
    """
    from scipy.ndimage import binary_fill_holes

    filled = np.asarray(binary_fill_holes(mask), dtype=np.bool_)
    if not mask.any() or filled.sum() > mask.sum():
        return filled
    import cv2

    kernel = np.ones((5, 5), dtype=np.uint8)
    closed = cv2.morphologyEx(mask.astype(np.uint8), cv2.MORPH_CLOSE, kernel).astype(bool)
    for outline in (mask, closed):
        # A side that the outline touches counts as part of it.
        sides = [
            [bool(outline[0].any()), bool(outline[-1].any())],
            [bool(outline[:, 0].any()), bool(outline[:, -1].any())],
        ]
        padded = np.pad(outline, 1)
        padded[0], padded[-1] = padded[0] | sides[0][0], padded[-1] | sides[0][1]
        padded[:, 0], padded[:, -1] = padded[:, 0] | sides[1][0], padded[:, -1] | sides[1][1]
        refilled = np.asarray(binary_fill_holes(padded), dtype=np.bool_)[1:-1, 1:-1]
        if refilled.sum() > _GROWN * outline.sum():
            return refilled
    return filled


def classes(pixels: NDArray[Any], names: Mapping[int, str], ignored: Sequence[int] = (0,)) -> Snapped:
    """Return one mask for each class number present; numbers that are not declared are counted as far.

    >>> classes(np.array([[0, 1, 2, 9]]), {1: "symphysis", 2: "head"}).far
    1
    """
    plane = grey(pixels)
    values = np.asarray(np.rint(plane) if plane.dtype.kind == "f" else plane)
    found = {name: np.asarray(values == number) for number, name in names.items()}
    known = np.isin(values, [*names, *ignored])
    return Snapped({name: mask for name, mask in found.items() if mask.any()}, int((~known).sum()))


def colours(
    pixels: NDArray[Any],
    names: Mapping[str, tuple[int, int, int]],
    background: tuple[int, int, int] | None = (0, 0, 0),
    far: float = FAR,
) -> Snapped:
    """Return one mask for each declared colour: every pixel goes to the nearest one, what is far goes nowhere.

    Smoothed edges mix two colours, and the mixture of two may lie near a third. So a pixel counts only near the core of
    its class: pixels of exactly its colour or, in a lossy file, parts of it that are thicker than an edge.
    """
    if pixels.ndim != 3 or pixels.shape[2] not in (3, 4):
        raise MediaFault("mask of colours has no colours")
    flat = pixels[:, :, :3].astype(np.float32)
    table = [*names.values(), *([background] if background is not None else [])]
    distances = np.stack([((flat - np.array(one, np.float32)) ** 2).sum(axis=2) for one in table])
    nearest, smallest = distances.argmin(axis=0), distances.min(axis=0)
    lost = smallest > far**2
    masks: dict[str, Mask] = {}
    specks = 0
    for place, name in enumerate(names):
        mask = (nearest == place) & ~lost
        if (mask & (smallest > 0)).any():
            core = (mask & (smallest == 0)) | _thick(mask)
            lonely = mask & ~_around(core)
            specks += int(lonely.sum())
            mask &= ~lonely
        if mask.any():
            masks[name] = np.asarray(mask)
    return Snapped(masks, int(lost.sum()) + specks)


def _thick(mask: Mask) -> Mask:
    from scipy.ndimage import binary_opening

    return np.asarray(binary_opening(mask, np.ones((3, 3), dtype=np.bool_)), dtype=np.bool_)


def _around(mask: Mask) -> Mask:
    from scipy.ndimage import binary_dilation

    return np.asarray(binary_dilation(mask, iterations=3), dtype=np.bool_)
