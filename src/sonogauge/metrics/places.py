"""Metrics of places beside plain accuracy, and shares of values outside their declared range."""

from __future__ import annotations

import numpy as np

from sonogauge.metrics.base import Array, metric, ratio
from sonogauge.metrics.choice import hit_share, hits_gradient


@metric(
    "accuracy_first",
    statistic="hits_first",
    direction="up",
    identity=1.0,
    interval="proportion",
    gradient=hits_gradient,
    source="u2-bench specification, section 5, 'Location of a reference'",
)
def accuracy_first(sums: Array) -> Array:
    """Accuracy against the place of the first box alone; sums: (..., 2) = [hits, n].

    >>> float(accuracy_first(np.array([1.0, 4.0])))
    0.25
    """
    return hit_share(sums)


@metric(
    "accuracy_clear",
    statistic="hits_clear",
    direction="up",
    identity=1.0,
    interval="proportion",
    gradient=hits_gradient,
    source="u2-bench specification, section 3.6: accuracy without places near a band edge",
)
def accuracy_clear(sums: Array) -> Array:
    """Accuracy over items whose reference is not within 0.02 of a band edge; sums: (..., 2) = [hits, n].

    >>> float(accuracy_clear(np.array([1.0, 2.0])))
    0.5
    """
    return hit_share(sums)


@metric(
    "band_distance",
    statistic="band_distance",
    direction="down",
    identity=0.0,
    interval="studentised",
    unit="bands",
    gradient=hits_gradient,
    source="u2-bench specification, section 3.6: mean distance in bands",
)
def band_distance(sums: Array) -> Array:
    """Mean distance in bands to the nearest right place, over replies that name a visible place.

    sums: (..., 2) = [sum of distances, items with a distance].

    >>> float(band_distance(np.array([3.0, 2.0])))
    1.5
    """
    sums = np.asarray(sums, dtype=np.float64)
    return ratio(sums[..., 0], sums[..., 1])


@metric(
    "reference_out_of_range",
    statistic="reference_out",
    direction="down",
    identity=0.0,
    interval="proportion",
    gradient=hits_gradient,
    source="u2-bench specification, section 5, 'CVE scaling, sets'",
)
def reference_out_of_range(sums: Array) -> Array:
    """Share of references outside the declared range (clipped before scoring); sums: (..., 2) = [outside, n].

    >>> float(reference_out_of_range(np.array([1.0, 4.0])))
    0.25
    """
    return hit_share(sums)


@metric(
    "prediction_out_of_range",
    statistic="prediction_out",
    direction="down",
    identity=0.0,
    interval="proportion",
    gradient=hits_gradient,
    source="u2-bench specification, section 5, 'CVE scaling, sets'",
)
def prediction_out_of_range(sums: Array) -> Array:
    """Share of the numbers given that lie outside the declared range; sums: (..., 2) = [outside, numbers given].

    >>> float(prediction_out_of_range(np.array([1.0, 4.0])))
    0.25
    """
    return hit_share(sums)
