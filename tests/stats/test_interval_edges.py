"""Intervals at the edge: no hits, one group, nothing scored, parts without a value, no variation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from sonogauge.metrics import load_metric
from sonogauge.metrics.choice import confusion_statistics, hit_statistics
from sonogauge.metrics.numbers import scaled_error_statistics
from sonogauge.metrics.sums import GroupSums
from sonogauge.stats.intervals import (
    NO_ITEM,
    NO_VARIATION,
    NOT_DRAWN,
    ONE_GROUP,
    Estimate,
    combine,
    estimate,
    estimate_order,
    wilson,
)
from sonogauge.stats.resample import Resampler

pytestmark = pytest.mark.part("intervals")


def test_items_of_one_group_each_give_the_textbook_standard_error() -> None:
    hits = [1.0] * 30 + [0.0] * 20
    sums = GroupSums.from_items(["a"] * 50, [f"p{index}" for index in range(50)], hit_statistics(hits))
    result = estimate(load_metric("accuracy"), sums, Resampler.for_sums(sums, draws=20))
    low, high = wilson(0.6, 49.0, stats.t.ppf(0.975, 49))  # G/(G - 1) makes n - 1 of n
    assert (result.low, result.high) == pytest.approx((low, high), abs=1e-12)


def macro(values: np.ndarray) -> np.ndarray:
    result: np.ndarray = values.mean(axis=-1)
    return result


def hits_of(hits: list[float], groups: list[str], strata: list[str] | None = None) -> Estimate:
    sums = GroupSums.from_items(strata or ["a"] * len(hits), groups, hit_statistics(hits))
    return estimate(load_metric("accuracy"), sums, Resampler.for_sums(sums, draws=50))


def test_zero_hits_and_all_hits_are_wilson_over_groups() -> None:
    groups = [f"p{index % 10}" for index in range(40)]
    none, all_right = hits_of([0.0] * 40, groups), hits_of([1.0] * 40, groups)
    low, high = wilson(0.0, 10.0, stats.t.ppf(0.975, 9))
    assert (none.value, none.low, none.high) == pytest.approx((0.0, 0.0, high))
    assert low == 0.0
    assert (all_right.low, all_right.high) == pytest.approx((1 - high, 1.0))
    assert not none.reliable


def test_one_group_has_a_value_but_no_interval() -> None:
    result = hits_of([1.0, 0.0, 1.0, 1.0], ["p"] * 4)
    assert (result.value, result.low, result.high, result.why_null) == (0.75, None, None, ONE_GROUP)
    assert result.draws is None and not result.reliable
    single = hits_of([1.0], ["p"])
    assert (single.value, single.why_null) == (1.0, ONE_GROUP)
    two = hits_of([1.0, 0.0, 1.0], ["p", "q", "r"], ["a", "a", "b"])
    assert two.why_null == "one group in 'b'"


def test_equal_groups_fall_back_on_the_items_and_other_metrics_say_why() -> None:
    equal = hits_of([1.0, 0.0] * 6, [f"p{index // 2}" for index in range(12)])
    assert (equal.low, equal.high) == pytest.approx(wilson(0.5, 12.0, stats.t.ppf(0.975, 5)))
    for name, errors, value in (("rmse_scaled", 0.0, 0.0), ("mae_scaled", 0.25, 0.25), ("bias_scaled", 0.25, -0.25)):
        sums = GroupSums.from_items(["a"] * 8, list("pqrspqrs"), scaled_error_statistics(np.full(8, errors), 0.1))
        result = estimate(load_metric(name), sums, Resampler.for_sums(sums, draws=50))
        assert (result.value, result.low, result.why_null) == (value, None, NO_VARIATION)
        assert result.draws is not None


def test_nothing_scored_is_no_item() -> None:
    empty = GroupSums((), (), np.zeros((0, 2)))
    result = estimate(load_metric("accuracy"), empty, Resampler({}, draws=5))
    assert (result.value, result.low, result.why_null) == (None, None, NO_ITEM)
    weightless = GroupSums(("a", "a"), ("p", "q"), np.zeros((2, 2)))
    assert estimate(load_metric("accuracy"), weightless, Resampler.for_sums(weightless, draws=5)).why_null == NO_ITEM
    median = load_metric("median_error")
    assert estimate_order(median, [], [], [], Resampler({}, draws=5)).why_null == NO_ITEM
    assert estimate_order(median, [3.0], ["a"], ["p"], Resampler({"a": ["p"]}, draws=5)).why_null == ONE_GROUP
    same = estimate_order(median, [3.0, 3.0], ["a", "a"], ["p", "q"], Resampler({"a": ["p", "q"]}, draws=5))
    assert (same.value, same.why_null) == (3.0, NO_VARIATION)
    with pytest.raises(ValueError, match="estimate_order"):
        estimate(median, empty, Resampler({}, draws=5))


def test_combine_names_the_part_without_interval_or_value() -> None:
    good = hits_of([1.0, 0.0, 1.0], ["p", "q", "r"])
    lone = hits_of([1.0, 0.0], ["p", "p"])
    empty = Estimate(None, None, None, 0, 0.0, False, NO_ITEM)
    result = combine([good, lone], macro, names=["DD-23", "KD-50"])
    assert (result.value, result.low, result.why_null) == (pytest.approx(7 / 12), None, "KD-50: one group")
    assert combine([good, empty], macro).why_null == "part 2: no item"
    assert combine([good, empty], macro).value is None
    assert combine([], macro).why_null == NO_ITEM


def test_a_function_not_defined_at_the_values_has_no_value() -> None:
    good = hits_of([1.0, 0.0, 1.0], ["p", "q", "r"])

    def undefined(values: np.ndarray) -> np.ndarray:
        result: np.ndarray = np.where(values[..., 0] > 0.9, values[..., 0], np.nan)
        return result

    result = combine([good], undefined)
    assert (result.value, result.low, result.why_null) == (None, None, "not defined at these values")


def test_combined_proportions_are_clipped_and_at_one_use_wilson_over_groups() -> None:
    perfect = hits_of([1.0] * 12, [f"p{index}" for index in range(12)])
    other = hits_of([1.0] * 6, [f"p{index}" for index in range(6)])
    result = combine([perfect, other], macro, proportion=True)
    effective = 1 / (0.25 / 12 + 0.25 / 6)
    assert (result.low, result.high) == pytest.approx(wilson(1.0, effective, stats.t.ppf(0.975, 16)))
    assert combine([perfect, other], macro).why_null == NO_VARIATION
    close = hits_of([1.0] * 11 + [0.0], [f"p{index}" for index in range(12)])
    assert combine([close, perfect], macro, proportion=True).high == 1.0
    assert float(combine([close, perfect], macro).high) > 1.0  # type: ignore[arg-type]


def test_an_error_of_clipped_values_stays_within_the_range() -> None:
    errors = np.array([0.9, 0.0, 0.01, 0.02, 0.03, 0.04])
    sums = GroupSums.from_items(["a"] * 6, list("abcdef"), scaled_error_statistics(errors, 0.1))
    found = estimate(load_metric("rmse_scaled"), sums, Resampler.for_sums(sums, draws=500))
    assert found.high == 1.0


def test_a_metric_no_draw_can_tell_has_a_value_and_a_reason() -> None:
    # Two patients, each of one class: a draw holds one of them, and half a kappa is none.
    sums = GroupSums.from_items(["a", "a"], ["p", "q"], confusion_statistics([0, 1], [0, 1], [0, 1]))
    found = estimate(load_metric("kappa"), sums, Resampler.for_sums(sums, draws=200))
    assert found.value == 1.0
    assert (found.low, found.high) == (None, None)
    assert found.why_null


def test_a_rank_correlation_of_two_patients_has_a_value_and_no_interval() -> None:
    # Each draw holds one of the two, and one patient has no correlation.
    pairs, people = np.array([[1.0, 2.0], [3.0, 5.0]]), ["p0", "p1"]
    found = estimate_order(load_metric("spearman"), pairs, ["a", "a"], people, Resampler({"a": people}, draws=20))
    assert (found.value, found.low, found.high, found.why_null) == (1.0, None, None, NOT_DRAWN)
