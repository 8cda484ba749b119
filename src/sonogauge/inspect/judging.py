"""Our strict parser and metrics in Inspect's terms: per-item values, and values of the whole benchmark."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sonogauge.benchmarks.spec import BenchmarkSpec
from sonogauge.folders import Folder
from sonogauge.hashes import canonical_hash
from sonogauge.items import Item
from sonogauge.score import score
from sonogauge.score.cells import cell_options, count_strict
from sonogauge.score.inputs import read_items
from sonogauge.score.replies import Reply, ReplySource


class Judge:
    """Reads replies to the items of a benchmark as `sonogauge score` does.

    Args:
        bench: the benchmark folder.
        spec: its specification.
        split: which part of it was asked.
    """

    def __init__(self, bench: Folder, spec: BenchmarkSpec, split: str) -> None:
        nothing = ReplySource("", (), "", bench.path, split=split)
        _, items = read_items(bench, nothing)
        self.items: Mapping[str, Item] = {item.item_id: item for item in items}
        self._options = cell_options(items)
        self._scenarios = spec.scenarios
        self._parameters = {
            "tolerance": spec.parameters.get("tolerance", 0.1),
            "failure_error": spec.parameters.get("failure_error", "worst"),
        }

    def row(self, reply: Reply) -> dict[str, Any]:
        """Return the score_items row of one reply: prediction, reason, per-item values."""
        rows: list[dict[str, Any]] = []
        item = self.items[reply.item_id]
        count_strict([(item, reply)], self._options, "", self._parameters, rows.append, self._scenarios)
        return rows[0]


def prediction_text(row: Mapping[str, Any]) -> str | None:
    """Return the parsed prediction of a score_items row in one line, None where nothing could be read."""
    found = [value for value in (row["prediction"] or {}).values() if value is not None]
    if not found:
        return None
    values = found[0] if isinstance(found[0], list | tuple) else [found[0]]
    return ", ".join(f"{one:g}" if isinstance(one, float) else str(one) for one in values)


def benchmark_values(
    bench: Path, replies: Iterable[Reply], *, split: str, scenarios: str | None, draws: int
) -> dict[str, float]:
    """Return the strict values over replies: `sonogauge score` without writing.

    Every item that has a reply counts as asked.
    """
    given: Sequence[Reply] = list(replies)
    source = ReplySource(
        "inspect",
        given,
        canonical_hash([list(reply[:6]) for reply in given]),
        bench,
        asked=frozenset(reply.item_id for reply in given),
        split=split,
    )
    found = score(source, bench=bench, scenarios=scenarios, draws=draws, baselines=False)
    return values_of(found.spec, found.metrics)


def values_of(spec: BenchmarkSpec, metrics: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Name the strict values of totals and tasks ("DD/accuracy"), headlines with the ends of their interval.

    Left out, as they would make a long list longer: data sets, values weighted by cases, variants; and totals of skill,
    which need the baselines. A value that is not defined (a task without items, a total without a part) is NaN.
    """
    out: dict[str, float] = {}
    skills = {name for name, one in spec.composites.items() if one.skill}
    for row in metrics:
        if row["protocol"] != "strict" or row["origin"] != "computed":
            continue
        if row["variant"] or row["dataset"] or row["slice"] or row["metric"].endswith("_cases"):
            continue
        if not row["task"] and row["metric"] in skills:
            continue
        name = f"{row['task']}/{row['metric']}" if row["task"] else str(row["metric"])
        out[name] = _number(row["value"])
        if not row["task"] or row["metric"] == spec.tasks[row["task"]].headline:
            out[f"{name} low"], out[f"{name} high"] = _number(row["low"]), _number(row["high"])
    return out


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)
