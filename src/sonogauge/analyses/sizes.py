"""Analysis 3: accuracy by the size of the box in question, and by size within structure and source.

Size is confounded with structure and source, so the bins alone do not say that size is the cause.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from sonogauge._errors import BadInput
from sonogauge.analyses.formulas import weighted
from sonogauge.analyses.study import Record, Study, split_by
from sonogauge.benchmarks.fetal_gauge.sizes import BINS, PIXEL, RELATIVE, RULES, SizeRule
from sonogauge.compare.ablations.base import column, shown, table
from sonogauge.items import Item

TASK: Final = "VG"
_SHARES: Final = (0.651, 0.159, 0.191)
_TIE: Final = 1e-9


def make_rule(
    name: str,
    items: Sequence[Item],
    thresholds: tuple[float, float] | None = None,
    shares: tuple[float, float, float] = _SHARES,
) -> SizeRule:
    """Return a size rule; thresholds of `quantile` follow from the boxes and the shares (small, medium, large).

    Raises:
        BadInput: an unknown rule, thresholds out of order, shares that do not add up to 1 (to rounding).
    """
    if name not in RULES:
        raise BadInput(f"no size rule '{name}'", field="size_rule", fix="known: " + ", ".join(RULES))
    if thresholds is not None and name != "quantile":
        if not 0 < thresholds[0] < thresholds[1]:
            raise BadInput("thresholds must rise from above 0", field="thresholds")
        return SizeRule(name, thresholds)
    if name != "quantile":
        return SizeRule(name, RELATIVE.thresholds if name == "relative" else PIXEL.thresholds)
    if abs(sum(shares) - 1) > 0.01 or min(shares) < 0:
        raise BadInput("shares of small, medium and large must add up to 1", field="shares")
    sizes = sorted(w * h / area for w, h, area in map(box_of, items))
    last = len(sizes) - 1
    ends = [sizes[min(last, max(0, round(share * len(sizes)) - 1))] for share in (shares[0], shares[0] + shares[1])]
    return SizeRule(name, (ends[0], ends[1]))


def box_of(item: Item) -> tuple[float, float, float]:
    """Return width and height of the box of a question, and the area of its image, in native pixels.

    Raises:
        BadInput: a question without these facts.
    """
    try:
        _, _, width, height = (float(part) for part in item.meta["box_xywh"].split(","))
        return width, height, float(item.meta["image_width"]) * float(item.meta["image_height"])
    except (KeyError, ValueError) as error:
        raise BadInput(
            f"no box in item {item.item_id}",
            field="box_xywh",
            fix="build the benchmark with fetal_gauge, or choose --tasks",
        ) from error


def sizes(study: Study, options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return accuracy by size bin, by size within structure, and by size within source.

    options: size_rule, thresholds, shares, task (default VG).

    Raises:
        BadInput: no such task in the benchmark.
    """
    task = str(options.get("task") or TASK)
    if task not in study.tasks:
        raise BadInput(
            f"no answered question of task '{task}'", file=study.bench.path, fix="tasks: " + ", ".join(study.tasks)
        )
    records = study.counted(study.of("", task))
    rule = make_rule(
        str(options.get("size_rule", "relative")),
        [one.item for one in records],
        options.get("thresholds"),
        options.get("shares", _SHARES),
    )
    bins = split_by(records, lambda one: rule.bin_of(*box_of(one.item)))
    rows = [_row(study, name, bins.get(name, [])) for name in BINS]
    whole = study.accuracy(records)
    check_sum(rows, len(records), whole.value)
    rows.append({"size": f"all ({task})", "n": len(records), "accuracy": shown(whole)})
    head = [column("size", "size"), column("n", "n", "count"), column("accuracy", "accuracy", "percent")]
    notes = [rule.told, "The bins add up to all questions, and their scores weighted by n to the accuracy."]
    tables = [table("sizes", f"Accuracy by size of the box, {study.label}", head, rows, *notes)]
    inside: tuple[tuple[str, str, Callable[[Record], str]], ...] = (
        ("structure", "structure", lambda one: one.answer),
        ("source", "source", lambda one: one.item.source),
    )
    for key, title, of in inside:
        found = []
        for name, own in split_by(records, of).items():
            parts = split_by(own, lambda one: rule.bin_of(*box_of(one.item)))
            found += [{key: name, **_row(study, size, parts.get(size, []))} for size in BINS]
        tables.append(
            table(
                f"sizes_{key}",
                f"By size within {title}, {study.label}",
                [column(key, title), *head],
                found,
                f"Size goes with {title}: compare within one {title}.",
            )
        )
    return tables


def _row(study: Study, name: str, records: Sequence[Record]) -> dict[str, Any]:
    return {"size": name, "n": len(records), "accuracy": shown(study.accuracy(records))}


def check_sum(rows: Sequence[Mapping[str, Any]], n: int, accuracy: float | None) -> None:
    """Assert that bins add up: their n to all questions, their weighted scores to the accuracy."""
    assert sum(row["n"] for row in rows) == n, "size bins do not add up to the questions"
    parts = [(row["n"], row["accuracy"]["value"]) for row in rows if row["n"]]
    assert accuracy is None or abs(weighted(parts) - accuracy) < _TIE, "weighted bins are not the accuracy"
