"""Metrics of numbers: errors on the declared range, and the median error in the answer's own unit."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from sonogauge.metrics.base import Array, metric, ratio

# Columns of the statistic "scaled_errors".
COUNT, ABSOLUTE, SIGNED, SQUARED, WITHIN = range(5)


def scale(value: ArrayLike, low: float, high: float, clip: bool) -> Array:
    """Map values from [low, high] to [0, 1]; with `clip`, values outside are moved to the nearer limit first.

    Raises:
        ValueError: unless low < high.

    >>> scale([5, 30], 0, 20, clip=True)
    array([0.25, 1.  ])
    """
    if not low < high:
        raise ValueError(f"a range needs low < high, not {low} and {high}")
    values = np.asarray(value, dtype=np.float64)
    if clip:
        values = np.clip(values, low, high)
    scaled: Array = (values - low) / (high - low)
    return scaled


def worst_error(position: float) -> float:
    """Return the worst error still inside the range for a failed reply, signed as reference - prediction.

    position: the scaled reference, 0 to 1. The sign makes the bias point to the bound the worst answer lies on.

    >>> worst_error(0.25), worst_error(0.9)
    (-0.75, 0.9)
    """
    return position if position >= 0.5 else position - 1.0


def scaled_error_statistics(errors: ArrayLike, tolerance: float) -> Array:
    """Turn scaled errors e = reference - prediction (n,) into [1, |e|, e, e², |e| <= tolerance], shape (n, 5).

    A rounding allowance of 1e-12 keeps an error of exactly the tolerance inside it.

    >>> scaled_error_statistics([0.5], tolerance=0.1)
    array([[1.  , 0.5 , 0.5 , 0.25, 0.  ]])
    """
    e = np.asarray(errors, dtype=np.float64)
    within = (np.abs(e) <= tolerance + 1e-12).astype(np.float64)
    return np.stack([np.ones_like(e), np.abs(e), e, e * e, within], axis=-1)


def _gradient_of(sums: Array, parts: dict[int, Array]) -> Array:
    gradient = np.zeros(np.shape(sums))
    for column, values in parts.items():
        gradient[..., column] = values
    return gradient


def _mean_gradient(sums: Array, column: int, sign: float = 1.0) -> Array:
    sums = np.asarray(sums, dtype=np.float64)
    count = sums[..., COUNT]
    return _gradient_of(
        sums,
        {column: sign * ratio(np.ones_like(count), count), COUNT: -sign * ratio(sums[..., column], count * count)},
    )


def _rmse_gradient(sums: Array) -> Array:
    count, squared = sums[..., COUNT], sums[..., SQUARED]
    root = np.sqrt(ratio(squared, count))
    # Without error the root has no derivative; 0 makes such a value one "without variation".
    return _gradient_of(
        sums,
        {
            SQUARED: ratio(np.ones_like(root), 2.0 * count * root, empty=0.0),
            COUNT: -ratio(root, 2.0 * count),
        },
    )


def _std_gradient(sums: Array) -> Array:
    count, signed, squared = sums[..., COUNT], sums[..., SIGNED], sums[..., SQUARED]
    spread, mean = std_scaled(sums), ratio(signed, count)
    half = ratio(np.ones_like(spread), 2.0 * count * spread, empty=0.0)
    mean_square = ratio(squared, count)
    return _gradient_of(
        sums, {SQUARED: half, SIGNED: -2.0 * mean * half, COUNT: (2.0 * mean * mean - mean_square) * half}
    )


@metric(
    "rmse_scaled",
    statistic="scaled_errors",
    direction="down",
    identity=0.0,
    interval="log",
    unit="range",
    gradient=_rmse_gradient,
    source="u2-bench specification, section 5",
)
def rmse_scaled(sums: Array) -> Array:
    """Root mean squared error on the scaled range.

    sums: (..., 5) as `scaled_error_statistics`; NaN without items.

    >>> float(rmse_scaled(scaled_error_statistics([0.3, 0.4], 0.1).sum(axis=0)).__round__(6))
    0.353553
    """
    sums = np.asarray(sums, dtype=np.float64)
    result: Array = np.sqrt(ratio(sums[..., SQUARED], sums[..., COUNT]))
    return result


@metric(
    "mae_scaled",
    statistic="scaled_errors",
    direction="down",
    identity=0.0,
    interval="log",
    unit="range",
    gradient=lambda sums: _mean_gradient(sums, ABSOLUTE),
    source="u2-bench specification, section 5",
)
def mae_scaled(sums: Array) -> Array:
    """Mean absolute error on the scaled range; sums: (..., 5) as `scaled_error_statistics`."""
    sums = np.asarray(sums, dtype=np.float64)
    return ratio(sums[..., ABSOLUTE], sums[..., COUNT])


@metric(
    "std_scaled",
    statistic="scaled_errors",
    direction="down",
    identity=0.0,
    interval="log",
    unit="range",
    gradient=_std_gradient,
    source="u2-bench specification, section 5",
)
def std_scaled(sums: Array) -> Array:
    """Population standard deviation of (reference - prediction) on the scaled range; sums: (..., 5).

    A variance within rounding of 0 (1e-15 of the mean square) is 0.
    """
    sums = np.asarray(sums, dtype=np.float64)
    mean = ratio(sums[..., SIGNED], sums[..., COUNT])
    mean_square = ratio(sums[..., SQUARED], sums[..., COUNT])
    variance = mean_square - mean * mean
    result: Array = np.sqrt(np.where(variance <= 1e-15 * mean_square, 0.0 * variance, variance))
    return result


@metric(
    "bias_scaled",
    statistic="scaled_errors",
    direction="down",
    identity=0.0,
    interval="studentised",
    unit="range",
    gradient=lambda sums: _mean_gradient(sums, SIGNED, sign=-1.0),
    source="Bland & Altman 1986, doi:10.1016/S0140-6736(86)90837-8",
)
def bias_scaled(sums: Array) -> Array:
    """Mean of prediction - reference on the scaled range (positive = over-estimated); sums: (..., 5).

    Of two biases the one nearer to 0 is better.
    """
    sums = np.asarray(sums, dtype=np.float64)
    # 0.0 - x and not -x: no error is 0, not -0.
    return 0.0 - ratio(sums[..., SIGNED], sums[..., COUNT])


@metric(
    "within_tolerance",
    statistic="scaled_errors",
    direction="up",
    identity=1.0,
    interval="proportion",
    gradient=lambda sums: _mean_gradient(sums, WITHIN),
    source="u2-bench specification, section 5",
)
def within_tolerance(sums: Array) -> Array:
    """Share of items with a scaled error within the declared tolerance; sums: (..., 5)."""
    sums = np.asarray(sums, dtype=np.float64)
    return ratio(sums[..., WITHIN], sums[..., COUNT])


@metric(
    "median_error",
    statistic="absolute_errors",
    direction="down",
    identity=0.0,
    interval="percentile",
    unit="answer unit",
    kind="order",
    source="u2-bench specification, section 5, 'CVE metrics': median error in natural units",
)
def median_error(values: Array, weights: Array) -> Array:
    """Weighted median of absolute errors in the answer's own unit.

    values: (n,); weights: (..., n), at least 0. The middle of the two values where the weights split in halves.
    NaN where all weights are 0.

    >>> float(median_error(np.array([4.0, 1.0, 2.0, 9.0]), np.ones(4)))
    3.0
    """
    values, weights = np.asarray(values, dtype=np.float64), np.asarray(weights, dtype=np.float64)
    if not values.size:
        return np.full(weights.shape[:-1], np.nan)
    order = np.argsort(values, kind="stable")
    values = values[order]
    reached = np.cumsum(weights[..., order], axis=-1)
    total = reached[..., -1:]
    # Sums of rescaled weights carry rounding; a split within 1e-9 of the half is an exact one.
    lower = np.argmax(reached >= total * (0.5 - 1e-9), axis=-1)
    upper = np.argmax(reached > total * (0.5 + 1e-9), axis=-1)
    middle: Array = 0.5 * (values[lower] + values[upper])
    return np.where(total[..., 0] > 0, middle, np.nan)
