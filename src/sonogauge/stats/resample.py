"""One weight per group per draw, used by all tasks and all models: the rescaled cluster bootstrap."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from sonogauge.metrics.base import Array
from sonogauge.metrics.sums import GroupSums
from sonogauge.stats._threads import one_thread

# A stratum with more groups than this is resampled by random pools of groups: 2,000 units estimate a variance as well
# as 100,000 do (1.6 % error), and memory stays bounded.
POOL_ABOVE = 5_000
POOLS = 2_000
# Counts are kept up to this many bytes; strata beyond it are drawn again when asked for.
_CACHE_BYTES = 256_000_000
_BLOCK_CELLS = 1_000_000
_CHUNK_CELLS = 100_000


class Resampler:
    """Bootstrap weights of groups within strata (Rao & Wu 1988: G - 1 of G groups, with replacement, times G/(G - 1)).

    A weight has mean 1, the weights of a stratum sum to its number of groups in each draw, and the variance of a total
    over the draws is the unbiased one, however few the groups. The weights of a stratum are a function of the seed,
    the stratum and its sorted group ids alone. A stratum with one group has weight 1 in every draw.

    Args:
        groups: ids of the groups of each stratum; order and repeats do not matter.
        draws: number of draws.
        seed: seed of the draws.
    """

    def __init__(self, groups: Mapping[str, Sequence[str]], draws: int = 10_000, seed: int = 0) -> None:
        if draws < 1:
            raise ValueError(f"draws must be at least 1, not {draws}")
        self.draws = draws
        self.seed = seed
        self._groups = {stratum: tuple(sorted(set(ids))) for stratum, ids in sorted(groups.items())}
        self._place: dict[str, dict[str, int]] = {}
        self._counts: dict[str, NDArray[np.uint8]] = {}
        self._cached = 0

    @classmethod
    def for_sums(cls, *sums: GroupSums, draws: int = 10_000, seed: int = 0) -> Resampler:
        """Return a resampler over all groups that occur in `sums`."""
        groups: dict[str, set[str]] = {}
        for part in sums:
            for stratum, group in zip(part.strata, part.groups, strict=True):
                groups.setdefault(stratum, set()).add(group)
        return cls({stratum: sorted(ids) for stratum, ids in groups.items()}, draws, seed)

    @property
    def strata(self) -> tuple[str, ...]:
        """The strata, sorted."""
        return tuple(self._groups)

    def groups(self, stratum: str) -> tuple[str, ...]:
        """Return the sorted group ids of a stratum."""
        return self._groups[stratum]

    def pooled(self, stratum: str) -> bool:
        """Return whether the stratum is resampled by random pools of groups, because it has so many."""
        return len(self._groups[stratum]) > POOL_ABOVE

    def unit_count(self, stratum: str) -> int:
        """Return the number of resampling units: the groups, or the pools of a huge stratum."""
        return POOLS if self.pooled(stratum) else len(self._groups[stratum])

    def factor(self, stratum: str) -> float:
        """Return the weight of a unit drawn once: U/(U - 1), or 1 for a single unit."""
        units = self.unit_count(stratum)
        return units / (units - 1) if units > 1 else 1.0

    def units(self, stratum: str, groups: Sequence[str]) -> NDArray[np.int64]:
        """Return the resampling unit of each of `groups`.

        Raises:
            ValueError: a stratum or group the resampler was not made for.
        """
        if stratum not in self._groups:
            raise ValueError(f"stratum '{stratum}' is not among those resampled")
        if stratum not in self._place:
            ids = self._groups[stratum]
            units: NDArray[np.int64] = np.arange(len(ids))
            if self.pooled(stratum):
                units = self._generator(stratum, "pools").permutation(len(ids)) % POOLS
            self._place[stratum] = dict(zip(ids, units.tolist(), strict=True))
        place = self._place[stratum]
        try:
            return np.fromiter((place[group] for group in groups), dtype=np.int64, count=len(groups))
        except KeyError as missing:
            raise ValueError(f"group {missing} of stratum '{stratum}' is not among those resampled") from None

    def _generator(self, stratum: str, purpose: str) -> np.random.Generator:
        digest = hashlib.sha256()
        for part in (purpose, str(self.seed), stratum, *self._groups[stratum]):
            encoded = part.encode("utf-8", "surrogatepass")
            digest.update(len(encoded).to_bytes(8, "little") + encoded)
        return np.random.Generator(np.random.SFC64(np.random.SeedSequence(int.from_bytes(digest.digest(), "little"))))

    def counts(self, stratum: str) -> NDArray[np.uint8]:
        """Return how often each unit is drawn, shape (draws, units); rows sum to units - 1 (to 1 for a single unit).

        A unit is drawn more than 255 times with a probability below 1e-400.
        """
        if stratum in self._counts:
            return self._counts[stratum]
        units = self.unit_count(stratum)
        counts = np.ones((self.draws, units), dtype=np.uint8)
        if units > 1:
            generator = self._generator(stratum, "draws")
            # The block depends on the units alone, so that more draws begin with the same ones.
            block = max(1, _BLOCK_CELLS // units)
            offsets = (np.arange(block, dtype=np.int64) * units)[:, None]
            for start in range(0, self.draws, block):
                drawn = generator.integers(
                    units, size=(block, units - 1), dtype=np.uint16 if units < 65_536 else np.int64
                )
                flat = np.bincount((drawn + offsets).ravel(), minlength=block * units)
                stop = min(start + block, self.draws)
                counts[start:stop] = flat.reshape(block, units)[: stop - start]
        counts.setflags(write=False)
        if self._cached + counts.nbytes <= _CACHE_BYTES:
            self._cached += counts.nbytes
            self._counts[stratum] = counts
        return counts

    def weights(self, stratum: str) -> Array:
        """Return the weights of the units of a stratum, shape (draws, units)."""
        return self.counts(stratum).astype(np.float64) * self.factor(stratum)

    def count_chunks(self, stratum: str, units: NDArray[np.int64]) -> Iterator[tuple[slice, Array]]:
        """Yield (draws, counts (chunk, len(units))) of the given units, few enough draws to stay in the cache."""
        counts = self.counts(stratum)
        whole = len(units) == counts.shape[1] and bool((units == np.arange(len(units))).all())
        step = max(1, _CHUNK_CELLS // max(1, len(units)))
        for start in range(0, self.draws, step):
            rows = slice(start, min(start + step, self.draws))
            part = counts[rows] if whole else counts[rows].take(units, axis=1)
            yield rows, part.astype(np.float64)

    def unit_sums(self, sums: GroupSums) -> dict[str, tuple[NDArray[np.int64], Array]]:
        """Return, for each stratum of `sums`, its units that hold groups and their sums (units, k), flattened."""
        flat = sums.values.reshape(len(sums.groups), int(np.prod(sums.values.shape[1:])))
        result = {}
        for stratum, where in sums.stratum_slices().items():
            units = self.units(stratum, sums.groups[where])
            values = flat[where]
            if self.pooled(stratum):
                present, inverse = np.unique(units, return_inverse=True)
                pooled = np.zeros((len(present), values.shape[1]))
                np.add.at(pooled, inverse, values)
                units, values = present, pooled
            result[stratum] = (units, values)
        return result

    def totals(self, sums: GroupSums) -> Array:
        """Return the weighted total of each draw, shape (draws, *statistic shape)."""
        shape = sums.values.shape[1:]
        result = np.zeros((self.draws, int(np.prod(shape))))
        for stratum, (units, values) in self.unit_sums(sums).items():
            weighted = self.factor(stratum) * values
            with one_thread():
                for rows, counts in self.count_chunks(stratum, units):
                    result[rows] += counts @ weighted
        return result.reshape(self.draws, *shape)
