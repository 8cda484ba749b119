"""Metrics of option probabilities against scikit-learn, plain and weighted, and a hand-made calibration table."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, brier_score_loss, roc_auc_score

from sonogauge.metrics import load_metric
from sonogauge.metrics.probability import (
    auroc,
    average_precision,
    brier_statistics,
    calibration_statistics,
    normalised,
)

pytestmark = pytest.mark.part("metrics")


@pytest.mark.parametrize("seed", range(5))
def test_ranking_equals_scikit_learn_with_and_without_weights(seed: int) -> None:
    rng = np.random.default_rng(seed)
    label = (rng.random(60) < 0.4).astype(float)
    score = np.round(0.3 * label + rng.random(60), 1)  # many ties
    values = np.stack([score, label], axis=-1)
    weights = rng.integers(0, 4, size=(3, 60)).astype(float)
    for own, oracle in ((auroc, roc_auc_score), (average_precision, average_precision_score)):
        assert float(own(values, np.ones(60))) == pytest.approx(oracle(label, score), abs=1e-9)
        expected = [oracle(label, score, sample_weight=one) for one in weights]
        assert own(values, weights) == pytest.approx(expected, abs=1e-9)


def test_one_class_is_undefined_with_a_reason() -> None:
    values = np.array([[0.2, 1.0], [0.4, 1.0]])
    assert math.isnan(float(auroc(values, np.ones(2))))
    assert "one class" in load_metric("auroc").undefined
    assert math.isnan(float(average_precision(np.array([[0.2, 0.0]]), np.ones(1))))
    assert math.isnan(float(auroc(np.zeros((0, 2)), np.zeros(0))))


def test_brier_equals_scikit_learn() -> None:
    rng = np.random.default_rng(2)
    p, label = rng.random(50), rng.integers(0, 2, size=50)
    sums = brier_statistics(np.stack([1 - p, p], axis=-1), label).sum(axis=0)
    assert float(load_metric("brier").function(sums)) == pytest.approx(brier_score_loss(label, p), abs=1e-9)
    several, reference = normalised(rng.random((50, 4))), rng.integers(0, 4, size=50)
    sums = brier_statistics(several, reference).sum(axis=0)
    oracle = brier_score_loss(reference, several, labels=range(4), scale_by_half=True)
    assert float(load_metric("brier").function(sums)) == pytest.approx(oracle, abs=1e-9)


def test_ece_of_a_hand_made_table() -> None:
    # Bin .9-1: confidences .95, .95, one right; bin .6-.7: .65 right. |1.9 - 1| + |.65 - 1| over 3.
    p = [[0.95, 0.05], [0.05, 0.95], [0.65, 0.35]]
    sums = calibration_statistics(p, [0, 0, 0]).sum(axis=0)
    assert float(load_metric("ece").function(sums)) == pytest.approx((0.9 + 0.35) / 3, abs=1e-12)
    certain = calibration_statistics([[1.0, 0.0]], [0])
    assert certain[0, 9].tolist() == [1.0, 1.0, 1.0]
    assert float(load_metric("ece").function(certain[0])) == 0.0


def test_probabilities_are_scaled_to_one() -> None:
    assert normalised([[2.0, 6.0]]).tolist() == [[0.25, 0.75]]
    assert normalised([[0.0, 0.0, 0.0, 0.0]]).tolist() == [[0.25] * 4]
