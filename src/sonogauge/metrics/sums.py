"""Sums of a statistic per (stratum, group): what scoring keeps, merges across shards and hands to the intervals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sonogauge.metrics.base import Array


@dataclass(frozen=True, eq=False)
class GroupSums:
    """One sum per group, sorted by (stratum, group), each pair once.

    Args:
        strata: stratum (source data set) of each group.
        groups: group (patient) ids.
        values: (groups, *statistic shape).
    """

    strata: tuple[str, ...]
    groups: tuple[str, ...]
    values: Array

    @classmethod
    def from_items(cls, strata: Sequence[str], groups: Sequence[str], statistics: ArrayLike) -> GroupSums:
        """Sum per-item statistics (n, *shape) by (stratum, group).

        Raises:
            ValueError: the three differ in length.

        >>> GroupSums.from_items(["a", "a", "a"], ["p2", "p1", "p2"], [[1, 1], [0, 1], [1, 1]]).values
        array([[0., 1.],
               [2., 2.]])
        """
        sums = Accumulator()
        sums.add(strata, groups, statistics)
        return sums.sums()

    def merge(self, *others: GroupSums) -> GroupSums:
        """Return the sums over this and other shards; the order of the shards does not matter."""
        sums = Accumulator()
        for part in (self, *others):
            sums.add(part.strata, part.groups, part.values)
        return sums.sums()

    def total(self) -> Array:
        """Return the sum over all groups, of the statistic's shape."""
        result: Array = self.values.sum(axis=0)
        return result

    def stratum_slices(self) -> dict[str, slice]:
        """Return where each stratum lies; strata in sorted order."""
        slices: dict[str, slice] = {}
        start = 0
        for position in range(1, len(self.strata) + 1):
            if position == len(self.strata) or self.strata[position] != self.strata[start]:
                slices[self.strata[start]] = slice(start, position)
                start = position
        return slices


class Accumulator:
    """Adds batches of items to sums per group; memory grows with the groups, not with the items."""

    def __init__(self) -> None:
        self._place: dict[tuple[str, str], int] = {}
        self._values: Array | None = None

    def add(self, strata: Iterable[str], groups: Iterable[str], statistics: ArrayLike) -> None:
        """Add statistics (n, *shape) of items with these strata and groups.

        Raises:
            ValueError: lengths or shapes do not fit, or a statistic is not finite.
        """
        batch = np.asarray(statistics, dtype=np.float64)
        place = self._place
        index: NDArray[np.intp] = np.fromiter(
            (place.setdefault(key, len(place)) for key in zip(strata, groups, strict=True)), dtype=np.intp
        )
        if batch.ndim < 1 or len(index) != len(batch):
            raise ValueError(f"{len(index)} groups for statistics of shape {batch.shape}")
        if not np.isfinite(batch).all():
            raise ValueError("statistics must be finite: a failed answer needs a value of its own, not NaN")
        if self._values is None:
            self._values = np.zeros((0, *batch.shape[1:]))
        if batch.shape[1:] != self._values.shape[1:]:
            raise ValueError(f"statistics of shape {batch.shape[1:]} after {self._values.shape[1:]}")
        if len(place) > len(self._values):
            room = np.zeros((max(len(place), 2 * len(self._values)), *batch.shape[1:]))
            room[: len(self._values)] = self._values
            self._values = room
        np.add.at(self._values, index, batch)

    def sums(self) -> GroupSums:
        """Return the sums so far.

        Raises:
            ValueError: nothing was added, so the shape of the statistic is not known.
        """
        if self._values is None:
            raise ValueError("no batch was added")
        keys = sorted(self._place)
        rows = [self._place[key] for key in keys]
        return GroupSums(tuple(stratum for stratum, _ in keys), tuple(group for _, group in keys), self._values[rows])
