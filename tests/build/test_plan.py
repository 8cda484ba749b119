"""Numbers of patients against statsmodels and by hand."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from scipy import stats

from sonogauge._errors import BadInput
from sonogauge.build.plan import plan, plan_lines
from tests.build.test_leakage import bench_of, halves

pytestmark = pytest.mark.part("recipes")


@pytest.mark.parametrize(("expected", "half_width"), [(0.7, 0.05), (0.9, 0.03), (0.5, 0.2)])
def test_the_half_width_is_reached_and_one_patient_less_is_too_few(expected: float, half_width: float) -> None:
    (need,) = plan(half_width=half_width, expected=expected)

    def reached(patients: int) -> float:
        return float(stats.t.ppf(0.975, patients - 1)) * math.sqrt(expected * (1 - expected) / patients)

    assert reached(need.patients) <= half_width < reached(need.patients - 1)


@pytest.mark.parametrize(("difference", "spread", "power"), [(0.05, 0.4, 0.8), (0.1, 0.5, 0.9), (0.5, 0.6, 0.8)])
def test_patients_for_a_difference_are_those_of_statsmodels(difference: float, spread: float, power: float) -> None:
    from statsmodels.stats.power import TTestPower

    (need,) = plan(difference=difference, spread=spread, power=power)
    exact = TTestPower().solve_power(effect_size=difference / spread, alpha=0.05, power=power)
    assert need.patients == math.ceil(exact)


def test_items_of_a_patient_that_are_alike_tell_less() -> None:
    alone, apart, same = (
        plan(half_width=0.05, items=items, alike=alike)[0].patients
        for items, alike in ((1.0, 0.3), (4.0, 0.0), (4.0, 1.0))
    )
    assert alone == same
    assert apart == pytest.approx(alone / 4, rel=0.05)  # the t quantile grows a little


def test_discordant_share_sets_the_variance() -> None:
    (need,) = plan(difference=0.05, discordant=0.2)
    (by_hand,) = plan(difference=0.05, spread=math.sqrt(0.2 - 0.05**2))
    assert need.patients == by_hand.patients


def test_a_benchmark_gives_patients_and_items(tmp_path: Path) -> None:
    bench = bench_of(tmp_path / "b", halves(40))
    (need,) = plan(half_width=0.1, bench=bench)
    assert (need.scope, need.have, need.items_per_patient) == ("DD", 20, 1.0)
    assert need.reached == pytest.approx(float(stats.t.ppf(0.975, 19)) * math.sqrt(0.21 / 20))
    assert "the benchmark has 20, which gives 0.214" in plan_lines([need])[0]


@pytest.mark.parametrize(
    "wish",
    [
        {},
        {"half_width": 0.0},
        {"half_width": 0.1, "expected": 1.0},
        {"difference": 0.1, "discordant": 0.05},
        {"difference": 0.8, "expected": 0.5},
        {"half_width": 0.1, "alike": 2.0},
        {"half_width": 0.1, "items": 0.0},
        {"half_width": 1e-6},
        {"half_width": 2.0},
    ],
)
def test_wishes_that_make_no_sense_are_refused(wish: dict[str, float]) -> None:
    with pytest.raises(BadInput):
        plan(**wish)  # type: ignore[arg-type]
