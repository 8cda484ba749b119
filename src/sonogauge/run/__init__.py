"""Benchmark x model -> replies."""

from sonogauge._callable import make_callable
from sonogauge.run.api import RunResult, run

__all__ = ["RunResult", "run"]

make_callable(__name__)
