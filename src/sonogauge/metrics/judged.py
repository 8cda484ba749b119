"""Mean verdict of judges on free text."""

from __future__ import annotations

import numpy as np

from sonogauge.metrics.base import Array, metric, ratio


def _mean_gradient(sums: Array) -> Array:
    total, items = sums[..., 0], sums[..., 1]
    return np.stack([ratio(np.ones_like(items), items), -ratio(total, items * items)], axis=-1)


@metric(
    "judge_score",
    statistic="judge",
    direction="up",
    identity=1.0,
    interval="studentised",
    gradient=_mean_gradient,
    source="medlesionvqa specification, section 6: verdicts 0, 0.5, 1; the median over judges",
    facts="leniency:none",
)
def judge_score(sums: Array) -> Array:
    """Mean verdict over items, a fraction; sums: (..., 2) = [sum of verdicts, n]; NaN without items.

    >>> float(judge_score(np.array([1.5, 2.0])))
    0.75
    """
    sums = np.asarray(sums, dtype=np.float64)
    return ratio(sums[..., 0], sums[..., 1])


@metric(
    "judge_score_v1",
    statistic="judge_v1",
    direction="up",
    identity=1.0,
    interval="studentised",
    gradient=_mean_gradient,
    source="medlesionvqa specification, section 6, leniency v1",
    facts="leniency:v1",
)
def judge_score_v1(sums: Array) -> Array:
    """Mean verdict over items after leniency v1, a fraction; sums: (..., 2) = [sum of verdicts, n].

    >>> float(judge_score_v1(np.array([1.5, 2.0])))
    0.75
    """
    sums = np.asarray(sums, dtype=np.float64)
    return ratio(sums[..., 0], sums[..., 1])
