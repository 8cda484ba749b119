"""Tests of two models on the same items: swapped patients (the default), and McNemar's as reproduction."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sonogauge.metrics.base import Array, Metric
from sonogauge.metrics.sums import GroupSums

ONE_GROUP: Final = "one group: the spread between groups cannot be told"
NO_GROUP: Final = "no group"
# Cells of one block of swaps; bounds memory whatever the number of groups.
_BLOCK_CELLS: Final = 4_000_000
# Two statistics closer than this share of their scale are the same: sums in another order differ by rounding.
_TIE: Final = 1e-12

Key = tuple[str, str]


@dataclass(frozen=True, eq=False)
class PairedSums:
    """One metric of sums of two models on the same items.

    metric: of kind "sum". a, b: the sums of the models; a group that one lacks counts 0 there.
    """

    metric: Metric
    a: GroupSums
    b: GroupSums


@dataclass(frozen=True)
class SwapTest:
    """A p-value under exchanged models, or the reason why there is none.

    p: two-sided. groups: groups that hold items; differing: those in which the models differ. swaps: exchanges tried,
    all of them where `exact`.
    """

    p: float | None
    groups: int
    differing: int
    swaps: int
    exact: bool
    why_null: str | None = None


def swap_test(
    parts: Sequence[PairedSums],
    value: Callable[[Array], Array] | None = None,
    *,
    swaps: int = 9_999,
    seed: int = 0,
) -> SwapTest:
    """Test whether two models differ by exchanging them within groups (patients), all items of a group at once.

    Under the null hypothesis the two models' results of a patient are exchangeable, so every pattern of exchanges is
    as likely as the one seen; this holds for any function of sums (RMSE, macro-F1, BLEU, a composite) and whatever the
    correlation inside a patient. For an accuracy it is the sign-flip test of the patients' differences in hits. All
    patterns are tried where they are at most `swaps` + 1, else `swaps` random ones, and the seen one counts with them:
    p = (1 + patterns at least as far apart) / (1 + swaps) (Phipson & Smyth 2010, doi:10.2202/1544-6115.1585).

    Args:
        parts: the sums that the value is made of; a group that occurs in several parts is exchanged in all of them.
        value: metric values (..., parts) -> (...); by default their unweighted mean.
        swaps: random exchanges; the smallest p is 1 / (swaps + 1).
        seed: of the random exchanges, which depend on it and on the groups that differ, not on their order.

    Raises:
        ValueError: fewer than 1 swap, a metric that is no function of sums, statistics of different shapes.
    """
    if swaps < 1:
        raise ValueError(f"swaps must be at least 1, not {swaps}")
    value = value or _mean
    tables = [_aligned(part) for part in parts]
    groups = {key for table in tables for key in table.keys}
    # Exchanging equal sums changes nothing.
    differing = sorted({key for table in tables for key, moved in zip(table.keys, table.differs, strict=True) if moved})
    if not groups:
        return SwapTest(None, 0, 0, 0, False, NO_GROUP)
    if len(groups) == 1:
        return SwapTest(None, 1, len(differing), 0, False, ONE_GROUP)
    if not differing:
        return SwapTest(1.0, len(groups), 0, 1, True)
    exact = len(differing) <= 40 and 2 ** len(differing) <= swaps + 1
    count = 2 ** len(differing) if exact else swaps
    seen = _gap(tables, value, np.zeros((1, len(differing))), differing)[0]
    if math.isnan(seen):
        return SwapTest(None, len(groups), len(differing), 0, False, "not defined at these values")
    far = 0
    undefined = 0
    blocks = _all_swaps(len(differing)) if exact else _random_swaps(differing, swaps, seed)
    for block in blocks:
        gaps = np.abs(_gap(tables, value, block, differing))
        undefined += int(np.isnan(gaps).sum())
        far += int((gaps >= abs(seen) - _TIE * max(1.0, abs(seen))).sum())
    # A pattern without a value speaks for the null: it counts as at least as far apart.
    far += undefined
    p = far / count if exact else (far + 1) / (count + 1)
    return SwapTest(p, len(groups), len(differing), count, exact)


@dataclass(frozen=True, eq=False)
class _Aligned:
    """Sums of two models over the same groups: total of each, and what an exchange moves from b to a."""

    metric: Metric
    keys: tuple[Key, ...]
    differs: NDArray[np.bool_]
    moves: Array  # (groups, k): b - a
    shape: tuple[int, ...]
    total_a: Array
    total_b: Array


def _aligned(part: PairedSums) -> _Aligned:
    if part.metric.kind != "sum":
        raise ValueError(f"metric '{part.metric.name}' is no function of sums")
    shape = part.a.values.shape[1:]
    if part.b.values.shape[1:] != shape:
        raise ValueError(f"statistics of shapes {shape} and {part.b.values.shape[1:]}")
    keys_a = list(zip(part.a.strata, part.a.groups, strict=True))
    keys_b = list(zip(part.b.strata, part.b.groups, strict=True))
    keys = sorted(set(keys_a) | set(keys_b))
    place = {key: number for number, key in enumerate(keys)}
    size = math.prod(shape)
    a, b = np.zeros((len(keys), size)), np.zeros((len(keys), size))
    a[[place[key] for key in keys_a]] = part.a.values.reshape(len(keys_a), size)
    b[[place[key] for key in keys_b]] = part.b.values.reshape(len(keys_b), size)
    moves: Array = b - a
    differs: NDArray[np.bool_] = (moves != 0).any(axis=1)
    return _Aligned(part.metric, tuple(keys), differs, moves, shape, a.sum(axis=0), b.sum(axis=0))


def _gap(tables: Sequence[_Aligned], value: Callable[[Array], Array], swapped: Array, differing: list[Key]) -> Array:
    """Return value(a) - value(b) for each row of `swapped` (patterns, differing groups), 1 = exchanged."""
    column = {key: number for number, key in enumerate(differing)}
    ours, theirs = [], []
    for table in tables:
        rows = np.flatnonzero(table.differs)
        moved = swapped[:, [column[table.keys[row]] for row in rows]] @ table.moves[rows]
        ours.append(table.metric.function((table.total_a + moved).reshape(-1, *table.shape)))
        theirs.append(table.metric.function((table.total_b - moved).reshape(-1, *table.shape)))
    gap: Array = value(np.stack(ours, axis=-1)) - value(np.stack(theirs, axis=-1))
    return gap


def _all_swaps(groups: int) -> Iterator[Array]:
    step = max(1, _BLOCK_CELLS // groups)
    for start in range(0, 2**groups, step):
        patterns = np.arange(start, min(start + step, 2**groups), dtype=np.int64)
        yield ((patterns[:, None] >> np.arange(groups)) & 1).astype(np.float64)


def _random_swaps(differing: list[Key], swaps: int, seed: int) -> Iterator[Array]:
    digest = hashlib.sha256(f"swaps {seed}".encode())
    for stratum, group in differing:
        for text in (stratum.encode(), group.encode()):
            digest.update(len(text).to_bytes(8, "little") + text)
    generator = np.random.default_rng(int.from_bytes(digest.digest(), "little"))
    width = (len(differing) + 7) // 8
    step = max(1, _BLOCK_CELLS // len(differing))
    for start in range(0, swaps, step):
        bits = generator.integers(256, size=(min(step, swaps - start), width), dtype=np.uint8)
        yield np.unpackbits(bits, axis=1, count=len(differing)).astype(np.float64)


def _mean(values: Array) -> Array:
    return np.asarray(values.mean(axis=-1))


@dataclass(frozen=True)
class McNemar:
    """McNemar's tests of two models' hits, items taken as independent: for reproducing published figures only.

    b: right only in the first, c: right only in the second. statistic: (b - c)²/(b + c), chi-square with one degree of
    freedom, p beside it; corrected: (|b - c| - 1)²/(b + c); p_exact: binomial; p_mid: its mid-p.
    """

    b: int
    c: int
    statistic: float
    p: float
    statistic_corrected: float
    p_corrected: float
    p_exact: float
    p_mid: float


def mcnemar(b: int, c: int) -> McNemar:
    """Return McNemar's tests of b and c discordant items; without any, all p are 1.

    p_exact = min(1, 2 P(X <= min(b, c))), X ~ Bin(b + c, 1/2); p_mid = p_exact - P(X = b), and 1 - P(X = b)/2 where
    b = c (Fagerland, Lydersen & Laake 2013, doi:10.1186/1471-2288-13-91). Edwards' correction never goes below 0.

    Raises:
        ValueError: a negative count.

    >>> found = mcnemar(64, 26)
    >>> round(found.statistic, 2), round(found.p, 6)
    (16.04, 6.2e-05)
    """
    from scipy.special import bdtr, chdtrc

    if b < 0 or c < 0:
        raise ValueError(f"counts must not be negative: {b}, {c}")
    n = b + c
    if n == 0:
        return McNemar(b, c, 0.0, 1.0, 0.0, 1.0, 1.0, 1.0)
    plain = (b - c) ** 2 / n
    corrected = max(abs(b - c) - 1, 0) ** 2 / n
    least = min(b, c)
    below = float(bdtr(least, n, 0.5))
    point = below - (float(bdtr(least - 1, n, 0.5)) if least else 0.0)
    exact = min(1.0, 2.0 * below)
    mid = 1.0 - point / 2 if b == c else exact - point
    return McNemar(b, c, plain, float(chdtrc(1, plain)), corrected, float(chdtrc(1, corrected)), exact, max(0.0, mid))
