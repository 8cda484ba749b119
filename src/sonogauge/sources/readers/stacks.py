"""Files of several images: which frames to take, and each of them as a picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sonogauge.sources.layout import FrameRule
from sonogauge.sources.readers.pictures import Picture, to_eight_bits, to_png


@dataclass(frozen=True)
class Stack:
    """A clip, cine or volume, read frame by frame.

    frames: number of frames. array: frame number -> its values, (rows, columns) or (rows, columns, 3).
    changes: mean absolute difference of each frame to the one before as a fraction of the range, for scene changes.
    """

    frames: int
    array: Callable[[int], NDArray[Any]]
    spacing: tuple[float, float] | None = None
    meta: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    limits: Callable[[], tuple[float, float] | None] = lambda: None

    def __len__(self) -> int:
        return self.frames

    def picture(self, number: int) -> Picture:
        """Return a frame as a PNG."""
        limits = self.limits() or (None, None)
        pixels, note = to_eight_bits(self.array(number), *limits)
        return Picture(to_png(pixels), self.spacing, dict(self.meta), (*self.notes, *([note] if note else [])))

    def non_empty(self) -> set[int]:
        """Return the numbers of the frames that hold anything but zeros; for stacks of masks."""
        return {number for number in range(self.frames) if self.array(number).any()}

    def choose(self, rule: FrameRule) -> list[int]:
        """Return the numbers of the frames that a rule keeps, in order."""
        if rule.keep == "all" or self.frames == 1:
            return list(range(self.frames))
        if rule.keep == "middle":
            return [self.frames // 2]
        if rule.keep == "scenes":
            return scene_starts((self.array(number) for number in range(self.frames)), rule)
        return spread(self.frames, rule.count)


def scene_starts(frames: Any, rule: FrameRule) -> list[int]:
    """Return the first frame and those that differ from the last kept one by more than `rule.change`.

    Differences are means of absolute differences of grey values thinned to about 64 x 64, as fractions of 255.
    """
    kept: list[int] = []
    last: NDArray[Any] | None = None
    for number, frame in enumerate(frames):
        small = _thin(frame)
        if last is None or float(np.abs(small - last).mean()) / 255 > rule.change:
            kept.append(number)
            last = small
            if len(kept) == rule.count:
                break
    return kept


def _thin(frame: NDArray[Any]) -> NDArray[Any]:
    grey = frame.mean(axis=2) if frame.ndim == 3 else frame
    rows, columns = max(1, grey.shape[0] // 64), max(1, grey.shape[1] // 64)
    return np.asarray(grey[::rows, ::columns], dtype=np.float64)


def spread(total: int, count: int) -> list[int]:
    """Return at most `count` numbers below `total`, evenly spread: the middles of equal parts.

    >>> spread(100, 4), spread(2, 5), spread(0, 3)
    ([12, 37, 62, 87], [0, 1], [])
    """
    count = min(count, total)
    return [(2 * place + 1) * total // (2 * count) for place in range(count)]


def limits_of(arrays: Sequence[NDArray[Any]]) -> tuple[float, float] | None:
    """Return the values that become 0 and 255 in all frames of a stack; None where its type is an 8-bit one.

    Whole numbers within 0 to 255 stay as they are, unless they are floats of 0 and 1 only.
    """
    if all(one.dtype in (np.uint8, np.bool_) for one in arrays):
        return None
    low, high = min(float(one.min()) for one in arrays), max(float(one.max()) for one in arrays)
    whole = all(bool((one == np.rint(one)).all()) for one in arrays)
    counts = all(one.dtype.kind in "iu" for one in arrays) or high > 1
    return (0.0, 255.0) if whole and counts and low >= 0 and high <= 255 else (low, high)
