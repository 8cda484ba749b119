"""Correlation of predicted with reference numbers, over the items answered."""

from __future__ import annotations

from typing import Any

import numpy as np

from sonogauge.metrics.agreement import PAIRS, XX, XY, YY, X, Y
from sonogauge.metrics.base import Array, complex_step, metric, ratio, safe_ratio

_UNDEFINED = "the references, or the predictions, are all equal"
# A variance below this share of the mean square is rounding.
_ROUNDING = 1e-13


def _pearson(sums: Any) -> Any:
    n = sums[..., PAIRS]
    x, y = safe_ratio(sums[..., X], n), safe_ratio(sums[..., Y], n)
    xx, yy = safe_ratio(sums[..., XX], n), safe_ratio(sums[..., YY], n)
    spread_x, spread_y = xx - x * x, yy - y * y
    flat = (np.real(spread_x) <= _ROUNDING * np.real(xx)) | (np.real(spread_y) <= _ROUNDING * np.real(yy))
    product = np.where(flat, 1.0, spread_x) * np.where(flat, 1.0, spread_y)
    return np.where(flat, np.nan, (safe_ratio(sums[..., XY], n) - x * y) / np.sqrt(product))


@metric(
    "pearson",
    statistic="pairs",
    direction="up",
    identity=1.0,
    interval="averaged",
    unit="correlation",
    gradient=complex_step(_pearson),
    source="Pearson 1895, doi:10.1098/rspl.1895.0041",
    facts="items:answered",
    chance=0.0,
    undefined=_UNDEFINED,
)
def pearson(sums: Array) -> Array:
    """Pearson correlation of reference and prediction over the items answered.

    sums: (..., 8) as `agreement.pair_statistics`. NaN where one side does not vary.

    >>> from sonogauge.metrics.agreement import pair_statistics
    >>> round(float(pearson(pair_statistics([1.0, 2.0, 3.0], [2.0, 4.0, 6.0]).sum(axis=0))), 6)
    1.0
    """
    return np.asarray(_pearson(np.asarray(sums, dtype=np.float64)))


def weighted_ranks(values: Array, weights: Array) -> Array:
    """Return mid-ranks of values (n,) under weights (..., n): the weight below plus half the weight of the ties.

    With whole weights they are the mid-ranks of the repeated values, up to a constant.

    >>> weighted_ranks(np.array([5.0, 1.0, 5.0]), np.ones(3))
    array([2. , 0.5, 2. ])
    """
    _, place = np.unique(values, return_inverse=True)
    order = np.argsort(place, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(place[order]) != 0])
    of_ties = np.add.reduceat(weights[..., order], starts, axis=-1)
    below = np.cumsum(of_ties, axis=-1) - of_ties
    result: Array = (below + of_ties / 2.0)[..., place]
    return result


@metric(
    "spearman",
    statistic="number_pairs",
    direction="up",
    identity=1.0,
    interval="percentile",
    unit="correlation",
    kind="order",
    source="Spearman 1904, doi:10.2307/1412159; mid-ranks for ties",
    facts="items:answered",
    chance=0.0,
    undefined=_UNDEFINED,
)
def spearman(values: Array, weights: Array) -> Array:
    """Spearman rank correlation of reference and prediction over the items answered.

    values: (n, 2) = [reference, prediction]; weights: (..., n), at least 0. NaN where one side does not vary.

    >>> float(spearman(np.array([[1.0, 10.0], [2.0, 100.0], [3.0, 1000.0]]), np.ones(3)))
    1.0
    """
    values, weights = np.asarray(values, dtype=np.float64), np.asarray(weights, dtype=np.float64)
    if not len(values):
        return np.full(weights.shape[:-1], np.nan)
    total = weights.sum(axis=-1, keepdims=True)
    sides = []
    for column in (0, 1):
        ranks = weighted_ranks(values[:, column], weights)
        sides.append(ranks - ratio((weights * ranks).sum(axis=-1, keepdims=True), total))
    x, y = sides
    spread_x, spread_y = (weights * x * x).sum(axis=-1), (weights * y * y).sum(axis=-1)
    scale = np.square(total[..., 0]) * total[..., 0]
    flat = (spread_x <= _ROUNDING * scale) | (spread_y <= _ROUNDING * scale)
    return ratio((weights * x * y).sum(axis=-1), np.where(flat, 0.0, np.sqrt(spread_x * spread_y)))
