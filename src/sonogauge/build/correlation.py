"""How well two thumbnails agree, wherever and however one lies on the other.

The thumbnails are freed of their slow changes first: two scans with one shape of the fan correlate highly as they are,
and hardly at all in their speckle and edges.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sonogauge.build.fingerprint import THUMB, WINDOWS, Pixels, orient

_BATCH: Final = 32
_SMOOTH: Final = 4.0  # standard deviation in thumbnail pixels
_CENTRE: Final = 0.8
# Width and height of the other picture, beside its own: it may show more or less of the scene, along one side or both.
_SCALES: Final = (
    *((1.0, 0.95), (0.95, 1.0), (1.0, 1.05), (1.05, 1.0)),
    *((0.975, 0.975), (1.025, 1.025), (0.95, 0.95), (1.05, 1.05)),
)
_FLAT: Final = 1.0
_NOISE: Final = 1e-6  # variance of a window below which it is even
_HOPELESS: Final = 0.45  # at their own sizes; of 1,232 copies made of 154 pictures the least alike correlated by 0.53
_SURE: Final = 0.95


@dataclass(frozen=True, slots=True)
class View:
    """Two thumbnails and how the right one is thought to lie on the left one.

    orientation: of the right one. window: the part of the right one that the left one shows; negative: the reverse.
    """

    left: Pixels
    right: Pixels
    orientation: int = 0
    window: int = 0


def correlate(views: Iterable[View]) -> list[float]:
    """Return for each view the highest correlation of the centre of one thumbnail on the other, from -1 to 1."""
    left = iter(views)
    found: list[float] = []
    while some := list(islice(left, _BATCH)):
        found += _correlate(some)
    return found


def _correlate(views: Sequence[View]) -> list[float]:
    pairs = [_aligned(view) for view in views]
    margin = round(THUMB * (1 - _CENTRE) / 2)
    templates = np.stack([_detail(left, THUMB, THUMB)[margin:-margin, margin:-margin] for left, _ in pairs])
    flat = (templates.std(axis=(1, 2)) < _FLAT) | np.array([float(right.std()) < _FLAT for _, right in pairs])
    # All at once at their own sizes; only those between sure and hopeless at other sizes.
    found = peaks(templates, [_detail(right, THUMB, THUMB) for _, right in pairs])
    found[flat] = 0.0
    for number in np.flatnonzero((found >= _HOPELESS) & (found <= _SURE)):
        right = pairs[number][1]
        fields = [_detail(right, round(THUMB * across), round(THUMB * down)) for across, down in _SCALES]
        found[number] = max(found[number], peaks(templates[number, None], fields).max())
    return [float(value) for value in found]


def _aligned(view: View) -> tuple[Pixels, Pixels]:
    if view.window > 0:
        # Codes of a part are those of the part turned, not of a part of the turned picture.
        return view.left, orient(_part(view.right, view.window), view.orientation)
    left = _part(view.left, -view.window) if view.window < 0 else view.left
    return left, orient(view.right, view.orientation)


def _part(picture: Pixels, window: int) -> Pixels:
    left, top, right, bottom = (round(side * THUMB) for side in WINDOWS[window])
    return picture[top:bottom, left:right]


def _detail(picture: Pixels, width: int, height: int) -> Any:
    import cv2

    scaled = cv2.resize(picture, (width, height), interpolation=cv2.INTER_LINEAR).astype(np.float32)
    return scaled - cv2.GaussianBlur(scaled, (0, 0), _SMOOTH)


def peaks(templates: NDArray[Any], fields: Sequence[Any]) -> NDArray[np.float64]:
    """Return for each field the highest normalised correlation of its template at any place inside it.

    templates: (fields or 1, rows, columns). Equal to the maximum of OpenCV's `matchTemplate` with TM_CCOEFF_NORMED;
    many fields in one Fourier transform are many times as fast as that. A field that is even everywhere gives -1.
    Source: J. P. Lewis, "Fast normalized cross-correlation", 1995.
    """
    from scipy.fft import irfft2, next_fast_len, rfft2

    height, width = templates.shape[1:]
    size = tuple(next_fast_len(max(field.shape[axis] for field in fields), real=True) for axis in (0, 1))
    padded = np.zeros((len(fields), *size))
    for number, field in enumerate(fields):
        padded[number, : field.shape[0], : field.shape[1]] = field
    centred = templates - templates.mean(axis=(1, 2), keepdims=True, dtype=np.float64)
    energy = np.maximum((centred**2).sum(axis=(1, 2), keepdims=True), _NOISE)
    products = irfft2(rfft2(padded) * rfft2(centred, size).conj(), size)
    spread = _windows(padded**2, height, width) - _windows(padded, height, width) ** 2 / (height * width)
    lit = spread > _NOISE * height * width
    inside = products[:, : spread.shape[1], : spread.shape[2]]
    values = np.where(lit, inside / np.sqrt(np.where(lit, spread, 1.0) * energy), -1.0)
    found = np.empty(len(fields))
    for number, field in enumerate(fields):
        # Places further on would reach over the field's edge.
        found[number] = values[number, : field.shape[0] - height + 1, : field.shape[1] - width + 1].max()
    return found


def _windows(fields: NDArray[np.float64], height: int, width: int) -> NDArray[np.float64]:
    """Return the sums of all windows of a size in each field."""
    count, rows, columns = fields.shape
    sums = np.zeros((count, rows + 1, columns + 1))
    np.cumsum(fields, axis=1, out=sums[:, 1:, 1:])
    np.cumsum(sums[:, 1:, 1:], axis=2, out=sums[:, 1:, 1:])
    return sums[:, height:, width:] - sums[:, :-height, width:] - sums[:, height:, :-width] + sums[:, :-height, :-width]
