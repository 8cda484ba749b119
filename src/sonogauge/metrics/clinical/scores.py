"""Metrics of clinical content: functions of the summed statistic "clinical", micro over all facts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from sonogauge.metrics.base import Array, MetricFunction, metric, ratio
from sonogauge.metrics.clinical.statistics import COLUMNS

_SOURCE: Final = "this toolkit's ultrasound lexicon; rules in sonogauge.metrics.clinical.matching"


def _weights(columns: dict[str, float]) -> Array:
    return np.array([columns.get(name, 0.0) for name in COLUMNS])


def _quotient(
    name: str,
    numerator: dict[str, float],
    denominator: dict[str, float],
    *,
    better: str,
    unit: str = "fraction",
    zero_if: str | None = None,
) -> MetricFunction:
    """Return the metric numerator/denominator, both weighted sums of columns.

    NaN where the denominator is 0; 0 there if the column `zero_if` is not, for that is a failure and not a lack of
    references.
    """
    above, below = _weights(numerator), _weights(denominator)
    fallback = None if zero_if is None else COLUMNS.index(zero_if)

    def gradient(sums: Array) -> Array:
        sums = np.asarray(sums, dtype=np.float64)
        top, bottom = (sums @ above)[..., None], (sums @ below)[..., None]
        result = ratio(above, bottom) - ratio(top * below, bottom * bottom)
        if fallback is not None:
            # Where 0 stands in for 0/0, the slope is that of the failure's own denominator: an interval needs one.
            failed = (bottom[..., 0] == 0) & (sums[..., fallback] > 0)
            result[failed] = above / sums[..., fallback][failed][..., None]
        return result

    up = better == "up"

    def value(sums: Array) -> Array:
        sums = np.asarray(sums, dtype=np.float64)
        result = ratio(sums @ above, sums @ below)
        if fallback is not None:
            result = np.where((sums @ below == 0) & (sums[..., fallback] > 0), 0.0, result)
        return result

    value.__name__ = name
    value.__doc__ = (
        f"{_formula(numerator)} / {_formula(denominator)} over all items; sums: (..., {len(COLUMNS)}) as "
        "`clinical_statistics`."
    )
    decorate: Callable[[Callable[..., Array]], MetricFunction] = metric(
        name,
        statistic="clinical",
        direction="up" if up else "down",
        identity=1.0 if up else 0.0,
        unit=unit,
        interval="proportion" if unit == "fraction" else "studentised",
        gradient=gradient,
        source=_SOURCE,
        undefined=f"nothing to count here: {_formula(denominator).replace('_', ' ')} = 0",
    )
    return decorate(value)


def _formula(columns: dict[str, float]) -> str:
    text = " + ".join(name if weight == 1 else f"{weight:g} {name}" for name, weight in columns.items())
    return f"({text})" if len(columns) > 1 else text


_ITEMS: Final = {"items": 1.0}

fact_precision = _quotient(
    "fact_precision", {"correct": 1.0}, {"reply_facts": 1.0}, better="up", zero_if="reference_facts"
)
fact_recall = _quotient("fact_recall", {"correct": 1.0}, {"reference_facts": 1.0}, better="up", zero_if="reply_facts")
fact_f1 = _quotient("fact_f1", {"correct": 2.0}, {"reference_facts": 1.0, "reply_facts": 1.0}, better="up")
detail_recall = _quotient("detail_recall", {"details_right": 1.0}, {"reference_details": 1.0}, better="up")
negation_error_rate = _quotient(
    "negation_error_rate", {"negation_errors": 1.0}, {"polarity_compared": 1.0}, better="down"
)
side_error_rate = _quotient("side_error_rate", {"side_errors": 1.0}, {"side_compared": 1.0}, better="down")
place_error_rate = _quotient("place_error_rate", {"place_errors": 1.0}, {"place_compared": 1.0}, better="down")
size_error_rate = _quotient("size_error_rate", {"size_errors": 1.0}, {"size_compared": 1.0}, better="down")
grade_error_rate = _quotient("grade_error_rate", {"grade_errors": 1.0}, {"grade_compared": 1.0}, better="down")
hallucinated_per_report = _quotient(
    "hallucinated_per_report", {"hallucinated": 1.0}, _ITEMS, better="down", unit="findings per report"
)
missed_per_report = _quotient("missed_per_report", {"missed": 1.0}, _ITEMS, better="down", unit="findings per report")
missing_sections_per_report = _quotient(
    "missing_sections_per_report", {"sections_missing": 1.0}, _ITEMS, better="down", unit="sections per report"
)
