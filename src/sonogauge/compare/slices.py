"""Levels of a column of the items: what `--by` may name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from sonogauge._errors import BadInput
from sonogauge.items import Item

_OWN: Final[dict[str, Callable[[Item], str]]] = {
    "anatomy": lambda item: item.anatomy,
    "determinable": lambda item: item.determinable,
    "source": lambda item: item.source,
}
# Columns whose levels the comparison holds anyway: tasks, and data sets within them.
BUILT_IN: Final = ("task", "dataset")
MOST_LEVELS: Final = 200


def known_columns(items: Sequence[Item]) -> list[str]:
    """Return the columns that items can be compared by."""
    return [*BUILT_IN, *_OWN, *sorted({key for item in items for key in item.meta})]


def level_of(column: str, items: Sequence[Item]) -> Callable[[Item], str]:
    """Return the function from an item to its level of a column; an item without one has the level "".

    Raises:
        BadInput: no such column (the message names those there are), or one with more than MOST_LEVELS levels.
    """
    if column not in known_columns(items):
        raise BadInput(f"no column '{column}'", field="by", fix="known: " + ", ".join(known_columns(items)))
    level = _OWN.get(column) or (lambda item: item.meta.get(column, ""))
    levels = {level(item) for item in items}
    if len(levels) > MOST_LEVELS:
        raise BadInput(
            f"column '{column}' has {len(levels)} levels, more than {MOST_LEVELS}",
            field="by",
            fix="compare by a column with fewer levels",
        )
    return level
