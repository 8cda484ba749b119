"""Analyses of multiple-choice answers: where a model fails, and whether it reads the image. Answers to tables."""

from sonogauge.analyses.api import NAMES, Analysed, analyse, view_analysis

__all__ = ["NAMES", "Analysed", "analyse", "view_analysis"]
