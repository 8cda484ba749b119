"""The same tables for the terminal."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from sonogauge.report.cells import Table, View
from sonogauge.report.formats import one_line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable

# What a person wants at once; the rest is one `sonogauge report` away.
FIRST = ("totals", "leaderboard", "tasks", "failures", "abstention", "baselines", "in_domain")


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
            console.print(rich_table(table))
            for line in table.lines:
                console.print(Text(f"  {one_line(line)}", style="dim"))


def rich_table(table: Table) -> RichTable:
    """Return a table for rich; markup in names is shown, never obeyed."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    result = RichTable(
        title=Text(table.title, style="bold"), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1)
    )
    for column in table.columns:
        result.add_column(Text(one_line(column.title)), justify="right" if column.right else "left")
    for row in table.texts:
        result.add_row(*(Text(one_line(value)) for value in row))
    return result
