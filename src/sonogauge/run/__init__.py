"""Benchmark x model -> replies."""

from sonogauge.run.api import RunResult, run

__all__ = ["RunResult", "run"]
