"""Precision, recall and F1 of each class of a table of choices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sonogauge.metrics import load_metric
from sonogauge.metrics.base import Array, Metric
from sonogauge.metrics.choice import class_metric
from sonogauge.metrics.sums import GroupSums
from sonogauge.score.cells import Cell
from sonogauge.score.values import Value, metric_sums, null
from sonogauge.stats.intervals import Estimate, estimate
from sonogauge.stats.resample import Resampler

NEVER_PREDICTED = "never predicted: counted as 0"


def class_values(cell: Cell, resampler: Resampler) -> dict[str, dict[str, Value]]:
    """Return precision, recall and f1 by class, for the options that have at least one reference.

    Recall is the share of the class's own items, precision that of what was predicted as the class, both with the
    interval of a proportion; F1 as in `macro_f1`. Two or fewer classes say no less: each has its row.
    """
    sums = metric_sums(cell, load_metric("macro_f1"))
    if sums is None:
        return {}
    offered = cell.sums["confusion"].values.sum(axis=(0, 2))
    names = [option for option, count in zip(cell.options, offered, strict=True) if count]
    return {name: _one_class(name, place, sums, cell, resampler) for place, name in enumerate(names)}


def _one_class(name: str, place: int, sums: GroupSums, cell: Cell, resampler: Resampler) -> dict[str, Value]:
    table = sums.values
    hits, own, predicted = table[:, place, place], table[:, place, :].sum(axis=-1), table[:, :, place].sum(axis=-1)
    share = load_metric("accuracy")
    others = table.sum(axis=(1, 2)) - own - predicted + hits
    # One class against the rest, columns: the class, not the class, no valid answer.
    binary = np.zeros((len(table), 2, 3))
    binary[:, 0, 0], binary[:, 0, 1], binary[:, 1, 0], binary[:, 1, 1] = hits, own - hits, predicted - hits, others
    found = {
        "precision": _share(share, hits, predicted, sums, resampler),
        "recall": _share(share, hits, own, sums, resampler),
        "f1": estimate(class_metric("f1", 0, "f1"), replace(sums, values=binary), resampler),
    }
    counts = {"precision": predicted.sum(), "recall": own.sum(), "f1": own.sum()}
    return {
        kind: Value(kind, one, int(counts[kind]), int(counts[kind]), 0, (cell.dataset,), facts=f"class:{name}")
        for kind, one in found.items()
    }


def _share(metric: Metric, hits: Array, counts: Array, sums: GroupSums, resampler: Resampler) -> Estimate:
    kept = np.flatnonzero(counts)
    if not len(kept):
        return replace(null(NEVER_PREDICTED), value=0.0)
    own = GroupSums(
        tuple(sums.strata[one] for one in kept),
        tuple(sums.groups[one] for one in kept),
        np.stack([hits[kept], counts[kept]], axis=-1),
    )
    return estimate(metric, own, resampler)
