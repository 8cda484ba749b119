"""From shapes to pixels: every form of mask drawn on an image of known size, as boolean rows and columns."""

from __future__ import annotations

import base64
import binascii
import io
import math
import struct
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sonogauge._errors import BadInput
from sonogauge.answers.convention import Convention, Size
from sonogauge.answers.shapes import COLUMNS, ROWS, Shape, ShapeFault
from sonogauge.cases.geometry import Mask, decode_mask

_CROSSINGS: Final = 1 << 20
_PNG_HEADER: Final = b"\x89PNG\r\n\x1a\n"


def draw(shapes: Sequence[Shape], size: Size, convention: Convention, sent: Size | None = None) -> Mask:
    """Return the union of shapes on an image; shapes without pixels of their own (points, phrases) add nothing.

    size: (width, height) of the original image; sent: the same of the image as the model got it, None = unchanged.

    Raises:
        ShapeFault: `size` (a run-length code or picture of another size, runs that do not add up), `format` (a picture
            that does not read, a negative box), `ambiguous` (a box whose order was not declared).

    >>> draw([Shape("box", (0.4, 0.4, 1.2, 1.2), "xywh")], (5, 5), Convention()).sum()
    np.int64(4)
    """
    width, height = size
    mask = np.zeros((height, width), dtype=bool)
    for shape in shapes:
        if shape.kind == "polygon":
            mask |= _polygon(shape, size, convention.factors(size, sent))
        elif shape.kind == "box":
            _fill_box(mask, corners(shape, convention), convention.factors(size, sent))
        elif shape.kind == "rle":
            mask |= _runs(shape, size)
        elif shape.kind == "png":
            mask |= _picture(shape, size)
        elif shape.kind == "cell":
            mask |= cell_mask(shape.text, size)
    return mask


def inner_points(
    shapes: Sequence[Shape], size: Size, convention: Convention, sent: Size | None = None
) -> list[tuple[float, float]]:
    """Return the points marked as inside, in pixels of the original image."""
    by_x, by_y = convention.factors(size, sent)
    found = []
    for shape in shapes:
        if shape.kind == "points":
            numbers = shape.numbers
            found += [(x * by_x, y * by_y) for x, y, label in zip(*[iter(numbers)] * 3, strict=True) if label]
    return found


def outside(shapes: Sequence[Shape], size: Size, convention: Convention, sent: Size | None = None) -> tuple[int, int]:
    """Return (coordinates outside the declared range, coordinates); a width counts as one, from the corner on.

    >>> outside([Shape("box", (100.0, 0.0, 900.0, 1.0), "xyxy")], (50, 50), Convention("unit"))
    (2, 4)
    """
    largest_x, largest_y = convention.extent(size, sent)
    beyond = total = 0
    for shape in shapes:
        if shape.kind == "polygon":
            xs, ys = shape.numbers[::2], shape.numbers[1::2]
        elif shape.kind == "points":
            xs, ys = shape.numbers[::3], shape.numbers[1::3]
        elif shape.kind == "box" and not (shape.order == "declared" and not convention.order):
            left, top, right, bottom = corners(shape, convention)
            xs, ys = (left, right), (top, bottom)
        else:
            continue
        total += len(xs) + len(ys)
        beyond += sum(not 0 <= x <= largest_x for x in xs) + sum(not 0 <= y <= largest_y for y in ys)
    return beyond, total


def corners(shape: Shape, convention: Convention) -> tuple[float, float, float, float]:
    """Return left, top, right and bottom of a box in the coordinates it was written in.

    Raises:
        ShapeFault: a negative size (`format`), or an order that only a declaration could tell (`ambiguous`).
    """
    a, b, c, d = shape.numbers
    order = shape.order
    if order == "declared" and not convention.order:
        raise ShapeFault("ambiguous")
    if order in ("bare", "declared"):
        order = convention.order or "xywh"
    if order == "xywh":
        if c < 0 or d < 0:
            raise ShapeFault("format")
        return a, b, a + c, b + d
    if order == "yxyx":
        a, b, c, d = b, a, d, c
    return min(a, c), min(b, d), max(a, c), max(b, d)


