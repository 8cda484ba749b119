"""Ranks, win shares and rank intervals against scipy and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import rankdata

from sonogauge.metrics.base import Array
from sonogauge.stats.ranks import rank_intervals, ranks, win_shares

pytestmark = pytest.mark.part("comparison")


@given(arrays(np.float64, (5, 7), elements=st.sampled_from([0.0, 0.25, 0.5, 1.0])))
def test_ranks_equal_scipy_and_wins_share_the_draws(draws: Array) -> None:
    assert ranks(draws) == pytest.approx(rankdata(-draws, axis=0))
    shares = win_shares(draws)
    assert shares.sum() == pytest.approx(1.0)
    best = [np.flatnonzero(draw == draw.max()) for draw in draws.T]
    assert shares == pytest.approx(
        [np.mean([1 / len(one) if model in one else 0.0 for one in best]) for model in range(5)]
    )
    ends = rank_intervals(draws)
    assert (ends[:, 0] >= 1).all() and (ends[:, 1] <= 5).all() and (ends[:, 0] <= ends[:, 1]).all()


def test_rank_intervals_by_hand() -> None:
    # The second model leads in 4 of 100 draws, the third never.
    draws = np.tile([[0.9], [0.5], [0.1]], (1, 100))
    draws[1, :4] = 0.95
    assert rank_intervals(draws).tolist() == [[1, 2], [1, 2], [3, 3]]
    draws[1, 2:4] = 0.5
    assert rank_intervals(draws).tolist() == [[1, 1], [2, 2], [3, 3]]


def test_equal_models_span_the_same_ranks() -> None:
    assert rank_intervals(np.full((3, 10), 0.5)).tolist() == [[1, 3]] * 3
    assert win_shares(np.full((4, 10), 0.5)) == pytest.approx([0.25] * 4)


def test_draws_without_a_value_are_left_out() -> None:
    draws = np.array([[0.5, np.nan, 0.1], [0.4, 0.9, 0.2]])
    assert win_shares(draws) == pytest.approx([0.5, 0.5])
    nothing = np.full((2, 3), np.nan)
    assert np.isnan(win_shares(nothing)).all() and np.isnan(rank_intervals(nothing)).all()
