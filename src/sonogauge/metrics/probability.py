"""Metrics of the probabilities a reply puts on its options: ranking of cases, and calibration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sonogauge.metrics.base import Array, metric, ratio
from sonogauge.metrics.choice import hit_share, hits_gradient

BINS: Final = 10
_ONE_CLASS: Final = "all items with probabilities are of one class"


def normalised(probabilities: ArrayLike) -> Array:
    """Scale rows (n, options) of probabilities, at least 0, to the sum 1; a row of zeros becomes uniform.

    >>> normalised([[0.2, 0.2], [0.0, 0.0]])
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """
    p = np.asarray(probabilities, dtype=np.float64)
    total = p.sum(axis=-1, keepdims=True)
    return np.where(total > 0, ratio(p, total, empty=0.0), 1.0 / p.shape[-1])


def brier_statistics(probabilities: ArrayLike, reference: ArrayLike) -> Array:
    """Return the statistic "brier" (n, 2): [half the squared distance to the right answer, 1].

    probabilities: (n, options), rows sum to 1. reference: (n,) positions.

    >>> brier_statistics([[0.75, 0.25]], [0])
    array([[0.0625, 1.    ]])
    """
    p = np.array(probabilities, dtype=np.float64)
    p[np.arange(len(p)), np.asarray(reference, dtype=np.int64)] -= 1.0
    return np.stack([(p * p).sum(axis=-1) / 2.0, np.ones(len(p))], axis=-1)


def calibration_statistics(probabilities: ArrayLike, reference: ArrayLike) -> Array:
    """Return the statistic "calibration" (n, 10, 3): by bin of the largest probability, [its sum, hits, items].

    A bin takes its lower end and not its upper; 1 falls into the last. Of equal probabilities the first option counts.

    >>> calibration_statistics([[0.75, 0.25]], [1])[0, 7]
    array([0.75, 0.  , 1.  ])
    """
    p = np.asarray(probabilities, dtype=np.float64)
    chosen = p.argmax(axis=-1)
    confidence = p[np.arange(len(p)), chosen]
    bins: NDArray[np.int64] = np.minimum((confidence * BINS).astype(np.int64), BINS - 1)
    result = np.zeros((len(p), BINS, 3))
    hits = (chosen == np.asarray(reference, dtype=np.int64)).astype(np.float64)
    result[np.arange(len(p)), bins] = np.stack([confidence, hits, np.ones(len(p))], axis=-1)
    return result


@metric(
    "brier",
    statistic="brier",
    direction="down",
    identity=0.0,
    interval="studentised",
    unit="fraction",
    gradient=hits_gradient,
    source="Brier 1950, doi:10.1175/1520-0493(1950)078<0001:VOFEIT>2.0.CO;2, halved",
    facts="items:with probabilities,scale:half",
)
def brier(sums: Array) -> Array:
    """Mean squared error of the probabilities, halved so that two options give the usual 0 to 1; sums: (..., 2).

    >>> float(brier(brier_statistics([[0.75, 0.25], [0.5, 0.5]], [0, 1]).sum(axis=0)))
    0.15625
    """
    return hit_share(sums)


def _ece_gradient(sums: Array) -> Array:
    sums = np.asarray(sums, dtype=np.float64)
    count = sums[..., 2].sum(axis=-1)
    gap = sums[..., 0] - sums[..., 1]
    slope = ratio(np.sign(gap), count[..., None])
    share = ratio(np.abs(gap).sum(axis=-1), count * count)
    return np.stack([slope, -slope, np.broadcast_to(-share[..., None], slope.shape)], axis=-1)


@metric(
    "ece",
    statistic="calibration",
    direction="down",
    identity=0.0,
    interval="standard_error",
    unit="fraction",
    gradient=_ece_gradient,
    source="Guo et al. 2017, arXiv:1706.04599",
    facts=f"items:with probabilities,bins:{BINS} equal,confidence:largest",
)
def ece(sums: Array) -> Array:
    """Expected calibration error: mean over items of |confidence - accuracy| of their bin.

    sums: (..., 10, 3) as `calibration_statistics`. Small samples raise it: read it beside n.

    >>> round(float(ece(calibration_statistics([[0.75, 0.25], [0.85, 0.15]], [1, 0]).sum(axis=0))), 6)
    0.45
    """
    sums = np.asarray(sums, dtype=np.float64)
    return ratio(np.abs(sums[..., 0] - sums[..., 1]).sum(axis=-1), sums[..., 2].sum(axis=-1))


def _descending(values: Array) -> tuple[NDArray[np.intp], Sequence[int]]:
    """Return the order of falling scores, and where each run of equal scores ends."""
    order = np.argsort(-values[:, 0], kind="stable")
    scores = values[order, 0]
    ends = np.flatnonzero(np.r_[np.diff(scores) != 0, True])
    return order, ends.tolist()


def _reached(values: Array, weights: Array) -> tuple[Array, Array]:
    """Return the weight of positives and of negatives at or above each distinct score, highest first, (..., scores)."""
    order, ends = _descending(values)
    ill = values[order, 1]
    sorted_weights = weights[..., order]
    return np.cumsum(sorted_weights * ill, axis=-1)[..., ends], np.cumsum(sorted_weights * (1.0 - ill), axis=-1)[
        ..., ends
    ]


@metric(
    "auroc",
    statistic="scores",
    direction="up",
    identity=1.0,
    interval="percentile",
    kind="order",
    source="Hanley & McNeil 1982, doi:10.1148/radiology.143.1.7063747; scikit-learn roc_auc_score",
    facts="items:with probabilities,ties:half",
    chance=0.5,
    undefined=_ONE_CLASS,
)
def auroc(values: Array, weights: Array) -> Array:
    """Area under the ROC curve: the chance that a positive item has the higher score, ties counted half.

    values: (n, 2) = [score, 1 if positive]; weights: (..., n). NaN where a class has no weight.

    >>> float(auroc(np.array([[0.9, 1.0], [0.4, 1.0], [0.6, 0.0], [0.1, 0.0]]), np.ones(4)))
    0.75
    """
    values, weights = np.asarray(values, dtype=np.float64), np.asarray(weights, dtype=np.float64)
    if not len(values):
        return np.full(weights.shape[:-1], np.nan)
    ill, well = _reached(values, weights)
    zero = np.zeros((*weights.shape[:-1], 1))
    rise, run = np.diff(ill, axis=-1, prepend=zero), np.diff(well, axis=-1, prepend=zero)
    area = (run * (ill - rise / 2.0)).sum(axis=-1)
    return ratio(area, ill[..., -1] * well[..., -1])


@metric(
    "average_precision",
    statistic="scores",
    direction="up",
    identity=1.0,
    interval="percentile",
    kind="order",
    source="scikit-learn average_precision_score: sum of precision times the rise in recall, not interpolated",
    facts="items:with probabilities",
    undefined="no positive item with probabilities",
)
def average_precision(values: Array, weights: Array) -> Array:
    """Area under the precision-recall curve as a step function; chance = the share of positive items.

    values: (n, 2) = [score, 1 if positive]; weights: (..., n). NaN without a positive item.

    >>> round(float(average_precision(np.array([[0.9, 1.0], [0.6, 0.0], [0.4, 1.0]]), np.ones(3))), 6)
    0.833333
    """
    values, weights = np.asarray(values, dtype=np.float64), np.asarray(weights, dtype=np.float64)
    if not len(values):
        return np.full(weights.shape[:-1], np.nan)
    ill, well = _reached(values, weights)
    rise = np.diff(ill, axis=-1, prepend=np.zeros((*weights.shape[:-1], 1)))
    precision = ratio(ill, ill + well, empty=0.0)
    return ratio((precision * rise).sum(axis=-1), ill[..., -1])
