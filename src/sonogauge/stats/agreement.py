"""How well raters agree: percent, Cohen's kappa, Gwet's AC1, Krippendorff's alpha, with prevalence and intervals.

Ratings are a matrix (units, raters) of category numbers, -1 = not rated. Each coefficient is a function of sums over
units, so its interval resamples groups of units (patients) like every other interval here. No coefficient is read
alone: where one category is frequent, kappa is low however well the raters agree, so percent, AC1 and the prevalence
stand beside it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sonogauge._errors import BadInput
from sonogauge.metrics.base import Array, Metric, complex_step, safe_ratio
from sonogauge.metrics.sums import GroupSums
from sonogauge.stats.intervals import Estimate, estimate
from sonogauge.stats.resample import Resampler

Weights = Literal["none", "linear", "quadratic"]
Level = Literal["nominal", "interval"]
Ratings = NDArray[np.int64]

COEFFICIENTS: Final = ("percent", "kappa", "ac1", "alpha")
_SOURCES: Final = {
    "percent": "share of rater pairs that agree, mean over units",
    "kappa": "Cohen 1960, doi:10.1177/001316446002000104; over two raters the mean of pairs, Light 1971",
    "ac1": "Gwet 2008, doi:10.1348/000711006X126600",
    "alpha": "Krippendorff 2004, Content Analysis, chapter 11; Hayes & Krippendorff 2007",
}
_UNDEFINED: Final = "not defined: all ratings are of one category"
_NOBODY: Final = "no unit was rated twice"


def disagreement_weights(categories: int, weights: Weights) -> Array:
    """Return how far apart categories are, (k, k), 0 on the diagonal, at most 1.

    >>> disagreement_weights(3, "quadratic")[0].tolist()
    [0.0, 0.25, 1.0]
    """
    places = np.arange(categories, dtype=np.float64)
    apart = np.abs(places[:, None] - places[None, :])
    if weights == "none":
        return (apart > 0).astype(np.float64)
    result: Array = (apart / max(categories - 1, 1)) ** (1 if weights == "linear" else 2)
    return result


def kappa_of_table(table: ArrayLike, weights: Weights = "none") -> float | None:
    """Return Cohen's kappa of a table of two raters (k, k); None where it is not defined.

    kappa = 1 - sum(w O) / sum(w E), E from the margins. Source: Cohen 1968, doi:10.1037/h0026256.

    >>> example = [[20, 5, 0], [5, 10, 5], [0, 5, 50]]
    >>> round(kappa_of_table(example, "quadratic"), 3), round(kappa_of_table(example, "linear"), 3)
    (0.859, 0.77)
    """
    counts = np.asarray(table, dtype=np.float64)
    value = float(_kappa(counts.reshape(1, -1), 1, len(counts), disagreement_weights(len(counts), weights))[0])
    return None if np.isnan(value) else value


def _kappa(sums: Any, pairs: int, categories: int, weights: Array) -> Any:
    tables = np.reshape(sums, (*np.shape(sums)[:-1], pairs, categories, categories))
    count = tables.sum(axis=(-2, -1))
    rows, columns = tables.sum(axis=-1), tables.sum(axis=-2)
    chance = ((rows @ weights) * columns).sum(axis=-1)
    observed = (tables * weights).sum(axis=(-2, -1))
    return (1.0 - safe_ratio(count * observed, chance)).mean(axis=-1)


def _percent(sums: Any) -> Any:
    return safe_ratio(sums[..., 0], sums[..., 1])


def _ac1(sums: Any) -> Any:
    share = safe_ratio(sums[..., 2:-1], sums[..., -1:])
    categories = share.shape[-1]
    chance = (share * (1.0 - share)).sum(axis=-1) / (categories - 1)
    return safe_ratio(safe_ratio(sums[..., 0], sums[..., 1]) - chance, 1.0 - chance)


def _alpha(sums: Any, categories: int, apart: Array) -> Any:
    pairs = np.reshape(sums, (*np.shape(sums)[:-1], categories, categories))
    margins = pairs.sum(axis=-1)
    count = margins.sum(axis=-1)
    expected = ((margins @ apart) * margins).sum(axis=-1)
    return 1.0 - safe_ratio((count - 1.0) * (pairs * apart).sum(axis=(-2, -1)), expected)


@dataclass(frozen=True)
class Agreement:
    """Agreement of one role on one question.

    estimates: by name of COEFFICIENTS. prevalence: share of all ratings by category. units: rated at least twice.
    weights, level: of kappa and alpha.
    """

    estimates: Mapping[str, Estimate]
    prevalence: Mapping[str, float]
    units: int
    raters: int
    weights: Weights
    level: Level

    def signature(self, name: str) -> str:
        """Return what a coefficient must never be parted from."""
        choice = {"kappa": f"|weights:{self.weights}", "alpha": f"|level:{self.level}"}.get(name, "")
        averaged = "|mean of pairs" if name == "kappa" and self.raters > 2 else ""
        return f"{name}{choice}{averaged}|units:{self.units}|raters:{self.raters}"


def agreement(
    ratings: ArrayLike,
    categories: Sequence[str],
    *,
    groups: Sequence[str] | None = None,
    weights: Weights = "none",
    level: Level = "nominal",
    draws: int = 2000,
    seed: int = 0,
) -> Agreement:
    """Return all coefficients with 95 % intervals.

    Args:
        ratings: (units, raters), the number of a category or -1.
        categories: at least two, in their order if `weights` or `level` use it.
        groups: unit of resampling of each row (patient); by default each row is its own.
        weights: of kappa.
        level: of alpha; "interval" takes the category numbers as values.
        draws: of the bootstrap.
        seed: of the draws.

    Raises:
        ValueError: fewer than two categories, a number that is no category, or groups of another length.
    """
    matrix: Ratings = np.asarray(ratings, dtype=np.int64)
    size = len(categories)
    if matrix.ndim != 2 or size < 2:
        raise ValueError(f"ratings of shape {matrix.shape} over {size} categories")
    if matrix.size and (matrix.max() >= size or matrix.min() < -1):
        raise ValueError(f"a rating is not one of the {size} categories")
    units = [f"{row:09d}" for row in range(len(matrix))] if groups is None else list(groups)
    if len(units) != len(matrix):
        raise ValueError(f"{len(units)} groups for {len(matrix)} units")
    places = np.flatnonzero((matrix >= 0).any(axis=1))
    matrix = matrix[places]
    units = [units[place] for place in places]
    counts = np.stack([(matrix == one).sum(axis=1) for one in range(size)], axis=1).astype(np.float64)
    counts = counts.reshape(len(matrix), size)
    total = counts.sum()
    estimates = {
        name: _estimate(name, rows, function, units, draws, seed)
        for name, rows, function in _statistics(matrix, counts, weights, level)
    }
    return Agreement(
        estimates=estimates,
        prevalence={
            name: float(share) for name, share in zip(categories, counts.sum(axis=0) / max(total, 1.0), strict=True)
        },
        units=int((counts.sum(axis=1) >= 2).sum()),
        raters=int((matrix >= 0).any(axis=0).sum()) if len(matrix) else 0,
        weights=weights,
        level=level,
    )


def _statistics(
    matrix: Ratings, counts: Array, weights: Weights, level: Level
) -> list[tuple[str, Array, Callable[[Any], Any]]]:
    size = counts.shape[1]
    rated = counts.sum(axis=1)
    twice = rated >= 2
    agreeing = (counts * (counts - 1)).sum(axis=1) / np.where(twice, rated * (rated - 1), 1.0)
    percent = np.stack([agreeing, twice.astype(np.float64)], axis=1)
    shares = counts / np.where(rated > 0, rated, 1.0)[:, None]
    ac1 = np.concatenate([percent, shares, (rated > 0).astype(np.float64)[:, None]], axis=1)
    # Pairs of different raters of one unit, each weighted by 1/(ratings - 1).
    coincidences = counts[:, :, None] * counts[:, None, :]
    coincidences[:, np.arange(size), np.arange(size)] -= counts
    coincidences /= np.where(twice, rated - 1, 1.0)[:, None, None]
    coincidences[~twice] = 0.0
    pairs = [
        (a, b) for a, b in combinations(range(matrix.shape[1]), 2) if ((matrix[:, a] >= 0) & (matrix[:, b] >= 0)).any()
    ]
    tables = np.zeros((len(matrix), len(pairs), size, size))
    for place, (a, b) in enumerate(pairs):
        both = np.flatnonzero((matrix[:, a] >= 0) & (matrix[:, b] >= 0))
        tables[both, place, matrix[both, a], matrix[both, b]] = 1.0
    # Not -1: of no unit at all the other side cannot be told.
    flat = tables.reshape(len(matrix), len(pairs) * size**2)
    apart = disagreement_weights(size, weights)
    distance = disagreement_weights(size, "none" if level == "nominal" else "quadratic")
    return [
        ("percent", percent, _percent),
        ("kappa", flat, lambda sums: _kappa(sums, len(pairs), size, apart)),
        ("ac1", ac1, _ac1),
        ("alpha", coincidences.reshape(len(matrix), size**2), lambda sums: _alpha(sums, size, distance)),
    ]


def _estimate(
    name: str, rows: Array, function: Callable[[Any], Any], units: Sequence[str], draws: int, seed: int
) -> Estimate:
    if not rows.size or not rows.any():
        return Estimate(None, None, None, len(set(units)), 0.0, False, _NOBODY)
    metric = Metric(
        name=name,
        statistic=name,
        direction="up",
        identity=1.0,
        unit="fraction" if name == "percent" else "agreement",
        kind="sum",
        interval="proportion" if name == "percent" else "standard_error",
        function=lambda sums: np.asarray(function(np.asarray(sums, dtype=np.float64))),
        gradient=complex_step(function),
        source=_SOURCES[name],
        undefined=_UNDEFINED,
    )
    value = float(metric.function(rows.sum(axis=0)))
    if np.isnan(value):
        return Estimate(None, None, None, len(set(units)), 0.0, False, _UNDEFINED)
    sums = GroupSums.from_items(["units"] * len(units), units, rows)
    found = estimate(metric, sums, Resampler.for_sums(sums, draws=draws, seed=seed))
    return found if name == "percent" else found.within(-1.0, 1.0)


@dataclass(frozen=True)
class RoleAgreement:
    """Agreement within one role on one question; roles and questions are never pooled."""

    role: str
    question: str
    agreement: Agreement


def votes_agreement(
    votes: Iterable[Mapping[str, Any]],
    *,
    groups: Mapping[str, str] | None = None,
    draws: int = 2000,
    seed: int = 0,
) -> list[RoleAgreement]:
    """Return the agreement of every (role, question) of a table of votes (`tables.VOTES`), sorted.

    groups: unit of resampling of an item; by default the item. A missing vote is no vote.

    Raises:
        BadInput: a reviewer who votes twice on one item, role and question, or a role or question without a name.
    """
    found: dict[tuple[str, str], dict[tuple[str, str], str]] = {}
    for row in votes:
        role, question = row.get("role") or "", row.get("question") or ""
        if not role or not question:
            raise BadInput(f"the vote of {row['reviewer']} on {row['item_id']} has no role or question", field="role")
        if row.get("vote") is None:
            continue
        cell = found.setdefault((role, question), {})
        key = (row["item_id"], row["reviewer"])
        if key in cell:
            raise BadInput(
                f"{row['reviewer']} voted twice on {row['item_id']} as {role} on '{question}'",
                field="reviewer",
                fix="keep one vote for each reviewer, item, role and question",
            )
        cell[key] = row["vote"]
    return [
        RoleAgreement(role, question, _votes_of(cell, groups or {}, draws, seed))
        for (role, question), cell in sorted(found.items())
    ]


def _votes_of(cell: Mapping[tuple[str, str], str], groups: Mapping[str, str], draws: int, seed: int) -> Agreement:
    items = sorted({item for item, _ in cell})
    reviewers = sorted({reviewer for _, reviewer in cell})
    words = sorted(Counter(cell.values()))
    # One word alone is still a question with another answer that nobody gave.
    categories = words if len(words) > 1 else [*words, "(other)"]
    matrix = np.full((len(items), len(reviewers)), -1, dtype=np.int64)
    rows, columns = ({one: place for place, one in enumerate(names)} for names in (items, reviewers))
    for (item, reviewer), vote in cell.items():
        matrix[rows[item], columns[reviewer]] = words.index(vote)
    return agreement(matrix, categories, groups=[groups.get(item, item) for item in items], draws=draws, seed=seed)
