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
    groups = "1 group" if scores.groups == 1 else f"{scores.groups} groups"
    yield f"{scores.file.name}: {scores.n} rows, {scores.valid} readable, {groups}"
    yield from _block("", scores.values, unit)
    if scores.classes:
        yield from _class_block(scores.classes)
    for part, values in scores.parts.items():
        yield from _block(part, values, unit)
    for column, values in scores.gaps.items():
        yield from _block(f"gap between the parts of {column} (largest - smallest)", values, unit)
    if scores.failures:
        yield ""
        yield "failed replies: " + ", ".join(f"{count} {reason}" for reason, count in scores.failures.items())
    chances = {name: value.chance for name, value in scores.values.items() if value.chance is not None}
    if chances:
        yield ""
        yield "expected by chance: " + ", ".join(f"{name} {value:.4f}" for name, value in chances.items())
    if scores.baselines:
        yield "accuracy of baselines: " + ", ".join(f"{name} {value:.4f}" for name, value in scores.baselines.items())
    yield ""
    yield "Intervals speak of new patients from the same sources."


def _block(title: str, values: Mapping[str, Value], unit: str) -> Iterator[str]:
    yield from _aligned(title, [_HEADER, *(_row(name, value, unit) for name, value in values.items())])


def _aligned(title: str, rows: list[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    yield ""
    if title:
        yield title
    for row in rows:
        yield "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()


def _class_block(classes: Mapping[str, Mapping[str, Value]]) -> Iterator[str]:
    rows: list[tuple[str, ...]] = [("class", "n", "precision", "", "recall", "", "F1", "", "")]
    for option, own in classes.items():
        cells = [text for kind in ("precision", "recall", "f1") for text in _pair(own[kind])]
        few = any(one.estimate.low is not None and not one.estimate.reliable for one in own.values())
        rows.append((option, str(own["recall"].n), *cells, "fewer than 20 groups" if few else ""))
    yield from _aligned("by class", rows)


def _pair(value: Value) -> tuple[str, str]:
    estimate = value.estimate
    interval = _interval(value, natural=False)
    return _shown(estimate.value, natural=False), interval if interval != "-" else estimate.why_null or "-"


def _row(name: str, value: Value, unit: str) -> tuple[str, ...]:
    estimate = value.estimate
    base = name.removesuffix("_gap")
    natural = base in METRICS and load_metric(base).unit == "answer unit"
    shown = _shown(estimate.value, natural) + (f" {unit}" if natural and unit and estimate.value is not None else "")
    notes = [
        estimate.why_null or "",
        "" if estimate.reliable or estimate.low is None else "fewer than 20 groups",
        estimate.doubt,
    ]
    return (
        name,
        shown,
        _interval(value, natural),
        f"{value.valid}/{value.n}",
        str(estimate.groups),
        "; ".join(note for note in notes if note),
    )


def _interval(value: Value, natural: bool) -> str:
    low, high = value.estimate.low, value.estimate.high
    return "-" if low is None or high is None else f"{_shown(low, natural)} to {_shown(high, natural)}"


def _shown(value: float | None, natural: bool) -> str:
    """Return a number with four decimals; in the answer's own unit, very large and very small ones as powers of ten."""
    if value is None:
        return "-"
    if natural and value and not 1e-3 <= abs(value) < 1e7:
        return f"{value:.4g}"
    # What rounds to 0 has no sign.
    return f"{round(value, 4) + 0.0:.4f}"
