"""Scores of a table as lines of text for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sonogauge.metrics import METRICS, load_metric
from sonogauge.score.table import TableScores
from sonogauge.score.values import Value

_HEADER = ("metric", "value", "95 % interval", "valid/n", "groups", "")


def table_lines(scores: TableScores, unit: str = "") -> Iterator[str]:
    """Yield the tables of values, of parts and of gaps, columns aligned; fractions as they are, from 0 to 1.

    unit: of a number answer, shown beside values in it.
    """
    yield f"{scores.file.name}: {scores.n} rows, {scores.valid} readable, {scores.groups} groups"
    yield from _block("", scores.values, unit)
    for part, values in scores.parts.items():
        yield from _block(part, values, unit)
    for column, values in scores.gaps.items():
        yield from _block(f"gap between the parts of {column} (largest - smallest)", values, unit)
    if scores.failures:
        yield ""
        yield "failed replies: " + ", ".join(f"{count} {reason}" for reason, count in scores.failures.items())
    yield ""
    yield "Intervals speak of new patients from the same sources."


def _block(title: str, values: Mapping[str, Value], unit: str) -> Iterator[str]:
    rows = [_HEADER, *(_row(name, value, unit) for name, value in values.items())]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADER))]
    yield ""
    if title:
        yield title
    for row in rows:
        yield "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()


def _row(name: str, value: Value, unit: str) -> tuple[str, ...]:
    estimate = value.estimate
    base = name.removesuffix("_gap")
    natural = base in METRICS and load_metric(base).unit == "answer unit" and bool(unit)
    shown = "-" if estimate.value is None else f"{estimate.value:.4f}{f' {unit}' if natural else ''}"
    interval = "-" if estimate.low is None or estimate.high is None else f"{estimate.low:.4f} to {estimate.high:.4f}"
    notes = [estimate.why_null or "", "" if estimate.reliable or estimate.low is None else "fewer than 20 groups"]
    return (
        name,
        shown,
        interval,
        f"{value.valid}/{value.n}",
        str(estimate.groups),
        "; ".join(note for note in notes if note),
    )
