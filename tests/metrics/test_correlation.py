"""Correlations against scipy, plain and weighted."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sonogauge.metrics import load_metric
from sonogauge.metrics.agreement import pair_statistics
from sonogauge.metrics.correlation import spearman, weighted_ranks

pytestmark = pytest.mark.part("metrics")


@pytest.mark.parametrize("seed", range(4))
def test_values_equal_scipy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 12, size=40).astype(float)
    y = x + rng.integers(-4, 5, size=40)
    pearson = float(load_metric("pearson").function(pair_statistics(x, y).sum(axis=0)))
    assert pearson == pytest.approx(stats.pearsonr(x, y).statistic, abs=1e-9)
    ours = float(spearman(np.stack([x, y], axis=-1), np.ones(40)))
    assert ours == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-9)


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(0, 3)), min_size=3, max_size=20))
@settings(max_examples=60)
def test_whole_weights_repeat_the_items(rows: list[tuple[int, int, int]]) -> None:
    x, y, counts = np.array(rows).T
    repeated = np.repeat(x, counts), np.repeat(y, counts)
    ours = float(spearman(np.stack([x, y], axis=-1), counts * (7 / 6)))
    if len(set(repeated[0])) < 2 or len(set(repeated[1])) < 2:
        assert math.isnan(ours)
    else:
        assert ours == pytest.approx(stats.spearmanr(*repeated).statistic, abs=1e-9)


def test_weights_are_taken_in_chunks() -> None:
    rng = np.random.default_rng(3)
    values, weights = rng.normal(size=(9, 2)), rng.integers(0, 3, size=(5, 9)).astype(float)
    assert spearman(values, weights) == pytest.approx([float(spearman(values, one)) for one in weights], nan_ok=True)
    assert weighted_ranks(values[:, 0], weights).shape == (5, 9)


def test_equal_numbers_have_no_correlation_and_say_why() -> None:
    flat = np.array([[0.1, 1.0], [0.1, 2.0], [0.1, 4.0]])
    assert math.isnan(float(spearman(flat, np.ones(3))))
    assert math.isnan(float(load_metric("pearson").function(pair_statistics(flat[:, 0], flat[:, 1]).sum(axis=0))))
    assert "equal" in load_metric("spearman").undefined
    assert math.isnan(float(spearman(np.zeros((0, 2)), np.zeros(0))))
