"""Ranks of several models: win shares and rank intervals under shared draws, and ranks without one data set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sonogauge.benchmarks.composite import part
from sonogauge.benchmarks.spec import BenchmarkSpec
from sonogauge.compare.sides import Counted, Ground
from sonogauge.metrics.base import Array
from sonogauge.stats.ranks import rank_intervals, ranks, win_shares

TOTAL = ""


@dataclass(frozen=True)
class Rank:
    """One model's rank on a task, or on the total over tasks (task "").

    value: d, higher is better. low, high: best and worst rank over the central 95 % of draws; win: share of draws in
    which it is best. Without draws (one group) they are null for the reason given.
    """

    label: str
    task: str
    value: float
    rank: float
    low: float | None
    high: float | None
    win: float | None
    why_null: str | None


@dataclass(frozen=True)
class LeftOut:
    """Ranks on the total when one data set is left out, by label."""

    task: str
    dataset: str
    ranks: Mapping[str, float]


def weights_of(spec: BenchmarkSpec, tasks: Sequence[str]) -> tuple[dict[str, float], str]:
    """Return the weights of tasks in the ranking total, summing to 1, and where they come from.

    Those of the benchmark's first total where it weighs all these tasks, else equal ones.
    """
    first = next((one.weights for one in spec.composites.values()), None)
    table = spec.weights.get(first, {}) if first else {}
    if tasks and all(table.get(task, 0.0) > 0 for task in tasks):
        whole = sum(table[task] for task in tasks)
        return {task: table[task] / whole for task in tasks}, f"weights '{first}'"
    return {task: 1.0 / len(tasks) for task in tasks}, "equal weights"


def shared_tasks(ground: Ground, models: Sequence[Counted]) -> list[str]:
    """Return the tasks whose headline every model has a value of."""
    return [task for task in ground.spec.tasks if all(_value(ground, one, task) is not None for one in models)]


def _value(ground: Ground, model: Counted, task: str) -> float | None:
    metric = ground.spec.tasks[task].headline
    found = model.values.tasks.get(("", task), {}).get(metric)
    value = found.estimate.value if found else None
    return None if value is None else float(part(metric, value))


def _draws(ground: Ground, model: Counted, task: str) -> Array | None:
    metric = ground.spec.tasks[task].headline
    draws = model.values.tasks["", task][metric].estimate.draws
    return None if draws is None else part(metric, draws)


def rank_models(ground: Ground, models: Sequence[Counted]) -> list[Rank]:
    """Rank the models on each task that all have, and on the weighted mean of these tasks."""
    tasks = shared_tasks(ground, models)
    if not tasks:
        return []
    weights, _ = weights_of(ground.spec, tasks)
    values = {task: np.array([_value(ground, one, task) for one in models], dtype=np.float64) for task in tasks}
    draws: dict[str, list[Array | None]] = {task: [_draws(ground, one, task) for one in models] for task in tasks}
    out = []
    if len(tasks) > 1:
        total = sum(weights[task] * values[task] for task in tasks)
        out += _ranked(TOTAL, models, np.asarray(total), _total_draws(weights, draws, len(models)))
    for task in tasks:
        known = [one for one in draws[task] if one is not None]
        out += _ranked(task, models, values[task], np.stack(known) if len(known) == len(models) else None)
    return out


def _total_draws(weights: Mapping[str, float], draws: Mapping[str, list[Array | None]], models: int) -> Array | None:
    total: Array | None = None
    for task, weight in weights.items():
        known = [one for one in draws[task] if one is not None]
        if len(known) < models:
            return None
        term = weight * np.stack(known)
        total = term if total is None else total + term
    return total


def _ranked(task: str, models: Sequence[Counted], values: Array, draws: Array | None) -> list[Rank]:
    own = ranks(values)
    wins = ends = None
    why = "one group: no draws" if draws is None else None
    if draws is not None:
        wins, ends = win_shares(draws), rank_intervals(draws)
        if np.isnan(wins).any():
            wins = ends = None
            why = "no draw in which all models have a value"
    return [
        Rank(
            model.label,
            task,
            float(values[number]),
            float(own[number]),
            None if ends is None else float(ends[number, 0]),
            None if ends is None else float(ends[number, 1]),
            None if wins is None else float(wins[number]),
            why,
        )
        for number, model in enumerate(models)
    ]


def leave_out(ground: Ground, models: Sequence[Counted]) -> list[LeftOut]:
    """Rank the models on the total without each data set in turn; a task that loses its only one leaves the total."""
    tasks = shared_tasks(ground, models)
    cells = {task: _cell_values(ground, models, task) for task in tasks}
    places = [(task, dataset) for task in tasks for dataset in cells[task]]
    out = []
    for place in places if len(places) > 1 else []:
        left: dict[str, Array] = {}
        for task in tasks:
            kept = [values for dataset, values in cells[task].items() if (task, dataset) != place]
            if kept:
                left[task] = np.mean(kept, axis=0)
        weights, _ = weights_of(ground.spec, list(left))
        total = np.asarray(sum(weights[task] * values for task, values in left.items()))
        own = ranks(total)
        out.append(LeftOut(*place, {model.label: float(rank) for model, rank in zip(models, own, strict=True)}))
    return out


def _cell_values(ground: Ground, models: Sequence[Counted], task: str) -> dict[str, Array]:
    metric = ground.spec.tasks[task].headline
    out = {}
    for dataset in models[0].values.tasks["", task][metric].datasets:
        own = [one.values.cells[task, dataset][metric].estimate.value for one in models]
        out[dataset] = part(metric, np.array(own, dtype=np.float64))
    return out
