"""Metrics of ranked differentials: is a first-ranked reference named first, among three, how early, in which order.

Statistic `ranked` of an item: [top 1, top 3, reciprocal rank, nDCG, 1]. Several references may share rank 1; any of
them counts as right. A failure scores 0 throughout.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import numpy as np

from sonogauge.metrics.base import Array
from sonogauge.metrics.masks import mean_metric

CUTOFF: Final = 3
TOP_1, TOP_3, RECIPROCAL, NDCG, COUNT = range(5)
_SOURCE: Final = "MRR: Voorhees 1999, TREC-8 QA track; nDCG: Järvelin & Kekäläinen 2002, doi:10.1145/582415.582418"


def reciprocal_rank(ranked: Sequence[str], first: Collection[str]) -> float:
    """Return 1/position of the first reference that is named, 0 if none is.

    >>> reciprocal_rank(["x", "y"], {"y"})
    0.5
    """
    return next((1.0 / place for place, name in enumerate(ranked, start=1) if name in first), 0.0)


def ndcg_of(ranked: Sequence[str], weights: Mapping[str, float], cutoff: int = CUTOFF) -> float:
    """Return the normalised discounted cumulative gain at a cutoff; gains are the fused weights, linear.

    DCG = sum of w(i) / log2(i + 1) over the first `cutoff` places; divided by that of the best order. A name that is
    given twice gains once. Source: Järvelin & Kekäläinen 2002, doi:10.1145/582415.582418.

    >>> round(ndcg_of(["x", "y"], {"y": 1.5, "x": 1.0, "w": 0.5}), 4)
    0.8175
    """
    given = list(dict.fromkeys(ranked))
    gain = _dcg([weights.get(name, 0.0) for name in given[:cutoff]])
    best = _dcg(sorted(weights.values(), reverse=True)[:cutoff])
    return gain / best if best > 0 else 0.0


def _dcg(gains: Sequence[float]) -> float:
    return sum(gain / math.log2(place + 1) for place, gain in enumerate(gains, start=1))


def ranking_values(
    ranked: Sequence[str], first: Collection[str], weights: Mapping[str, float], cutoff: int = CUTOFF
) -> dict[str, float]:
    """Return the four values of one item.

    ranked: names given, best first. first: references at rank 1. weights: fused weight of every reference.

    >>> ranking_values(["x", "y"], {"y"}, {"y": 1.5, "x": 1.0})["top_3"]
    1.0
    """
    return {
        "top_1": float(bool(ranked) and ranked[0] in first),
        "top_3": float(any(name in first for name in ranked[:3])),
        "reciprocal_rank": reciprocal_rank(ranked, first),
        "ndcg": ndcg_of(ranked, weights, cutoff),
    }


def expected_top_1(options: int, first: int) -> float:
    """Return the chance that a random order of the options begins with a reference at rank 1.

    >>> expected_top_1(5, 2)
    0.4
    """
    if not 1 <= first <= options:
        raise ValueError(f"{first} first references of {options} options")
    return first / options


def ranked_statistics(values: Sequence[Mapping[str, float]]) -> Array:
    """Turn the values of items into the statistic "ranked" (n, 5).

    >>> ranked_statistics([{"top_1": 0, "top_3": 1, "reciprocal_rank": 0.5, "ndcg": 0.8}]).tolist()
    [[0.0, 1.0, 0.5, 0.8, 1.0]]
    """
    rows = [[one["top_1"], one["top_3"], one["reciprocal_rank"], one["ndcg"], 1.0] for one in values]
    return np.array(rows, dtype=np.float64).reshape(-1, 5)


def _mean(name: str, column: int, says: str, **facts: Any) -> Any:
    return mean_metric(name, says, statistic="ranked", column=column, source=_SOURCE, **facts)


top_1 = _mean("top_1", TOP_1, "Share of items whose first name is a reference at rank 1.", interval="proportion")
top_3 = _mean("top_3", TOP_3, "Share of items with a reference at rank 1 among three names.", interval="proportion")
mrr = _mean("mrr", RECIPROCAL, "Mean reciprocal rank of the first reference at rank 1.")
ndcg = _mean("ndcg", NDCG, "Mean nDCG with the fused weights as gains.", facts=f"cutoff:{CUTOFF},gains:fused weights")
