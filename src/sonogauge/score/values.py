"""From cells to values with intervals: data set, task (macro and by cases), slices by what one image can tell."""

from __future__ import annotations

import math
from collections import Counter as Tally
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, Literal

import numpy as np

from sonogauge.benchmarks.spec import BenchmarkSpec, Scenario
from sonogauge.metrics import METRICS, load_metric
from sonogauge.metrics.base import Array, Metric
from sonogauge.metrics.diagnostic import predictive_metric
from sonogauge.metrics.sums import GroupSums
from sonogauge.score.cells import Cell
from sonogauge.score.counters import MOST_CLASSES
from sonogauge.score.scales import CALIBRATION_METRICS, RANKING_METRICS, scenario_metrics
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
    members: frozenset[tuple[str, str]] = frozenset()  # the (stratum, group) pairs it rests on
    facts: str = ""  # choices behind the value, for its signature


@dataclass
class ModelValues:
    """All values of one model and variant: by (task, dataset) and metric, and by (slice, task) and metric."""

    cells: dict[tuple[str, str], dict[str, Value]] = field(default_factory=dict)
    tasks: dict[tuple[str, str], dict[str, Value]] = field(default_factory=dict)


def null(why: str) -> Estimate:
    """An estimate that is not there, with the reason."""
    return Estimate(value=None, low=None, high=None, groups=0, df=0.0, reliable=False, why_null=why)


def cell_values(
    cell: Cell, names: Sequence[str], resampler: Resampler, own: Mapping[str, Metric] | None = None
) -> dict[str, Value]:
    """Estimate the named metrics of one cell.

    own: metrics of these names in place of those of the catalogue (a predictive value at a user's prevalence).
    """
    out = {}
    members = cell.members
    for name in names:
        metric = (own or {}).get(name) or (load_metric(name) if name in METRICS else None)
        n, valid = cell.counted.get(metric.statistic, (cell.n, cell.valid)) if metric else (cell.n, cell.valid)
        out[name] = Value(
            name,
            _cell_estimate(cell, name, metric, resampler),
            n,
            valid,
            sum(cell.excluded.values()),
            (cell.dataset,),
            _chance(cell, name, metric),
            members=members,
            facts=_facts(metric, cell) if metric else "",
        )
    return out


def _chance(cell: Cell, name: str, metric: Metric | None) -> float | None:
    """Return the value that answers without knowledge of the items are expected to have, where it is defined."""
    if name in ("accuracy", "set_score", "top_1"):
        return cell.chance / cell.n if cell.n and cell.chance else None
    if name == "balanced_accuracy" and "confusion" in cell.sums and cell.options:
        # Uniform over the options on offer, whichever of them have items.
        return 1.0 / len(cell.options)
    if name == "average_precision" and "scores" in cell.values:
        return float(np.mean([label for _, label in cell.values["scores"].values]))
    return metric.chance if metric is not None else None


def _facts(metric: Metric, cell: Cell) -> str:
    said = (metric.facts, cell.facts.get(metric.statistic), cell.facts.get(metric.name))
    return ",".join(filter(None, dict.fromkeys(said)))


def _cell_estimate(cell: Cell, name: str, metric: Metric | None, resampler: Resampler) -> Estimate:
    if cell.why_null is not None:
        return null(cell.why_null)
    if metric is None:
        return null(f"no metric '{name}' in this version")
    if not cell.n:
        return null("no item with a usable reference")
    if metric.statistic in cell.counted and not cell.counted[metric.statistic][0]:
        return null(_NOTHING.get(metric.statistic, "no item that this metric counts"))
    if metric.kind == "order":
        ordered = cell.values.get(metric.statistic)
        if ordered is None:
            return null(f"not counted for the answer form '{cell.form}'")
        values = np.array(ordered.values)
        values = values[:, 0] if values.shape[-1] == 1 else values
        if np.isnan(metric.function(values, np.ones(len(values)))):
            return null(metric.undefined)
        return estimate_order(metric, values, ordered.strata, ordered.groups, resampler)
    sums = metric_sums(cell, metric)
    if sums is None:
        many = metric.statistic == "confusion" and len(cell.options) > MOST_CLASSES
        why = (
            f"not counted for more than {MOST_CLASSES} options"
            if many
            else f"not counted for the answer form '{cell.form}'"
        )
        return null(cell.nulls.get(metric.statistic) or why)
    found = _bounded(estimate(metric, sums, resampler), name)
    return replace(found, why_null=metric.undefined) if found.value is None else found


