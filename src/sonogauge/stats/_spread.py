"""Standard errors of a function of sums: linearised, and by leaving out each group; what groups of many sizes tell."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np

from sonogauge.metrics.base import Array, Metric

# Below this share of its own terms a standard error is rounding.
ROUNDING: Final = 1e-12
# Errors lie in few groups below this share of the groups that the items amount to, from so many groups on.
_FEW: Final = 1 / 3
_FEWEST_TO_TELL: Final = 6


class Spread(NamedTuple):
    """What the groups of a cell tell of its spread.

    linear: linearised standard error; error: by leaving out each group; inflation: the second over the first, 1 without
    spread; df: effective groups minus strata; flat: whether all groups are alike.
    """

    linear: float
    error: float
    inflation: float
    df: float
    flat: bool


def spread(metric: Metric, total: Array, value: float, strata: Mapping[str, Array]) -> Spread:
    """Return the standard errors of a metric of sums.

    Linearised, with u = sum of a group x gradient: G/(G - 1) x sum (u - mean u)² of each stratum. Left out: the
    stratified jackknife. For groups of one size both are the same; with groups of many sizes the first is too small,
    for a large group pulls the value towards itself.

    Args:
        metric: of sums, with a gradient.
        total: its statistic, summed over all groups.
        value: of the metric at the total.
        strata: the sums of the groups of each stratum, (groups, k), flattened.
    """
    assert metric.gradient is not None
    gradient = metric.gradient(total).reshape(-1)
    linear, left_out, terms = 0.0, 0.0, 0.0
    effective = {}
    for stratum, values in strata.items():
        influence = values @ gradient
        effective[stratum] = _effective(values, gradient)
        terms += float(((np.abs(values) @ np.abs(gradient)) ** 2).sum())
        if len(values) == 1:
            # The only group of its stratum here, though not in the benchmark: its distance from 0, the overall mean.
            linear += float(influence[0] ** 2)
            left_out += float(influence[0] ** 2)
        else:
            linear += len(values) / (len(values) - 1) * float(((influence - influence.mean()) ** 2).sum())
            left_out += _left_out(metric, total, value, values, influence)
    error = math.sqrt(left_out)
    flat = error <= ROUNDING * math.sqrt(terms)
    inflation = 1.0 if flat or linear == 0 else math.sqrt(left_out / linear)
    return Spread(math.sqrt(linear), error, inflation, degrees(effective), flat)


def degrees(groups: Mapping[str, float]) -> float:
    """Return (effective) groups minus strata, at least 1; strata with one group count as one stratum together.

    >>> degrees({"a": 12.5, "b": 4}), degrees({"a": 1, "b": 1, "c": 1})
    (14.5, 2.0)
    """
    alone = sum(number == 1 for number in groups.values())
    return float(max(1.0, sum(number - 1 for number in groups.values()) + max(0, alone - 1)))


def _effective(values: Array, gradient: Array) -> float:
    """Return how many groups of one size tell as much as these: (sum m)²/sum m² (Kish 1965, Survey Sampling).

    The size of a group is its share of the denominator, that is of the terms that lower the value: its items.
    """
    sizes = np.maximum(-values * gradient, 0.0).sum(axis=1)
    squares = float((sizes**2).sum())
    return max(1.0, float(sizes.sum()) ** 2 / squares) if squares > 0 else float(len(sizes))


def carried_by_few(gradient: Array, strata: Mapping[str, Array]) -> str:
    """Return what a few groups carry of an error that is never negative, or an empty text.

    A group's load is what it adds to the value: its squared or absolute errors. Loads as uneven as those of
    (sum load)²/sum load² groups are told where these are fewer than a third of the groups that the items alone
    amount to (`_effective`): not the sizes of the groups then, but gross errors of a few of them decide the value.

    Args:
        gradient: of the metric at the total of all groups.
        strata: the sums of the groups of each stratum, (groups, k), flattened.

    >>> ones = np.ones(24)
    >>> loads = np.where(np.arange(24) < 2, 1.0, 0.01)
    >>> carried_by_few(np.array([-1.0, 1.0]), {"a": np.stack([ones, loads], axis=-1)})
    'half of the error lies in 2 of 24 groups'
    """
    slope = gradient.reshape(-1)
    values = np.concatenate(list(strata.values()))
    loads = np.maximum(values * slope, 0.0).sum(axis=1)
    squares = float((loads**2).sum())
    if len(loads) < _FEWEST_TO_TELL or squares == 0:
        return ""
    if float(loads.sum()) ** 2 / squares >= _FEW * _effective(values, slope):
        return ""
    most = np.sort(loads)[::-1].cumsum()
    half = int(np.searchsorted(most, most[-1] / 2)) + 1
    return f"half of the error lies in {half} of {len(loads)} groups"


def _left_out(metric: Metric, total: Array, value: float, values: Array, influence: Array) -> float:
    """Return the variance of a stratum by leaving out each group, the others standing in for it.

    Source: Rao & Wu 1985, Journal of the American Statistical Association 80:620-630, the jackknife around the value.
    """
    groups = len(values)
    rest = total.reshape(-1) + (values.sum(axis=0) - groups * values) / (groups - 1)
    # A sum of which nothing is left may be a rounding below 0.
    rest[np.abs(rest) <= ROUNDING * np.abs(values).sum(axis=0)] = 0.0
    changes = metric.function(rest.reshape(groups, *total.shape)) - value
    # Without its group a value may be undefined: the linear term stands in.
    changes = np.where(np.isnan(changes), (influence.mean() - influence) * groups / (groups - 1), changes)
    return (groups - 1) / groups * float((changes**2).sum())
