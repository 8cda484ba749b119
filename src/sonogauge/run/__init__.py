"""Benchmark x model -> replies."""

from sonogauge.run.api import RunResult, run
from sonogauge.run.doctor import Diagnosis, doctor

__all__ = ["Diagnosis", "RunResult", "doctor", "run"]
