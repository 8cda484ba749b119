"""Ranks of models under the shared draws: how often each wins, and between which ranks it lies."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from sonogauge.metrics.base import Array

LEVEL = 0.95


def ranks(values: ArrayLike) -> Array:
    """Return the rank of each model, 1 = highest value; ties share the mean of their ranks.

    values: (models, ...), ranked along the first axis.

    >>> ranks([0.5, 0.7, 0.5])
    array([2.5, 1. , 2.5])
    """
    table = np.asarray(values, dtype=np.float64)
    higher = (table[None] > table[:, None]).sum(axis=1)
    equal = (table[None] == table[:, None]).sum(axis=1)
    result: Array = 1.0 + higher + (equal - 1) / 2
    return result


def usable_draws(draws: Array) -> Array:
    """Return the draws (models, draws) in which every model has a value."""
    return draws[:, ~np.isnan(draws).any(axis=0)]


def win_shares(draws: ArrayLike) -> Array:
    """Return the share of draws in which each model is best; a tie is split among those that share it.

    draws: (models, draws), higher is better; draws in which a model has no value (NaN) are left out.

    >>> win_shares([[0.5, 0.9], [0.5, 0.1]])
    array([0.75, 0.25])
    """
    table = usable_draws(np.asarray(draws, dtype=np.float64))
    if not table.shape[1]:
        return np.full(len(table), np.nan)
    best = table == table.max(axis=0)
    result: Array = (best / best.sum(axis=0)).mean(axis=1)
    return result


def rank_intervals(draws: ArrayLike, level: float = LEVEL) -> Array:
    """Return the lowest and highest rank of each model over the central draws, shape (models, 2), 1 = best.

    draws: as in `win_shares`. A tie counts with its best rank below and its worst rank above, so that equal models
    span the same ranks.

    >>> rank_intervals([[0.5, 0.9], [0.4, 0.1]])
    array([[1., 1.],
           [2., 2.]])
    """
    table = usable_draws(np.asarray(draws, dtype=np.float64))
    if not table.shape[1]:
        return np.full((len(table), 2), np.nan)
    lowest = np.stack([1 + (table > own).sum(axis=0) for own in table])
    highest = np.stack([(table >= own).sum(axis=0) for own in table])
    tail = (1 - level) / 2
    ends = [
        np.quantile(lowest, tail, axis=1, method="inverted_cdf"),
        np.quantile(highest, 1 - tail, axis=1, method="inverted_cdf"),
    ]
    return np.stack(ends, axis=1).astype(np.float64)
