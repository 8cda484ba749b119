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
) -> Callable[[Callable[..., Array]], MetricFunction]:
    """Attach a `Metric` to a function as its attribute `metric`; the function stays what it is.

    Raises:
        TypeError: a metric of sums without a gradient: it could have no linearised interval.
    """
    if kind == "sum" and gradient is None:
        raise TypeError(f"metric '{name}' of sums needs a gradient")

    def attach(function: Callable[..., Array]) -> MetricFunction:
        carrier = cast(MetricFunction, function)
        carrier.metric = Metric(name, statistic, direction, identity, unit, kind, interval, function, gradient, source)
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
