"""Copies of images in two sets: candidates by perceptual codes, confirmed by correlation of thumbnails.

The thumbnails are freed of their slow changes first: two scans with one shape of the fan correlate highly as they are,
and hardly at all in their speckle and edges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sonogauge.build.fingerprint import ORIENTATIONS, THUMB, WINDOWS, Pixels, orient

Codes = NDArray[np.uint64]  # (images, WINDOWS, ORIENTATIONS)

_ROWS: Final = 32  # of the left set at once
_CHUNK: Final = 2048  # of the right set
_THREADS: Final = 2
_WAYS: Final = 256  # more than orientations times windows, both ways
_SMOOTH: Final = 4.0  # standard deviation in thumbnail pixels
_CENTRE: Final = 0.8
# Width and height of the other picture, beside its own: it may show more or less of the scene, along one side or both.
_SCALES: Final = (
    *((1.0, 0.95), (0.95, 1.0), (1.0, 1.05), (1.05, 1.0)),
    *((0.975, 0.975), (1.025, 1.025), (0.95, 0.95), (1.05, 1.05)),
)
_FLAT: Final = 1.0
_UNLIKE: Final = 25  # bits between whole images, of 63; of a copy cropped by 5 % they are fewer
_NOISE: Final = 1e-6  # variance of a window below which it is even
_HOPELESS: Final = 0.45  # at their own sizes; of 1,232 copies made of 154 pictures the least alike correlated by 0.53
_SURE: Final = 0.95


class Picked:
    """Some of many codes, taken when they are sliced, so that there is no second copy of all."""

    def __init__(self, codes: Codes, numbers: Sequence[int]) -> None:
        self._codes = codes
        self._numbers = np.asarray(numbers, dtype=np.int64)

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, rows: slice) -> Codes:
        return self._codes[self._numbers[rows]]


@dataclass(frozen=True, slots=True)
class Limits:
    """bits: largest distance of codes of 63 bits; correlation: least of a copy; candidates: most of an image."""

    bits: int = 10
    correlation: float = 0.8
    candidates: int = 24


DEFAULT: Final = Limits()


@dataclass(frozen=True, slots=True, order=True)
class Pair:
    """Two images, by their numbers, that show the same: how one lies on the other and how well they correlate."""

    left: int
    right: int
    orientation: int
    correlation: float


def find_copies(
    left: Codes | Picked,
    right: Codes | Picked,
    thumbs: Callable[[Sequence[tuple[int, int]]], Iterator[tuple[Pixels, Pixels]]],
    limits: Limits = DEFAULT,
    skip: Callable[[int, int], bool] = lambda _left, _right: False,
) -> tuple[list[Pair], int, int]:
    """Return the confirmed pairs, the number of candidates, and how many candidates were left out as too many.

    Args:
        left: codes of one set.
        right: codes of the other.
        thumbs: gives the thumbnails of pairs, in their order; called from several threads.
        limits: what counts as near.
        skip: pairs not to be judged.
    """
    import cv2

    cv2.setNumThreads(1)  # the threads here are enough

    def compare(start: int) -> tuple[list[Pair], int, int]:
        # Judged right away: all candidates of a large set at once would not be few.
        kept, cut = _candidates(left, right, start, limits, skip)
        pictures = thumbs([(one.left, one.right) for one in kept])
        values = [_judge(one, pair) for one, pair in zip(kept, pictures, strict=True)]
        pairs = [
            Pair(one.left, one.right, one.orientation, round(value, 4))
            for one, value in zip(kept, values, strict=True)
            if value >= limits.correlation
        ]
        return pairs, len(kept), cut

    with ThreadPoolExecutor(_THREADS) as pool:
        found = list(pool.map(compare, range(0, len(left), _ROWS)))
    return [pair for pairs, _, _ in found for pair in pairs], sum(n for _, n, _ in found), sum(n for _, _, n in found)


@dataclass(frozen=True, slots=True)
class _Candidate:
    left: int
    right: int
    orientation: int
    window: int  # of the right image that the left one shows; negative: the reverse


def _candidates(
    left: Codes | Picked, right: Codes | Picked, start: int, limits: Limits, skip: Callable[[int, int], bool]
) -> tuple[list[_Candidate], int]:
    """Return the nearest candidates of some left images in their order, and how many were too many."""
    part = left[start : start + _ROWS]
    near: list[list[tuple[int, int, int]]] = [[] for _ in part]
    for begin in range(0, len(right), _CHUNK):
        best = _nearest(part, right[begin : begin + _CHUNK])
        for row, column in zip(*np.nonzero(best < (limits.bits + 1) * _WAYS), strict=True):
            distance, how = divmod(int(best[row, column]), _WAYS)
            if not skip(start + int(row), begin + int(column)):
                near[row].append((distance, begin + int(column), how))
    kept, cut = [], 0
    for row, found in enumerate(near):
        cut += max(0, len(found) - limits.candidates)
        for _, other, how in sorted(sorted(found)[: limits.candidates], key=lambda one: one[1]):
            window, orientation = divmod(how, ORIENTATIONS)
            shown = window if window < len(WINDOWS) else len(WINDOWS) - 1 - window
            kept.append(_Candidate(start + row, other, orientation, shown))
    return kept, cut


def _nearest(part: Codes, chunk: Codes) -> NDArray[np.uint16]:
    """Return for all pairs _WAYS x the smallest distance + the way in which it comes about.

    Whole images are compared first; parts only where the wholes, turned alike, are not quite unlike.
    """
    best = np.full((len(part), len(chunk)), np.iinfo(np.uint16).max, dtype=np.uint16)
    for orientation in range(ORIENTATIONS):
        whole = np.bitwise_count(part[:, 0, 0][:, None] ^ chunk[:, 0, orientation][None, :])
        np.minimum(best, whole.astype(np.uint16) * np.uint16(_WAYS) + np.uint16(orientation), out=best)
        rows, columns = np.nonzero(whole < _UNLIKE)
        left, right = part[rows, :, 0], chunk[columns, :, orientation]
        likely = best[rows, columns]
        for window in range(1, len(WINDOWS)):
            _lower(likely, left[:, 0], right[:, window], ORIENTATIONS * window + orientation)
            way = ORIENTATIONS * (len(WINDOWS) - 1 + window) + orientation
            _lower(likely, left[:, window], right[:, 0], way)
        best[rows, columns] = likely
    return best


def _lower(best: NDArray[np.uint16], left: NDArray[np.uint64], right: NDArray[np.uint64], way: int) -> None:
    distance = np.bitwise_count(left ^ right).astype(np.uint16)
    distance *= np.uint16(_WAYS)
    distance += np.uint16(way)
    np.minimum(best, distance, out=best)


def _judge(candidate: _Candidate, thumbs: tuple[Pixels, Pixels]) -> float:
    return correlate(*thumbs, candidate.orientation, candidate.window)


def correlate(left: Pixels, right: Pixels, orientation: int, window: int) -> float:
    """Return the highest correlation of the centre of one thumbnail on the other, from -1 to 1.

    orientation: of the right one. window: the part of the right one that the left one shows; negative: the reverse.
    """
    turned = orient(right, orientation)
    if window > 0:
        # Codes of a part are those of the part turned, not of a part of the turned picture.
        turned = orient(_part(right, window), orientation)
    elif window < 0:
        left = _part(left, -window)
    return _best_fit(left, turned)


def _part(picture: Pixels, window: int) -> Pixels:
    left, top, right, bottom = (round(side * THUMB) for side in WINDOWS[window])
    return picture[top:bottom, left:right]


def _detail(picture: Pixels, width: int, height: int) -> Any:
    import cv2

    scaled = cv2.resize(picture, (width, height), interpolation=cv2.INTER_LINEAR).astype(np.float32)
    return scaled - cv2.GaussianBlur(scaled, (0, 0), _SMOOTH)


def _best_fit(left: Pixels, right: Pixels) -> float:
    margin = round(THUMB * (1 - _CENTRE) / 2)
    template = _detail(left, THUMB, THUMB)[margin:-margin, margin:-margin]
    if float(template.std()) < _FLAT or float(right.std()) < _FLAT:
        return 0.0
    first = _highest(template, [_detail(right, THUMB, THUMB)])
    if first > _SURE or first < _HOPELESS:
        return first
    fields = [_detail(right, round(THUMB * across), round(THUMB * down)) for across, down in _SCALES]
    return max(first, _highest(template, fields))


def _highest(template: Any, fields: Sequence[Any]) -> float:
    """Return the highest normalised correlation of a template at any place inside any of the fields.

    Equal to the maximum of OpenCV's `matchTemplate` with TM_CCOEFF_NORMED over the fields; several fields in one
    Fourier transform are many times as fast as that. Source: J. P. Lewis, "Fast normalized cross-correlation", 1995.
    """
    import cv2
    from scipy.fft import irfft2, next_fast_len, rfft2

    height, width = template.shape
    centred = template.astype(np.float64) - float(template.mean(dtype=np.float64))
    energy = float((centred**2).sum())
    size = tuple(next_fast_len(max(field.shape[axis] for field in fields), real=True) for axis in (0, 1))
    padded = np.zeros((len(fields), *size))
    for number, field in enumerate(fields):
        padded[number, : field.shape[0], : field.shape[1]] = field
    products = irfft2(rfft2(padded) * rfft2(centred, size).conj(), size)
    best = -1.0
    for product, field in zip(products, fields, strict=True):
        total, squares = (_windows(one, height, width) for one in cv2.integral2(field, sdepth=cv2.CV_64F))
        spread = squares - total**2 / (height * width)
        inside = product[: spread.shape[0], : spread.shape[1]]
        lit = spread > _NOISE * height * width
        if lit.any():
            best = max(best, float((inside[lit] / np.sqrt(spread[lit] * energy)).max()))
    return best


def _windows(integral: Any, height: int, width: int) -> Any:
    """Return the sums of all windows of a size, from an integral image."""
    return (
        integral[height:, width:]
        - integral[:-height, width:]
        - integral[height:, :-width]
        + integral[:-height, :-width]
    )
