"""Benchmark x model -> replies."""

from sonogauge._callable import make_callable
from sonogauge.run.api import RunResult, run
from sonogauge.run.doctor import Diagnosis, doctor

__all__ = ["Diagnosis", "RunResult", "doctor", "run"]

make_callable(__name__)
