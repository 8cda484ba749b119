"""Metrics of sets of options: a wrong letter costs everything, a missing one its share.

Statistic `sets` of an item: [score, same set, letters given, letters right, too many, too few, shared, nothing read,
1]. A failure gave no letter. The declared score is 0 if any given letter is wrong, else the share of the right ones
found; beside it stand exact match, letters given against letters right, over- and under-answering and the set F1,
because answering one sure letter alone is the safe strategy under this score.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

import numpy as np

from sonogauge.metrics.base import Array, Direction, complex_step, metric, safe_ratio

SCORE, SAME, GIVEN, RIGHT, MANY, FEW, SHARED, NOTHING, COUNT = range(9)
_SOURCE: Final = "MedLesionVQA specification, section 5"


def set_score_of(given: Collection[str], right: Collection[str]) -> float:
    """Return the score of a set of letters: 0 with any wrong one, else the share of the right ones found.

    Order and repeats have no effect; a letter that was not offered is wrong. Raises ValueError without a right letter.

    >>> [round(set_score_of(given, "ABC"), 3) for given in ("", "A", "BA", "ABC", "ABCD")]
    [0.0, 0.333, 0.667, 1.0, 0.0]
    """
    answered, reference = set(given), set(right)
    if not reference:
        raise ValueError("no right option")
    return 0.0 if answered - reference else len(answered & reference) / len(reference)


def expected_random_subset(options: int, right: int) -> float:
    """Return the expected score of a random non-empty subset, uniform over all 2^k - 1.

    >>> [round(expected_random_subset(4, right), 4) for right in (1, 2, 3, 4)]
    [0.0667, 0.1333, 0.2667, 0.5333]
    """
    _check(options, right)
    return float(2 ** (right - 1) / (2**options - 1))


def _check(options: int, right: int) -> None:
    if not 1 <= right <= options:
        raise ValueError(f"{right} right options of {options}")


def set_statistics(given: Sequence[Collection[str]], right: Sequence[Collection[str]]) -> Array:
    """Turn sets given and right into the statistic "sets" (n, 9); an empty set given is a failure.

    >>> set_statistics([["A", "D"]], [["A", "B"]])[0].tolist()
    [0.0, 0.0, 2.0, 2.0, 0.0, 0.0, 1.0, 0.0, 1.0]
    """
    rows = []
    for one, reference in zip(given, right, strict=True):
        answered, asked = set(one), set(reference)
        rows.append(
            [
                set_score_of(answered, asked),
                float(answered == asked),
                len(answered),
                len(asked),
                float(len(answered) > len(asked)),
                float(0 < len(answered) < len(asked)),
                len(answered & asked),
                float(not answered),
                1.0,
            ]
        )
    return np.array(rows, dtype=np.float64).reshape(-1, 9)


def _ratio_of(top: int, bottom: int) -> Any:
    def value(sums: Any) -> Any:
        return safe_ratio(sums[..., top], sums[..., bottom])

    return value


def _share(name: str, column: int, says: str, direction: Direction, identity: float, proportion: bool = True) -> Any:
    function = _ratio_of(column, COUNT)

    def value(sums: Any) -> Array:
        return np.asarray(function(np.asarray(sums, dtype=np.float64)))

    value.__doc__ = says
    return metric(
        name,
        statistic="sets",
        direction=direction,
        identity=identity,
        interval="proportion" if proportion else "studentised",
        gradient=complex_step(function),
        source=_SOURCE,
    )(value)


set_score = _share(
    "set_score", SCORE, "Mean score of the sets given; any wrong option costs the item.", "up", 1.0, proportion=False
)
exact_set = _share("exact_set", SAME, "Share of items whose set is exactly right.", "up", 1.0)
over_answer_rate = _share("over_answer_rate", MANY, "Share of items with more options given than right.", "down", 0.0)
under_answer_rate = _share(
    "under_answer_rate", FEW, "Share of items with fewer options given than right, but at least one.", "down", 0.0
)
no_answer_rate = _share("no_answer_rate", NOTHING, "Share of items from whose reply no option was read.", "down", 0.0)


@metric(
    "answer_size_ratio",
    statistic="sets",
    direction="up",
    identity=1.0,
    interval="studentised",
    unit="ratio",
    gradient=complex_step(_ratio_of(GIVEN, RIGHT)),
    source=_SOURCE,
)
def answer_size_ratio(sums: Array) -> Array:
    """Mean number of options given over mean number of right ones; 1 is best, below it too few are given.

    >>> float(answer_size_ratio(set_statistics(["A", "AB"], ["AB", "AB"]).sum(axis=0)))
    0.75
    """
    return np.asarray(_ratio_of(GIVEN, RIGHT)(np.asarray(sums, dtype=np.float64)))


def _set_f1(sums: Any) -> Any:
    return safe_ratio(2.0 * sums[..., SHARED], sums[..., GIVEN] + sums[..., RIGHT])


@metric(
    "set_f1",
    statistic="sets",
    direction="up",
    identity=1.0,
    interval="studentised",
    gradient=complex_step(_set_f1),
    source="micro-averaged F1 over all options of all items, scikit-learn f1_score(average='micro')",
)
def set_f1(sums: Array) -> Array:
    """F1 of options over all items: 2 shared / (given + right), which forgives a single wrong letter.

    >>> round(float(set_f1(set_statistics(["AD"], ["AB"]).sum(axis=0))), 3)
    0.5
    """
    return np.asarray(_set_f1(np.asarray(sums, dtype=np.float64)))
