"""Drawing on images: the box of a question about what lies in it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Colour = tuple[int, int, int]


def line_width(width: int, height: int) -> int:
    """Return the default line width of a box in pixels: max(2, 0.4 % of the longer side).

    Source: specification of Fetal-Gauge, `box_line_px`.

    >>> line_width(300, 200), line_width(1000, 1200)
    (2, 5)
    """
    return max(2, round(0.004 * max(width, height)))


def draw_box(
    pixels: NDArray[np.uint8],
    box: Mapping[str, Any],
    *,
    colour: Colour = (255, 0, 0),
    line: int | None = None,
    side: str = "outward",
    pad: int = 0,
    antialias: bool = False,
) -> NDArray[np.uint8]:
    """Return an RGB copy of an image with the outline of a box, clipped at the border.

    Args:
        pixels: (rows, columns) or (rows, columns, 3), 8 bits.
        box: x, y, w, h in pixels.
        colour: RGB.
        line: width in pixels; None = `line_width`.
        side: outward leaves all pixels of the box free, inward draws the line inside it.
        pad: pixels by which the box is made larger on each side first.
        antialias: blend where an edge of the line lies inside a pixel; without it the box is first widened to whole
            pixels, so that every pixel is either as it was or of the colour.

    >>> drawn = draw_box(np.zeros((9, 9), np.uint8), {"x": 3, "y": 3, "w": 3, "h": 3}, line=1)
    >>> int((drawn[:, :, 0] == 255).sum()), drawn[4, 4].tolist()
    (16, [0, 0, 0])
    """
    import cv2

    height, width = pixels.shape[:2]
    drawn = (
        np.asarray(cv2.cvtColor(pixels, cv2.COLOR_GRAY2RGB), dtype=np.uint8)
        if pixels.ndim == 2
        else pixels[:, :, :3].copy()
    )
    line = line_width(width, height) if line is None else line
    grow, shrink = (line, 0) if side == "outward" else (0, line)
    if antialias:
        left, top, right, bottom = box["x"] - pad, box["y"] - pad, box["x"] + box["w"] + pad, box["y"] + box["h"] + pad
        outer = _cover(top - grow, bottom + grow, height)[:, None] * _cover(left - grow, right + grow, width)
        inner = _cover(top + shrink, bottom - shrink, height)[:, None] * _cover(left + shrink, right - shrink, width)
        share = (outer - inner)[:, :, None]
        return np.asarray(np.rint(drawn * (1 - share) + np.array(colour) * share), dtype=np.uint8)
    left, top = math.floor(box["x"]) - pad, math.floor(box["y"]) - pad
    right, bottom = math.ceil(box["x"] + box["w"]) + pad, math.ceil(box["y"] + box["h"]) + pad
    inside = _span(top + shrink, bottom - shrink), _span(left + shrink, right - shrink)
    kept = drawn[inside].copy()
    drawn[_span(top - grow, bottom + grow), _span(left - grow, right + grow)] = colour
    drawn[inside] = kept
    return drawn


def _span(start: int, stop: int) -> slice:
    return slice(max(0, start), max(0, stop))


def _cover(start: float, stop: float, size: int) -> NDArray[np.float64]:
    """Return the share of each of `size` pixels that lies between two places."""
    edges = np.clip(np.arange(size + 1, dtype=np.float64), start, max(start, stop))
    return np.diff(edges)
