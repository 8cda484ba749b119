"""Replies to scores: parse, count, compose."""

from sonogauge.score.api import Scores, score

__all__ = ["Scores", "score"]
