"""Metrics of texts: corpus BLEU-4 as sums of n-gram counts, ROUGE-L as a mean of scores."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import chain, count

import numpy as np
from numpy.typing import NDArray

from sonogauge.metrics.base import Array, metric, ratio

ORDERS = 4
# Small corpora sort faster: blocks of this many pairs keep the n-gram keys in the processor's cache.
_BLOCK = 256
# The two constants of pycocoevalcap's BleuScorer.
_TINY, _SMALL = 1e-15, 1e-9


def bleu_statistics(references: Sequence[Sequence[str]], hypotheses: Sequence[str]) -> Array:
    """Count n-gram matches per pair, the statistic "bleu", shape (n, 10).

    Columns: clipped matches of 1- to 4-grams, n-grams of the hypothesis, its length, the closest reference length
    (of two equally close ones the shorter). Tokens are split at whitespace; case and punctuation are kept.
    Raises ValueError unless every hypothesis has at least one reference.
    Source: pycocoevalcap `BleuScorer`, option "closest".

    >>> bleu_statistics([["a b c"]], ["a b d"])
    array([[2., 1., 0., 0., 3., 2., 1., 0., 3., 3.]])
    """
    if len(references) != len(hypotheses):
        raise ValueError(f"{len(references)} reference lists for {len(hypotheses)} hypotheses")
    result = np.zeros((len(hypotheses), 2 * ORDERS + 2))
    for start in range(0, len(hypotheses), _BLOCK):
        stop = start + _BLOCK
        result[start:stop] = _block_statistics(references[start:stop], hypotheses[start:stop])
    return result


def _block_statistics(references: Sequence[Sequence[str]], hypotheses: Sequence[str]) -> Array:
    pairs = len(hypotheses)
    texts: list[list[str]] = [text.split() for text in hypotheses]
    owners, versions = list(range(pairs)), [0] * pairs  # version 0 is the hypothesis, 1, 2, … its references
    for pair, several in enumerate(references):
        if not several:
            raise ValueError(f"pair {pair + 1} of the block has no reference")
        for version, text in enumerate(several, start=1):
            texts.append(text.split())
            owners.append(pair)
            versions.append(version)
    vocabulary: defaultdict[str, int] = defaultdict(count().__next__)
    tokens: NDArray[np.int64] = np.fromiter(map(vocabulary.__getitem__, chain.from_iterable(texts)), dtype=np.int64)
    lengths: NDArray[np.int64] = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
    owner = np.repeat(np.array(owners), lengths)
    version_of = np.repeat(np.array(versions), lengths)
    left = np.repeat(np.cumsum(lengths), lengths) - np.arange(len(tokens))  # tokens from here to the text's end

    result = np.zeros((pairs, 2 * ORDERS + 2))
    hypothesis_lengths = lengths[:pairs]
    result[:, 2 * ORDERS] = hypothesis_lengths
    result[:, 2 * ORDERS + 1] = _closest(hypothesis_lengths, lengths[pairs:], np.array(owners[pairs:], dtype=np.int64))
    key = owner  # identifies (pair, n-gram that starts here)
    positions = np.arange(len(tokens))
    result[:, ORDERS : 2 * ORDERS] = np.maximum(hypothesis_lengths[:, None] - np.arange(ORDERS), 0)
    for order in range(1, ORDERS + 1):
        room = left[positions] >= order
        positions, key = positions[room], key[room]
        if not len(positions):
            break
        raw = key * len(vocabulary) + tokens[positions + order - 1]
        _, first, key = np.unique(raw, return_index=True, return_inverse=True)
        grams = len(first)
        version_here = version_of[positions]
        offered = np.bincount(key[version_here == 0], minlength=grams)
        allowed = np.zeros(grams, dtype=np.int64)
        for version in range(1, max(versions) + 1):
            np.maximum(allowed, np.bincount(key[version_here == version], minlength=grams), out=allowed)
        matches = np.minimum(offered, allowed)
        result[:, order - 1] = np.bincount(owner[positions[first]], weights=matches, minlength=pairs)
        # A longer n-gram can match only where this one does.
        shared = matches[key] > 0
        positions, key = positions[shared], key[shared]
    return result


def _closest(
    hypothesis: NDArray[np.int64], reference: NDArray[np.int64], owner: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return, per pair, the reference length closest to the hypothesis; of two the shorter."""
    order = np.lexsort((reference, np.abs(reference - hypothesis[owner]), owner))
    starts = np.flatnonzero(np.r_[True, np.diff(owner[order]) != 0])
    return np.asarray(reference[order[starts]])


def _bleu_parts(sums: Array) -> tuple[Array, Array, Array, Array]:
    sums = np.asarray(sums, dtype=np.float64)
    matches = sums[..., :ORDERS] + _TINY
    possible = sums[..., ORDERS : 2 * ORDERS] + _SMALL
    return matches, possible, sums[..., 2 * ORDERS] + _TINY, sums[..., 2 * ORDERS + 1] + _SMALL


