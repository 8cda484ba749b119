"""Choice metrics against scikit-learn, and every gradient against numeric differentiation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, balanced_accuracy_score, precision_recall_fscore_support

from sonogauge._errors import BadInput
from sonogauge.metrics import METRICS, load_metric
from sonogauge.metrics.agreement import natural_statistics, pair_statistics
from sonogauge.metrics.choice import (
    accuracy,
    class_metric,
    confusion_statistics,
    hit_statistics,
    macro_f1,
)
from sonogauge.metrics.clinical import COLUMNS as CLINICAL_COLUMNS
from sonogauge.metrics.masks import ERRORS
from sonogauge.metrics.numbers import scaled_error_statistics
from sonogauge.metrics.probability import calibration_statistics, normalised

pytestmark = pytest.mark.part("metrics")


def answers(seed: int, items: int = 60, options: int = 5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    reference = rng.choice([0, 1, 3], size=items)  # options 2 and 4 have no reference item
    prediction = np.where(rng.random(items) < 0.5, reference, rng.integers(-1, options, size=items))
    return reference, prediction


@pytest.mark.parametrize("seed", range(5))
def test_macro_and_class_values_equal_scikit_learn(seed: int) -> None:
    reference, prediction = answers(seed)
    classes = [0, 1, 3]
    assert set(reference) == set(classes)
    confusion = confusion_statistics(reference, prediction, classes).sum(axis=0)
    oracle = precision_recall_fscore_support(reference, prediction, labels=classes, zero_division=0)
    for kind, values in zip(("precision", "recall", "f1"), oracle, strict=False):
        assert float(load_metric(f"macro_{kind}").function(confusion)) == pytest.approx(values.mean(), abs=1e-12)
        for position, value in enumerate(values):
            metric = class_metric(kind, position, f"{kind}_x")
            assert float(metric.function(confusion)) == pytest.approx(value, abs=1e-12)
            assert metric.name == f"{kind}_x"


def test_balanced_accuracy_equals_scikit_learn() -> None:
    reference, prediction = answers(7)
    prediction = np.where(prediction < 0, 0, prediction)
    confusion = confusion_statistics(reference, prediction, [0, 1, 3]).sum(axis=0)
    with pytest.warns(UserWarning, match="classes not in y_true"):
        oracle = balanced_accuracy_score(reference, prediction)
    assert float(load_metric("balanced_accuracy").function(confusion)) == pytest.approx(oracle, abs=1e-12)


def test_style_example_and_empty_classes_count_zero() -> None:
    assert float(macro_f1(np.array([[2, 0, 0], [1, 1, 0]]))) == pytest.approx((0.8 + 2 / 3) / 2)
    assert float(macro_f1(np.array([[2, 0, 0], [0, 0, 0]]))) == 0.5
    assert float(macro_f1(np.zeros((2, 3)))) == 0.0


def test_reference_outside_the_class_set_is_refused() -> None:
    with pytest.raises(ValueError, match="outside the class set"):
        confusion_statistics([2], [0], [0, 1])


def test_accuracy_counts_failures_and_knows_nothing_of_nothing() -> None:
    assert float(accuracy(hit_statistics([1, 0, 0, 1]).sum(axis=0))) == 0.5
    reference, prediction = answers(3)
    sums = hit_statistics(reference == prediction).sum(axis=0)
    assert float(accuracy(sums)) == pytest.approx(accuracy_score(reference, prediction), abs=1e-12)
    assert math.isnan(float(accuracy(np.zeros(2))))


def test_functions_are_vectorised_over_draws() -> None:
    rng = np.random.default_rng(3)
    confusions = rng.integers(0, 9, size=(7, 2, 3, 4)).astype(float)
    one_by_one = [[float(macro_f1(confusion)) for confusion in row] for row in confusions]
    assert macro_f1(confusions) == pytest.approx(np.array(one_by_one))


def sums_for(statistic: str, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if statistic == "confusion":
        return rng.integers(1, 20, size=(3, 4)).astype(float)
    if statistic == "scaled_errors":
        return scaled_error_statistics(rng.normal(0.05, 0.2, size=30), 0.1).sum(axis=0)
    if statistic == "bleu":
        possible = rng.integers(50, 100, size=4)
        length, other = rng.choice(np.arange(60, 120), size=2, replace=False)
        return np.array([*(possible * rng.uniform(0.2, 0.9, 4)), *possible, length, other], dtype=float)
    if statistic == "grades":
        return rng.integers(1, 20, size=(4, 5)).astype(float)
    if statistic == "binary":
        return np.array([rng.uniform(2, 19), 20.0, rng.uniform(2, 29), 30.0])
    if statistic == "natural_errors":
        return natural_statistics(rng.normal(0.5, 2.0, size=30)).sum(axis=0)
    if statistic == "pairs":
        reference = rng.normal(0.0, 1.0, size=(12, 3))
        return pair_statistics(reference, reference + rng.normal(0.2, 0.5, size=(12, 3))).sum(axis=1)
    if statistic == "clinical":
        return rng.uniform(1, 20, size=len(CLINICAL_COLUMNS))
    if statistic == "calibration":
        return calibration_statistics(normalised(rng.random((40, 3))), rng.integers(0, 3, size=40)).sum(axis=0)
    if statistic == "mask_errors":
        return np.append(rng.uniform(0, 3, size=len(ERRORS)), 20.0)
    if statistic == "ranked":
        return np.append(rng.uniform(1, 19, size=4), 20.0)
    if statistic == "sets":
        return np.append(rng.uniform(1, 19, size=8), 20.0)
    if statistic == "grounding":
        return np.append(rng.uniform(1, 5, size=4), 20.0)
    if statistic in ("lesions", "finding_types", "report_categories", "report_cells"):
        return rng.uniform(1, 20, size=3)
    return np.array([rng.uniform(1, 20), 20.0])


GRADIENTS = sorted(name for name in METRICS if load_metric(name).kind == "sum")


@given(name=st.sampled_from(GRADIENTS), seed=st.integers(0, 10_000))
@settings(max_examples=120, deadline=None)
def test_gradient_equals_numeric_differentiation(name: str, seed: int) -> None:
    metric = load_metric(name)
    sums = sums_for(metric.statistic, seed)
    if metric.statistic == "bleu_sacre":
        sums = sums_for("bleu", seed)
    if metric.statistic == "pairs":
        sums = (metric.per_group(sums) if metric.per_group else sums).sum(axis=0)
    assert metric.gradient is not None
    flat = sums.reshape(-1)
    numeric = np.zeros_like(flat)
    for index in range(flat.size):
        step = np.zeros_like(flat)
        step[index] = 1e-5
        up, down = (metric.function((flat + sign * step).reshape(sums.shape)) for sign in (1, -1))
        numeric[index] = (up - down) / 2e-5
    assert metric.gradient(sums).reshape(-1) == pytest.approx(numeric, rel=1e-5, abs=1e-8)
    stacked = metric.gradient(np.stack([sums, sums]))
    assert stacked[1] == pytest.approx(metric.gradient(sums), rel=1e-14)


@pytest.mark.parametrize("kind", ["precision", "recall", "f1"])
def test_class_gradient_equals_numeric_differentiation(kind: str) -> None:
    metric = class_metric(kind, 1, "x")  # type: ignore[arg-type]
    sums = sums_for("confusion", 5)
    assert metric.gradient is not None
    numeric = np.zeros_like(sums)
    for index in np.ndindex(sums.shape):
        step = np.zeros_like(sums)
        step[index] = 1e-5
        numeric[index] = (metric.function(sums + step) - metric.function(sums - step)) / 2e-5
    assert metric.gradient(sums) == pytest.approx(numeric, abs=1e-8)


def test_catalogue_facts() -> None:
    for name in METRICS:
        metric = load_metric(name)
        assert metric.name == name
        assert metric.source, "name the paper, the code or the section that defines the formula"
        assert name == "loa_low" or (metric.direction == "up") == (metric.identity in (1.0, math.inf))
        assert (metric.gradient is None) == (metric.kind == "order")
    with pytest.raises(BadInput, match=r"no metric 'acuracy'; known: .*\baccuracy\b"):
        load_metric("acuracy")
