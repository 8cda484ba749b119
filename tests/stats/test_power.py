"""The smallest detectable difference against statsmodels, and non-inferiority."""

from __future__ import annotations

import pytest
from scipy.integrate import quad
from scipy.stats import chi2, norm, t
from statsmodels.stats.power import TTestPower

from sonogauge.stats.power import smallest_difference, standing

pytestmark = pytest.mark.part("comparison")


@pytest.mark.parametrize("n", [6, 24, 55, 200])
@pytest.mark.parametrize("power", [0.8, 0.9])
def test_the_smallest_difference_equals_statsmodels(n: int, power: float) -> None:
    found = smallest_difference(0.03, n - 1, power=power)
    # A difference of one paired standard deviation is sqrt(n) standard errors.
    reached = TTestPower().power(effect_size=found / (0.03 * n**0.5), nobs=n, alpha=0.05, alternative="two-sided")
    assert reached == pytest.approx(power, abs=1e-9)


@pytest.mark.parametrize("df", [1.0, 1.7, 3.0, 8.5])
def test_few_degrees_of_freedom_equal_an_integral(df: float) -> None:
    difference, critical = smallest_difference(1.0, df), t.ppf(0.975, df)

    def density(s: float) -> float:
        # s = sqrt(chi-square / df): the estimated spread over the true one.
        beyond = norm.sf(critical * s - difference) + norm.cdf(-critical * s - difference)
        return float(beyond * chi2.pdf(s * s * df, df) * 2 * s * df)

    assert quad(density, 0, 12, limit=400)[0] == pytest.approx(0.8, abs=1e-7)


def test_no_spread_detects_everything_and_nonsense_is_refused() -> None:
    assert smallest_difference(0.0, 10) == 0.0
    for arguments in ({"error": -1.0, "df": 3.0}, {"error": 1.0, "df": 0.0}, {"error": 1.0, "df": 3.0, "power": 1.0}):
        with pytest.raises(ValueError, match=r"spread|power"):
            smallest_difference(**arguments)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.01, 0.2, "superior"),
        (-0.04, 0.2, "non-inferior"),
        (-0.05, 0.2, "inconclusive"),
        (-0.2, -0.06, "inferior"),
        (-0.2, -0.05, "inconclusive"),
    ],
)
def test_standing_against_a_margin(low: float, high: float, expected: str) -> None:
    assert standing(low, high, 0.05) == expected


def test_a_margin_is_positive() -> None:
    with pytest.raises(ValueError, match="margin"):
        standing(0.0, 0.1, 0.0)
