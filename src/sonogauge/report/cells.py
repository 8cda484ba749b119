"""What a table of a report is made of: typed cells, columns and notes, before any format."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal, Self

# The doubt of a model trained on the benchmark's own train part; it stands in a block of its own that says so.
IN_DOMAIN: Final = "trained in-domain"
DASH: Final = "–"  # noqa: RUF001 - what a null value shows
SUPERSCRIPTS: Final = "⁰¹²³⁴⁵⁶⁷⁸⁹"

Unit = Literal["percent", "percent2", "total", "plain", "natural", "count", "p"]

_PERCENT = re.compile(
    r"(^|_)(accuracy|acc|precision|recall|f1|sensitivity|specificity|rouge|bertscore|within|out_of_range|share|rate|coverage|iou|dice)"
    r"(_|\d|$)"
)
_PERCENT2 = re.compile(r"(^|_)bleu")
_NATURAL = re.compile(r"(natural|median_error)")


def unit_of(metric: str, task: str) -> Unit:
    """Return how tables show a metric: percent for proportions, four digits for totals, else three decimals.

    >>> unit_of("accuracy_cases", "DD"), unit_of("rmse_scaled", "CVE"), unit_of("u2", ""), unit_of("bleu4", "RG")
    ('percent', 'plain', 'total', 'percent2')
    """
    if not task:
        return "total"
    if _NATURAL.search(metric):
        return "natural"
    if _PERCENT2.search(metric):
        return "percent2"
    if _PERCENT.search(metric) and not metric.endswith("_ratio"):
        return "percent"
    return "plain"


def arrow(name: str, direction: str) -> str:
    """Return a metric's name with an arrow where lower is better."""
    return f"{name} ↓" if direction == "down" else name


@dataclass(frozen=True, slots=True)
class Fact:
    """One row of the metrics table with the label of its model; numbers that are not finite count as null."""

    label: str
    model: str
    protocol: str
    variant: str
    task: str
    dataset: str
    slice: str
    metric: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    valid: int | None = None
    excluded: int | None = None
    groups: int | None = None
    reliable: bool | None = None
    chance: float | None = None
    direction: str = ""
    signature: str = ""
    origin: str = "computed"
    why_null: str = ""
    source: str = ""
    doubt: str = ""

    @classmethod
    def from_row(cls, row: Mapping[str, Any], label: str) -> Self:
        """Build from a row of `tables.METRICS`."""
        value = _finite(row["value"])
        why = row["why_null"] or ""
        if value is None and not why:
            why = "no value was given" if row["value"] is None else "the value is not a finite number"
        text: dict[str, Any] = {name: row[name] or "" for name in ("direction", "signature", "source", "doubt")}
        return cls(
            label=label,
            **{name: row[name] for name in ("model", "protocol", "variant", "task", "dataset", "slice", "metric")},
            value=value,
            low=_finite(row["low"]),
            high=_finite(row["high"]),
            chance=_finite(row["chance"]),
            **{name: row[name] for name in ("n", "valid", "excluded", "groups", "reliable")},
            origin=row["origin"] or "computed",
            why_null=why,
            **text,
        )

    @property
    def place(self) -> tuple[str, str, str, str]:
        """(task, dataset, slice, metric)."""
        return self.task, self.dataset, self.slice, self.metric


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: a text, or a number with its interval, unit and notes.

    notes: footnotes, among them the reason of a null; marks: their numbers in the table, set by `Table.of`.
    fact: the row of the metrics table behind the number, if there is one. aside: what other rows tell too (a count, a
    chance level); left out of CSV beside a fact.
    """

    text: str = ""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    unit: Unit | None = None
    notes: tuple[str, ...] = ()
    marks: tuple[int, ...] = ()
    fact: Fact | None = None
    aside: bool = False

    @property
    def shown(self) -> str:
        """The cell as plain text, a dash for a null, with the numbers of its footnotes.

        >>> Cell(value=0.4821, low=0.45, high=0.514, unit="percent").shown
        '48.2% [45.0, 51.4]'
        """
        return self.plain + ",".join(superscript(mark) for mark in sorted(self.marks))

    @property
    def plain(self) -> str:
        """The cell as plain text without footnotes."""
        if self.unit is None:
            return self.text
        if self.value is None:
            return DASH
        percent = "%" if self.unit.startswith("percent") else ""
        shown = f"{_number(self.value, self.unit)}{percent}"
        if self.low is not None and self.high is not None:
            shown += f" [{_number(self.low, self.unit)}, {_number(self.high, self.unit)}]"
        return f"{shown} {self.text}" if self.text else shown


def _number(value: float, unit: Unit) -> str:
    match unit:
        case "percent":
            shown = f"{100 * value:.1f}"
        case "percent2":
            shown = f"{100 * value:.2f}"
        case "total":
            shown = f"{value:.4f}"
        case "plain":
            shown = f"{value:.3f}"
        case "natural":
            shown = f"{value:.{max(0, min(3, 3 - len(str(int(abs(value))))))}f}"
        case "count":
            shown = f"{value:.0f}"
        case "p":
            shown = f"{value:.4f}" if value >= 0.0001 else f"{value:.1e}"
    return shown[1:] if shown.startswith("-") and not shown.strip("-0.") else shown


def superscript(number: int) -> str:
    """Return a number in superscript digits."""
    return "".join(SUPERSCRIPTS[int(digit)] for digit in str(number))


def text(value: str) -> Cell:
    """Return a text cell."""
    return Cell(text=value)


def count(value: int | None) -> Cell:
    """Return a cell with a whole number; None leaves it empty."""
    return text("") if value is None else Cell(value=value, unit="count", aside=True)


def metric(fact: Fact | None, *, missing: str = "not scored", suffix: str = "", bounds: bool = True) -> Cell:
    """Return the cell of a metric; None, for a place without a row, shows a dash with the reason `missing`."""
    if fact is None:
        return Cell(unit="plain", notes=(missing,))
    notes = [note for note in (fact.why_null, fact.doubt) if note and note != IN_DOMAIN]
    if fact.reliable is False and fact.value is not None:
        notes.append("fewer than 20 groups: unreliable")
    return Cell(
        text=suffix,
        value=fact.value,
        low=fact.low if bounds else None,
        high=fact.high if bounds else None,
        unit=unit_of(fact.metric, fact.task),
        notes=tuple(dict.fromkeys(notes)),
        fact=fact,
    )


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its header, and whether it holds numbers (aligned right).

    spare: a narrow terminal leaves out the columns with the highest number first; 0 = never.
    """

    title: str
    right: bool = False
    spare: int = 0


