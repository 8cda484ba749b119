"""Candidates for dark or bright spots and for the ends of bright lines in a B-mode image: plain image features.

A candidate is a box with numbers that describe it; which of them is a lesion, a tube or a bone's end is learnt from
training images in `reference`. Nothing here knows how an image was made.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sonogauge._errors import BadInput

Array = NDArray[np.float32]
Rows = NDArray[np.float64]

_SIDE: Final = 256
# Smoothing in pixels and distance from the local background, in shares of white, of the connected components.
_LEVELS: Final = ((2.0, -0.10), (2.0, -0.17), (2.0, -0.26), (4.0, -0.05), (4.0, -0.09), (4.0, 0.06), (4.0, 0.10))
_LEAST_AREA: Final = 70
_LARGEST_SHARE: Final = 0.25
_MOST: Final = 12  # candidates of a level, largest first


@dataclass(frozen=True, slots=True)
class Candidates:
    """Candidates of one image: boxes (x, y, w, h in pixels, one row each) and features, one row each."""

    boxes: Rows
    features: Rows

    @property
    def centres(self) -> Rows:
        """Centres of the boxes, shape (candidates, 2)."""
        return np.asarray(self.boxes[:, :2] + self.boxes[:, 2:] / 2)


@dataclass(frozen=True, slots=True)
class Picture:
    """A decoded image with what all candidate finders share; grey is 0-1, `field` the field of view."""

    grey: Array
    field: NDArray[np.bool_]
    background: Array
    scale: float  # native pixels per pixel used here
    native: tuple[int, int]  # width, height

    def blurred(self, sigma: float) -> Array:
        """Return the mean over a Gaussian window, of pixels in the field of view only."""
        import cv2

        inside = self.field.astype(np.float32)
        pair = np.dstack([self.grey * inside, inside])
        # A wide window is as good on a coarse grid, and much cheaper.
        coarse = 4 if sigma > 12 else 1
        if coarse > 1:
            pair = cv2.resize(pair, (_SIDE // coarse, _SIDE // coarse), interpolation=cv2.INTER_AREA)
        total = cv2.GaussianBlur(pair, (0, 0), sigma / coarse)
        mean = np.asarray(total[..., 0] / np.maximum(total[..., 1], 1e-3), dtype=np.float32)
        if coarse == 1:
            return mean
        return np.asarray(cv2.resize(mean, (_SIDE, _SIDE), interpolation=cv2.INTER_LINEAR), dtype=np.float32)


def decode(data: bytes) -> Picture:
    """Decode an image for the candidate finders; it is brought to 256 pixels on its longer side.

    Raises:
        BadInput: the bytes are not an image.
    """
    import cv2

    image = cv2.imdecode(np.frombuffer(data, dtype=np.uint8), cv2.IMREAD_GRAYSCALE) if data else None
    if image is None:
        raise BadInput("not an image that can be decoded", fix="build the benchmark again")
    height, width = image.shape
    scale = max(height, width) / _SIDE
    canvas = np.zeros((_SIDE, _SIDE), dtype=np.float32)
    small = image
    if scale != 1:
        size = (max(1, round(width / scale)), max(1, round(height / scale)))
        small = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    canvas[: small.shape[0], : small.shape[1]] = small.astype(np.float32) / 255
    points = cv2.findNonZero((cv2.GaussianBlur(canvas, (0, 0), 1.0) > 0.08).astype(np.uint8))
    hull = np.zeros((_SIDE, _SIDE), dtype=np.uint8)
    if points is not None:
        cv2.fillConvexPoly(hull, cv2.convexHull(points), 1)
    field = hull.astype(bool)
    picture = Picture(canvas, field, canvas, scale, (width, height))
    return Picture(canvas, field, picture.blurred(26.0), scale, (width, height))


def field_features(picture: Picture) -> Rows:
    """Return the share of the field of view in each of 8 x 8 tiles: its shape."""
    side = _SIDE // 8
    return np.asarray(picture.field.reshape(8, side, 8, side).mean(axis=(1, 3)).ravel(), dtype=np.float64)


def spots(picture: Picture) -> Candidates:
    """Return dark and bright spots: connected components at several levels, and the heads of long dark columns."""
    import cv2

    boxes: list[tuple[float, float, float, float]] = []
    shapes: list[tuple[float, ...]] = []
    most = _LARGEST_SHARE * float(picture.field.sum())
    distances = {sigma: picture.blurred(sigma) - picture.background for sigma, _ in _LEVELS}
    for number, (sigma, threshold) in enumerate(_LEVELS):
        distance = distances[sigma]
        found = (distance < threshold) if threshold < 0 else (distance > threshold)
        found &= picture.field
        opened = cv2.morphologyEx(found.astype(np.uint8), cv2.MORPH_OPEN, np.ones((3, 3), dtype=np.uint8))
        count, labels, stats, centres = cv2.connectedComponentsWithStats(opened, connectivity=4)
        order = sorted(range(1, count), key=lambda index: (-int(stats[index, 4]), index))
        for index in [one for one in order if stats[one, 4] >= _LEAST_AREA][:_MOST]:
            x, y, w, h, area = (float(value) for value in stats[index])
            piece = labels[int(y) : int(y + h), int(x) : int(x + w)] == index
            long, short, angle = _axes(piece)
            shape = (float(number), sigma, threshold, area, area / (w * h), long, short, angle)
            shifted = (float(centres[index][0]) - x - w / 2, float(centres[index][1]) - y - h / 2)
            if area <= most:
                boxes.append((x, y, w, h))
                shapes.append((*shape, *shifted, 0.0))
            if threshold < 0 and h > 1.1 * w:
                # A shadow joins what casts it: offer the head of the column as a spot of its own.
                rows = np.flatnonzero(piece.any(axis=1))
                top = piece[rows[0] : rows[0] + max(4, int(w))]
                columns = np.flatnonzero(top.any(axis=0))
                left, wide = x + float(columns[0]), float(columns[-1] - columns[0] + 1)
                boxes.append((left, y - 3, wide, 0.75 * wide + 3))
                shapes.append((*shape, *shifted, 1.0))
    if not boxes:
        return Candidates(np.zeros((0, 4)), np.zeros((0, _SPOT_FEATURES)))
    array = np.asarray(boxes, dtype=np.float64)
    return Candidates(array, np.hstack([array, np.asarray(shapes), _surroundings(picture, array)]))


def _axes(piece: NDArray[np.bool_]) -> tuple[float, float, float]:
    """Return the long and short diameter of the ellipse with the same second moments, and its angle."""
    y, x = np.nonzero(piece)
    if len(x) < 3:
        return 1.0, 1.0, 0.0
    spread = np.cov(np.stack([x, y])) + np.eye(2) / 12
    values, vectors = np.linalg.eigh(spread)
    angle = float(np.arctan2(vectors[1, 1], vectors[0, 1]))
    return float(4 * np.sqrt(values[1])), float(4 * np.sqrt(values[0])), float(abs(np.sin(angle)))


# Windows around a box, in units of its half width and half height from its centre: left, top, right, bottom.
_WINDOWS: Final = (
    (-0.5, -0.5, 0.5, 0.5),
    (-0.9, -0.9, 0.9, 0.9),
    (-0.6, -1.25, 0.6, -0.9),
    (-0.6, 0.9, 0.6, 1.25),
    (-0.6, -2.0, 0.6, -1.3),
    (-0.6, 1.3, 0.6, 2.0),
    (-0.6, 2.0, 0.6, 3.5),
    (-2.0, -0.5, -1.3, 0.5),
    (1.3, -0.5, 2.0, 0.5),
    (-2.4, 1.3, -1.3, 3.0),
    (1.3, 1.3, 2.4, 3.0),
    (-0.5, -1.0, 0.5, -0.6),
    (-0.5, 0.6, 0.5, 1.0),
    (-1.15, -0.5, -0.85, 0.5),
    (0.85, -0.5, 1.15, 0.5),
)
_SHAPE_FEATURES: Final = 4 + 11
_SPOT_FEATURES: Final = _SHAPE_FEATURES + 2 * len(_WINDOWS) + 5


def _surroundings(picture: Picture, boxes: Rows) -> Rows:
    """Return means relative to the background and deviations in windows in and around boxes, and the contrasts."""
    import cv2

    total, squares = cv2.integral2(picture.grey)
    inside, _ = cv2.integral2(picture.field.astype(np.float32))
    centre = boxes[:, :2] + boxes[:, 2:] / 2
    half = boxes[:, 2:] / 2
    at = np.clip(centre.astype(int), 0, _SIDE - 1)
    local = picture.background[at[:, 1], at[:, 0]].astype(np.float64)
    means, deviations = [], []
    for left, top, right, bottom in _WINDOWS:
        x0, x1 = _edges(centre[:, 0] + left * half[:, 0], centre[:, 0] + right * half[:, 0])
        y0, y1 = _edges(centre[:, 1] + top * half[:, 1], centre[:, 1] + bottom * half[:, 1])
        area = np.maximum(_sum(inside, x0, y0, x1, y1), 1.0)
        mean = _sum(total, x0, y0, x1, y1) / area
        variance = _sum(squares, x0, y0, x1, y1) / area - mean**2
        known = _sum(inside, x0, y0, x1, y1) > 0
        means.append(np.where(known, mean - local, 0.0))
        deviations.append(np.where(known, np.sqrt(np.maximum(variance, 0)), 0.0))
    behind = (means[9] + means[10]) / 2
    beside = (means[7] + means[8]) / 2
    contrasts = [local, means[5] - behind, means[6] - behind, means[0] - beside, (means[2] + means[3]) / 2 - beside]
    return np.stack([*means, *deviations, *contrasts], axis=-1)


def _edges(low: Rows, high: Rows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    first = np.clip(np.floor(low).astype(np.int64), 0, _SIDE - 1)
    return first, np.clip(np.maximum(np.ceil(high).astype(np.int64), first + 1), 1, _SIDE)


def _sum(table: Any, x0: Any, y0: Any, x1: Any, y1: Any) -> Rows:
    return np.asarray(table[y1, x1] - table[y0, x1] - table[y1, x0] + table[y0, x0], dtype=np.float64)


_LINE_FEATURES: Final = 20


def line_ends(picture: Picture) -> Candidates:
    """Return the two ends of every long bright line with darkness behind it, as boxes of 1 x 1 pixel."""
    import cv2

    smooth = np.asarray(cv2.blur(picture.grey, (5, 3)), dtype=np.float32)
    dark = cv2.blur(picture.grey, (5, 21))
    below = np.zeros_like(dark)
    below[:-15] = dark[15:]
    response = smooth - 1.2 * below
    boxes: list[tuple[float, float, float, float]] = []
    rows: list[list[float]] = []
    for threshold in (0.25, 0.4):
        found = ((response > threshold) & picture.field).astype(np.uint8)
        count, labels, stats, _ = cv2.connectedComponentsWithStats(found, connectivity=8)
        order = sorted(range(1, count), key=lambda index: (-int(stats[index, 2]), index))
        for index in [one for one in order if stats[one, 2] >= 14][:5]:
            x, y, w, h, area = (int(value) for value in stats[index])
            piece = labels[y : y + h, x : x + w] == index
            strength = float(response[y : y + h, x : x + w][piece].mean())
            bright = float(smooth[y : y + h, x : x + w][piece].mean())
            ends = ((x, piece[:, :3], -1), (x + w - 1, piece[:, -3:], 1))
            for end, columns, outward in ends:
                height = y + float(np.flatnonzero(columns.any(axis=1)).mean())
                boxes.append((float(end), height, 1.0, 1.0))
                around = _around_end(picture, smooth, end, round(height), outward)
                rows.append([end, height, w, h, area, area / w, strength, bright, float(outward), threshold, *around])
    if not boxes:
        return Candidates(np.zeros((0, 4)), np.zeros((0, _LINE_FEATURES)))
    return Candidates(np.asarray(boxes), np.asarray(rows, dtype=np.float64))


def _around_end(picture: Picture, smooth: Array, x: int, y: int, outward: int) -> list[float]:
    """Return means on the line and beyond its end, at its height and behind it, and how far the field goes on."""
    values = []
    for first, last in ((4, 12), (14, 26)):
        for side in (-outward, outward):
            x0, x1 = sorted((x + side * first, x + side * last))
            for top, bottom in ((-4, 4), (8, 40)):
                window = np.s_[max(y + top, 0) : max(y + bottom, 0), max(x0, 0) : max(x1, 0)]
                part = smooth[window][picture.field[window]]
                values.append(float(part.mean()) if part.size else -1.0)
    row = picture.field[min(max(y, 0), _SIDE - 1)]
    onward = row[x + 1 :] if outward > 0 else row[:x][::-1]
    return [*values, float(onward.sum()), float(picture.background[min(max(y, 0), _SIDE - 1), x])]
