"""Metrics of a test for a condition: sensitivity, specificity, likelihood ratios, predictive values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import ArrayLike

from sonogauge._errors import BadInput
from sonogauge.metrics.base import Array, Metric, complex_step, metric, safe_ratio
from sonogauge.metrics.choice import hit_share, hits_gradient

# Columns of the statistic "binary".
TRUE_POSITIVE, POSITIVE, TRUE_NEGATIVE, NEGATIVE = range(4)
_SOURCE: Final = "Altman & Bland 1994, doi:10.1136/bmj.308.6943.1552"
_RATIO_SOURCE: Final = "Deeks & Altman 2004, doi:10.1136/bmj.329.7458.168"
_VALUE_SOURCE: Final = "Altman & Bland 1994, doi:10.1136/bmj.309.6947.102"
_WRONG: Final = "failures:wrong class"


def binary_statistics(positive: ArrayLike, right: ArrayLike) -> Array:
    """Return the statistic "binary" (n, 4): [true positives, positives, true negatives, negatives] of each item.

    positive: whether the reference names a positive class. right: whether the reply falls on the same side; a failed
    reply is on the wrong side whichever that is, so it lowers sensitivity or specificity and helps neither.

    >>> binary_statistics([True, True, False], [True, False, True]).sum(axis=0)
    array([1., 2., 1., 1.])
    """
    ill, hit = np.asarray(positive, dtype=np.float64), np.asarray(right, dtype=np.float64)
    return np.stack([ill * hit, ill, (1.0 - ill) * hit, 1.0 - ill], axis=-1)


@metric(
    "sensitivity",
    statistic="positives",
    direction="up",
    identity=1.0,
    interval="proportion",
    gradient=hits_gradient,
    source=_SOURCE,
    facts=_WRONG,
)
def sensitivity(sums: Array) -> Array:
    """Share of items with a positive reference called positive; a failed reply counts as missed.

    sums: (..., 2) = [true positives, positives]. NaN without a positive reference.

    >>> float(sensitivity(np.array([8.0, 10.0])))
    0.8
    """
    return hit_share(sums)


@metric(
    "specificity",
    statistic="negatives",
    direction="up",
    identity=1.0,
    interval="proportion",
    gradient=hits_gradient,
    source=_SOURCE,
    facts=_WRONG,
)
def specificity(sums: Array) -> Array:
    """Share of items with a negative reference called negative; a failed reply counts as a false alarm.

    sums: (..., 2) = [true negatives, negatives]. NaN without a negative reference.

    >>> float(specificity(np.array([9.0, 10.0])))
    0.9
    """
    return hit_share(sums)


@metric(
    "sensitivity_answered",
    statistic="positives_answered",
    direction="up",
    identity=1.0,
    interval="proportion",
    gradient=hits_gradient,
    source=_SOURCE,
    facts="failures:left out",
)
def sensitivity_answered(sums: Array) -> Array:
    """Sensitivity over the replies that could be read; read it beside their number.

    sums: (..., 2) = [true positives, positives].

    >>> float(sensitivity_answered(np.array([8.0, 8.0])))
    1.0
    """
    return hit_share(sums)


@metric(
    "specificity_answered",
    statistic="negatives_answered",
    direction="up",
    identity=1.0,
    interval="proportion",
    gradient=hits_gradient,
    source=_SOURCE,
    facts="failures:left out",
)
def specificity_answered(sums: Array) -> Array:
    """Specificity over the replies that could be read; sums: (..., 2) = [true negatives, negatives].

    >>> float(specificity_answered(np.array([9.0, 12.0])))
    0.75
    """
    return hit_share(sums)


def _rates(sums: Any) -> tuple[Any, Any]:
    return (
        safe_ratio(sums[..., TRUE_POSITIVE], sums[..., POSITIVE]),
        safe_ratio(sums[..., TRUE_NEGATIVE], sums[..., NEGATIVE]),
    )


def _lr_positive(sums: Any) -> Any:
    found, cleared = _rates(sums)
    return safe_ratio(found, 1.0 - cleared)


def _lr_negative(sums: Any) -> Any:
    found, cleared = _rates(sums)
    return safe_ratio(1.0 - found, cleared)


@metric(
    "lr_positive",
    statistic="binary",
    direction="up",
    identity=float("inf"),
    interval="log",
    unit="ratio",
    gradient=complex_step(_lr_positive),
    source=_RATIO_SOURCE,
    facts=_WRONG,
    chance=1.0,
    undefined="no false positive, or a class without items, so the ratio has no finite value",
)
def lr_positive(sums: Array) -> Array:
    """Positive likelihood ratio, sensitivity / (1 - specificity); 1 = the test says nothing.

    sums: (..., 4) as `binary_statistics`. NaN without a false positive.

    >>> round(float(lr_positive(np.array([8.0, 10.0, 9.0, 10.0]))), 6)
    8.0
    """
    return np.asarray(_lr_positive(np.asarray(sums, dtype=np.float64)))


@metric(
    "lr_negative",
    statistic="binary",
    direction="down",
    identity=0.0,
    interval="log",
    unit="ratio",
    gradient=complex_step(_lr_negative),
    source=_RATIO_SOURCE,
    facts=_WRONG,
    chance=1.0,
    undefined="no true negative, or a class without items, so the ratio has no finite value",
)
def lr_negative(sums: Array) -> Array:
    """Negative likelihood ratio, (1 - sensitivity) / specificity; 1 = the test says nothing.

    sums: (..., 4) as `binary_statistics`. NaN without a true negative.

    >>> round(float(lr_negative(np.array([8.0, 10.0, 9.0, 10.0]))), 6)
    0.222222
    """
    return np.asarray(_lr_negative(np.asarray(sums, dtype=np.float64)))


def _predictive(sums: Any, prevalence: float | None, side: Literal["ppv", "npv"]) -> Any:
    found, cleared = _rates(sums)
    if prevalence is None:
        ill: Any = safe_ratio(sums[..., POSITIVE], sums[..., POSITIVE] + sums[..., NEGATIVE])
    else:
        ill = prevalence
    if side == "ppv":
        return safe_ratio(found * ill, found * ill + (1.0 - cleared) * (1.0 - ill))
    return safe_ratio(cleared * (1.0 - ill), cleared * (1.0 - ill) + (1.0 - found) * ill)


def _ppv(sums: Any) -> Any:
    return _predictive(sums, None, "ppv")


def _npv(sums: Any) -> Any:
    return _predictive(sums, None, "npv")


@metric(
    "ppv",
    statistic="binary",
    direction="up",
    identity=1.0,
    interval="studentised",
    gradient=complex_step(_ppv),
    source=_VALUE_SOURCE,
    facts=f"prevalence:of the items,{_WRONG}",
    undefined="nothing was called positive, or a class has no items",
)
def ppv(sums: Array) -> Array:
    """Positive predictive value at the prevalence of the items; see `predictive_metric` for another prevalence.

    sums: (..., 4) as `binary_statistics`.

    >>> round(float(ppv(np.array([8.0, 10.0, 9.0, 10.0]))), 6)
    0.888889
    """
    return np.asarray(_ppv(np.asarray(sums, dtype=np.float64)))


@metric(
    "npv",
    statistic="binary",
    direction="up",
    identity=1.0,
    interval="studentised",
    gradient=complex_step(_npv),
    source=_VALUE_SOURCE,
    facts=f"prevalence:of the items,{_WRONG}",
    undefined="nothing was called negative, or a class has no items",
)
def npv(sums: Array) -> Array:
    """Negative predictive value at the prevalence of the items; see `predictive_metric` for another prevalence.

    sums: (..., 4) as `binary_statistics`.

    >>> round(float(npv(np.array([8.0, 10.0, 9.0, 10.0]))), 6)
    0.818182
    """
    return np.asarray(_npv(np.asarray(sums, dtype=np.float64)))


def predictive_metric(side: Literal["ppv", "npv"], prevalence: float) -> Metric:
    """Return the positive or negative predictive value at a prevalence that the user knows of their own patients.

    Raises:
        BadInput: a prevalence outside 0 to 1.

    >>> round(float(predictive_metric("ppv", 0.01).function(np.array([8.0, 10.0, 9.0, 10.0]))), 6)
    0.074766
    """
    if not 0.0 < prevalence < 1.0:
        raise BadInput(f"not a prevalence: {prevalence}", field="prevalence", fix="give a share between 0 and 1")

    def core(sums: Any) -> Any:
        return _predictive(sums, prevalence, side)

    def function(sums: Array) -> Array:
        return np.asarray(core(np.asarray(sums, dtype=np.float64)))

    base = ppv.metric if side == "ppv" else npv.metric
    return replace(base, function=function, gradient=complex_step(core), facts=f"prevalence:{prevalence:g},{_WRONG}")
