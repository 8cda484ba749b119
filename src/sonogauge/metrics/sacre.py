"""BLEU as sacreBLEU computes it, beside the form of pycocoevalcap: declared tokenizer, its smoothing, one number."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from sonogauge.metrics.base import Array, metric, ratio
from sonogauge.metrics.text import ORDERS, bleu_statistics


@lru_cache(maxsize=1)
def _tokenizer() -> Any:
    from sacrebleu.tokenizers import tokenizer_13a

    make: Any = tokenizer_13a.Tokenizer13a
    return make()


def sacre_statistics(references: Sequence[Sequence[str]], hypotheses: Sequence[str]) -> Array:
    """Count n-gram matches per pair after the 13a tokenizer, the statistic "bleu_sacre", shape (n, 10).

    Columns as `text.bleu_statistics`; case is kept.

    >>> sacre_statistics([["A cyst, 3 mm."]], ["A cyst."])
    array([[3., 1., 0., 0., 3., 2., 1., 0., 3., 6.]])
    """
    tokenize = _tokenizer()
    return bleu_statistics(
        [[tokenize(text.rstrip()) for text in several] for several in references],
        [tokenize(text.rstrip()) for text in hypotheses],
    )


def _smoothed(sums: Array) -> tuple[Array, Array, Array, Array]:
    """Return matches after exponential smoothing, which of them are smoothed, n-grams offered, and where all is 0."""
    matches, possible = sums[..., :ORDERS], sums[..., ORDERS : 2 * ORDERS]
    empty = matches == 0
    halvings = np.cumsum(empty, axis=-1)
    nothing = (matches.sum(axis=-1) == 0) | (possible == 0).any(axis=-1)
    return np.where(empty, 0.5**halvings, matches), empty, np.where(possible == 0, 1.0, possible), nothing


def _gradient(sums: Array) -> Array:
    sums = np.asarray(sums, dtype=np.float64)
    matches, empty, possible, _ = _smoothed(sums)
    value = bleu_sacre(sums)
    hypothesis, reference = sums[..., 2 * ORDERS], sums[..., 2 * ORDERS + 1]
    short = hypothesis < reference
    gradient = np.zeros(sums.shape)
    gradient[..., :ORDERS] = np.where(empty, 0.0, value[..., None] / (ORDERS * matches))
    gradient[..., ORDERS : 2 * ORDERS] = -value[..., None] / (ORDERS * possible)
    gradient[..., 2 * ORDERS] = np.where(short, ratio(value * reference, hypothesis * hypothesis, empty=0.0), 0.0)
    gradient[..., 2 * ORDERS + 1] = np.where(short, -ratio(value, hypothesis, empty=0.0), 0.0)
    return gradient


@metric(
    "bleu_sacre",
    statistic="bleu_sacre",
    direction="up",
    identity=1.0,
    interval="studentised",
    gradient=_gradient,
    source="Post 2018, arXiv:1804.08771, sacreBLEU corpus_score",
    facts="tok:13a,case:mixed,smooth:exp",
)
def bleu_sacre(sums: Array) -> Array:
    """Corpus BLEU-4 as sacreBLEU computes it, a fraction: tokenizer 13a, case kept, exponential smoothing.

    sums: (..., 10) as `sacre_statistics`. Without any match, or without any 4-gram in the hypotheses, 0.

    >>> both = sacre_statistics([["The liver is normal in size."]], ["The liver is normal."]).sum(axis=0)
    >>> round(float(bleu_sacre(both)), 4)
    0.474
    """
    sums = np.asarray(sums, dtype=np.float64)
    matches, _, possible, nothing = _smoothed(sums)
    mean = np.exp((np.log(matches) - np.log(possible)).mean(axis=-1))
    hypothesis, reference = sums[..., 2 * ORDERS], sums[..., 2 * ORDERS + 1]
    shortage = 1.0 - ratio(reference, hypothesis, empty=1.0)
    penalty = np.exp(np.minimum(0.0, shortage))
    return np.where(nothing, 0.0, mean * penalty)
