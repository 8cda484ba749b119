"""Errors of numbers against numpy and hand-made values."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonogauge.metrics import load_metric
from sonogauge.metrics.numbers import median_error, scale, scaled_error_statistics, std_scaled, worst_error

pytestmark = pytest.mark.part("metrics")


def test_values_equal_numpy() -> None:
    errors = np.random.default_rng(0).normal(0.1, 0.2, size=50)
    sums = scaled_error_statistics(errors, 0.15).sum(axis=0)
    expected = {
        "rmse_scaled": np.sqrt(np.mean(errors**2)),
        "mae_scaled": np.mean(np.abs(errors)),
        "std_scaled": np.std(errors),
        "bias_scaled": -np.mean(errors),
        "within_tolerance": np.mean(np.abs(errors) <= 0.15),
    }
    for name, value in expected.items():
        assert float(load_metric(name).function(sums)) == pytest.approx(value, abs=1e-12)
        assert math.isnan(float(load_metric(name).function(np.zeros(5))))


def test_perfect_answers_have_zero_errors() -> None:
    sums = scaled_error_statistics(np.zeros(3), 0.1).sum(axis=0)
    for name in ("rmse_scaled", "mae_scaled", "std_scaled", "bias_scaled"):
        metric = load_metric(name)
        assert float(metric.function(sums)) == metric.identity == 0.0
        assert metric.gradient is not None
        assert np.isfinite(metric.gradient(sums)).all()


def test_equal_errors_have_no_spread_in_spite_of_rounding() -> None:
    assert float(std_scaled(scaled_error_statistics(np.full(7, 0.1), 0.1).sum(axis=0))) == 0.0


def test_an_error_of_exactly_the_tolerance_is_within() -> None:
    errors = scale([30], 0, 100, clip=True) - scale([20], 0, 100, clip=True)  # 0.3 - 0.2 > 0.1 in binary
    assert scaled_error_statistics(errors, 0.1)[0, 4] == 1.0


def test_scale_clips_on_demand_and_refuses_an_empty_range() -> None:
    assert scale([-5, 5, 25], 0, 20, clip=True).tolist() == [0.0, 0.25, 1.0]
    assert scale([-5, 25], 0, 20, clip=False).tolist() == [-0.25, 1.25]
    with pytest.raises(ValueError, match="low < high"):
        scale([1], 2, 2, clip=True)


@given(st.floats(-50, 50))
def test_worst_error_is_the_worst_in_range(value: float) -> None:
    position = float(scale(value, 0, 20, clip=True))
    worst = worst_error(position)
    assert abs(worst) == pytest.approx(max(position, 1 - position))
    assert min(abs(position - worst), abs(position - worst - 1)) < 1e-12, "the worst answer lies on a bound"


@given(st.lists(st.integers(0, 20), min_size=1, max_size=30), st.data())
def test_weighted_median_equals_median_of_repeated_values(values: list[int], data: st.DataObject) -> None:
    counts = data.draw(st.lists(st.integers(0, 4), min_size=len(values), max_size=len(values)))
    weights = np.array(counts, dtype=float) * (7 / 6)
    result = float(median_error(np.array(values, dtype=float), weights))
    if not any(counts):
        assert math.isnan(result)
    else:
        assert result == float(np.median(np.repeat(values, counts)))


def test_median_of_nothing_is_nan() -> None:
    assert math.isnan(float(median_error(np.zeros(0), np.zeros(0))))
