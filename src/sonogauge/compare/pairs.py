"""Differences of two models on the same items: intervals under shared draws, swapped-patient p, McNemar beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from sonogauge.benchmarks.composite import composite_draws, part
from sonogauge.compare.sides import Counted, Ground
from sonogauge.metrics import METRICS, load_metric
from sonogauge.metrics.base import Array
from sonogauge.score.cells import Cell
from sonogauge.score.compose import composite_values
from sonogauge.score.values import Value, metric_sums
from sonogauge.stats.intervals import Estimate, difference
from sonogauge.stats.paired import McNemar, PairedSums, SwapTest, mcnemar, swap_test
from sonogauge.stats.power import Standing, smallest_difference, standing

LOWER_IS_BETTER: Final = "down"
NOT_SUMS: Final = "no swap test: the metric is no function of sums"


@dataclass(frozen=True)
class Difference:
    """First model minus second, on one task, data set, level of a column, or total.

    difference, low, high: in the metric's own units; d_*: the same so that higher is better. p: two-sided, by swapped
    patients; p_holm, p_bh: adjusted in the `family`. detectable: smallest true difference found with 80 % power at
    this spread. Nulls have their reason in why_null (interval) or why_no_p.
    """

    first: str
    second: str
    task: str
    dataset: str
    column: str
    level: str
    metric: str
    direction: str
    value_first: float | None
    value_second: float | None
    difference: float | None
    low: float | None
    high: float | None
    d_difference: float | None
    d_low: float | None
    d_high: float | None
    n: int
    groups: int
    df: float
    reliable: bool
    why_null: str | None
    p: float | None
    p_holm: float | None
    p_bh: float | None
    why_no_p: str | None
    swaps: int
    exact: bool
    differing_groups: int
    family: str
    detectable: float | None
    standing: Standing | None
    mcnemar: McNemar | None


@dataclass(frozen=True)
class PairRules:
    """How pairs are tested: random swaps and their seed, and the margin of non-inferiority (d, higher is better)."""

    swaps: int
    seed: int
    margin: float | None = None


@dataclass(frozen=True)
class Place:
    """Where a difference is taken: a task, a data set of it, a level of a column, or a total (no task)."""

    task: str = ""
    dataset: str = ""
    column: str = ""
    level: str = ""

    @property
    def family(self) -> str:
        """The family of tests that its p-value belongs to."""
        if self.column:
            return f"by {self.column}"
        return "tasks" if self.task else "totals"


def task_difference(ground: Ground, first: Counted, second: Counted, place: Place, testing: PairRules) -> Difference:
    """Compare two models by the headline of a task, or of one data set of it where `place` names one."""
    task = place.task
    metric = ground.spec.tasks[task].headline
    pair = [
        one.values.cells.get((task, place.dataset)) if place.dataset else one.values.tasks.get(("", task))
        for one in (first, second)
    ]
    values = [one[metric] if one and metric in one else None for one in pair]
    keys = [key for key in first.cells if key[0] == task and place.dataset in ("", key[1]) and first.cells[key].n]
    parts = _paired_sums(metric, [(first.cells[key], second.cells[key]) for key in sorted(keys)])
    test = swap_test(parts, swaps=testing.swaps, seed=testing.seed) if parts else _no_test(NOT_SUMS)
    found = hits(first, second, lambda key: key[0] == task and place.dataset in ("", key[1]))
    return _difference(metric, first, second, place, values, test, testing, found)


def total_differences(ground: Ground, first: Counted, second: Counted, testing: PairRules) -> list[Difference]:
    """Compare two models by every total of the benchmark, totals of skill excepted (they take off the same amounts)."""
    spec = ground.spec
    values = [composite_values(spec, one.values, {}) for one in (first, second)]
    out = []
    for name, facts in spec.composites.items():
        if facts.skill:
            continue
        weights = spec.weights[facts.weights]
        own = [one["", name] for one in values]
        keys = [one.key for one in ground.scenarios if one.task in weights]
        keys = [key for key in keys if key in first.cells and first.cells[key].n]
        parts: list[PairedSums] = []
        for key in keys:
            parts += _paired_sums(spec.tasks[key[0]].headline, [(first.cells[key], second.cells[key])])
        if any(one.estimate.value is None for one in own):
            test = _no_test("one of the two has no total")
        elif len(parts) < len(keys):
            test = _no_test(NOT_SUMS)
        else:
            counts = [first.cells[key].n for key in keys] if facts.level == "cases" else None
            value = _total(ground, weights, keys, counts)
            test = swap_test(parts, value, swaps=testing.swaps, seed=testing.seed)
        out.append(_difference(name, first, second, Place(), own, test, testing, None))
    return out


def _total(
    ground: Ground, weights: Mapping[str, float], keys: Sequence[tuple[str, str]], counts: Sequence[int] | None
) -> Callable[[Array], Array]:
    """Return the total as a function of the values of its cells (..., cells); counts: weights of cells within tasks."""
    columns = {task: [number for number, key in enumerate(keys) if key[0] == task] for task in weights}
    shares = {}
    for task, own in columns.items():
        sizes = np.array([counts[number] if counts else 1.0 for number in own], dtype=np.float64)
        shares[task] = sizes / sizes.sum()

    def total(values: Array) -> Array:
        parts = [part(ground.spec.tasks[task].headline, values[..., columns[task]] @ shares[task]) for task in weights]
        return composite_draws(np.stack(parts, axis=-1), list(weights.values()))

    return total


def _paired_sums(metric_name: str, cells: Iterable[tuple[Cell, Cell]]) -> list[PairedSums]:
    if metric_name not in METRICS:
        return []
    metric = load_metric(metric_name)
    if metric.kind != "sum":
        return []
    out = []
    for ours, theirs in cells:
        a, b = metric_sums(ours, metric), metric_sums(theirs, metric)
        if a is None or b is None:
            return []
        out.append(PairedSums(metric, a, b))
    return out


def _no_test(why: str) -> SwapTest:
    return SwapTest(None, 0, 0, 0, False, why)


def hits(first: Counted, second: Counted, keep: Callable[[tuple[str, str]], bool]) -> McNemar | None:
    """Return McNemar's tests over the cells (task, data set) that `keep` takes; None without right or wrong."""
    b = c = known = 0
    for key, ours in first.outcomes.items():
        theirs = second.outcomes.get(key)
        if theirs is None or ours.correct is None or theirs.correct is None or not keep((ours.task, ours.dataset)):
            continue
        known += 1
        b += ours.correct and not theirs.correct
        c += theirs.correct and not ours.correct
    return mcnemar(b, c) if known else None