def _bleu_gradient(sums: Array) -> Array:
    matches, possible, hypothesis, reference = _bleu_parts(sums)
    value = bleu4(sums)
    short = hypothesis < reference
    gradient = np.empty(np.shape(sums))
    gradient[..., :ORDERS] = value[..., None] / (ORDERS * matches)
    gradient[..., ORDERS : 2 * ORDERS] = -value[..., None] / (ORDERS * possible)
    gradient[..., 2 * ORDERS] = np.where(short, value * reference / (hypothesis * hypothesis), 0.0)
    gradient[..., 2 * ORDERS + 1] = np.where(short, -value / hypothesis, 0.0)
    return gradient


@metric(
    "bleu4",
    statistic="bleu",
    direction="up",
    identity=1.0,
    interval="studentised",
    gradient=_bleu_gradient,
    source="Papineni et al. 2002, as pycocoevalcap computes it; u2-bench specification, section 5.3",
)
def bleu4(sums: Array) -> Array:
    """Corpus BLEU-4, a fraction.

    sums: (..., 10) as `bleu_statistics`. p_n = (m_n + 1e-15)/(g_n + 1e-9); geometric mean of the four; a brevity
    penalty exp(1 - 1/ratio) when ratio = (hypothesis length + 1e-15)/(reference length + 1e-9) is below 1.

    >>> round(float(bleu4(bleu_statistics([["the liver is normal in size"]], ["the liver is normal"]).sum(axis=0))), 4)
    0.6065
    """
    matches, possible, hypothesis, reference = _bleu_parts(sums)
    mean: Array = np.exp((np.log(matches) - np.log(possible)).mean(axis=-1))
    penalty: Array = np.exp(np.minimum(0.0, 1.0 - reference / hypothesis))
    result: Array = mean * penalty
    return result


def rouge_l_scores(references: Sequence[Sequence[str]], hypotheses: Sequence[str], beta: float = 1.2) -> Array:
    """Score each pair by ROUGE-L, shape (n,), fractions.

    P = LCS / hypothesis tokens, R = LCS / reference tokens, F = (1 + beta²) P R / (R + beta² P); with several
    references the largest P and the largest R, as pycocoevalcap does. Tokens are split at single spaces, so an empty
    text has one empty token. Raises ValueError unless every hypothesis has at least one reference.

    >>> rouge_l_scores([["a b c d"]], ["a c"]).round(4)
    array([0.6289])
    """
    from rapidfuzz import process
    from rapidfuzz.distance import LCSseq

    if len(references) != len(hypotheses):
        raise ValueError(f"{len(references)} reference lists for {len(hypotheses)} hypotheses")
    if not hypotheses:
        return np.zeros(0)
    several: NDArray[np.int64] = np.array([len(texts) for texts in references], dtype=np.int64)
    if (several == 0).any():
        raise ValueError(f"pair {int(np.argmin(several)) + 1} has no reference")
    vocabulary: defaultdict[str, int] = defaultdict(count().__next__)
    tokens_of = vocabulary.__getitem__
    ours = [list(map(tokens_of, text.split(" "))) for text in hypotheses]
    theirs = [list(map(tokens_of, text.split(" "))) for texts in references for text in texts]
    owner = np.repeat(np.arange(len(ours)), several)
    lcs = process.cpdist(
        [ours[pair] for pair in owner], theirs, scorer=LCSseq.similarity, dtype=np.int64, workers=1
    ).astype(np.float64)
    starts = np.r_[0, np.cumsum(several)[:-1]]
    precision = np.maximum.reduceat(lcs / np.array([len(ours[pair]) for pair in owner]), starts)
    recall = np.maximum.reduceat(lcs / np.array([len(text) for text in theirs]), starts)
    return ratio((1 + beta**2) * precision * recall, recall + beta**2 * precision, empty=0.0)


def _mean_gradient(sums: Array) -> Array:
    total, items = sums[..., 0], sums[..., 1]
    return np.stack([ratio(np.ones_like(items), items), -ratio(total, items * items)], axis=-1)


@metric(
    "rouge_l",
    statistic="rouge_l",
    direction="up",
    identity=1.0,
    interval="studentised",
    gradient=_mean_gradient,
    source="Lin 2004, as pycocoevalcap computes it with beta 1.2; u2-bench specification, section 5.3",
)
def rouge_l(sums: Array) -> Array:
    """Mean ROUGE-L over items, a fraction; sums: (..., 2) = [sum of scores, n]; NaN without items.

    >>> float(rouge_l(np.array([1.5, 2.0])))
    0.75
    """
    sums = np.asarray(sums, dtype=np.float64)
    return ratio(sums[..., 0], sums[..., 1])


@metric(
    "rouge_l_beta1",
    statistic="rouge_l_beta1",
    direction="up",
    identity=1.0,
    interval="studentised",
    gradient=_mean_gradient,
    source="Lin 2004, with beta 1: the harmonic mean of precision and recall",
    facts="beta:1",
)
def rouge_l_beta1(sums: Array) -> Array:
    """Mean ROUGE-L with beta 1 over items, a fraction; sums: (..., 2) = [sum of scores, n]; NaN without items.

    >>> float(rouge_l_beta1(np.array([1.5, 2.0])))
    0.75
    """
    sums = np.asarray(sums, dtype=np.float64)
    return ratio(sums[..., 0], sums[..., 1])
