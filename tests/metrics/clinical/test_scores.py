"""Metrics of clinical content against counts by hand, their gradients, intervals, and the refusal of other images."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sonogauge._errors import BadInput
from sonogauge.metrics import METRICS, load_metric
from sonogauge.metrics.clinical import COLUMNS, clinical_statistics, refuse_modality
from sonogauge.metrics.clinical.modality import SCOPES
from sonogauge.metrics.sums import GroupSums

NAMES = sorted(name for name, scope in SCOPES.items() if scope.built_in)


def sums(**counts: float) -> np.ndarray:
    return np.array([float(counts.get(name, 0.0)) for name in COLUMNS])


@pytest.mark.part("clinical content")
def test_values_by_hand() -> None:
    total = sums(
        items=4, reference_facts=20, reply_facts=16, correct=12, polarity_compared=15, negation_errors=3,
        side_compared=8, side_errors=2, place_compared=5, place_errors=1, size_compared=4, size_errors=1,
        grade_compared=2, grade_errors=1,
        hallucinated=6, missed=2, reference_details=30, details_right=12, sections_required=20, sections_missing=5,
    )  # fmt: skip
    expected = {
        "fact_precision": 0.75,
        "fact_recall": 0.6,
        "fact_f1": 24 / 36,
        "detail_recall": 0.4,
        "negation_error_rate": 0.2,
        "side_error_rate": 0.25,
        "place_error_rate": 0.2,
        "size_error_rate": 0.25,
        "grade_error_rate": 0.5,
        "hallucinated_per_report": 1.5,
        "missed_per_report": 0.5,
        "missing_sections_per_report": 1.25,
    }
    assert sorted(expected) == NAMES
    for name, value in expected.items():
        assert float(load_metric(name).function(total)) == pytest.approx(value, abs=1e-12), name


@pytest.mark.parametrize("name", NAMES)
def test_registered_with_what_belongs_to_a_number(name: str) -> None:
    metric = load_metric(name)
    assert metric.name == name
    assert name in METRICS
    assert metric.statistic == "clinical"
    assert metric.identity == (1.0 if metric.direction == "up" else 0.0)
    assert metric.source
    perfect = clinical_statistics(
        [["A 5 mm cyst, mild, in the upper pole of the left kidney. BI-RADS 2."]] * 2, [""] * 2
    )
    text = "A mild stone of 5 mm in the upper pole of the left kidney. No cyst. BI-RADS 2. Impression: stone."
    perfect = clinical_statistics([[text]] * 2, [text] * 2)
    assert float(metric.function(perfect["clinical"].sum(axis=0))) == metric.identity


COUNTS = st.lists(st.integers(1, 50), min_size=len(COLUMNS), max_size=len(COLUMNS))


@pytest.mark.parametrize("name", NAMES)
@given(counts=COUNTS)
@settings(max_examples=20, deadline=None)
def test_gradient_is_that_of_finite_differences(name: str, counts: list[int]) -> None:
    metric = load_metric(name)
    assert metric.gradient is not None
    total, step = np.array(counts, dtype=np.float64), 1e-5
    shifts = np.eye(len(COLUMNS)) * step
    numeric = (metric.function(total + shifts) - metric.function(total - shifts)) / (2 * step)
    assert metric.gradient(total) == pytest.approx(numeric, rel=1e-5, abs=1e-7)
    stacked = np.stack([total, total * 2])[None]
    assert metric.function(stacked).shape == (1, 2)
    assert metric.gradient(stacked).shape == (1, 2, len(COLUMNS))


def test_a_reply_without_facts_has_precision_zero_and_no_facts_at_all_have_none() -> None:
    precision, recall = load_metric("fact_precision"), load_metric("fact_recall")
    assert float(precision.function(sums(items=1, reference_facts=3))) == 0.0
    assert float(recall.function(sums(items=1, reply_facts=3))) == 0.0
    assert math.isnan(float(precision.function(sums(items=1))))
    assert math.isnan(float(load_metric("side_error_rate").function(sums(items=1))))
    assert precision.gradient is not None
    assert np.isfinite(precision.gradient(sums(items=1, reference_facts=3))).all()


@pytest.mark.parametrize("name", NAMES)
def test_intervals_hold_the_value(name: str) -> None:
    from sonogauge.stats.intervals import estimate
    from sonogauge.stats.resample import Resampler

    reference = "A mild stone of 5 mm in the upper pole of the left kidney. No cyst. BI-RADS 2. Impression: stone."
    replies = [
        reference,
        reference.replace("left", "right"),
        reference.replace("5 mm", "5 cm").replace("upper", "lower"),
        reference.replace("No cyst", "A cyst").replace("BI-RADS 2", "BI-RADS 5").replace("mild", "severe"),
        "",
    ] * 6
    statistics = clinical_statistics([[reference]] * len(replies), replies)["clinical"]
    groups = [f"p{number}" for number in range(len(replies))]
    grouped = GroupSums.from_items(["s"] * len(replies), groups, statistics)
    found = estimate(load_metric(name), grouped, Resampler.for_sums(grouped, draws=200, seed=1))
    assert found.low is not None and found.high is not None
    assert found.low <= found.value <= found.high


def test_chest_x_ray_metrics_refuse_ultrasound() -> None:
    for name in ("chexbert_f1", "radgraph_f1", "radcliq", "chexpert_f1", "green"):
        with pytest.raises(BadInput, match=f"'{name}' is not defined for ultrasound: .*chest.*use fact_precision"):
            load_metric(name)
        with pytest.raises(BadInput, match="not computed by this toolkit"):
            refuse_modality(name, "CXR")
    with pytest.raises(BadInput, match="no metric 'chexbert'"):
        load_metric("chexbert")


def test_ultrasound_metrics_refuse_other_images() -> None:
    for name in NAMES:
        assert load_metric(name, "US").name == name
        with pytest.raises(BadInput, match=f"'{name}' is not defined for chest_xray: .*use bleu4"):
            load_metric(name, "chest x-ray")
    assert load_metric("bleu4", "mri").name == "bleu4"
