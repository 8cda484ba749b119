"""What a metric is: a function of a summed statistic, its gradient, and the facts a reader needs beside the number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol, cast

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Direction = Literal["up", "down"]
Kind = Literal["sum", "order"]
Interval = Literal["proportion", "studentised", "log", "averaged", "standard_error", "percentile"]


@dataclass(frozen=True)
class Metric:
    """A metric and what must never be parted from its number.

    Args:
        name: snake case, unique in the catalogue.
        statistic: name of the per-item statistic whose sum the function takes, for example "hits".
        direction: "up" if more is better.
        identity: value of a perfect answer.
        unit: "fraction" (0 to 1; intervals are clipped to it), "range" (share of the declared range), "answer unit", …
        kind: "sum" (function of a sum) or "order" (function of values and weights).
        interval: how `stats.intervals` makes the interval.
        function: sums (..., *statistic shape) -> (...); of kind "order": values (n,), weights (..., n) -> (...).
        gradient: sums -> the partial derivatives, in the shape of the sums; None for kind "order".
        source: paper or code that defines the formula.
        facts: choices a reader must know, for the signature ("weights:quadratic").
        undefined: when the value is not defined although items were counted.
        chance: value of answers that know nothing of the item, where it is the same whatever the items.
        per_group: changes the sums of each group, (groups, *shape), before they are added up, where the statistic is
            no sum over items ("squared sum of a patient").
        partial: it counts only items whose reference has something (a mask, a label), so that a data set without such
            an item is no missing part of a task.
    """

    name: str
    statistic: str
    direction: Direction
    identity: float
    unit: str
    kind: Kind
    interval: Interval
    function: Callable[..., Array]
    gradient: Callable[[Array], Array] | None
    source: str
    facts: str = ""
    undefined: str = "not defined at these values"
    chance: float | None = None
    per_group: Callable[[Array], Array] | None = None
    partial: bool = False


class MetricFunction(Protocol):
    """A plain function that carries its metric."""

    metric: Metric

    def __call__(self, *arguments: Any) -> Any:
        """Return the value or values."""


def metric(
    name: str,
    *,
    statistic: str,
    direction: Direction,
    identity: float,
    interval: Interval,
    unit: str = "fraction",
    kind: Kind = "sum",
    gradient: Callable[[Array], Array] | None = None,
    source: str = "",
    facts: str = "",
    undefined: str = "not defined at these values",
    chance: float | None = None,
    per_group: Callable[[Array], Array] | None = None,
    partial: bool = False,
) -> Callable[[Callable[..., Array]], MetricFunction]:
    """Attach a `Metric` to a function as its attribute `metric`; the function stays what it is.

    Raises:
        TypeError: a metric of sums without a gradient: it could have no linearised interval.
    """
    if kind == "sum" and gradient is None:
        raise TypeError(f"metric '{name}' of sums needs a gradient")

    def attach(function: Callable[..., Array]) -> MetricFunction:
        carrier = cast(MetricFunction, function)
        carrier.metric = Metric(
            name=name,
            statistic=statistic,
            direction=direction,
            identity=identity,
            unit=unit,
            kind=kind,
            interval=interval,
            function=function,
            gradient=gradient,
            source=source,
            facts=facts,
            undefined=undefined,
            chance=chance,
            per_group=per_group,
            partial=partial,
        )
        return carrier

    return attach


def ratio(numerator: Array, denominator: Array, empty: float = float("nan")) -> Array:
    """Divide elementwise; `empty` where the denominator is 0.

    >>> ratio(np.array([1.0, 1.0]), np.array([2.0, 0.0]), empty=0.0)
    array([0.5, 0. ])
    """
    numerator, denominator = np.broadcast_arrays(
        np.asarray(numerator, dtype=np.float64), np.asarray(denominator, dtype=np.float64)
    )
    result = np.full(numerator.shape, empty)
    np.divide(numerator, denominator, out=result, where=denominator != 0)
    return result


def complex_step(function: Callable[[Any], Any]) -> Callable[[Array], Array]:
    """Return the gradient of a smooth function of sums (..., k), exact to rounding.

    function: (..., k) -> (...), of arithmetic that also holds for complex numbers.
    Source: Squire & Trapp 1998, doi:10.1137/S003614459631241X: f'(x) = Im f(x + ih)/h, without cancellation.

    >>> complex_step(lambda sums: sums[..., 0] ** 2 * sums[..., 1])(np.array([3.0, 2.0]))
    array([12.,  9.])
    """
    step = 1e-100

    def gradient(sums: Array) -> Array:
        values = np.asarray(sums, dtype=np.float64)
        columns = []
        for column in range(values.shape[-1]):
            shifted = values.astype(np.complex128)
            shifted[..., column] += 1j * step
            columns.append(np.imag(function(shifted)) / step)
        return np.stack(columns, axis=-1)

    return gradient


def safe_ratio(numerator: Any, denominator: Any) -> Any:
    """Divide real or complex arrays; NaN where the denominator is 0."""
    numerator, denominator = np.broadcast_arrays(numerator, denominator)
    zero = np.real(denominator) == 0
    # A complex NaN divides with a warning, a real one without.
    with np.errstate(invalid="ignore"):
        return np.where(zero, np.nan, numerator / np.where(zero, 1.0, denominator))
