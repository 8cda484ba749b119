"""Metrics of answers on an ordered scale: Cohen's kappa and the mean error in grades."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sonogauge.metrics.base import Array, metric, ratio

_SOURCE: Final = "Cohen 1960, doi:10.1177/001316446002000104; weights: Cohen 1968, doi:10.1037/h0026256"
_UNDEFINED: Final = "all references and predictions are of one class, so agreement beyond chance is not defined"


def grade_statistics(reference: ArrayLike, predicted: ArrayLike, grades: int) -> Array:
    """Turn positions on a scale into the statistic "grades", shape (n, grades, grades + 1).

    reference: (n,), 0 to grades - 1, or -1 for a reference that is not on the scale: the item counts nowhere.
    predicted: (n,), -1 = no valid answer or one that is not on the scale: last column.

    >>> grade_statistics([0, 1, -1], [1, -1, 0], grades=2).sum(axis=0)
    array([[0., 1., 0.],
           [0., 0., 1.]])
    """
    rows: NDArray[np.int64] = np.asarray(reference, dtype=np.int64)
    columns: NDArray[np.int64] = np.asarray(predicted, dtype=np.int64)
    result = np.zeros((len(rows), grades, grades + 1))
    on_scale = np.flatnonzero(rows >= 0)
    result[on_scale, rows[on_scale], np.where(columns[on_scale] < 0, grades, columns[on_scale])] = 1.0
    return result


def disagreement(grades: int, power: int) -> Array:
    """Return the weight of each cell of (grades, grades + 1), 0 = agreement; the last column is a failed reply.

    power: 0 = every disagreement weighs 1, 1 = distance in grades, 2 = its square. A failure weighs as much as the
    grade farthest from the reference.

    >>> disagreement(3, 1)
    array([[0., 1., 2., 2.],
           [1., 0., 1., 1.],
           [2., 1., 0., 2.]])
    """
    place = np.arange(grades)
    distance = np.abs(place[:, None] - place[None, :]).astype(np.float64)
    failed = np.maximum(place, grades - 1 - place).astype(np.float64)
    weights = np.concatenate([distance, failed[:, None]], axis=1)
    if power == 0:
        weights = (weights > 0).astype(np.float64)
        weights[:, -1] = 1.0
    result: Array = weights**power if power else weights
    return result


def _parts(confusion: Array, power: int) -> tuple[Array, Array, Array, Array, Array, Array]:
    """Return count, observed sum, chance sum, weights, and the weighted margins (by column totals, by row totals)."""
    weights = disagreement(confusion.shape[-2], power)
    rows, columns = confusion.sum(axis=-1), confusion.sum(axis=-2)
    by_columns, by_rows = columns @ weights.T, rows @ weights
    observed = (confusion * weights).sum(axis=(-2, -1))
    return rows.sum(axis=-1), observed, (rows * by_columns).sum(axis=-1), weights, by_columns, by_rows


def _kappa(confusion: Any, power: int) -> Array:
    count, observed, chance, *_ = _parts(np.asarray(confusion, dtype=np.float64), power)
    return 1.0 - ratio(count * observed, chance)


def _kappa_gradient(power: int) -> Callable[[Array], Array]:
    def gradient(confusion: Array) -> Array:
        count, observed, chance, weights, by_columns, by_rows = _parts(np.asarray(confusion, dtype=np.float64), power)
        constant = ratio(observed, chance)[..., None, None]
        slope = ratio(count, chance)[..., None, None]
        pull = ratio(count * observed, chance * chance)[..., None, None]
        result: Array = pull * (by_columns[..., :, None] + by_rows[..., None, :]) - constant - slope * weights
        return result

    return gradient


@metric(
    "kappa",
    statistic="confusion",
    direction="up",
    identity=1.0,
    interval="averaged",
    unit="agreement",
    gradient=_kappa_gradient(0),
    source=_SOURCE,
    facts="weights:none,failures:disagree",
    chance=0.0,
    undefined=_UNDEFINED,
)
def kappa(confusion: Array) -> Array:
    """Cohen's kappa without weights; 0 = chance, 1 = perfect, a failed reply is a class of its own that never agrees.

    confusion: (..., classes, classes + 1), rows = reference, last column = no valid answer.
    Undefined (NaN) when reference and prediction are all of one class.

    >>> round(float(kappa(np.array([[20, 5, 0], [10, 15, 0]]))), 3)
    0.4
    """
    return _kappa(confusion, 0)


@metric(
    "kappa_linear",
    statistic="grades",
    direction="up",
    identity=1.0,
    interval="averaged",
    unit="agreement",
    gradient=_kappa_gradient(1),
    source=_SOURCE,
    facts="weights:linear,failures:farthest grade",
    chance=0.0,
    undefined=_UNDEFINED,
)
def kappa_linear(grades: Array) -> Array:
    """Cohen's kappa weighted by the distance in grades; a failed reply counts as the grade farthest away.

    grades: (..., grades, grades + 1) as `grade_statistics`.

    >>> round(float(kappa_linear(np.array([[20, 5, 0, 0], [5, 10, 5, 0], [0, 5, 50, 0]]))), 3)
    0.77
    """
    return _kappa(grades, 1)


@metric(
    "kappa_quadratic",
    statistic="grades",
    direction="up",
    identity=1.0,
    interval="averaged",
    unit="agreement",
    gradient=_kappa_gradient(2),
    source=_SOURCE,
    facts="weights:quadratic,failures:farthest grade",
    chance=0.0,
    undefined=_UNDEFINED,
)
def kappa_quadratic(grades: Array) -> Array:
    """Cohen's kappa weighted by the squared distance in grades; a failed reply counts as the grade farthest away.

    grades: (..., grades, grades + 1) as `grade_statistics`.

    >>> round(float(kappa_quadratic(np.array([[20, 5, 0, 0], [5, 10, 5, 0], [0, 5, 50, 0]]))), 3)
    0.859
    """
    return _kappa(grades, 2)


def _grade_error_gradient(grades: Array) -> Array:
    grades = np.asarray(grades, dtype=np.float64)
    count = grades.sum(axis=(-2, -1))[..., None, None]
    weights = disagreement(grades.shape[-2], 1)
    return ratio(np.broadcast_to(weights, grades.shape), count) - ratio(grade_error(grades)[..., None, None], count)


@metric(
    "grade_error",
    statistic="grades",
    direction="down",
    identity=0.0,
    interval="studentised",
    unit="grades",
    gradient=_grade_error_gradient,
    source="mean absolute error on the positions of the scale",
    facts="failures:farthest grade",
)
def grade_error(grades: Array) -> Array:
    """Mean distance between reference and prediction in grades; a failed reply counts as the grade farthest away.

    grades: (..., grades, grades + 1) as `grade_statistics`.

    >>> round(float(grade_error(np.array([[20, 5, 0, 0], [5, 10, 5, 0], [0, 5, 50, 0]]))), 3)
    0.2
    """
    grades = np.asarray(grades, dtype=np.float64)
    weights = disagreement(grades.shape[-2], 1)
    return ratio((grades * weights).sum(axis=(-2, -1)), grades.sum(axis=(-2, -1)))
