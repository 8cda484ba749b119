"""Agreement of two measurements against pingouin, numpy and a hand-made analysis of variance."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pingouin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sonogauge.metrics import load_metric
from sonogauge.metrics.agreement import natural_statistics, of_group, pair_statistics

pytestmark = pytest.mark.part("metrics")


def numbers(seed: int, patients: int = 15, most: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, most + 1, size=patients)
    patient = np.repeat(np.arange(patients), sizes)
    reference = rng.normal(250, 40, size=len(patient))
    prediction = reference + 3 + rng.normal(0, 8, size=patients)[patient] + rng.normal(0, 4, size=len(patient))
    return patient, reference, prediction


def limits(patient: np.ndarray, reference: np.ndarray, prediction: np.ndarray) -> tuple[float, float]:
    groups = np.stack(
        [
            pair_statistics(reference[patient == one], prediction[patient == one]).sum(axis=0)
            for one in np.unique(patient)
        ]
    )
    sums = of_group(groups).sum(axis=0)
    return float(load_metric("loa_low").function(sums)), float(load_metric("loa_high").function(sums))


@pytest.mark.parametrize("seed", range(3))
def test_icc_equals_pingouin(seed: int) -> None:
    _, reference, prediction = numbers(seed)
    n = len(reference)
    table = pd.DataFrame(
        {"item": np.tile(np.arange(n), 2), "rater": np.repeat(["a", "b"], n), "y": np.r_[reference, prediction]}
    )
    found = pingouin.intraclass_corr(table, targets="item", raters="rater", ratings="y").set_index("Type")["ICC"]
    oracle = next(
        value for name, value in found.items() if str(name).replace("(", "").startswith(("ICC2", "ICCA,1", "ICCC2"))
    )
    for shift in (0.0, 250.0):
        sums = pair_statistics(reference, prediction, shift).sum(axis=0)
        assert float(load_metric("icc").function(sums)) == pytest.approx(oracle, abs=1e-9)


def test_limits_with_one_measurement_a_patient_are_bland_and_altman_1986() -> None:
    patient, reference, prediction = numbers(4)
    differences = prediction - reference
    low, high = limits(patient, reference, prediction)
    spread = 1.959963984540054 * differences.std(ddof=1)
    assert (low, high) == pytest.approx((differences.mean() - spread, differences.mean() + spread), abs=1e-9)


def test_limits_with_repeats_equal_an_analysis_of_variance() -> None:
    patient, reference, prediction = numbers(5, most=4)
    table = pd.DataFrame({"patient": patient, "d": prediction - reference})
    anova = pingouin.anova(data=table, dv="d", between="patient", detailed=True)
    between, within = anova["MS"]
    sizes = table.groupby("patient").size().to_numpy()
    total = sizes.sum()
    size = (total**2 - (sizes**2).sum()) / ((len(sizes) - 1) * total)
    variance = max(0.0, (between - within) / size) + within
    middle, spread = table["d"].mean(), 1.959963984540054 * math.sqrt(variance)
    assert limits(patient, reference, prediction) == pytest.approx((middle - spread, middle + spread), abs=1e-9)


def test_no_spread_between_patients_leaves_the_spread_within() -> None:
    # Both patients have differences -1, 0, 1: MSB = 0 < MSW = 1, so the variance is MSW.
    patient = np.repeat([0, 1], 3)
    assert limits(patient, np.zeros(6), np.tile([-1.0, 0.0, 1.0], 2)) == pytest.approx((-1.959964, 1.959964), abs=1e-6)


def test_errors_equal_numpy() -> None:
    _, reference, prediction = numbers(6)
    errors = reference - prediction
    sums = natural_statistics(errors).sum(axis=0)
    assert float(load_metric("mae").function(sums)) == pytest.approx(np.abs(errors).mean(), abs=1e-12)
    assert float(load_metric("rmse").function(sums)) == pytest.approx(np.sqrt((errors**2).mean()), abs=1e-12)
    pairs = pair_statistics(reference, prediction, 7.0).sum(axis=0)
    assert float(load_metric("bias").function(pairs)) == pytest.approx(-errors.mean(), abs=1e-9)


@given(st.lists(st.floats(-1e300, 1e300), min_size=2, max_size=6))
@settings(max_examples=30)
def test_absurd_numbers_give_no_infinity(values: list[float]) -> None:
    pairs = pair_statistics(np.zeros(len(values)), values)
    for name in ("bias", "icc"):
        assert not math.isinf(float(load_metric(name).function(pairs.sum(axis=0))))
    assert math.isfinite(float(load_metric("loa_high").function(of_group(pairs).sum(axis=0))))


def test_one_patient_and_equal_numbers_are_undefined_with_a_reason() -> None:
    one = of_group(pair_statistics([1.0, 2.0], [1.0, 3.0]).sum(axis=0)[None]).sum(axis=0)
    assert math.isnan(float(load_metric("loa_low").function(one)))
    assert "two patients" in load_metric("loa_low").undefined
    equal = pair_statistics(np.full(4, 3.0), np.full(4, 3.0)).sum(axis=0)
    assert math.isnan(float(load_metric("icc").function(equal)))
    assert float(load_metric("bias").function(equal)) == 0.0
