"""Copies of images in two sets: candidates by perceptual codes, confirmed by correlation of thumbnails."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sonogauge.build.correlation import View, correlate
from sonogauge.build.fingerprint import ORIENTATIONS, WINDOWS, Pixels

Codes = NDArray[np.uint64]  # (images, WINDOWS, ORIENTATIONS)

_ROWS: Final = 32  # of the left set at once
_CHUNK: Final = 2048  # of the right set
_THREADS: Final = 2
_WAYS: Final = 256  # more than orientations times windows, both ways
_UNLIKE: Final = 25  # bits between whole images, of 63; of a copy cropped by 5 % they are fewer


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
        views = (
            View(*pair, one.orientation, one.window)
            for one, pair in zip(kept, thumbs([(one.left, one.right) for one in kept]), strict=True)
        )
        values = correlate(views)
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
