"""The part of an image that the scan fills: a sector or rectangle of echoes, without text, scales and margins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sonogauge.cases.geometry import Mask
from sonogauge.cases.parts import components

DARK: Final = 8  # grey values up to this are background
_OPENING: Final = 0.012  # of the shorter side: thinner things are text, ticks and lines
_CLOSING: Final = 0.05


def fan_mask(frames: Sequence[NDArray[Any]] | NDArray[Any], dark: int = DARK) -> Mask:
    """Return where echoes can appear: the largest bright region of an image or of the frames of a clip.

    Args:
        frames: 8-bit images of one size, (rows, columns) or (rows, columns, 3); a clip gives a better mask, because
            what is dark in one frame is bright in another.
        dark: largest grey value of the background.

    Returns:
        Boolean (rows, columns): thin things removed, dark spots inside filled; all false for a dark image.
    """
    import cv2
    from scipy.ndimage import binary_fill_holes

    images = [frames] if isinstance(frames, np.ndarray) else list(frames)
    bright = np.max([_grey(image) for image in images], axis=0)
    shorter = min(bright.shape)
    opening = _disc(max(3, round(_OPENING * shorter)))
    closing = _disc(max(3, round(_CLOSING * shorter)))
    # Speckle is full of dark pixels: close first, or the opening would eat it up.
    mask = cv2.morphologyEx((bright > dark).astype(np.uint8), cv2.MORPH_CLOSE, opening)
    mask = cv2.morphologyEx(mask, cv2.MORPH_OPEN, _disc(2 * opening.shape[0] + 1))
    pad = closing.shape[0]
    padded = np.pad(mask, pad)
    closed = cv2.morphologyEx(padded, cv2.MORPH_CLOSE, closing)[pad:-pad, pad:-pad]
    parts = components(np.asarray(binary_fill_holes(closed), dtype=np.bool_))
    return parts[0] if parts else np.zeros(bright.shape, dtype=np.bool_)


def _grey(image: NDArray[Any]) -> NDArray[Any]:
    return image if image.ndim == 2 else np.asarray(image[:, :, :3].max(axis=2))


def _disc(size: int) -> NDArray[np.uint8]:
    import cv2

    return np.asarray(cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (size | 1, size | 1)), dtype=np.uint8)