def _difference(
    metric: str,
    first: Counted,
    second: Counted,
    place: Place,
    values: Sequence[Value | None],
    test: SwapTest,
    testing: PairRules,
    found: McNemar | None,
) -> Difference:
    ours, theirs = values
    missing = next(
        (
            f"{model.label}: {value.estimate.why_null if value else 'not counted'}"
            for model, value in ((first, ours), (second, theirs))
            if value is None or value.estimate.value is None
        ),
        None,
    )
    gap = Estimate(None, None, None, 0, 0.0, False, missing)
    if ours is not None and theirs is not None and missing is None:
        gap = difference(ours.estimate, theirs.estimate, names=(first.label, second.label))
        if gap.value == 0.0 and test.p == 1.0 and not test.differing:
            gap = replace(gap, why_null=gap.why_null and "both models did the same on every patient")
        if metric in METRICS and load_metric(metric).unit == "fraction":
            gap = _clipped(gap)
    down = metric in METRICS and load_metric(metric).direction == LOWER_IS_BETTER
    d = (_negative(gap.value), _negative(gap.high), _negative(gap.low)) if down else (gap.value, gap.low, gap.high)
    error = spread(gap)
    judged = None
    if testing.margin is not None and d[1] is not None and d[2] is not None:
        judged = standing(d[1], d[2], testing.margin)
    return Difference(
        first=first.label,
        second=second.label,
        task=place.task,
        dataset=place.dataset,
        column=place.column,
        level=place.level,
        metric=metric,
        direction="down" if down else "up",
        value_first=ours.estimate.value if ours else None,
        value_second=theirs.estimate.value if theirs else None,
        difference=gap.value,
        low=gap.low,
        high=gap.high,
        d_difference=d[0],
        d_low=d[1],
        d_high=d[2],
        n=ours.n if ours else 0,
        groups=test.groups or gap.groups,
        df=gap.df,
        reliable=gap.reliable,
        why_null=gap.why_null,
        p=test.p if missing is None else None,
        p_holm=None,
        p_bh=None,
        why_no_p=missing or test.why_null,
        swaps=test.swaps,
        exact=test.exact,
        differing_groups=test.differing,
        family=place.family,
        detectable=smallest_difference(error, gap.df) if error else None,
        standing=judged,
        mcnemar=found if missing is None else None,
    )


def _clipped(gap: Estimate) -> Estimate:
    # Two fractions differ by 1 at most; the ends of a t interval do not know that.
    if gap.low is None or gap.high is None:
        return gap
    return replace(gap, low=max(-1.0, gap.low), high=min(1.0, gap.high))


def _negative(value: float | None) -> float | None:
    return None if value is None else 0.0 - value


def spread(gap: Estimate) -> float | None:
    """Return the standard error of an estimate with an interval; None without one."""
    if gap.draws is None or gap.low is None:
        return None
    usable = gap.draws[~np.isnan(gap.draws)]
    return float(np.std(usable)) * gap.inflation if len(usable) else None