def metric_sums(cell: Cell, metric: Metric) -> GroupSums | None:
    """Return the sums of a cell that a metric is a function of; None where they were not counted."""
    sums = cell.sums.get(metric.statistic)
    if sums is None:
        return None
    if metric.statistic == "confusion":
        sums = _classes_with_items(sums)
    elif metric.statistic != "hits":
        sums = _with_items(sums)
    return sums if metric.per_group is None else replace(sums, values=metric.per_group(sums.values))


_NOTHING: Final = {
    "pairs": "no item was answered with a number",
    "number_pairs": "no item was answered with a number",
    "natural_errors": "no item was answered with a number",
    "absolute_errors": "no item was answered with a number",
    "prediction_out": "no item was answered with a number",
    "band_distance": "no reply names a visible place",
    "positives": "no item with a positive reference",
    "negatives": "no item with a negative reference",
    "positives_answered": "no item with a positive reference was answered",
    "negatives_answered": "no item with a negative reference was answered",
    "grades": "no reference is on the ordinal scale",
}


def _with_items(sums: GroupSums) -> GroupSums:
    # Groups without an item that counts here say nothing of it, and must not pass for further patients.
    kept = np.flatnonzero(sums.values.reshape(len(sums.groups), -1).any(axis=1))
    if len(kept) == len(sums.groups):
        return sums
    return GroupSums(
        tuple(sums.strata[one] for one in kept), tuple(sums.groups[one] for one in kept), sums.values[kept]
    )


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
        metric = load_metric(name) if name in METRICS else None
        missing = [
            one.dataset
            for one in scenarios
            if one.dataset not in usable
            and not (metric is not None and metric.partial and _counts_nothing(cells.get(one.key, {}), name))
        ]
        n, valid = sum(part.n for part in usable.values()), sum(part.valid for part in usable.values())
        excluded = sum(part.excluded for part in parts.values())
        members = united(usable.values())
        units = {one.unit for one in scenarios if one.dataset in usable}
        if not usable or (missing and need_all):
            why = _why_missing(missing, parts)
            macro = cases = null(why)
        elif metric is not None and metric.unit == "answer unit" and len(units) > 1:
            macro = cases = null("the data sets differ in unit: " + ", ".join(sorted(units)))
        else:
            estimates = [part.estimate for part in usable.values()]
            names_of = [f"data set {dataset}" for dataset in usable]
            shares = np.array([part.n for part in usable.values()], dtype=np.float64)
            shares /= shares.sum()
            proportion = metric is not None and metric.interval == "proportion"
            if len(estimates) == 1:
                macro = cases = estimates[0]
            else:
                join = partial(combine, estimates, names=names_of, proportion=proportion, groups=len(members))
                doubt = "; ".join(
                    f"{part}: {one.doubt}" for part, one in zip(names_of, estimates, strict=True) if one.doubt
                )
                macro = replace(_bounded(join(partial(_macro, equal_shares(scenarios, usable))), name), doubt=doubt)
                cases = replace(_bounded(join(partial(_weighted, shares)), name), doubt=doubt)
        chances = [part.chance for part in usable.values() if part.chance is not None]
        chance = float(np.mean(chances)) if chances and len(chances) == len(usable) else None
        datasets = tuple(usable)
        said = {part.facts for part in usable.values()}
        facts = said.pop() if len(said) == 1 else ""
        by_cases = f"{name}_cases"
        level = "macro over categories" if any("category" in one.extra for one in scenarios) else "macro"
        out[name] = Value(name, macro, n, valid, excluded, datasets, chance, level, members, facts)
        out[by_cases] = Value(by_cases, cases, n, valid, excluded, datasets, None, "cases", members, facts)
    return out


def united(parts: Iterable[Value]) -> frozenset[tuple[str, str]]:
    """Return the (stratum, group) pairs that any of the values rests on."""
    return frozenset().union(*(part.members for part in parts))


