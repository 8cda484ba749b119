"""Rankings against scikit-learn and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import ndcg_score

from sonogauge.metrics import load_metric
from sonogauge.metrics.ranking import expected_top_1, ndcg_of, ranked_statistics, ranking_values

pytestmark = pytest.mark.part("multi-choice and rankings")

NAMES = "vwxyz"


def test_a_tie_at_rank_1_counts_either_way() -> None:
    weights = {"x": 1.5, "y": 1.5}
    for ranked in (["x", "y"], ["y", "x"]):
        assert ranking_values(ranked, {"x", "y"}, weights) == {
            "top_1": 1.0,
            "top_3": 1.0,
            "reciprocal_rank": 1.0,
            "ndcg": pytest.approx(1.0),
        }


def test_nothing_named_scores_nothing() -> None:
    assert set(ranking_values([], {"x"}, {"x": 1.0}).values()) == {0.0}


def test_the_fourth_place_is_too_late_for_the_first_three() -> None:
    values = ranking_values(["a", "b", "c", "x"], {"x"}, {"x": 1.0})
    assert values == {"top_1": 0.0, "top_3": 0.0, "reciprocal_rank": 0.25, "ndcg": 0.0}


@given(
    st.permutations(list(NAMES)),
    st.dictionaries(st.sampled_from(NAMES), st.floats(0.1, 3.0), min_size=1),
    st.integers(1, 5),
)
def test_ndcg_equals_scikit_learn(order: list[str], weights: dict[str, float], cutoff: int) -> None:
    truth = [[weights.get(name, 0.0) for name in NAMES]]
    scores = [[-order.index(name) for name in NAMES]]
    assert ndcg_of(order, weights, cutoff) == pytest.approx(ndcg_score(truth, scores, k=cutoff), abs=1e-12)


def test_metrics_are_means() -> None:
    values = [ranking_values(order, {"x"}, {"x": 1.0, "y": 0.5}) for order in (["x", "y"], ["y", "x"], ["z"])]
    sums = ranked_statistics(values).sum(axis=0)
    got = {name: float(load_metric(name).function(sums)) for name in ("top_1", "top_3", "mrr", "ndcg")}
    assert got["top_1"] == pytest.approx(1 / 3) and got["top_3"] == pytest.approx(2 / 3)
    assert got["mrr"] == pytest.approx((1 + 0.5 + 0) / 3)
    assert got["ndcg"] == pytest.approx(np.mean([one["ndcg"] for one in values]))


def test_chance_of_the_first_place() -> None:
    assert expected_top_1(5, 2) == 0.4
    with pytest.raises(ValueError, match="6 first"):
        expected_top_1(5, 6)
