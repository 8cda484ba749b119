"""Values on parts of the items, by any column, and the gap between the parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from sonogauge._errors import BadInput
from sonogauge.folders import Folder
from sonogauge.items import Item
from sonogauge.metrics.base import Array
from sonogauge.score.values import Value, null, united
from sonogauge.stats.intervals import combine
from sonogauge.tables import from_facts

MISSING: Final = "(missing)"
MIN_N: Final = 20
# Beyond this many parts a column names items, not groups of them.
MOST_PARTS: Final = 200
_ITEM_COLUMNS: Final = ("task", "dataset", "source", "split", "anatomy", "determinable", "prompt_id")
_CASE_COLUMNS: Final = (
    "device",
    "view",
    "provenance",
    "reference_standard",
    "licence",
    "media_type",
    "source",
    "anatomy",
    "patient",
)


def part_name(column: str, value: object) -> str:
    """Return the name of a part as the column `slice` of the metrics table holds it.

    >>> part_name("sex", "f"), part_name("sex", None)
    ('sex=f', 'sex=(missing)')
    """
    return f"{column}={MISSING if value is None or value == '' else value}"


def slice_finder(folder: Folder, items: Sequence[Item], columns: Sequence[str]) -> Callable[[Item], Iterable[str]]:
    """Return the function that names the parts an item belongs to.

    columns: of the items table, of an item's `meta`, or of its first case: a column, a demographic fact or a label.

    Raises:
        BadInput: a column that no item has, or with more than 200 values.
    """
    plain = [column for column in columns if column in _ITEM_COLUMNS]
    cases = _case_facts(folder, items) if len(plain) < len(columns) else {}
    found: dict[str, list[str]] = {item.item_id: [] for item in items}
    for column in columns:
        values = {item.item_id: _value_of(item, cases.get(item.item_id, {}), column) for item in items}
        known = {value for value in values.values() if value}
        if not known:
            names = {*_ITEM_COLUMNS, *(name for item in items for name in item.meta)}
            names |= {name for facts in cases.values() for name, value in facts.items() if value}
            raise BadInput(
                f"no item has a value of '{column}'",
                file=folder.path,
                field="by",
                fix="known: " + ", ".join(sorted(names)),
            )
        refuse_many(column, len(known))
        for item_id, value in values.items():
            found[item_id].append(part_name(column, value))
    return lambda item: found[item.item_id]


def refuse_many(column: str, parts: int) -> None:
    """Refuse a column with so many values that it names items.

    Raises:
        BadInput: more than 200.
    """
    if parts > MOST_PARTS:
        raise BadInput(
            f"'{column}' has more than {MOST_PARTS} different values",
            field="by",
            fix="slice by a column with fewer",
        )


def _value_of(item: Item, case: Mapping[str, str], column: str) -> str:
    if column in _ITEM_COLUMNS:
        return str(getattr(item, column) or "")
    return item.meta.get(column) or case.get(column) or ""


def _case_facts(folder: Folder, items: Sequence[Item]) -> dict[str, dict[str, str]]:
    wanted = {item.item_id for item in items}
    case_of = {
        row["item_id"]: row["images"][0]["case_id"]
        for row in folder.rows("items", ["item_id", "images"])
        if row["item_id"] in wanted and row["images"]
    }
    facts: dict[str, dict[str, str]] = {}
    for row in folder.rows("cases", ["case_id", *_CASE_COLUMNS, "demographics", "labels"]):
        facts[row["case_id"]] = {
            **{label["name"]: label["value"] for label in row["labels"] or ()},
            **from_facts(row["demographics"]),
            **{name: row[name] for name in _CASE_COLUMNS if row[name]},
        }
    return {item_id: facts.get(case, {}) for item_id, case in case_of.items()}


def gap(parts: Mapping[str, Value], metric: str, min_n: int = MIN_N) -> Value:
    """Return the largest minus the smallest value among the parts with at least `min_n` items.

    n: the smallest n among the parts compared. The interval is that of the difference under the shared draws, cut at
    0. Parts that do not differ at all still show a gap, the more of them the larger: read it beside the interval.
    """
    usable = {name: one for name, one in parts.items() if one.n >= min_n and one.estimate.value is not None}
    members = united(usable.values())
    if len(usable) < 2:
        estimate = null(f"fewer than two parts with a value and at least {min_n} items")
    else:
        estimate = combine(
            [one.estimate for one in usable.values()],
            _spread,
            names=list(usable),
            groups=len(members),
        )
        if estimate.low is not None:
            estimate = replace(estimate, low=max(0.0, estimate.low))
    ns = [one.n for one in usable.values()]
    return Value(
        f"{metric}_gap",
        estimate,
        min(ns, default=0),
        min((one.valid for one in usable.values()), default=0),
        0,
        aggregation="largest-smallest",
        members=members,
        facts=f"min_n:{min_n},parts:{len(usable)} of {len(parts)}",
    )


def _spread(x: Array) -> Array:
    return np.asarray(x.max(axis=-1) - x.min(axis=-1))


def gaps(
    parts: Mapping[str, Mapping[str, Value]], metrics: Sequence[str], min_n: int = MIN_N
) -> Iterator[tuple[str, Value]]:
    """Yield (column, gap) for each column of the part names ("column=value") and each metric."""
    columns = dict.fromkeys(name.partition("=")[0] for name in parts)
    for column in columns:
        own = {name: values for name, values in parts.items() if name.partition("=")[0] == column}
        for metric in metrics:
            having = {name: values[metric] for name, values in own.items() if metric in values}
            if having:
                yield column, gap(having, metric, min_n)


def gap_slice(column: str) -> str:
    """Return the name under which the gap over a column stands in the column `slice`.

    >>> gap_slice("sex")
    'sex=*'
    """
    return f"{column}=*"


def sorted_parts(parts: Mapping[str, Any]) -> list[str]:
    """Return the part names in the order of their columns and values; the whole ("") is left out."""
    return sorted(name for name in parts if name)
