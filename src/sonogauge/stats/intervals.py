"""Values with 95 % intervals from sums per group: what a metric says of new patients from the same sources."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sonogauge.metrics.base import Array, Metric
from sonogauge.metrics.sums import GroupSums
from sonogauge.stats._spread import ROUNDING, carried_by_few, degrees, spread
from sonogauge.stats._threads import one_thread
from sonogauge.stats.resample import Resampler

LEVEL = 0.95
RELIABLE_GROUPS = 20
ONE_GROUP = "one group"
NO_ITEM = "no item"
NOT_DEFINED = "not defined at these values"
NO_VARIATION = "no variation between groups"
NOT_DRAWN = "too few groups: no draw holds what the metric needs"
# A bootstrap-t quantile beyond this many quantiles of t comes from draws of nearly one group.
_ABSURD = 10.0


@dataclass(frozen=True)
class Estimate:
    """A value and its interval, or the reason why there is none.

    Args:
        value: the metric; None without items.
        low: lower end of the 95 % interval, or None.
        high: upper end, or None.
        groups: groups that hold items.
        df: degrees of freedom of the interval.
        reliable: False below 20 groups, or an equivalent of degrees of freedom for combined values.
        why_null: why the value or the interval is missing.
        draws: the value in each draw (draws,), for combined values; None where the groups cannot tell the spread.
        method: how the interval was made.
        inflation: standard error by leaving out each group over the linearised one, which the draws share: above 1
            where some groups hold far more items than others.
        doubt: what else a reader must know of the value: a few groups carry most of an error.
    """

    value: float | None
    low: float | None
    high: float | None
    groups: int
    df: float
    reliable: bool
    why_null: str | None
    draws: Array | None = field(default=None, compare=False, repr=False)
    method: str = ""
    inflation: float = 1.0
    doubt: str = ""

    def within(self, least: float, most: float) -> Estimate:
        """Return it with its interval cut to where its values can lie; the part outside says nothing."""
        if self.low is None or self.high is None:
            return self
        return replace(self, low=max(least, self.low), high=min(most, self.high))


def t_quantile(df: float, level: float = LEVEL) -> float:
    """Return the two-sided quantile of Student's t.

    >>> round(t_quantile(10), 3)
    2.228
    """
    from scipy.special import stdtrit

    return float(stdtrit(df, 0.5 + level / 2))


def wilson(value: float, n: float, quantile: float) -> tuple[float, float]:
    """Return the Wilson score interval of a proportion. Source: Wilson 1927, doi:10.1080/01621459.1927.10502953.

    >>> [round(end, 4) for end in wilson(0.5, 10, 1.96)]
    [0.2366, 0.7634]
    """
    square = quantile * quantile / n
    centre = (value + square / 2) / (1 + square)
    half = math.sqrt(max(value * (1 - value), 0.0) * square + square * square / 4) / (1 + square)
    # At 0 and 1 one end is the value itself; rounding must not move it.
    return (0.0 if value == 0 else max(0.0, centre - half)), (1.0 if value == 1 else min(1.0, centre + half))


def estimate(metric: Metric, sums: GroupSums, resampler: Resampler) -> Estimate:
    """Estimate a metric of sums with its interval.

    SE leaves out each group in turn (stratified jackknife); t has effective groups - strata degrees of freedom, for
    a few groups with most of the items tell no more than those few. SD(draws) is multiplied by the inflation, SE over
    the linearised standard error.
    proportion: Wilson with the clustered effective n = p(1 - p)/SE², at most the number of items (at 0 or 1: the
    number of groups), and the quantile t (Dean & Pagano 2015, doi:10.1093/jssam/smv024).
    studentised, log: SE times the cluster bootstrap-t with the linearised standard error of each draw, on the value
    or its logarithm, no shorter than value ± t SD(draws).
    standard_error: value ± t SD(draws), which holds where a class with few groups vanishes from draws.
    averaged: bootstrap-t; below 20 groups as standard_error.
    One group, or a stratum with one group in the whole benchmark: no interval. Raises ValueError for a metric of
    kind "order" and for groups the resampler was not made for.
    """
    if metric.gradient is None:
        raise ValueError(f"metric '{metric.name}' is no function of sums; use estimate_order")
    if not sums.groups:
        return _without(None, 0, NO_ITEM)
    total = sums.total()
    value = float(metric.function(total))
    if math.isnan(value):
        return _without(None, len(sums.groups), NO_ITEM)
    groups = len(sums.groups)
    strata = resampler.unit_sums(sums)
    present = {stratum: len(units) for stratum, (units, _) in strata.items()}
    lonely = _lonely(resampler, present)
    if lonely:
        return _without(value, groups, lonely)
    pooled = any(resampler.pooled(stratum) for stratum in strata)
    totals = resampler.totals(sums)
    draws = metric.function(totals)
    if np.isnan(draws).all():
        return _without(value, groups, NOT_DRAWN)
    note = ", groups pooled at random" if pooled else ""
    blocks = {stratum: values for stratum, (_, values) in strata.items()}
    gradient = metric.gradient(total).reshape(-1)
    linear, error, inflation, df, flat = spread(metric, total, value, blocks)
    doubt = carried_by_few(gradient, blocks) if metric.interval == "log" else ""

    def interval(low: float, high: float, method: str) -> Estimate:
        if metric.unit == "fraction":
            low, high = max(0.0, low), min(1.0, high)
        elif metric.unit == "range":
            # Errors of clipped values: no share of the range is larger than the whole of it.
            low, high = max(-1.0, low), min(1.0, high) if value <= 1.0 else high
        reliable = groups >= RELIABLE_GROUPS
        if high - low <= ROUNDING * max(1.0, abs(value)):
            # The groups differ, the draws do not: a class lies in one group alone, for example.
            return Estimate(value, None, None, groups, df, reliable, NO_VARIATION, draws)
        return Estimate(value, low, high, groups, df, reliable, None, draws, method + note, inflation, doubt)

    if metric.interval == "proportion":
        # hits / n has the derivative 1/n in hits, the largest of its two.
        items = 1.0 / float(np.abs(gradient).max())
        if value in (0.0, 1.0):
            effective = float(groups)
        else:
            effective = items if flat else min(items, value * (1 - value) / error**2)
        return interval(*wilson(value, effective, t_quantile(df)), "Wilson, clustered effective n, t")
    if flat or (metric.interval == "log" and value == 0):
        return Estimate(value, None, None, groups, df, groups >= RELIABLE_GROUPS, NO_VARIATION, draws)
    log = metric.interval == "log"
    # The interval in units of its own scale: the logarithm (delta method) or the value.
    base = value if log else 1.0
    half = t_quantile(df) * inflation * _deviation(draws) / base
    lower, upper, name = -half, half, "bootstrap standard error, t"
    if metric.interval != "standard_error" and not (metric.interval == "averaged" and groups < RELIABLE_GROUPS):
        with one_thread():
            low_t, high_t = _studentised(metric, sums, resampler, totals, value, draws, linear, log)
        # With very few groups, draws without any spread of their own leave the quantiles infinite or absurd.
        if max(-low_t, high_t) <= _ABSURD * t_quantile(df):
            # The draws of a class average see for themselves what leaving out the groups of a rare class does.
            scale = linear if metric.interval == "averaged" else error
            ends = -high_t * scale / base, -low_t * scale / base
            # Errors are heavy-tailed, which few groups hide: never shorter than t on either side.
            lower, upper = ends if metric.interval == "averaged" else (min(lower, ends[0]), max(upper, ends[1]))
            name = "cluster bootstrap-t"
    if log:
        return interval(value * math.exp(lower), value * math.exp(upper), name + ", logarithm")
    return interval(value + lower, value + upper, name)


def _studentised(
    metric: Metric,
    sums: GroupSums,
    resampler: Resampler,
    totals: Array,
    value: float,
    draws: Array,
    error: float,
    log: bool,
) -> tuple[float, float]:
    """Return the 2.5 % and 97.5 % quantiles of (draw - value)/(its own standard error)."""
    assert metric.gradient is not None
    gradients = metric.gradient(totals).reshape(resampler.draws, -1)
    variance = np.zeros(resampler.draws)
    for stratum, (units, values) in resampler.unit_sums(sums).items():
        factor = resampler.factor(stratum)
        for rows, counts in resampler.count_chunks(stratum, units):
            influence = gradients[rows] @ values.T
            if len(units) == 1:
                variance[rows] += factor * counts[:, 0] * influence[:, 0] ** 2
                continue
            if len(units) == 2:
                # One of two groups is drawn, so a draw has no spread of its own; the sample's stands in.
                variance[rows] += (influence[:, 0] - influence[:, 1]) ** 2
                continue
            drawn = counts.sum(axis=1)
            mean = np.divide(np.einsum("bg,bg->b", counts, influence), drawn, out=np.zeros(len(drawn)), where=drawn > 0)
            influence -= mean[:, None]
            squares = np.einsum("bg,bg,bg->b", counts, influence, influence)
            # A unit drawn once stands for `factor` units; (drawn - 1)/drawn of the spread is lost to the mean.
            variance[rows] += (
                factor**2 * squares * np.divide(drawn, drawn - 1, out=np.zeros(len(drawn)), where=drawn > 1)
            )
    errors = np.sqrt(variance)
    if log:
        with np.errstate(divide="ignore"):
            shift = np.log(draws) - math.log(value)
        errors = np.divide(errors, draws, out=np.zeros_like(errors), where=draws > 0)
        error = error / value
    else:
        shift = draws - value
    known = errors > 1e-9 * error
    ratio = np.where(shift > 0, np.inf, np.where(shift < 0, -np.inf, 0.0))
    np.divide(shift, errors, out=ratio, where=known)
    # A draw without any item of this cell says nothing.
    low, high = np.quantile(ratio[~np.isnan(draws)], [0.5 - LEVEL / 2, 0.5 + LEVEL / 2], method="inverted_cdf")
    return float(low), float(high)


def estimate_order(
    metric: Metric, values: ArrayLike, strata: Sequence[str], groups: Sequence[str], resampler: Resampler
) -> Estimate:
    """Estimate a metric of weighted values (median and the like), values (n,), with a percentile interval.

    The percentiles are those of the normal at t(groups - strata), which widens the interval with few groups
    (Hesterberg 2015, doi:10.1080/00031305.2015.1089789, "expanded percentile").
    """
    from scipy.special import ndtr

    numbers = np.asarray(values, dtype=np.float64)
    if not len(numbers):
        return _without(None, 0, NO_ITEM)
    value = float(metric.function(numbers, np.ones(len(numbers))))
    count = len(set(zip(strata, groups, strict=True)))
    names = np.array(strata)
    places = {
        stratum: (
            rows := np.flatnonzero(names == stratum),
            resampler.units(stratum, [groups[int(row)] for row in rows]),
        )
        for stratum in sorted(set(strata))
    }
    present = {stratum: len(np.unique(units)) for stratum, (_, units) in places.items()}
    lonely = _lonely(resampler, present)
    if lonely:
        return _without(value, count, lonely)
    counts = {stratum: resampler.counts(stratum) for stratum in places}
    draws = np.zeros(resampler.draws)
    step = max(1, 1_000_000 // len(numbers))
    for start in range(0, resampler.draws, step):
        stop = min(start + step, resampler.draws)
        weights = np.zeros((stop - start, len(numbers)))
        for stratum, (columns, units) in places.items():
            weights[:, columns] = counts[stratum][start:stop][:, units] * resampler.factor(stratum)
        draws[start:stop] = metric.function(numbers, weights)
    df = degrees(present)
    usable = draws[~np.isnan(draws)]
    reliable = count >= RELIABLE_GROUPS
    if not len(usable):
        return Estimate(value, None, None, count, df, reliable, NOT_DRAWN, draws)
    if np.ptp(usable) == 0:
        return Estimate(value, None, None, count, df, reliable, NO_VARIATION, draws)
    tail = float(ndtr(-t_quantile(df)))
    low, high = np.quantile(usable, [tail, 1 - tail], method="inverted_cdf")
    return Estimate(value, float(low), float(high), count, df, reliable, None, draws, "percentile, expanded by t")


def combine(
    parts: Sequence[Estimate],
    function: Callable[[Array], Array],
    *,
    names: Sequence[str] | None = None,
    proportion: bool = False,
    groups: int | None = None,
    df: float | None = None,
) -> Estimate:
    """Estimate a function of finished values (a macro average, a composite, a difference) under the shared draws.

    The interval is value ± t(df) SD(draws), inflated as the parts are, each by its share of the variance; df by Welch
    and Satterthwaite over the parts. A part without a value, or
    whose groups cannot tell its spread (one group), leaves the whole without one and is named in `why_null`.

    Args:
        parts: the finished values, all from one resampler.
        function: (..., parts) -> (...).
        names: names of the parts for `why_null`; by default "part 1", ….
        proportion: clip the interval to [0, 1], and at 0 or 1 without spread give Wilson with the effective number of
            groups.
        groups: number of distinct groups, where the caller knows it; by default the sum over parts.
        df: degrees of freedom, where the parts share their groups and the sum of theirs would be too many.

    Raises:
        ValueError: parts with different numbers of draws.
    """
    names = names or [f"part {position}" for position in range(1, len(parts) + 1)]
    count = sum(part.groups for part in parts) if groups is None else groups
    if not parts:
        return _without(None, 0, NO_ITEM)
    for name, part in zip(names, parts, strict=True):
        if part.value is None:
            return _without(None, count, f"{name}: {part.why_null}")
    values = np.array([part.value for part in parts], dtype=np.float64)
    value = float(function(values))
    if math.isnan(value):
        return _without(None, count, NOT_DEFINED)
    for name, part in zip(names, parts, strict=True):
        if part.draws is None:
            return _without(value, count, f"{name}: {part.why_null}")
    if len({len(part.draws) for part in parts if part.draws is not None}) > 1:
        raise ValueError("values combined must come from one resampler, with the same number of draws")
    table = np.stack([part.draws for part in parts if part.draws is not None], axis=-1)
    slopes = _slopes(function, values)
    draws = function(table)
    # Draws in which a part is undefined (none of its groups was drawn) are left out of every spread.
    spreads = np.array([_deviation(table[:, column]) for column in range(len(parts))])
    shares = (slopes * spreads) ** 2
    squares = np.array([part.inflation**2 for part in parts])
    inflation = math.sqrt(float((shares * squares).sum() / shares.sum())) if shares.sum() > 0 else 1.0
    deviation = inflation * _deviation(draws)
    part_df = np.array([max(part.df, 1.0) for part in parts])
    if df is None:
        mass = float((shares**2 / part_df).sum())
        df = float(shares.sum() ** 2 / mass) if mass > 0 else float(part_df.sum())
        # Welch and Satterthwaite take the parts for independent; parts that share groups cannot know more than these.
        df = min(df, max(1.0, count - 1.0))
    reliable = df >= RELIABLE_GROUPS - 1
    if deviation <= ROUNDING * max(1.0, float(np.abs(slopes * values).sum())):
        pull = np.abs(slopes)
        if not (proportion and value in (0.0, 1.0) and pull.sum() > 0):
            return Estimate(value, None, None, count, df, reliable, NO_VARIATION, draws)
        pull = pull / pull.sum()
        effective = min(count, 1.0 / float((pull**2 / np.array([part.groups for part in parts])).sum()))
        low, high = wilson(value, effective, t_quantile(df))
        method = "Wilson, effective number of groups, t"
        return Estimate(value, low, high, count, df, reliable, None, draws, method)
    half = t_quantile(df) * deviation
    low, high = value - half, value + half
    if proportion:
        low, high = max(0.0, low), min(1.0, high)
    return Estimate(value, low, high, count, df, reliable, None, draws, "bootstrap standard error, t", inflation)


def difference(a: Estimate, b: Estimate, *, names: tuple[str, str] = ("first", "second")) -> Estimate:
    """Estimate a - b of two models on the same items under the same draws; df = the smaller of the two."""

    def subtract(values: Array) -> Array:
        result: Array = values[..., 0] - values[..., 1]
        return result

    return combine([a, b], subtract, names=names, groups=max(a.groups, b.groups), df=max(1.0, min(a.df, b.df)))


def _without(value: float | None, groups: int, why: str) -> Estimate:
    return Estimate(value, None, None, groups, 0.0, False, why)


def _lonely(resampler: Resampler, present: Mapping[str, int]) -> str | None:
    """Return why the spread between groups cannot be told: one group in all, or in a whole stratum.

    present: units of resampling that hold items, by stratum.
    """
    if sum(present.values()) == 1:
        return ONE_GROUP
    single = [stratum for stratum in present if resampler.unit_count(stratum) == 1]
    return f"{ONE_GROUP} in '{single[0]}'" if single else None


def _deviation(draws: Array) -> float:
    usable = draws[~np.isnan(draws)]
    return float(np.std(usable)) if len(usable) else 0.0


def _slopes(function: Callable[[Array], Array], values: Array) -> Array:
    """Return the derivative of the function in each part, by central differences."""
    step = 1e-6
    shifts = step * np.eye(len(values))
    slopes: NDArray[np.float64] = (function(values + shifts) - function(values - shifts)) / (2 * step)
    return slopes
