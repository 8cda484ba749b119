"""Intervals against naive resampling loops from items under the same weights, textbook formulas and edges."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq

from sonogauge.metrics import load_metric
from sonogauge.metrics.choice import confusion_statistics, hit_statistics
from sonogauge.metrics.numbers import scaled_error_statistics
from sonogauge.metrics.sums import GroupSums
from sonogauge.metrics.text import bleu_statistics
from sonogauge.stats.intervals import (
    NO_VARIATION,
    combine,
    difference,
    estimate,
    estimate_order,
)
from sonogauge.stats.resample import Resampler

pytestmark = pytest.mark.part("intervals")


DRAWS = 300


class Sample:
    """Items of two strata, 25 and 8 patients, one to many items each, and every statistic of them."""

    def __init__(
        self, seed: int, strata: tuple[tuple[str, int], ...] = (("a", 25), ("b", 8)), items: int = 150
    ) -> None:
        rng = np.random.default_rng(seed)
        pairs = [(stratum, f"p{index}") for stratum, count in strata for index in range(count)]
        chosen = [*range(len(pairs)), *rng.integers(len(pairs), size=items - len(pairs))]
        self.strata = [pairs[index][0] for index in chosen]
        self.groups = [pairs[index][1] for index in chosen]
        self.effect = rng.normal(size=len(pairs))[chosen]
        reference = rng.integers(3, size=items)
        right = rng.random(items) < 1 / (1 + np.exp(-self.effect))
        prediction = np.where(right, reference, rng.integers(-1, 3, size=items))
        words = np.array(["liver", "normal", "stone", "no", "seen"])
        texts = [" ".join(rng.choice(words, size=9)) for _ in range(items)]
        replies = [text if hit else " ".join(rng.choice(words, size=7)) for text, hit in zip(texts, right, strict=True)]
        errors = rng.normal(0.1 * self.effect, 0.1)
        self.statistics = {
            "hits": hit_statistics(right),
            "confusion": confusion_statistics(reference, prediction, [0, 1, 2]),
            "scaled_errors": scaled_error_statistics(errors, 0.1),
            "bleu": bleu_statistics([[text] for text in texts], replies),
            "rouge_l": hit_statistics(rng.random(items)),
        }
        self.resampler = Resampler.for_sums(self.sums("hits"), draws=DRAWS)

    def sums(self, statistic: str) -> GroupSums:
        return GroupSums.from_items(self.strata, self.groups, self.statistics[statistic])

    def draw_weights(self, draw: int) -> np.ndarray:
        """The weight of each item in one draw, looked up one by one."""
        tables = {stratum: self.resampler.weights(stratum)[draw] for stratum in self.resampler.strata}
        return np.array(
            [
                tables[stratum][self.resampler.groups(stratum).index(group)]
                for stratum, group in zip(self.strata, self.groups, strict=True)
            ]
        )


def naive_draws(sample: Sample, name: str) -> tuple[list[float], list[float], float]:
    """Values and standard errors of all draws and of the sample itself, recomputed from the items in plain loops."""
    metric = load_metric(name)
    items = sample.statistics[metric.statistic]
    members: dict[str, dict[str, list[int]]] = {}
    for index, (stratum, group) in enumerate(zip(sample.strata, sample.groups, strict=True)):
        members.setdefault(stratum, {}).setdefault(group, []).append(index)
    assert metric.gradient is not None

    def error(total: np.ndarray, weight_of: Any, drawn: bool) -> float:
        slope = metric.gradient(total)  # type: ignore[misc]
        variance = 0.0
        for stratum, groups in members.items():
            count = len(groups)
            times = {group: weight_of(stratum, group) * ((count - 1) / count if drawn else 1.0) for group in groups}
            influence = {
                group: float(sum((slope * items[index]).sum() for index in rows)) for group, rows in groups.items()
            }
            size = sum(times.values())
            mean = sum(times[group] * influence[group] for group in groups) / size
            # In a draw each unit stands for count/(count - 1) of itself.
            stretch = (count / (count - 1)) ** 2 if drawn else 1.0
            squares = sum(times[group] * (influence[group] - mean) ** 2 for group in groups)
            variance += stretch * size / (size - 1) * squares
        return math.sqrt(variance)

    values, errors = [], []
    for draw in range(DRAWS):
        weights = sample.draw_weights(draw)
        total = sum(weight * row for weight, row in zip(weights, items, strict=True))
        lookup = dict(zip(zip(sample.strata, sample.groups, strict=True), weights, strict=True))
        values.append(float(metric.function(total)))
        errors.append(error(np.asarray(total), lambda stratum, group, table=lookup: table[stratum, group], True))
    return values, errors, error(items.sum(axis=0), lambda stratum, group: 1.0, False)


def leaving_out(sample: Sample, name: str) -> tuple[float, float]:
    """Standard error by leaving out each group, the rest of its stratum standing in; degrees of freedom after Kish."""
    metric = load_metric(name)
    items = sample.statistics[metric.statistic]
    total = items.sum(axis=0)
    value = float(metric.function(total))
    slope = metric.gradient(total)  # type: ignore[misc]
    variance, df = 0.0, 0.0
    for stratum in sorted(set(sample.strata)):
        mine = [index for index, own in enumerate(sample.strata) if own == stratum]
        names = sorted({sample.groups[index] for index in mine})
        sizes = []
        for left in names:
            weights = np.ones(len(items))
            for index in mine:
                weights[index] = 0.0 if sample.groups[index] == left else len(names) / (len(names) - 1)
            changed = float(metric.function(np.tensordot(weights, items, axes=1)))
            variance += (len(names) - 1) / len(names) * (changed - value) ** 2
            own = sum(items[index] for index in mine if sample.groups[index] == left)
            sizes.append(sum(max(0.0, -float(term)) for term in np.ravel(own * slope)))
        df += sum(sizes) ** 2 / sum(size**2 for size in sizes) - 1
    return math.sqrt(variance), df


def quantiles(values: list[float]) -> tuple[float, float]:
    ordered = sorted(values)
    return ordered[math.ceil(0.025 * len(ordered)) - 1], ordered[math.ceil(0.975 * len(ordered)) - 1]


@pytest.fixture(scope="module")
def sample() -> Sample:
    return Sample(1)


@pytest.mark.parametrize(
    "name",
    ["rmse_scaled", "mae_scaled", "std_scaled", "bias_scaled", "macro_f1", "macro_precision", "bleu4", "rouge_l"],
)
def test_bootstrap_t_equals_a_naive_loop(sample: Sample, name: str) -> None:
    metric = load_metric(name)
    result = estimate(metric, sample.sums(metric.statistic), sample.resampler)
    values, errors, own = naive_draws(sample, name)
    value = float(metric.function(sample.statistics[metric.statistic].sum(axis=0)))
    deviation = math.sqrt(sum((draw - sum(values) / DRAWS) ** 2 for draw in values) / DRAWS)
    left_out, df = leaving_out(sample, name)
    half = stats.t.ppf(0.975, df) * deviation * left_out / own
    if metric.interval != "averaged":
        own = left_out
    if metric.interval == "log":
        ratios = [math.log(draw / value) / (error / draw) for draw, error in zip(values, errors, strict=True)]
        low_t, high_t = quantiles(ratios)
        low = value * math.exp(min(-high_t * own / value, -half / value))
        high = value * math.exp(max(-low_t * own / value, half / value))
    else:
        low_t, high_t = quantiles([(draw - value) / error for draw, error in zip(values, errors, strict=True)])
        low, high = value - high_t * own, value - low_t * own
        if metric.interval == "studentised":
            low, high = min(low, value - half), max(high, value + half)
    assert result.draws is not None
    assert result.draws == pytest.approx(np.array(values), abs=1e-12)
    assert (result.value, result.low, result.high) == pytest.approx((value, low, high), abs=1e-12)
    assert (result.groups, result.reliable) == (33, True)
    assert result.df == pytest.approx(df, abs=1e-9)
    assert df < 31


@pytest.mark.parametrize("name", ["macro_recall", "balanced_accuracy"])
def test_standard_error_interval_equals_a_naive_loop(sample: Sample, name: str) -> None:
    metric = load_metric(name)
    result = estimate(metric, sample.sums("confusion"), sample.resampler)
    values, _, own = naive_draws(sample, name)
    left_out, df = leaving_out(sample, name)
    half = stats.t.ppf(0.975, df) * np.std(values) * left_out / own
    assert (result.low, result.high) == pytest.approx((result.value - half, result.value + half), abs=1e-12)


@pytest.mark.parametrize("name", ["accuracy", "within_tolerance"])
def test_proportion_is_wilson_with_the_clustered_effective_n(sample: Sample, name: str) -> None:
    metric = load_metric(name)
    result = estimate(metric, sample.sums(metric.statistic), sample.resampler)
    values, _, _ = naive_draws(sample, name)
    own, df = leaving_out(sample, name)
    p = float(result.value)  # type: ignore[arg-type]
    n = min(150, p * (1 - p) / own**2)
    z = stats.t.ppf(0.975, df)

    def score(chance: float) -> float:  # Wilson's interval holds every chance that a score test does not reject
        return float((p - chance) ** 2 - z**2 * chance * (1 - chance) / n)

    low, high = brentq(score, 0.0, p, xtol=1e-15), brentq(score, p, 1.0, xtol=1e-15)
    assert (result.low, result.high) == pytest.approx((low, high), abs=1e-12)
    assert result.draws == pytest.approx(np.array(values), abs=1e-12)


def test_percentile_of_a_median_equals_a_naive_loop(sample: Sample) -> None:
    values = np.abs(sample.effect)
    metric = load_metric("median_error")
    result = estimate_order(metric, values, sample.strata, sample.groups, sample.resampler)
    draws = []
    for draw in range(DRAWS):
        weights = sample.draw_weights(draw)
        order = np.argsort(values)
        reached, half = 0.0, sum(weights) / 2
        picked: list[float] = []
        for index in order:
            if weights[index] > 0 and (reached + weights[index]) > half - 1e-9 and len(picked) < 2:
                picked.append(values[index])
                if reached + weights[index] > half + 1e-9:
                    break
            reached += weights[index]
        draws.append(sum(picked) / len(picked))
    assert result.draws == pytest.approx(np.array(draws), abs=1e-12)
    tail = stats.norm.cdf(-stats.t.ppf(0.975, 31))
    ordered = sorted(draws)
    assert result.low == pytest.approx(ordered[math.ceil(tail * DRAWS) - 1], abs=1e-12)
    assert result.high == pytest.approx(ordered[math.ceil((1 - tail) * DRAWS) - 1], abs=1e-12)
    assert result.value == np.median(values)


def test_combine_equals_a_naive_loop_with_welch_degrees_of_freedom() -> None:
    one, two = Sample(1), Sample(2, strata=(("c", 12), ("d", 5)), items=60)
    parts = [
        estimate(load_metric("accuracy"), one.sums("hits"), one.resampler),
        estimate(load_metric("rmse_scaled"), two.sums("scaled_errors"), two.resampler),
    ]

    def score(values: np.ndarray) -> np.ndarray:
        result: np.ndarray = 0.7 * values[..., 0] + 0.3 * (1 - values[..., 1]) ** 2
        return result

    result = combine(parts, score)
    first, _, first_own = naive_draws(one, "accuracy")
    second, _, second_own = naive_draws(two, "rmse_scaled")
    (first_error, first_df), (second_error, second_df) = leaving_out(one, "accuracy"), leaving_out(two, "rmse_scaled")
    draws = [0.7 * a + 0.3 * (1 - b) ** 2 for a, b in zip(first, second, strict=True)]
    slope = -0.6 * (1 - float(parts[1].value))  # type: ignore[arg-type]
    share = [(0.7 * np.std(first)) ** 2, (slope * np.std(second)) ** 2]
    df = sum(share) ** 2 / (share[0] ** 2 / first_df + share[1] ** 2 / second_df)
    larger = share[0] * (first_error / first_own) ** 2 + share[1] * (second_error / second_own) ** 2
    half = stats.t.ppf(0.975, df) * np.std(draws) * math.sqrt(larger / sum(share))
    value = 0.7 * float(parts[0].value) + 0.3 * (1 - float(parts[1].value)) ** 2  # type: ignore[arg-type]
    assert result.draws == pytest.approx(np.array(draws), abs=1e-12)
    assert result.df == pytest.approx(df, rel=1e-6)
    assert result.low == pytest.approx(value - half, abs=1e-9)
    assert result.high == pytest.approx(value + half, abs=1e-9)
    assert result.inflation > 1.0
    assert result.groups == 33 + 17


def test_difference_is_paired() -> None:
    sample = Sample(3)
    a = estimate(load_metric("accuracy"), sample.sums("hits"), sample.resampler)
    worse = sample.statistics["hits"].copy()
    worse[np.flatnonzero(worse[:, 0])[::9], 0] = 0.0
    sums = GroupSums.from_items(sample.strata, sample.groups, worse)
    b = estimate(load_metric("accuracy"), sums, sample.resampler)
    result = difference(a, b)
    assert a.draws is not None and b.draws is not None
    half = stats.t.ppf(0.975, min(a.df, b.df)) * np.std(a.draws - b.draws)
    shares = np.array([np.var(a.draws), np.var(b.draws)])
    larger = math.sqrt(float(shares @ [a.inflation**2, b.inflation**2] / shares.sum()))
    assert result.low == pytest.approx(result.value - half * larger, abs=1e-12)
    assert float(result.low) > 0  # type: ignore[arg-type]
    assert result.groups == 33
    assert difference(a, a).why_null == NO_VARIATION
    assert difference(a, a).value == 0.0
    with pytest.raises(ValueError, match="same number of draws"):
        difference(a, estimate(load_metric("accuracy"), sums, Resampler.for_sums(sums, draws=7)))


@pytest.mark.parametrize("groups", [2, 3, 4, 5])
@pytest.mark.parametrize("name", ["rmse_scaled", "bias_scaled", "macro_f1", "bleu4"])
def test_very_few_groups_give_a_finite_unreliable_interval(groups: int, name: str) -> None:
    for seed in range(4):
        sample = Sample(seed, strata=(("a", groups),), items=20)
        metric = load_metric(name)
        result = estimate(metric, sample.sums(metric.statistic), sample.resampler)
        assert not result.reliable
        if result.value == metric.identity:
            assert result.why_null == NO_VARIATION
            continue
        assert result.low is not None and result.high is not None and result.value is not None
        assert math.isfinite(result.low) and math.isfinite(result.high)
        assert result.low <= result.value <= result.high


def test_an_interval_does_not_depend_on_the_order_of_items() -> None:
    sample = Sample(5)
    metric = load_metric("rmse_scaled")
    first = estimate(metric, sample.sums("scaled_errors"), sample.resampler)
    order = np.random.default_rng(0).permutation(150)
    shuffled = GroupSums.from_items(
        [sample.strata[index] for index in order],
        [sample.groups[index] for index in order],
        sample.statistics["scaled_errors"][order],
    )
    again = estimate(metric, shuffled, Resampler.for_sums(shuffled, draws=DRAWS))
    assert (again.low, again.high) == pytest.approx((first.low, first.high), rel=1e-9)


def test_a_cell_with_few_of_the_groups_of_a_stratum() -> None:
    sample = Sample(6, strata=(("a", 40),), items=60)
    sums = sample.sums("hits")
    few = GroupSums(sums.strata[:6], sums.groups[:6], sums.values[:6])
    items = few.values[:, 1]
    for name in ("accuracy", "rouge_l"):
        result = estimate(load_metric(name), few, sample.resampler)
        assert result.groups == 6
        assert result.df == pytest.approx(items.sum() ** 2 / (items**2).sum() - 1.0, abs=1e-12)
        assert result.low is not None and result.high is not None and result.low < result.high
