"""Scores to tables: one view, several formats."""

from sonogauge._callable import make_callable
from sonogauge.report._report import report, view_rows, view_scores
from sonogauge.report.cells import Cell, Column, Table, View
from sonogauge.report.console import show
from sonogauge.report.formats import FORMATS, render
from sonogauge.report.published import published_rows

__all__ = [
    "FORMATS",
    "Cell",
    "Column",
    "Table",
    "View",
    "published_rows",
    "render",
    "report",
    "show",
    "view_rows",
    "view_scores",
]

make_callable(__name__)