def _counts_nothing(values: Mapping[str, Value], name: str) -> bool:
    """Whether a cell was scored, but holds no item that this metric counts."""
    return name in values and not values[name].n and any(one.n for one in values.values())


def equal_shares(scenarios: Sequence[Scenario], datasets: Iterable[str]) -> Array:
    """Return the weights of the macro mean: equal over data sets, or over categories and over the data sets of each.

    A scenario names its category under `extra: {category: …}`.
    """
    category_of = {one.dataset: str(one.extra.get("category", one.dataset)) for one in scenarios}
    categories = [category_of[dataset] for dataset in datasets]
    counts = Tally(categories)
    return np.array([1.0 / (len(counts) * counts[one]) for one in categories])


def _macro(shares: Array, x: Array) -> Array:
    # The plain mean of equal parts rounds as it always did.
    return np.asarray(x.mean(axis=-1)) if np.ptp(shares) == 0 else np.asarray(x @ shares)


def _weighted(shares: Array, x: Array) -> Array:
    return np.asarray(x @ shares)


_BOUNDS: Final = {
    "fraction": (0.0, 1.0),
    "agreement": (-1.0, 1.0),
    "correlation": (-1.0, 1.0),
    "grades": (0.0, math.inf),
    "findings per report": (0.0, math.inf),
    "sections per report": (0.0, math.inf),
}


def _bounded(found: Estimate, name: str) -> Estimate:
    # A symmetric interval can leave the range of a fraction or a correlation.
    metric = metric_of(name)
    return found if metric is None or metric.unit not in _BOUNDS else found.within(*_BOUNDS[metric.unit])


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
    slices: Mapping[str, tuple[str, ...]] = SLICES,
    prevalence: float | None = None,
) -> ModelValues:
    """Estimate every metric of every cell, and the tasks over all scenarios and over the determinable ones.

    Metrics that a scenario's own facts call for (ordinal scale, positive classes, probabilities) are added to its
    cell, and to its task over the scenarios that have them.
    prevalence: at which predictive values are given; by default that of the items.
    """
    values = ModelValues()
    own: dict[str, Metric] = {}
    if prevalence is not None:
        own |= {side: predictive_metric(side, prevalence) for side in _PREDICTIVE}
    extra: dict[tuple[str, str], tuple[str, ...]] = {}
    for one in scenarios:
        cell = cells.get(one.key)
        if cell is not None and (cell.n or cell.excluded):
            names = spec.tasks[one.task].metrics
            if not headline_only:
                extra[one.key] = _extra_metrics(one, cell, names)
            chosen_names = names[:1] if headline_only else (*names, *extra[one.key])
            values.cells[one.key] = cell_values(cell, chosen_names, resampler, own)
    for slice_name, kept in slices.items():
        for task, facts in spec.tasks.items():
            chosen = [one for one in scenarios if one.task == task and one.determinable in kept]
            names = facts.metrics[:1] if headline_only or slice_name else facts.metrics
            if not chosen:
                continue
            found = task_values(chosen, values.cells, names, need_all=need_all)
            values.tasks[slice_name, task] = found
            for name in () if slice_name else _ordered(extra.get(one.key, ()) for one in chosen):
                having = [one for one in chosen if name in extra.get(one.key, ())]
                found |= task_values(having, values.cells, [name], need_all=need_all)
    return values


# Both leniencies are shown wherever there are verdicts.
JUDGE_METRICS: Final = ("judge_score", "judge_score_v1")
_PREDICTIVE: Final[tuple[Literal["ppv", "npv"], ...]] = ("ppv", "npv")


def _extra_metrics(scenario: Scenario, cell: Cell, names: Sequence[str]) -> tuple[str, ...]:
    asked = [name for name in scenario_metrics(scenario) if load_metric(name).statistic in cell.sums]
    if "scores" in cell.values:
        asked += RANKING_METRICS
    if "calibration" in cell.sums:
        asked += CALIBRATION_METRICS
    if "bertscore" in cell.sums:
        asked.append("bertscore")
    if "judge" in cell.facts:
        asked += JUDGE_METRICS
    return tuple(name for name in asked if name not in names)


def _ordered(lists: Iterable[Sequence[str]]) -> list[str]:
    return list(dict.fromkeys(name for names in lists for name in names))
