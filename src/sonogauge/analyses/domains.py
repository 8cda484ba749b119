"""Analyses 4 and 5: phantom against clinical within each task, and the sources, seen and held out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from sonogauge.analyses.formulas import random_exact
from sonogauge.analyses.overall import corrected
from sonogauge.analyses.study import Record, Study, split_by
from sonogauge.compare.ablations.base import column, shown, table
from sonogauge.stats.intervals import Estimate, difference

CLINICAL: Final = frozenset({"clinical", "volunteer"})
EMPTY: Final = "n = 0"


def domains(study: Study, options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return accuracy on phantoms and on people within each task, the difference, and both corrected for chance.

    Nothing is pooled over tasks: a task may exist for phantoms only, so a pooled number mixes domain with task.
    """
    rows = []
    for task in study.tasks:
        records = study.counted(study.of("", task))
        parts = split_by(records, lambda one: _domain(study, one))
        phantom, clinical = parts.get("phantom", []), parts.get("clinical", [])
        own = [_of(study, one) for one in (phantom, clinical)]
        rows.append(
            {
                "task": task,
                "n_phantom": len(phantom),
                "phantom": _shown(own[0][0]),
                "n_clinical": len(clinical),
                "clinical": _shown(own[1][0]),
                "difference": _gap(own[0][0], own[1][0]),
                "corrected": _gap(own[0][1], own[1][1]),
                "other": len(records) - len(phantom) - len(clinical),
            }
        )
    columns = [
        column("task", "task"),
        column("n_phantom", "n phantom", "count"),
        column("phantom", "phantom", "percent"),
        column("n_clinical", "n clinical", "count"),
        column("clinical", "clinical", "percent"),
        column("difference", "phantom - clinical", "percent"),
        column("corrected", "chance-corrected difference", "plain"),
        column("other", "n of neither", "count"),
    ]
    note = "clinical: patients and volunteers. Not pooled over tasks: that would mix domain with task."
    return [table("domains", f"Phantom and clinical within task, {study.label}", columns, rows, note)]


def _domain(study: Study, record: Record) -> str:
    provenance = study.provenance(record.item)
    return "phantom" if provenance == "phantom" else "clinical" if provenance in CLINICAL else "other"


def _of(study: Study, records: Sequence[Record]) -> tuple[Estimate | None, Estimate | None]:
    if not records:
        return None, None
    accuracy = study.accuracy(records)
    return accuracy, corrected(accuracy, random_exact([len(one.item.answer.options) for one in records])[0])


def _shown(one: Estimate | None) -> dict[str, Any]:
    return {"value": None, "low": None, "high": None, "why_null": EMPTY} if one is None else shown(one)


def _gap(one: Estimate | None, other: Estimate | None) -> dict[str, Any]:
    if one is None or other is None:
        return _shown(None)
    found = difference(one, other, names=("phantom", "clinical"))
    if found.low is not None or found.value is None or None in (one.low, one.high, other.low, other.high):
        return shown(found)
    low, high = independent_interval(one, other)
    return {"value": found.value, "low": low, "high": high, "why_null": None}


def independent_interval(one: Estimate, other: Estimate) -> tuple[float, float]:
    """Return the interval of a difference of two independent values from their own intervals.

    For groups without spread (all right, none right), where the draws tell nothing. Source: Newcombe 1998,
    doi:10.1002/(SICI)1097-0258(19980430)17:8<873::AID-SIM779>3.0.CO;2-I, method 10; Zou & Donner 2008 (MOVER).
    """
    assert one.value is not None and one.low is not None and one.high is not None
    assert other.value is not None and other.low is not None and other.high is not None
    value = one.value - other.value
    below = math.hypot(one.value - one.low, other.high - other.value)
    above = math.hypot(one.high - one.value, other.value - other.low)
    return value - below, value + above


def sources(study: Study, options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return accuracy by source and task, sources seen in the train part apart from those held out."""
    rows, sums = [], []
    for state in ("seen in train", "held out"):
        for task in study.tasks:
            records = [one for one in study.counted(study.of("", task)) if _state(study, one) == state]
            for source, own in split_by(records, lambda one: one.item.source).items():
                rows.append(
                    {
                        "state": state,
                        "task": task,
                        "source": source,
                        "n": len(own),
                        "accuracy": shown(study.accuracy(own)),
                    }
                )
            sums.append({"state": state, "task": task, "n": len(records), "accuracy": _shown(_of(study, records)[0])})
    head = [column("state", "source is"), column("task", "task")]
    tail = [column("n", "n", "count"), column("accuracy", "accuracy", "percent")]
    note = "seen in train: the train part holds questions of the source."
    return [
        table("sources", f"Accuracy by source, {study.label}", [*head, column("source", "source"), *tail], rows, note),
        table("sources_state", f"Seen and held-out sources, {study.label}", [*head, *tail], sums, note),
    ]


def _state(study: Study, record: Record) -> str:
    return "seen in train" if record.item.source in study.train_sources else "held out"


def held_out(study: Study, records: Sequence[Record]) -> list[Record]:
    """Return the records of sources that the train part does not hold."""
    return [one for one in records if _state(study, one) == "held out"]
