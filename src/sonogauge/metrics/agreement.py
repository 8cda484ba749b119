"""Two measurements of the same thing: errors in natural units, bias and limits of agreement, ICC."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from sonogauge.metrics.base import Array, complex_step, metric, ratio, safe_ratio

# Columns of the statistic "pairs": reference x, prediction y, difference d = y - x.
PAIRS, X, Y, XX, YY, XY, D, DD = range(8)
# Columns after `of_group`: groups, items, squared group sizes, sum of d, (sum of d)²/size, sum of d².
_GROUPS, _ITEMS, _SIZES, _SUM, _BETWEEN, _SQUARES = range(6)
# Columns of the statistic "natural_errors".
_COUNT, _ABSOLUTE, _SQUARED = range(3)
# 95 % of a normal distribution, as Bland & Altman use it.
_Z: Final = 1.959963984540054
# Squares of squares of larger numbers leave the range of a double.
_LARGEST: Final = 1e50
_LIMITS: Final = (
    "Bland & Altman 2007, doi:10.1080/10543400701329422, repeated measurements with a varying true value; "
    "one measurement a patient: Bland & Altman 1986, doi:10.1016/S0140-6736(86)90837-8"
)


def natural_statistics(errors: ArrayLike) -> Array:
    """Return the statistic "natural_errors" (n, 3) of errors in the answer's unit: [1, |e|, e²].

    >>> natural_statistics([-2.0])
    array([[1., 2., 4.]])
    """
    e = np.clip(np.asarray(errors, dtype=np.float64), -_LARGEST, _LARGEST)
    return np.stack([np.ones_like(e), np.abs(e), e * e], axis=-1)


def pair_statistics(reference: ArrayLike, prediction: ArrayLike, shift: float = 0.0) -> Array:
    """Return the statistic "pairs" (n, 8): [1, x, y, x², y², xy, d, d²], d = y - x.

    shift: taken off both; it changes none of the metrics and spares them rounding.

    >>> pair_statistics([1.0], [3.0])
    array([[1., 1., 3., 1., 9., 3., 2., 4.]])
    """
    x = np.clip(np.asarray(reference, dtype=np.float64) - shift, -_LARGEST, _LARGEST)
    y = np.clip(np.asarray(prediction, dtype=np.float64) - shift, -_LARGEST, _LARGEST)
    d = y - x
    return np.stack([np.ones_like(x), x, y, x * x, y * y, x * y, d, d * d], axis=-1)


def _share_gradient(column: int) -> Any:
    return complex_step(lambda sums: safe_ratio(sums[..., column], sums[..., _COUNT]))


def _rmse(sums: Any) -> Any:
    return np.sqrt(safe_ratio(sums[..., _SQUARED], sums[..., _COUNT]))


def _rmse_gradient(sums: Array) -> Array:
    root = _rmse(sums)
    gradient = np.zeros(np.shape(sums))
    # Without error the root has no derivative; 0 makes such a value one "without variation".
    gradient[..., _SQUARED] = ratio(np.ones_like(root), 2.0 * sums[..., _COUNT] * root, empty=0.0)
    gradient[..., _COUNT] = -ratio(root, 2.0 * sums[..., _COUNT])
    return gradient


@metric(
    "rmse",
    statistic="natural_errors",
    direction="down",
    identity=0.0,
    interval="log",
    unit="answer unit",
    gradient=_rmse_gradient,
    source="u2-bench specification, section 5, in natural units",
)
def rmse(sums: Array) -> Array:
    """Root mean squared error in the answer's own unit; sums: (..., 3) as `natural_statistics`.

    >>> round(float(rmse(natural_statistics([3.0, 4.0]).sum(axis=0))), 6)
    3.535534
    """
    return np.asarray(_rmse(np.asarray(sums, dtype=np.float64)))


@metric(
    "mae",
    statistic="natural_errors",
    direction="down",
    identity=0.0,
    interval="log",
    unit="answer unit",
    gradient=_share_gradient(_ABSOLUTE),
    source="u2-bench specification, section 5, in natural units",
)
def mae(sums: Array) -> Array:
    """Mean absolute error in the answer's own unit; sums: (..., 3) as `natural_statistics`.

    >>> float(mae(natural_statistics([3.0, -4.0]).sum(axis=0)))
    3.5
    """
    sums = np.asarray(sums, dtype=np.float64)
    return ratio(sums[..., _ABSOLUTE], sums[..., _COUNT])


@metric(
    "within_clinical",
    statistic="within_clinical",
    direction="up",
    identity=1.0,
    interval="proportion",
    gradient=complex_step(lambda sums: safe_ratio(sums[..., 0], sums[..., 1])),
    source="tolerances.yaml, each with its paper",
)
def within_clinical(sums: Array) -> Array:
    """Share of items within the tolerance that readers reach on this measure; failures lie outside.

    sums: (..., 2) = [within, n].

    >>> float(within_clinical(np.array([3.0, 4.0])))
    0.75
    """
    sums = np.asarray(sums, dtype=np.float64)
    return ratio(sums[..., 0], sums[..., 1])


@metric(
    "bias",
    statistic="pairs",
    direction="down",
    identity=0.0,
    interval="studentised",
    unit="answer unit",
    gradient=complex_step(lambda sums: safe_ratio(sums[..., D], sums[..., PAIRS])),
    source=_LIMITS,
    facts="items:answered",
)
def bias(sums: Array) -> Array:
    """Mean of prediction - reference over the items answered (positive = over-estimated).

    sums: (..., 8) as `pair_statistics`. Of two biases the one nearer to 0 is better.

    >>> float(bias(pair_statistics([1.0, 2.0], [2.0, 5.0]).sum(axis=0)))
    2.0
    """
    sums = np.asarray(sums, dtype=np.float64)
    return ratio(sums[..., D], sums[..., PAIRS])


def of_group(sums: Array) -> Array:
    """Turn the "pairs" of each group (G, 8) into what the limits of agreement add up, (G, 6); one group = one patient.

    >>> of_group(pair_statistics([1.0, 1.0], [2.0, 4.0]).sum(axis=0)[None])
    array([[ 1.,  2.,  4.,  4.,  8., 10.]])
    """
    items, total = sums[..., PAIRS], sums[..., D]
    known = (items > 0).astype(np.float64)
    return np.stack(
        [known, items, items * items, total, ratio(total * total, items, empty=0.0), sums[..., DD]], axis=-1
    )


def _variance(sums: Any) -> Any:
    """Variance of one new difference of one new patient: between patients and within them (one-way ANOVA)."""
    groups, items = sums[..., _GROUPS], sums[..., _ITEMS]
    between = safe_ratio(sums[..., _BETWEEN] - sums[..., _SUM] ** 2 / np.where(items == 0, 1.0, items), groups - 1.0)
    inside = sums[..., _SQUARES] - sums[..., _BETWEEN]
    freedom = items - groups
    repeated = np.real(freedom) > 1e-9
    within = np.where(repeated, inside / np.where(repeated, freedom, 1.0), 0.0)
    size = safe_ratio(items * items - sums[..., _SIZES], items * (groups - 1.0))
    patients = safe_ratio(between - within, size)
    patients = np.where(np.real(patients) < 0, 0.0, patients)
    # Without repeats `size` is 1 and the sum is the plain variance of the differences.
    total = np.where(repeated, patients + within, between)
    return np.where(np.real(total) < 0, 0.0 * total, total)


def _limit(sums: Any, side: float) -> Any:
    mean = safe_ratio(sums[..., _SUM], sums[..., _ITEMS])
    variance = _variance(sums)
    flat = np.real(variance) == 0
    return mean + side * _Z * np.where(flat, 0.0, np.sqrt(np.where(flat, 1.0, variance)))


def _loa_low(sums: Any) -> Any:
    return _limit(sums, -1.0)


def _loa_high(sums: Any) -> Any:
    return _limit(sums, 1.0)


@metric(
    "loa_low",
    statistic="pairs",
    direction="up",
    identity=0.0,
    interval="studentised",
    unit="answer unit",
    gradient=complex_step(_loa_low),
    source=_LIMITS,
    facts="items:answered,form:repeated measurements,unit:group",
    undefined="limits of agreement need at least two patients with an answer",
    per_group=of_group,
)
def loa_low(sums: Array) -> Array:
    """Lower 95 % limit of agreement, bias - 1.96 SD of a new difference; answered items only.

    sums: (..., 6), sums of `of_group`. SD² = between-patient + within-patient variance of the differences.
    A perfect answer has both limits at 0; nearer to 0 is better.

    >>> groups = np.stack([pair_statistics([0.0], [d]).sum(axis=0) for d in (-1.0, 0.0, 1.0)])
    >>> round(float(loa_low(of_group(groups).sum(axis=0))), 3)
    -1.96
    """
    return np.asarray(_loa_low(np.asarray(sums, dtype=np.float64)))


@metric(
    "loa_high",
    statistic="pairs",
    direction="down",
    identity=0.0,
    interval="studentised",
    unit="answer unit",
    gradient=complex_step(_loa_high),
    source=_LIMITS,
    facts="items:answered,form:repeated measurements,unit:group",
    undefined="limits of agreement need at least two patients with an answer",
    per_group=of_group,
)
def loa_high(sums: Array) -> Array:
    """Upper 95 % limit of agreement, bias + 1.96 SD of a new difference; answered items only.

    sums: (..., 6), sums of `of_group`.

    >>> groups = np.stack([pair_statistics([0.0], [d]).sum(axis=0) for d in (-1.0, 0.0, 1.0)])
    >>> round(float(loa_high(of_group(groups).sum(axis=0))), 3)
    1.96
    """
    return np.asarray(_loa_high(np.asarray(sums, dtype=np.float64)))


def _icc(sums: Any) -> Any:
    n = sums[..., PAIRS]
    whole = sums[..., X] + sums[..., Y]
    correction = safe_ratio(whole * whole, 2.0 * n)
    total = sums[..., XX] + sums[..., YY] - correction
    # Sum over items of (x + y)²/2, and over the two sides of (column sum)²/n.
    rows = (sums[..., XX] + 2.0 * sums[..., XY] + sums[..., YY]) / 2.0 - correction
    columns = safe_ratio(sums[..., X] ** 2 + sums[..., Y] ** 2, n) - correction
    of_rows = safe_ratio(rows, n - 1.0)
    of_rest = safe_ratio(total - rows - columns, n - 1.0)
    return safe_ratio(of_rows - of_rest, of_rows + of_rest + 2.0 * safe_ratio(columns - of_rest, n))


@metric(
    "icc",
    statistic="pairs",
    direction="up",
    identity=1.0,
    interval="averaged",
    unit="agreement",
    gradient=complex_step(_icc),
    source="Shrout & Fleiss 1979, doi:10.1037/0033-2909.86.2.420, ICC(2,1)",
    facts="form:ICC(2,1),items:answered",
    chance=0.0,
    undefined="needs at least two answered items whose numbers differ",
)
def icc(sums: Array) -> Array:
    """Intraclass correlation ICC(2,1): two-way random effects, absolute agreement, single measurement.

    sums: (..., 8) as `pair_statistics`; the two raters are reference and prediction. NaN where nothing varies.

    >>> round(float(icc(pair_statistics([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]).sum(axis=0))), 6)
    1.0
    """
    return np.asarray(_icc(np.asarray(sums, dtype=np.float64)))