def _fill_box(mask: Mask, edges: tuple[float, float, float, float], factors: tuple[float, float]) -> None:
    left, top, right, bottom = edges
    height, width = mask.shape
    x0, x1 = (min(max(edge, 0), width) for edge in (math.floor(left * factors[0]), math.ceil(right * factors[0])))
    y0, y1 = (min(max(edge, 0), height) for edge in (math.floor(top * factors[1]), math.ceil(bottom * factors[1])))
    mask[y0:y1, x0:x1] = True


def _polygon(shape: Shape, size: Size, factors: tuple[float, float]) -> Mask:
    """Fill by the even-odd rule: a pixel belongs to it if its centre lies inside."""
    width, height = size
    points: NDArray[np.float64] = np.array(shape.numbers).reshape(-1, 2) * factors - 0.5
    x0, y0 = points.T
    x1, y1 = np.roll(points, -1, axis=0).T
    # An edge crosses the rows from its upper end on, up to but without its lower end.
    first = np.clip(np.ceil(np.minimum(y0, y1)), 0, height).astype(np.int64)
    last = np.clip(np.ceil(np.maximum(y0, y1)), 0, height).astype(np.int64)
    rows_of = last - first
    crossing = rows_of > 0
    x0, y0, x1, y1, first, rows_of = (one[crossing] for one in (x0, y0, x1, y1, first, rows_of))
    toggles = np.zeros(height * (width + 1), dtype=np.int64)
    ends = np.cumsum(rows_of)
    start = 0
    while start < len(rows_of):
        # A bounded number of crossings at a time, and at least one edge.
        base = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, base + _CROSSINGS, side="right")))
        edge = np.repeat(np.arange(start, stop), rows_of[start:stop])
        row = (
            first[edge]
            + np.arange(len(edge))
            - np.repeat(ends[start:stop] - rows_of[start:stop] - base, rows_of[start:stop])
        )
        x = x0[edge] + (row - y0[edge]) * ((x1 - x0) / (y1 - y0))[edge]
        column = np.clip(np.ceil(x), 0, width).astype(np.int64)
        toggles += np.bincount(row * (width + 1) + column, minlength=len(toggles))
        start = stop
    inside: Mask = (np.cumsum(toggles.reshape(height, width + 1), axis=1) % 2 == 1)[:, :width]
    return inside


def _runs(shape: Shape, size: Size) -> Mask:
    width, height = size
    if (int(shape.numbers[0]), int(shape.numbers[1])) != (height, width):
        raise ShapeFault("size")
    if shape.text:
        try:
            return decode_mask({"size": (height, width), "counts": shape.text})
        except BadInput:
            raise ShapeFault("size") from None
    runs: NDArray[np.int64] = np.array(shape.numbers[2:], dtype=np.int64)
    if runs.sum() != width * height:
        raise ShapeFault("size")
    flat = np.repeat(np.arange(len(runs)) % 2 == 1, runs)
    return np.asarray(flat.reshape(width, height).T)


def _picture(shape: Shape, size: Size) -> Mask:
    from PIL import Image, UnidentifiedImageError

    try:
        data = base64.b64decode(shape.text, validate=True)
    except (binascii.Error, ValueError):
        raise ShapeFault("format") from None
    if not data.startswith(_PNG_HEADER) or len(data) < 33:
        raise ShapeFault("format")
    # The header tells the size before anything is unpacked.
    if struct.unpack(">II", data[16:24]) != size:
        raise ShapeFault("size")
    try:
        with Image.open(io.BytesIO(data), formats=["PNG"]) as picture:
            if picture.mode not in ("1", "L"):
                raise ShapeFault("format")
            least = 127 if picture.mode == "L" else 0
            pixels = np.asarray(picture)
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError, EOFError) as error:
        raise error if isinstance(error, ShapeFault) else ShapeFault("format") from None
    if pixels.shape != (size[1], size[0]):
        raise ShapeFault("size")
    return np.asarray(pixels > least)


def cell_mask(name: str, size: Size) -> Mask:
    """Return a ninth of the image: the pixels whose centre lies in the cell.

    >>> cell_mask("upper-left", (6, 3)).astype(int)[0].tolist()
    [1, 1, 0, 0, 0, 0]
    """
    width, height = size
    row, column = name.split("-")
    columns = np.minimum(2, (3 * (np.arange(width) + 0.5) / width).astype(int)) == COLUMNS.index(column)
    rows = np.minimum(2, (3 * (np.arange(height) + 0.5) / height).astype(int)) == ROWS.index(row)
    return np.asarray(rows[:, None] & columns[None, :])
