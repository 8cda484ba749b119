"""Totals over tasks, skill against not looking, and the verdict of each task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from sonogauge.benchmarks.composite import composite_draws, part
from sonogauge.benchmarks.spec import BenchmarkSpec, Composite
from sonogauge.metrics.base import Array
from sonogauge.score.values import SLICES, ModelValues, Value, null, united
from sonogauge.stats.intervals import Estimate, combine

# Whose best defines "not looking" in a skill; random and not-visible join for the verdict.
SKILL_BASELINES: Final = ("prior", "majority", "constant")
_PERFECT: Final = 1e-9


@dataclass(frozen=True)
class Verdict:
    """A task against its best non-reading baseline.

    verdict: "above", "not distinguishable" or "below" by the interval of the paired difference (d of the model minus d
    of the baseline, higher is better); None with a reason where there is no interval.
    """

    task: str
    baseline: str
    verdict: str | None
    difference: float | None
    low: float | None
    high: float | None
    why_null: str | None = None


def composite_values(
    spec: BenchmarkSpec, values: ModelValues, baselines: Mapping[str, ModelValues]
) -> dict[tuple[str, str], Value]:
    """Return every composite on every slice, by (slice, composite name)."""
    out = {}
    for slice_name in SLICES:
        for name, facts in spec.composites.items():
            out[slice_name, name] = _composite(spec, slice_name, name, facts, values, baselines)
    return out


def _composite(
    spec: BenchmarkSpec,
    slice_name: str,
    name: str,
    facts: Composite,
    values: ModelValues,
    baselines: Mapping[str, ModelValues],
) -> Value:
    weights = spec.weights[facts.weights]
    tasks = list(weights)
    suffix = "_cases" if facts.level == "cases" else ""
    parts = [_headline(spec, values, slice_name, task, suffix) for task in tasks]
    counted = [one for one in parts if one is not None]
    n, valid = sum(one.n for one in counted), sum(one.valid for one in counted)
    excluded = sum(one.excluded for one in counted)
    datasets = tuple(
        sorted({f"{task}/{d}" for task, one in zip(tasks, parts, strict=True) if one for d in one.datasets})
    )
    missing = [task for task, one in zip(tasks, parts, strict=True) if one is None or one.estimate.value is None]
    if missing:
        estimate = null("missing tasks: " + ", ".join(missing))
    else:
        metrics = [spec.tasks[task].headline for task in tasks]
        shares = np.array([weights[task] for task in tasks])
        estimates = [one.estimate for one in counted]
        if facts.skill:
            estimate = _skill(spec, slice_name, tasks, metrics, shares, counted, baselines)
        else:

            def total(x: Array, metrics: list[str] = metrics, shares: Array = shares) -> Array:
                return composite_draws(_parts(metrics, x), shares)

            estimate = combine(estimates, total, names=tasks, groups=len(united(counted)))
    return Value(name, estimate, n, valid, excluded, datasets, None, f"{facts.weights}-weights")


def _parts(metrics: list[str], x: Array) -> Array:
    return np.stack([part(metric, x[..., number]) for number, metric in enumerate(metrics)], axis=-1)


def _skill(
    spec: BenchmarkSpec,
    slice_name: str,
    tasks: list[str],
    metrics: list[str],
    shares: Array,
    own: list[Value],
    baselines: Mapping[str, ModelValues],
) -> Estimate:
    floor = []
    for task in tasks:
        best = best_baseline(spec, baselines, task, slice_name, SKILL_BASELINES)
        if best is None:
            return null(f"no baseline for task {task}")
        floor.append(best[1].estimate)
    size = len(tasks)

    def total(x: Array) -> Array:
        d, c = _parts(metrics, x[..., :size]), _parts(metrics, x[..., size:])
        # A baseline that is perfect leaves no room for skill; BLEU-4 stays a hair below 1 even then.
        room = np.where(c < 1.0 - _PERFECT, 1.0 - c, np.nan)
        return composite_draws((d - c) / room, shares, clip=False)

    return combine(
        [*(one.estimate for one in own), *floor],
        total,
        groups=len(united(own)),
        names=[*tasks, *(f"baseline of {task}" for task in tasks)],
    )


def best_baseline(
    spec: BenchmarkSpec,
    baselines: Mapping[str, ModelValues],
    task: str,
    slice_name: str = "",
    names: tuple[str, ...] | None = None,
) -> tuple[str, Value] | None:
    """Return the best baseline of a task by its headline; ties go to the first in the order of `baselines`."""
    metric = spec.tasks[task].headline
    best: tuple[float, str, Value] | None = None
    for name, values in baselines.items():
        value = values.tasks.get((slice_name, task), {}).get(metric)
        if (names is None or name in names) and value is not None and value.estimate.value is not None:
            d = float(part(metric, value.estimate.value))
            if best is None or d > best[0]:
                best = (d, name, value)
    return None if best is None else (best[1], best[2])


def _headline(spec: BenchmarkSpec, values: ModelValues, slice_name: str, task: str, suffix: str = "") -> Value | None:
    return values.tasks.get((slice_name, task), {}).get(spec.tasks[task].headline + suffix)


def verdicts(spec: BenchmarkSpec, values: ModelValues, baselines: Mapping[str, ModelValues]) -> list[Verdict]:
    """Judge every task that has a value against its best non-reading baseline."""
    out = []
    for task in spec.tasks:
        own = _headline(spec, values, "", task)
        best = best_baseline(spec, baselines, task)
        if own is None or own.estimate.value is None or best is None:
            continue
        metric = spec.tasks[task].headline

        def difference(x: Array, metric: str = metric) -> Array:
            return np.asarray(part(metric, x[..., 0]) - part(metric, x[..., 1]))

        gap = combine([own.estimate, best[1].estimate], difference, names=["model", best[0]], groups=len(own.members))
        word = None
        if gap.low is not None and gap.high is not None:
            low, high = max(-1.0, gap.low), min(1.0, gap.high)
            gap = replace(gap, low=low, high=high)
            word = "above" if low > 0 else "below" if high < 0 else "not distinguishable"
        out.append(Verdict(task, best[0], word, gap.value, gap.low, gap.high, gap.why_null))
    return out
