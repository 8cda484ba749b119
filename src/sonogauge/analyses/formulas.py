"""Baselines that read no image, by their exact formulas, and the chance-corrected score.

Source: specification of Fetal-Gauge, section 5. A question is its options as shown and the right one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Question(NamedTuple):
    """The options of a question in the order shown, and the right one."""

    options: tuple[str, ...]
    answer: str


class Simulated(NamedTuple):
    """Mean and 2.5 and 97.5 percentiles of simulated accuracies."""

    mean: float
    low: float
    high: float


def random_exact(sizes: Sequence[int]) -> tuple[float, float]:
    """Return expectation and standard deviation of the accuracy of guessing: E = mean(1/k), sd = sqrt(sum p(1-p))/N.

    sizes: options shown with each question.

    >>> [round(value, 4) for value in random_exact([2] * 2 + [4] * 8)]
    [0.3, 0.1414]
    """
    chances = 1.0 / np.asarray(sizes, dtype=np.float64)
    return float(chances.mean()), float(np.sqrt((chances * (1 - chances)).sum()) / len(chances))


def random_simulated(sizes: Sequence[int], draws: int = 10_000, random_state: int = 0) -> Simulated:
    """Return mean and percentiles of the accuracy over random guesses from one random state."""
    rng = np.random.default_rng(random_state)
    right: Array = np.zeros(draws)
    for size, number in sorted(Counter(sizes).items()):
        # Questions of one size are alike, so their hits are one binomial draw.
        right += rng.binomial(number, 1.0 / size, size=draws)
    shares = right / len(sizes)
    low, high = np.percentile(shares, [2.5, 97.5])
    return Simulated(float(shares.mean()), float(low), float(high))


def commonest(counts: Mapping[str, int]) -> str:
    """Return the most frequent label, ties by the alphabet.

    >>> commonest({"b": 2, "a": 2, "c": 1})
    'a'
    """
    return min(counts, key=lambda label: (-counts[label], label))


def random_scores(questions: Sequence[Question]) -> Array:
    """Return the expected score of guessing, question by question."""
    return np.array([1.0 / len(one.options) for one in questions])


def majority_scores(questions: Sequence[Question], train: Mapping[str, int]) -> Array:
    """Return the score of always naming the commonest train label.

    1 where it is the answer, 0 where it is offered but wrong, 1/k where it is not offered. Raises ValueError without
    train labels.
    """
    if not train:
        raise ValueError("no train labels")
    label = commonest(train)
    return np.array(
        [1.0 if one.answer == label else 0.0 if label in one.options else 1.0 / len(one.options) for one in questions]
    )


def majority_test(questions: Sequence[Question]) -> float:
    """Return the largest share of one label among the answers: an upper bound, known only with the answers."""
    counts = Counter(one.answer for one in questions)
    return counts[commonest(counts)] / len(questions)


def prior_scores(questions: Sequence[Question], train: Mapping[str, int]) -> Array:
    """Return the score of answering the offered option most frequent in train, ties by the alphabet.

    Where no option occurs in train it is a guess, 1/k. Raises ValueError without train labels.
    """
    if not train:
        raise ValueError("no train labels")
    scores = []
    for one in questions:
        offered = {option: train[option] for option in one.options if train.get(option)}
        scores.append(float(commonest(offered) == one.answer) if offered else 1.0 / len(one.options))
    return np.array(scores)


def letter_scores(questions: Sequence[Question], place: int) -> Array:
    """Return the score of always answering the option at a place; 0 where there are fewer options."""
    return np.array([float(place < len(one.options) and one.options[place] == one.answer) for one in questions])


def best_letter(questions: Sequence[Question]) -> int:
    """Return the place at which the answer stands most often, the first of several."""
    places = Counter(one.options.index(one.answer) for one in questions)
    return min(places, key=lambda place: (-places[place], place))


def letter_of(place: int) -> str:
    """Return the letter of a place.

    >>> letter_of(0), letter_of(27)
    ('A', '28')
    """
    return chr(ord("A") + place) if place < 26 else str(place + 1)


def chance_corrected(accuracy: float, chance: float) -> float:
    """Return (accuracy - chance) / (1 - chance): 0 for guessing, 1 for perfect; nan where chance is 1.

    >>> chance_corrected(0.625, 0.25), chance_corrected(0.25, 0.25)
    (0.5, 0.0)
    """
    return (accuracy - chance) / (1 - chance) if chance < 1 else math.nan


def weighted(parts: Iterable[tuple[int, float]]) -> float:
    """Return the mean of values weighted by their n.

    >>> round(weighted([(2160, 0.85), (1799, 0.67), (7373, 0.48)]), 3)
    0.581
    """
    pairs = list(parts)
    return math.fsum(n * value for n, value in pairs) / sum(n for n, _ in pairs)
