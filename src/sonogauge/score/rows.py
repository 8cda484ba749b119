"""Rows of the metrics table: values with intervals, coverage and the signature that says how they came about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sonogauge import __version__
from sonogauge.answers import FORMS
from sonogauge.benchmarks.spec import BenchmarkSpec
from sonogauge.score.slices import gap_slice, gaps
from sonogauge.score.values import ModelValues, Value, metric_of


@dataclass(frozen=True)
class RowContext:
    """What all rows of one model, variant and protocol share."""

    spec: BenchmarkSpec
    model: str
    protocol: str
    variant: str
    scenario_set: str
    origin: str
    draws: int
    seed: int
    doubt: str | None = None


def signature(context: RowContext, task: str, value: Value, metric: str) -> str:
    """Return how a value came about, in the manner of sacreBLEU: parts joined by "|".

    metric, protocol, benchmark version, answer parser, choices of the metric, aggregation, interval method with draws
    and seed, version.
    """
    spec = context.spec
    parts = [metric, f"protocol:{context.protocol}", f"bench:{spec.name}@{spec.version}"]
    if task:
        form = spec.tasks[task].form
        parts.append(f"parser:{FORMS.load(form).parser if form in FORMS else form}")
    if value.facts:
        parts.append(value.facts)
    parts += [f"set:{context.scenario_set}", f"agg:{value.aggregation or 'items'}", "unit:item"]
    if value.estimate.method:
        parts.append(f"ci:95%,{value.estimate.method},draws:{context.draws},seed:{context.seed}")
    parts.append(f"sonogauge:{__version__}")
    return "|".join(parts)


def metric_rows(
    context: RowContext, values: ModelValues, composites: Mapping[tuple[str, str], Value] | None = None
) -> Iterator[dict[str, Any]]:
    """Yield rows of the metrics table: data sets, tasks on every slice, composites."""
    for (task, dataset), metrics in values.cells.items():
        for name, value in metrics.items():
            yield _row(context, task, dataset, "", name, value)
    for (slice_name, task), metrics in values.tasks.items():
        for name, value in metrics.items():
            yield _row(context, task, "", slice_name, name, value)
    for (slice_name, name), value in (composites or {}).items():
        yield _row(context, "", "", slice_name, name, value)


def slice_rows(context: RowContext, parts: Mapping[str, ModelValues], min_n: int) -> Iterator[dict[str, Any]]:
    """Yield rows of the task values on each part of the items ("column=value"), and of the gaps between the parts."""
    by_task: dict[str, dict[str, Mapping[str, Value]]] = {}
    for part, values in parts.items():
        for (_, task), metrics in values.tasks.items():
            by_task.setdefault(task, {})[part] = metrics
            for name, value in metrics.items():
                yield _row(context, task, "", part, name, value)
    for task, own in by_task.items():
        names = dict.fromkeys(name for metrics in own.values() for name in metrics)
        for column, value in gaps(own, list(names), min_n):
            yield _row(context, task, "", gap_slice(column), value.metric, value)


def _row(context: RowContext, task: str, dataset: str, slice_name: str, name: str, value: Value) -> dict[str, Any]:
    estimate = value.estimate
    metric = metric_of(name)
    return {
        "model": context.model,
        "model_group": None,
        "protocol": context.protocol,
        "variant": context.variant,
        "scenario_set": context.scenario_set,
        "task": task,
        "dataset": dataset,
        "slice": slice_name,
        "metric": name,
        "value": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "n": value.n,
        "valid": value.valid,
        "excluded": value.excluded,
        "groups": estimate.groups,
        "reliable": estimate.reliable,
        "signature": signature(context, task, value, name),
        "direction": metric.direction if metric else "down" if name.endswith("_gap") else "up",
        "chance": value.chance,
        "origin": context.origin,
        "datasets": list(value.datasets),
        "why_null": estimate.why_null,
        "source": None,
        "doubt": "; ".join(filter(None, (context.doubt, estimate.doubt))) or None,
    }
