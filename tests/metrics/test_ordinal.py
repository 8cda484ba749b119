"""Kappa and grade error against scikit-learn and the numbers of the specification."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from sonogauge.metrics import load_metric
from sonogauge.metrics.choice import confusion_statistics
from sonogauge.metrics.ordinal import disagreement, grade_error, grade_statistics, kappa, kappa_linear, kappa_quadratic

SPEC = np.array([[20, 5, 0, 0], [5, 10, 5, 0], [0, 5, 50, 0]])

pytestmark = pytest.mark.part("metrics")


def test_numbers_of_the_issue() -> None:
    assert round(float(kappa_quadratic(SPEC)), 3) == 0.859
    assert round(float(kappa_linear(SPEC)), 3) == 0.770


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("name", "weights"), [("kappa", None), ("kappa_linear", "linear"), ("kappa_quadratic", "quadratic")]
)
def test_kappa_without_failures_equals_scikit_learn(seed: int, name: str, weights: str | None) -> None:
    rng = np.random.default_rng(seed)
    reference = rng.integers(0, 5, size=80)
    prediction = np.clip(reference + rng.integers(-1, 3, size=80), 0, 4)
    sums = grade_statistics(reference, prediction, 5).sum(axis=0)
    oracle = cohen_kappa_score(reference, prediction, weights=weights, labels=range(5))
    assert float(load_metric(name).function(sums)) == pytest.approx(oracle, abs=1e-9)


def test_plain_kappa_with_failures_is_kappa_with_one_more_class() -> None:
    rng = np.random.default_rng(1)
    reference, prediction = rng.integers(0, 3, size=60), rng.integers(-1, 3, size=60)
    sums = confusion_statistics(reference, prediction, [0, 1, 2]).sum(axis=0)
    oracle = cohen_kappa_score(reference, np.where(prediction < 0, 3, prediction))
    assert float(kappa(sums)) == pytest.approx(oracle, abs=1e-9)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30))
@settings(max_examples=50)
def test_grade_error_is_the_mean_distance(pairs: list[tuple[int, int]]) -> None:
    reference, prediction = np.array(pairs).T
    sums = grade_statistics(reference, prediction, 4).sum(axis=0)
    assert float(grade_error(sums)) == pytest.approx(float(np.abs(reference - prediction).mean()), abs=1e-12)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=30), st.data())
@settings(max_examples=50)
def test_a_failure_never_scores_above_any_grade(pairs: list[tuple[int, int]], data: st.DataObject) -> None:
    reference, prediction = np.array(pairs).T
    at = data.draw(st.integers(0, len(pairs) - 1))
    failed = prediction.copy()
    failed[at] = -1
    with_failure = grade_statistics(reference, failed, 4).sum(axis=0)
    assert float(grade_error(with_failure)) >= float(
        grade_error(grade_statistics(reference, prediction, 4).sum(axis=0))
    )


def test_weights_of_a_failure_and_references_off_the_scale() -> None:
    assert disagreement(4, 2)[:, -1].tolist() == [9.0, 4.0, 4.0, 9.0]
    assert disagreement(3, 0).tolist() == [[0, 1, 1, 1], [1, 0, 1, 1], [1, 1, 0, 1]]
    assert grade_statistics([-1], [2], 3).sum() == 0.0


def test_one_class_only_is_undefined_with_a_reason() -> None:
    only = np.array([[5.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    for name in ("kappa", "kappa_linear", "kappa_quadratic"):
        assert math.isnan(float(load_metric(name).function(only)))
        assert "one class" in load_metric(name).undefined
    assert float(grade_error(only)) == 0.0


def test_independent_answers_are_at_chance() -> None:
    # The product of the margins: agreement is what chance gives.
    table = np.outer([30.0, 50.0, 20.0], [0.2, 0.3, 0.5, 0.0])
    for name in ("kappa", "kappa_linear", "kappa_quadratic"):
        metric = load_metric(name)
        assert float(metric.function(table)) == pytest.approx(metric.chance, abs=1e-12)
