"""What a benchmark can tell: the smallest difference it detects, and non-inferiority within a margin."""

from __future__ import annotations

import math
from typing import Final, Literal

LEVEL: Final = 0.95
POWER: Final = 0.80

Standing = Literal["superior", "non-inferior", "inconclusive", "inferior"]


def smallest_difference(error: float, df: float, *, power: float = POWER, level: float = LEVEL) -> float:
    """Return the smallest true difference that a two-sided t-test finds with the given power.

    error: standard error of the paired difference, at least 0; df: its degrees of freedom. Solves
    P(|T| > t) = power for the noncentral t with noncentrality difference / error.

    Raises:
        ValueError: a power outside (1 - level, 1), a negative error or no degree of freedom.

    >>> round(smallest_difference(0.02, 199), 4)
    0.0563
    """
    from scipy.optimize import brentq
    from scipy.special import nctdtr, stdtrit

    if not 1 - level < power < 1:
        raise ValueError(f"power must lie between {1 - level:g} and 1, not {power}")
    if not (error >= 0 and df > 0):
        raise ValueError(f"no such spread: error {error}, df {df}")
    critical = float(stdtrit(df, 0.5 + level / 2))

    def lacking(noncentrality: float) -> float:
        wrong_side = float(nctdtr(df, noncentrality, -critical))
        # Far out on the wrong side, where next to nothing is left, scipy gives NaN.
        found = 1.0 - float(nctdtr(df, noncentrality, critical)) + (0.0 if math.isnan(wrong_side) else wrong_side)
        return found - power

    upper = critical + 1.0
    while lacking(upper) < 0:
        upper *= 2.0
    return error * float(brentq(lacking, 0.0, upper, xtol=1e-12))


def standing(low: float, high: float, margin: float) -> Standing:
    """Judge a difference (first minus reference, higher is better) by its 95 % interval and a margin.

    superior: above 0; non-inferior: above -margin; inferior: below -margin; else inconclusive. The test of
    non-inferiority is one-sided at 2.5 %.

    Raises:
        ValueError: a margin that is not positive.

    >>> standing(-0.01, 0.03, margin=0.02), standing(-0.05, -0.03, margin=0.02)
    ('non-inferior', 'inferior')
    """
    if not margin > 0:
        raise ValueError(f"a margin must be above 0, not {margin}")
    if low > 0:
        return "superior"
    if low > -margin:
        return "non-inferior"
    return "inferior" if high < -margin else "inconclusive"
