"""Formulas against hand-computed values, brute force, and the numbers of the specification."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonogauge.analyses.formulas import (
    Question,
    best_letter,
    chance_corrected,
    letter_scores,
    majority_scores,
    majority_test,
    prior_scores,
    random_exact,
    random_scores,
    random_simulated,
    weighted,
)
from sonogauge.stats.paired import mcnemar

pytestmark = pytest.mark.part("analyses")

# Source: specification of Fetal-Gauge, section 9, from published summaries of the paper.
BINS = {"large": 2160, "medium": 1799, "small": 7373}
PUBLISHED = {
    "GPT-5": (0.66, 0.62, 0.23, 0.20, 0.58, 0.55),
    "Qwen2.5-VL-7B": (0.24, 0.58, 0.24, 0.39, 0.23, 0.24),
}


def test_bins_add_up_and_their_weighted_scores_are_the_printed_ones() -> None:
    assert sum(BINS.values()) == 11_332
    scores = {
        (0.85, 0.67, 0.48): (0.581, 0.58),
        (0.79, 0.45, 0.38): (0.469, 0.47),
        (0.82, 0.45, 0.34): (0.449, 0.45),
    }
    for parts, (exact, printed) in scores.items():
        value = weighted(zip(BINS.values(), parts, strict=True))
        assert round(value, 3) == exact and round(value, 2) == printed


@pytest.mark.parametrize(("model", "macro"), [("GPT-5", 0.458), ("Qwen2.5-VL-7B", 0.336)])
def test_overall_of_the_paper_is_micro_not_macro(model: str, macro: float) -> None:
    *tasks, overall = PUBLISHED[model]
    assert round(float(np.mean(tasks)), 3) == macro
    assert abs(macro - overall) > 0.09


def test_exact_random_of_the_example() -> None:
    expected, deviation = random_exact([2] * 2 + [4] * 8)
    assert expected == pytest.approx(0.30) and deviation == pytest.approx(0.1414, abs=5e-5)


@pytest.mark.parametrize(("b", "c", "p"), [(2, 10, 0.0386), (5, 5, 1.0), (0, 6, 0.03125), (0, 0, 1.0)])
def test_mcnemar_of_the_specification(b: int, c: int, p: float) -> None:
    assert mcnemar(b, c).p_exact == pytest.approx(p, abs=5e-5)


@given(st.lists(st.integers(2, 4), min_size=1, max_size=5))
def test_exact_random_against_all_guesses(sizes: list[int]) -> None:
    shares = [
        sum(guess == 0 for guess in guesses) / len(sizes) for guesses in itertools.product(*(range(k) for k in sizes))
    ]
    weights = np.full(len(shares), 1 / len(shares))
    mean = float(np.dot(weights, shares))
    deviation = float(np.sqrt(np.dot(weights, (np.array(shares) - mean) ** 2)))
    assert random_exact(sizes) == pytest.approx((mean, deviation))


def test_simulated_random_lies_around_the_exact_one() -> None:
    sizes = [2] * 40 + [4] * 60
    expected, deviation = random_exact(sizes)
    found = random_simulated(sizes, 20_000, 7)
    assert found.mean == pytest.approx(expected, abs=0.002)
    assert (found.high - found.low) / 3.92 == pytest.approx(deviation, rel=0.08)
    assert found == random_simulated(sizes, 20_000, 7) != random_simulated(sizes, 20_000, 8)


QUESTIONS = [
    Question(("a", "b"), "a"),
    Question(("b", "c"), "c"),
    Question(("c", "d"), "d"),
    Question(("a", "b", "c", "d"), "b"),
]


def test_baselines_by_hand() -> None:
    train = {"b": 5, "a": 5, "c": 1}
    # "a" is the commonest by the alphabet: right, not offered in two questions of two, offered but wrong.
    assert majority_scores(QUESTIONS, train).tolist() == [1.0, 0.5, 0.5, 0.0]
    # a before b by the alphabet; b before c; c alone is known; a before b.
    assert prior_scores(QUESTIONS, train).tolist() == [1.0, 0.0, 0.0, 0.0]
    assert prior_scores(QUESTIONS, {"z": 1}).tolist() == random_scores(QUESTIONS).tolist() == [0.5, 0.5, 0.5, 0.25]
    assert majority_test(QUESTIONS) == 0.25
    assert best_letter(QUESTIONS) == 1 and letter_scores(QUESTIONS, 1).tolist() == [0.0, 1.0, 1.0, 1.0]
    assert letter_scores(QUESTIONS, 2).tolist() == [0.0, 0.0, 0.0, 0.0]
    for function in (majority_scores, prior_scores):
        with pytest.raises(ValueError, match="no train labels"):
            function(QUESTIONS, {})


@given(st.floats(0, 1), st.floats(0, 0.9))
def test_chance_corrected_is_0_for_guessing_and_1_for_perfect(accuracy: float, chance: float) -> None:
    assert chance_corrected(chance, chance) == 0 and chance_corrected(1.0, chance) == pytest.approx(1.0)
    assert np.isnan(chance_corrected(accuracy, 1.0))
