"""The `published` protocol: a benchmark's own scorer, faults included, run cell by cell; plain values, no intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from inspect import signature
from typing import Any, cast

from sonogauge.benchmarks.composite import composite, part
from sonogauge.benchmarks.spec import BenchmarkSpec, Scenario, Task
from sonogauge.items import Item
from sonogauge.score.cells import Sink
from sonogauge.score.reading import item_row
from sonogauge.score.replies import Reply
from sonogauge.score.values import ModelValues, Value, equal_shares, null
from sonogauge.stats.intervals import Estimate

# (task, scenario, [(item, status, text)]) -> PublishedCell of the benchmark
CellScorer = Callable[[Task, Scenario, Sequence[tuple[Item, str, str | None]]], Any]

NO_INTERVAL = "the published protocol gives no interval"


def load_published(target: str) -> CellScorer:
    """Import a published scorer from "package.module:function"."""
    module, _, name = target.partition(":")
    return cast(CellScorer, getattr(import_module(module), name))


def with_coords(rule: CellScorer, coords: str) -> tuple[CellScorer, str]:
    """Return a scorer that reads coordinates as declared, and the name under which its values stand.

    A scorer without coordinates stays what it is.
    """
    if "coords" not in signature(rule).parameters:
        return rule, "published"
    declared: Callable[..., Any] = rule
    return partial(declared, coords=coords), "published+coords"


def count_published(
    spec: BenchmarkSpec,
    scenarios: Sequence[Scenario],
    pairs: Sequence[tuple[Item, Reply]],
    scorer: CellScorer,
    model: str,
    sink: Sink | None = None,
) -> tuple[ModelValues, dict[tuple[str, str], Value], dict[str, int]]:
    """Score every cell by the published rules; return values, composites and failures by reason.

    A task is the unweighted mean over the data sets present, a missing task counts 0 in a total: the reference does so.
    """
    by_cell: dict[tuple[str, str], list[tuple[Item, Reply]]] = {}
    for item, reply in pairs:
        by_cell.setdefault((item.task, item.dataset), []).append((item, reply))
    values = ModelValues()
    failures: dict[str, int] = {}
    images: dict[tuple[str, str], Mapping[str, int]] = {}
    for one in scenarios:
        own = by_cell.get(one.key)
        if not own:
            continue
        task = spec.tasks[one.task]
        cell = scorer(task, one, [(item, reply.status, reply.text) for item, reply in own])
        images[one.key] = getattr(cell, "images", {})
        values.cells[one.key] = {
            name: Value(name, plain(cell.metrics.get(name)), cell.n, cell.valid, cell.excluded, (one.dataset,))
            for name in task.metrics
            if name in cell.metrics
        }
        for (item, reply), found in zip(own, cell.items, strict=True):
            if found.reason is not None:
                failures[found.reason] = failures.get(found.reason, 0) + 1
            if sink is not None:
                excluded = None if found.counted else "not counted by the published protocol"
                known = (found.prediction, found.reason, excluded, found.values)
                sink(item_row(item, reply, model, "published", *known))
    for task_code, task in spec.tasks.items():
        own_scenarios = [one for one in scenarios if one.key in values.cells and one.task == task_code]
        cells = [values.cells[one.key] for one in own_scenarios]
        pooling = _Pooling(own_scenarios, str(spec.parameters.get("category_pooling", "")), images)
        values.tasks["", task_code] = {
            name: _mean_of_present(name, cells, pooling)
            for name in task.metrics
            # Most metrics of a task are unknown to the reference scoring; its headline is shown even if missing.
            if name == task.headline or any(name in cell for cell in cells)
        }
    return values, _composites(spec, values), dict(sorted(failures.items()))


def plain(value: float | None) -> Estimate:
    """An estimate without an interval."""
    if value is None:
        return null("nothing counted")
    return Estimate(value=value, low=None, high=None, groups=0, df=0.0, reliable=True, why_null=NO_INTERVAL)


@dataclass(frozen=True)
class _Pooling:
    """How data sets become a task: equally, equally by category ("category"), or by their images ("image")."""

    scenarios: Sequence[Scenario]
    kind: str
    images: Mapping[tuple[str, str], Mapping[str, int]]

    def shares(self, name: str, datasets: Sequence[str]) -> list[float]:
        """Return the weights of the data sets, which add up to 1."""
        if self.kind == "image":
            counts = [
                float(self.images[one.key].get(name, 0)) for one in self.scenarios if one.dataset in set(datasets)
            ]
            return [one / sum(counts) for one in counts] if sum(counts) else [1.0 / len(counts)] * len(counts)
        return [float(one) for one in equal_shares(self.scenarios, datasets)]


def _mean_of_present(name: str, cells: Sequence[Mapping[str, Value]], pooling: _Pooling) -> Value:
    parts = [cell[name] for cell in cells if name in cell]
    known = [one for one in parts if one.estimate.value is not None]
    if pooling.kind:
        shares = pooling.shares(name, [dataset for one in known for dataset in one.datasets]) if known else []
        total = sum((one.estimate.value or 0.0) * share for one, share in zip(known, shares, strict=True))
    else:
        total = sum(one.estimate.value or 0.0 for one in known) / max(1, len(known))
    return Value(
        name,
        plain(total) if known else null("no data set of this task"),
        sum(one.n for one in parts),
        sum(one.valid for one in parts),
        sum(one.excluded for one in parts),
        tuple(dataset for one in known for dataset in one.datasets),
        None,
        {"image": "images", "category": "macro over categories"}.get(pooling.kind, "macro over those present"),
    )


def _composites(spec: BenchmarkSpec, values: ModelValues) -> dict[tuple[str, str], Value]:
    out = {}
    for name, facts in spec.composites.items():
        if facts.skill or facts.level == "cases":
            continue
        weights = spec.weights[facts.weights]
        d: dict[str, float | None] = {}
        parts = []
        for task in weights:
            metric = spec.tasks[task].headline
            value = values.tasks["", task][metric]
            parts.append(value)
            known = value.estimate.value
            d[task] = 0.0 if known is None else float(part(metric, known))
        out["", name] = Value(
            name,
            plain(composite(d, weights)),
            sum(one.n for one in parts),
            sum(one.valid for one in parts),
            sum(one.excluded for one in parts),
            tuple(sorted(f"{task}/{x}" for task, one in zip(weights, parts, strict=True) for x in one.datasets)),
            None,
            f"{facts.weights}-weights, missing tasks 0",
        )
    return out
