"""From cells to values with intervals: data set, task (macro and by cases), slices by what one image can tell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import numpy as np

from sonogauge.benchmarks.spec import BenchmarkSpec, Scenario
from sonogauge.metrics import METRICS, load_metric
from sonogauge.metrics.base import Array, Metric
from sonogauge.metrics.sums import GroupSums
from sonogauge.score.cells import Cell
from sonogauge.stats.intervals import Estimate, combine, estimate, estimate_order
from sonogauge.stats.resample import Resampler

# Slices of scenarios by what one image can tell; composites are given on each.
SLICES: Final[dict[str, tuple[str, ...]]] = {
    "": ("yes", "partly", "no"),
    "determinable!=no": ("yes", "partly"),
    "determinable=yes": ("yes",),
}


@dataclass(frozen=True)
class Value:
    """An estimate with what must stand beside it."""

    metric: str
    estimate: Estimate
    n: int
    valid: int
    excluded: int
    datasets: tuple[str, ...] = ()
    chance: float | None = None
    aggregation: str = ""


@dataclass
class ModelValues:
    """All values of one model and variant: by (task, dataset) and metric, and by (slice, task) and metric."""

    cells: dict[tuple[str, str], dict[str, Value]] = field(default_factory=dict)
    tasks: dict[tuple[str, str], dict[str, Value]] = field(default_factory=dict)


def null(why: str) -> Estimate:
    """An estimate that is not there, with the reason."""
    return Estimate(value=None, low=None, high=None, groups=0, df=0.0, reliable=False, why_null=why)


def cell_values(cell: Cell, names: Sequence[str], resampler: Resampler) -> dict[str, Value]:
    """Estimate the named metrics of one cell."""
    out = {}
    for name in names:
        out[name] = Value(
            name,
            _cell_estimate(cell, name, resampler),
            cell.n,
            cell.valid,
            sum(cell.excluded.values()),
            (cell.dataset,),
            cell.chance / cell.n if name == "accuracy" and cell.n and cell.chance else None,
        )
    return out


def _cell_estimate(cell: Cell, name: str, resampler: Resampler) -> Estimate:
    if cell.why_null is not None:
        return null(cell.why_null)
    if name not in METRICS:
        return null(f"no metric '{name}' in this version")
    if not cell.n:
        return null("no item with a usable reference")
    metric = load_metric(name)
    if metric.kind == "order":
        values = cell.values.get(metric.statistic)
        if values is None:
            return null(f"not counted for the answer form '{cell.form}'")
        return estimate_order(metric, np.array(values), cell.strata, cell.groups, resampler)
    sums = metric_sums(cell, metric)
    if sums is None:
        return null(f"not counted for the answer form '{cell.form}'")
    return estimate(metric, sums, resampler)


def metric_sums(cell: Cell, metric: Metric) -> GroupSums | None:
    """Return the sums of a cell that a metric is a function of; None where they were not counted."""
    sums = cell.sums.get(metric.statistic)
    return _classes_with_items(sums) if sums is not None and metric.statistic == "confusion" else sums


def _classes_with_items(sums: GroupSums) -> GroupSums:
    # The class set of a macro average is fixed from the full data: options with at least one reference item. What was
    # predicted as another option moves to the last column, where it is a miss of its reference class.
    table = sums.values
    kept = np.flatnonzero(table.sum(axis=(0, 2)) > 0)
    rows = table[:, kept, :]
    rest = rows.sum(axis=2) - rows[:, :, kept].sum(axis=2)
    reduced = np.concatenate([rows[:, :, kept], rest[:, :, None]], axis=2)
    return replace(sums, values=reduced)


def task_values(
    spec: BenchmarkSpec,
    task: str,
    scenarios: Sequence[Scenario],
    cells: Mapping[tuple[str, str], dict[str, Value]],
    names: Iterable[str],
    *,
    need_all: bool,
) -> dict[str, Value]:
    """Combine the data sets of a task: macro mean, and the mean weighted by cases as `NAME_cases`.

    need_all: a scenario without a value leaves the task without one, and the reason names it.
    """
    out = {}
    for name in names:
        parts = {one.dataset: cells[one.key][name] for one in scenarios if one.key in cells and name in cells[one.key]}
        usable = {dataset: part for dataset, part in parts.items() if part.estimate.value is not None}
        missing = [one.dataset for one in scenarios if one.dataset not in usable]
        n, valid = sum(part.n for part in usable.values()), sum(part.valid for part in usable.values())
        excluded = sum(part.excluded for part in parts.values())
        if not usable or (missing and need_all):
            why = _why_missing(missing, parts)
            macro = cases = null(why)
        else:
            estimates = [part.estimate for part in usable.values()]
            names_of = [f"data set {dataset}" for dataset in usable]
            shares = np.array([part.n for part in usable.values()], dtype=np.float64)
            shares /= shares.sum()
            proportion = name in METRICS and load_metric(name).interval == "proportion"
            if len(estimates) == 1:
                macro = cases = estimates[0]
            else:
                macro = _bounded(combine(estimates, _mean, names=names_of, proportion=proportion), name)
                weighted = partial(_weighted, shares)
                cases = _bounded(combine(estimates, weighted, names=names_of, proportion=proportion), name)
        chances = [part.chance for part in usable.values() if part.chance is not None]
        chance = float(np.mean(chances)) if chances and len(chances) == len(usable) else None
        datasets = tuple(usable)
        out[name] = Value(name, macro, n, valid, excluded, datasets, chance, "macro")
        out[f"{name}_cases"] = Value(f"{name}_cases", cases, n, valid, excluded, datasets, None, "cases")
    return out


def _mean(x: Array) -> Array:
    return np.asarray(x.mean(axis=-1))


def _weighted(shares: Array, x: Array) -> Array:
    return np.asarray(x @ shares)


def _bounded(found: Estimate, name: str) -> Estimate:
    # A symmetric interval can leave the range of a fraction; the part outside it says nothing.
    metric = metric_of(name)
    if metric is None or metric.unit != "fraction" or found.low is None or found.high is None:
        return found
    return replace(found, low=max(0.0, found.low), high=min(1.0, found.high))


def _why_missing(missing: Sequence[str], parts: Mapping[str, Value]) -> str:
    reasons = [
        f"{dataset} ({parts[dataset].estimate.why_null})" if dataset in parts else dataset for dataset in missing
    ]
    return "missing data sets: " + ", ".join(reasons) if reasons else "no data set of this task"


def metric_of(name: str) -> Metric | None:
    """Return the metric behind a value's name, with or without the `_cases` suffix."""
    base = name.removesuffix("_cases")
    return load_metric(base) if base in METRICS else None


def evaluate(
    spec: BenchmarkSpec,
    cells: Mapping[tuple[str, str], Cell],
    scenarios: Sequence[Scenario],
    resampler: Resampler,
    *,
    headline_only: bool = False,
    need_all: bool,
) -> ModelValues:
    """Estimate every metric of every cell, and the tasks over all scenarios and over the determinable ones."""
    values = ModelValues()
    for one in scenarios:
        cell = cells.get(one.key)
        if cell is not None and (cell.n or cell.excluded):
            names = spec.tasks[one.task].metrics
            values.cells[one.key] = cell_values(cell, names[:1] if headline_only else names, resampler)
    for slice_name, kept in SLICES.items():
        for task, facts in spec.tasks.items():
            chosen = [one for one in scenarios if one.task == task and one.determinable in kept]
            names = facts.metrics[:1] if headline_only or slice_name else facts.metrics
            if chosen:
                values.tasks[slice_name, task] = task_values(spec, task, chosen, values.cells, names, need_all=need_all)
    return values
