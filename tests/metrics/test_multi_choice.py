"""Every property of the multi-response score, its random expectations by enumeration, the metrics beside it."""

from __future__ import annotations

from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from sonogauge.metrics import load_metric
from sonogauge.metrics.multi_choice import (
    expected_random_subset,
    set_score_of,
    set_statistics,
)

pytestmark = pytest.mark.part("multi-choice and rankings")

LETTERS = "ABCDE"
SETS = st.sets(st.sampled_from(LETTERS))
EXPECTED = {
    3: [0.1429, 0.2857, 0.5714],
    4: [0.0667, 0.1333, 0.2667, 0.5333],
    5: [0.0323, 0.0645, 0.1290, 0.2581, 0.5161],
}


def subsets(options: str) -> list[tuple[str, ...]]:
    return list(chain.from_iterable(combinations(options, size) for size in range(1, len(options) + 1)))


@pytest.mark.parametrize(
    ("answered", "right", "score"),
    [
        ("", "ABC", 0.0),
        ("ABC", "ABC", 1.0),
        ("A", "ABC", 1 / 3),
        ("AB", "ABC", 2 / 3),
        ("ABCD", "ABC", 0.0),
        ("D", "ABC", 0.0),
        ("ABCD", "ABCD", 1.0),
        ("CCBA", "ABC", 1.0),
        ("AZ", "ABC", 0.0),
    ],
)
def test_properties(answered: str, right: str, score: float) -> None:
    assert set_score_of(answered, right) == pytest.approx(score)


def test_a_right_set_is_never_empty() -> None:
    with pytest.raises(ValueError, match="no right option"):
        set_score_of("A", "")


@pytest.mark.parametrize("options", sorted(EXPECTED))
def test_expectations_by_enumeration(options: int) -> None:
    offered = LETTERS[:options]
    for right in range(1, options + 1):
        reference = offered[:right]
        mean = np.mean([set_score_of(one, reference) for one in subsets(offered)])
        assert expected_random_subset(options, right) == pytest.approx(mean, abs=1e-12)
        assert round(mean, 4) == EXPECTED[options][right - 1]
        one_letter = np.mean([set_score_of(letter, reference) for letter in offered])
        assert one_letter == pytest.approx(1 / options), "one random letter expects 1/k, however many are right"


@given(SETS, SETS.filter(bool), st.sampled_from(LETTERS))
def test_more_right_letters_never_cost_and_a_wrong_one_costs_all(given_: set, right: set, letter: str) -> None:
    score = set_score_of(given_, right)
    assert 0.0 <= score <= 1.0
    assert (score == 1.0) == (given_ == right)
    assert set_score_of(sorted(given_, reverse=True) * 2, right) == score
    more = set_score_of(given_ | {letter}, right)
    assert more >= score if letter in right else more == 0.0


@given(st.lists(st.tuples(SETS, SETS.filter(bool)), min_size=1, max_size=20))
def test_metrics_beside_the_score(pairs: list[tuple[set, set]]) -> None:
    given_, right = [one for one, _ in pairs], [other for _, other in pairs]
    sums = set_statistics(given_, right).sum(axis=0)
    value = {
        name: float(load_metric(name).function(sums))
        for name in (
            "set_score",
            "exact_set",
            "answer_size_ratio",
            "over_answer_rate",
            "under_answer_rate",
            "no_answer_rate",
            "set_f1",
        )
    }
    assert value["set_score"] == pytest.approx(np.mean([set_score_of(*pair) for pair in pairs]))
    assert value["exact_set"] == pytest.approx(np.mean([one == other for one, other in pairs]))
    assert value["answer_size_ratio"] == pytest.approx(sum(map(len, given_)) / sum(map(len, right)))
    matrix = [[[letter in one for letter in LETTERS] for one in side] for side in (right, given_)]
    flat = [np.array(side).reshape(-1) for side in matrix]
    assert value["set_f1"] == pytest.approx(f1_score(*flat, zero_division=0.0))
    assert value["no_answer_rate"] == pytest.approx(np.mean([not one for one in given_]))
    assert value["over_answer_rate"] + value["under_answer_rate"] + value["no_answer_rate"] <= 1.0 + 1e-12
    assert value["exact_set"] <= value["set_score"]
