"""The same tables for the terminal."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len

from sonogauge.report.cells import Table, View
from sonogauge.report.formats import one_line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable

# Spaces between two columns.
GAP: Final = 2
# What a person wants at once; the rest is one `sonogauge report` away.
FIRST: Final = ("totals", "leaderboard", "tasks", "judged", "failures", "abstention", "baselines", "in_domain")


def show(view: View, console: Console, keys: Collection[str] | None = FIRST) -> None:
    """Print a view to a terminal.

    Args:
        view: what to print.
        console: where to.
        keys: which tables; None prints all but the long ones.
    """
    from rich.text import Text

    console.print(Text(one_line(view.title), style="bold"))
    console.print(Text(" · ".join(f"{one_line(name)} {one_line(value)}" for name, value in view.facts)))
    for notice in view.notices:
        console.print(Text(f"! {one_line(notice)}", style="yellow"))
    for table in view.short:
        if keys is None or table.key in keys:
            console.print()
            kept = fitting(table, console.width)
            console.print(Text(one_line(table.title), style="bold"))
            console.print(rich_table(table, kept))
            hidden = [column.title for index, column in enumerate(table.columns) if index not in kept]
            more = [f"Left out for want of width: {', '.join(hidden)}."] if hidden else []
            for line in [*table.lines, *more]:
                console.print(Text(f"  {one_line(line)}", style="dim"))


def fitting(table: Table, width: int) -> list[int]:
    """Return the columns that fit a width, the spare ones left out first; those that never go may still be too wide."""
    texts = [[column.title for column in table.columns], *table.texts]
    widths = [max(cell_len(one_line(row[index])) for row in texts) + GAP for index in range(len(table.columns))]
    kept = list(range(len(widths)))
    while sum(widths[index] for index in kept) > width:
        spare = max(kept, key=lambda index: table.columns[index].spare)
        if not table.columns[spare].spare:
            break
        kept.remove(spare)
    return kept


def rich_table(table: Table, kept: Sequence[int]) -> RichTable:
    """Return some columns of a table for rich; markup in names is shown, never obeyed, and no number is cut short."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    result = RichTable(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1),
        collapse_padding=True,
    )
    for index in kept:
        column = table.columns[index]
        result.add_column(Text(one_line(column.title)), justify="right" if column.right else "left", overflow="fold")
    for row in table.texts:
        result.add_row(*(Text(one_line(row[index]), overflow="fold") for index in kept))
    return result
