"""Diagnostic metrics against scikit-learn and hand-made tables."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import class_likelihood_ratios, precision_score, recall_score

from sonogauge._errors import BadInput
from sonogauge.metrics import load_metric
from sonogauge.metrics.diagnostic import binary_statistics, predictive_metric

pytestmark = pytest.mark.part("metrics")


def value(name: str, sums: np.ndarray) -> float:
    return float(load_metric(name).function(sums))


@pytest.mark.parametrize("seed", range(5))
def test_values_equal_scikit_learn(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth = rng.random(90) < 0.4
    said = np.where(rng.random(90) < 0.75, truth, ~truth)
    sums = binary_statistics(truth, truth == said).sum(axis=0)
    assert value("sensitivity", sums[:2]) == pytest.approx(recall_score(truth, said), abs=1e-12)
    assert value("specificity", sums[2:]) == pytest.approx(recall_score(truth, said, pos_label=False), abs=1e-12)
    positive, negative = class_likelihood_ratios(truth, said)
    assert value("lr_positive", sums) == pytest.approx(positive, abs=1e-9)
    assert value("lr_negative", sums) == pytest.approx(negative, abs=1e-9)
    assert value("ppv", sums) == pytest.approx(precision_score(truth, said), abs=1e-12)
    assert value("npv", sums) == pytest.approx(precision_score(truth, said, pos_label=False), abs=1e-12)


def test_predictive_values_at_a_prevalence_follow_bayes() -> None:
    # Of 10,000 at 1 % prevalence, 80 of the 100 ill and 990 of the 9,900 well are called ill.
    sums = np.array([8.0, 10.0, 9.0, 10.0])
    assert float(predictive_metric("ppv", 0.01).function(sums)) == pytest.approx(80 / (80 + 990), abs=1e-12)
    assert float(predictive_metric("npv", 0.01).function(sums)) == pytest.approx(8910 / (8910 + 20), abs=1e-12)
    assert "prevalence:0.01" in predictive_metric("ppv", 0.01).facts
    for wrong in (0.0, 1.0, -0.1, math.nan):
        with pytest.raises(BadInput, match="prevalence"):
            predictive_metric("ppv", wrong)


def test_undefined_ratios_are_nan_and_say_why() -> None:
    perfect = np.array([10.0, 10.0, 10.0, 10.0])
    assert math.isnan(value("lr_positive", perfect))
    assert "finite" in load_metric("lr_positive").undefined
    assert value("lr_negative", perfect) == 0.0
    all_negative = np.array([0.0, 10.0, 10.0, 10.0])
    assert math.isnan(value("ppv", all_negative))
    assert value("npv", all_negative) == 0.5


def test_a_failure_is_on_the_wrong_side_of_both() -> None:
    sums = binary_statistics([True, False], [False, False]).sum(axis=0)
    assert sums.tolist() == [0.0, 1.0, 0.0, 1.0]
