"""Replies to scores: parse, count, compose."""

from sonogauge._callable import make_callable
from sonogauge.score.api import Scores, score

__all__ = ["Scores", "score"]

make_callable(__name__)
