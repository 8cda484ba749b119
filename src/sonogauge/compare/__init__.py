"""Runs to comparisons: the same items, differences with intervals and tests, ranks, ablations, groups of models."""

from sonogauge._callable import make_callable
from sonogauge.compare.api import Comparison, compare, read_comparison
from sonogauge.compare.tables import view_comparison

__all__ = ["Comparison", "compare", "read_comparison", "view_comparison"]

make_callable(__name__)