@dataclass(frozen=True, slots=True)
class Table:
    """One block of a report.

    key: short name ("tasks"); detail: complete but long, shown in CSV only; notes: lines below the table.
    footnotes: reasons of nulls and doubts, numbered from 1 as the cells' marks.
    """

    key: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    footnotes: tuple[str, ...] = ()
    detail: bool = False

    @classmethod
    def of(
        cls,
        key: str,
        title: str,
        columns: list[Column],
        rows: list[list[Cell]],
        notes: list[str] | None = None,
        *,
        detail: bool = False,
    ) -> Self:
        """Build a table and number its footnotes in reading order."""
        footnotes: dict[str, int] = {}
        marked = []
        for row in rows:
            if len(row) != len(columns):
                raise ValueError(f"table {key}: {len(row)} cells in a row of {len(columns)} columns")
            marked.append(
                tuple(
                    replace(cell, marks=tuple(footnotes.setdefault(note, len(footnotes) + 1) for note in cell.notes))
                    for cell in row
                )
            )
        return cls(key, title, tuple(columns), tuple(marked), tuple(notes or ()), tuple(footnotes), detail)

    @property
    def texts(self) -> list[list[str]]:
        """The cells as plain text."""
        return [[cell.shown for cell in row] for row in self.rows]

    @property
    def lines(self) -> list[str]:
        """Notes and numbered footnotes, in the order in which they stand below the table."""
        numbered = [f"{superscript(mark)} {note}" for mark, note in enumerate(self.footnotes, start=1)]
        return [*self.notes, *numbered]


@dataclass(frozen=True, slots=True)
class View:
    """A whole report before any format.

    facts: what was scored and how, in (name, value) pairs; notices: what a reader must know first.
    documents: the object of `--json`, one for each scores folder. paths: the folders, for a format that shows more than
    tables; empty for scores that were not written. protocol: the one shown.
    """

    title: str
    facts: tuple[tuple[str, str], ...]
    notices: tuple[str, ...]
    tables: tuple[Table, ...]
    documents: tuple[Mapping[str, Any], ...]
    paths: tuple[Path, ...] = ()
    protocol: str = "strict"

    @property
    def short(self) -> tuple[Table, ...]:
        """The tables that a person reads."""
        return tuple(table for table in self.tables if not table.detail)
