"""Paired tests against scipy and statsmodels, by brute force, and their size under clustering."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, permutation_test
from statsmodels.stats.contingency_tables import mcnemar as peer_mcnemar

from sonogauge.metrics import load_metric
from sonogauge.metrics.base import Array
from sonogauge.metrics.choice import confusion_statistics, hit_statistics
from sonogauge.metrics.numbers import scaled_error_statistics
from sonogauge.metrics.sums import GroupSums
from sonogauge.metrics.text import bleu_statistics
from sonogauge.stats.paired import PairedSums, mcnemar, swap_test

pytestmark = pytest.mark.part("comparison")

WORDS = ("liver", "normal", "cyst", "in", "the", "left", "lobe")


def grouped(statistics: Array, groups: int, stratum: str = "a") -> GroupSums:
    owners = [f"p{number % groups:02d}" for number in range(len(statistics))]
    return GroupSums.from_items([stratum] * len(owners), owners, statistics)


def pair(name: str, groups: int, seed: int, stratum: str = "a") -> PairedSums:
    """Two models on 5 items a group; the second is a little better."""
    rng = np.random.default_rng(seed)
    n = 5 * groups
    sums = []
    for skill in (0.5, 0.65):
        if name == "accuracy":
            statistics = hit_statistics(rng.random(n) < skill)
        elif name == "rmse_scaled":
            statistics = scaled_error_statistics(rng.normal(0, 1 - skill, n), 0.1)
        elif name == "macro_f1":
            truth = np.arange(n) % 3
            said = np.where(rng.random(n) < skill, truth, rng.integers(-1, 3, n))
            statistics = confusion_statistics(truth, said, range(3))
        else:
            reference = [" ".join(WORDS[:5])] * n
            said_text = [
                " ".join(WORDS[:5]) if rng.random() < skill else " ".join(rng.choice(WORDS, 5)) for _ in range(n)
            ]
            statistics = bleu_statistics([[one] for one in reference], said_text)
        sums.append(grouped(statistics, groups, stratum))
    return PairedSums(load_metric(name), sums[0], sums[1])


@pytest.mark.parametrize("name", ["accuracy", "rmse_scaled", "macro_f1", "bleu4"])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_exact_p_equals_scipy_over_all_swaps(name: str, seed: int) -> None:
    one = pair(name, 8, seed)
    both = np.concatenate([one.a.values, one.b.values])

    def gap(x: Array, y: Array) -> float:
        totals = [both[index.astype(int)].sum(axis=0) for index in (x, y)]
        return float(one.metric.function(totals[0]) - one.metric.function(totals[1]))

    peer = permutation_test(
        (np.arange(8), np.arange(8, 16)), gap, permutation_type="samples", n_resamples=np.inf, vectorized=False
    )
    found = swap_test([one])
    assert found.exact
    # scipy doubles the smaller tail; ours counts both, which by symmetry of swaps is the same.
    assert found.p == pytest.approx(peer.pvalue, abs=1e-12)


def test_a_group_is_swapped_in_all_parts_at_once() -> None:
    parts = [pair("accuracy", 5, 1), pair("rmse_scaled", 5, 2)]

    def value(x: Array) -> Array:
        return np.asarray(0.7 * x[..., 0] + 0.3 * (1 - x[..., 1]))

    def gap(flips: tuple[int, ...]) -> float:
        totals = []
        for swapped in (False, True):
            parts_of = []
            for one in parts:
                rows = [
                    (one.b if flip != swapped else one.a).values[number] for number, flip in enumerate(map(bool, flips))
                ]
                parts_of.append(float(one.metric.function(np.sum(rows, axis=0))))
            totals.append(float(value(np.array(parts_of))))
        return totals[0] - totals[1]

    seen = abs(gap((0,) * 5))
    far = [abs(gap(flips)) >= seen - 1e-12 for flips in product((0, 1), repeat=5)]
    found = swap_test(parts, value)
    assert (found.exact, found.swaps, found.groups) == (True, 32, 5)
    assert found.p == pytest.approx(np.mean(far), abs=1e-12)


def test_random_swaps_come_near_the_exact_p_and_depend_on_the_seed_alone() -> None:
    one = pair("macro_f1", 14, 4)
    exact = swap_test([one], swaps=20_000)
    near = swap_test([one], swaps=3_000)
    assert exact.exact and not near.exact
    assert exact.p is not None and near.p is not None
    assert near.p == pytest.approx(exact.p, abs=4 * np.sqrt(exact.p * (1 - exact.p) / 3_000) + 1e-3)
    assert swap_test([one], swaps=3_000) == near
    assert swap_test([one], swaps=3_000, seed=1).p != near.p


def test_swapping_the_models_changes_no_p() -> None:
    one = pair("rmse_scaled", 9, 3)
    assert swap_test([PairedSums(one.metric, one.b, one.a)]).p == swap_test([one]).p


def test_equal_answers_have_p_one_and_one_group_has_none() -> None:
    one = pair("accuracy", 6, 0)
    same = swap_test([PairedSums(one.metric, one.a, one.a)])
    assert (same.p, same.differing, same.exact) == (1.0, 0, True)
    lonely = swap_test([pair("accuracy", 1, 0)])
    assert lonely.p is None and lonely.why_null == "one group: the spread between groups cannot be told"
    assert swap_test([]).why_null == "no group"


def test_metrics_of_ordered_values_and_silly_numbers_of_swaps_are_refused() -> None:
    one = pair("accuracy", 3, 0)
    with pytest.raises(ValueError, match="no function of sums"):
        swap_test([PairedSums(load_metric("median_error"), one.a, one.b)])
    with pytest.raises(ValueError, match="at least 1"):
        swap_test([one], swaps=0)
    with pytest.raises(ValueError, match="shapes"):
        swap_test([PairedSums(one.metric, one.a, pair("rmse_scaled", 3, 0).b)])


def test_size_under_clustering_where_mcnemar_fails() -> None:
    # 24 patients with 15 frames each; how well a model does on a patient varies, so frames are not independent.
    rng = np.random.default_rng(7)
    accuracy = load_metric("accuracy")
    groups, frames, studies = 24, 15, 2_000
    strata, names = ("a",) * groups, tuple(f"p{number:02d}" for number in range(groups))
    swapped = naive = 0
    for _ in range(studies):
        hits = rng.random((2, groups, frames)) < rng.beta(1.0, 1.0, size=(2, groups, 1))
        sums = [GroupSums(strata, names, np.stack([one.sum(axis=1), np.full(groups, 15.0)], axis=-1)) for one in hits]
        p = swap_test([PairedSums(accuracy, *sums)], swaps=199).p
        assert p is not None
        swapped += p <= 0.05
        naive += mcnemar(int((hits[0] & ~hits[1]).sum()), int((hits[1] & ~hits[0]).sum())).p <= 0.05
    assert 0.04 <= swapped / studies <= 0.06
    assert naive / studies >= 0.18


@pytest.mark.parametrize(
    ("b", "c", "name", "expected"),
    [(64, 26, "statistic", 16.04), (2, 10, "p_exact", 0.0386), (5, 5, "p_exact", 1.0), (0, 6, "p_exact", 0.03125)],
)
def test_mcnemar_of_the_specifications(b: int, c: int, name: str, expected: float) -> None:
    assert getattr(mcnemar(b, c), name) == pytest.approx(expected, abs=5e-3 if name == "statistic" else 5e-5)
    assert mcnemar(64, 26).p == pytest.approx(6.2e-5, abs=5e-7)


@given(st.integers(0, 300), st.integers(0, 300))
def test_mcnemar_equals_statsmodels_and_scipy(b: int, c: int) -> None:
    found = mcnemar(b, c)
    if b + c == 0:
        assert (found.p, found.p_corrected, found.p_exact, found.p_mid) == (1.0, 1.0, 1.0, 1.0)
        return
    table = [[9, b], [c, 4]]
    plain = peer_mcnemar(table, exact=False, correction=False)
    assert (found.statistic, found.p) == pytest.approx((plain.statistic, plain.pvalue), rel=1e-9, abs=1e-300)
    if b != c:  # statsmodels lets (|b - c| - 1)² count for b = c
        corrected = peer_mcnemar(table, exact=False, correction=True)
        assert found.statistic_corrected == pytest.approx(corrected.statistic, rel=1e-9)
        assert found.p_corrected == pytest.approx(corrected.pvalue, rel=1e-9, abs=1e-300)
    exact = binomtest(b, b + c).pvalue
    assert found.p_exact == pytest.approx(exact, rel=1e-9)
    assert found.p_exact == pytest.approx(peer_mcnemar(table, exact=True).pvalue, rel=1e-9)
    assert 0 <= found.p_mid <= found.p_exact


def test_mid_p_by_hand() -> None:
    # X ~ Bin(4, 1/2): P(0) = 1/16, P(1) = 4/16, P(2) = 6/16.
    assert mcnemar(1, 3).p_mid == pytest.approx(2 * 5 / 16 - 4 / 16)
    assert mcnemar(2, 2).p_mid == pytest.approx(1 - 3 / 16)


def test_negative_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        mcnemar(-1, 2)
