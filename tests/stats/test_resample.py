"""Weights: one per group per draw, unbiased, and a function of seed, stratum and group ids alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sonogauge.metrics.sums import GroupSums
from sonogauge.stats import resample
from sonogauge.stats.resample import Resampler

pytestmark = pytest.mark.part("intervals")


def ids(count: int) -> list[str]:
    return [f"p{index:05d}" for index in range(count)]


@given(st.integers(1, 60), st.integers(0, 5))
@settings(max_examples=40, deadline=None)
def test_the_weights_of_a_stratum_sum_to_its_groups_in_each_draw(groups: int, seed: int) -> None:
    weights = Resampler({"a": ids(groups)}, draws=50, seed=seed).weights("a")
    assert weights.shape == (50, groups)
    assert weights.sum(axis=1) == pytest.approx(np.full(50, float(groups)), rel=1e-12)
    if groups == 1:
        assert (weights == 1.0).all()


@pytest.mark.parametrize("groups", [2, 3, 7, 150])
def test_weights_have_mean_one_and_totals_the_unbiased_variance(groups: int) -> None:
    values = np.random.default_rng(groups).normal(size=(groups, 1))
    resampler = Resampler({"a": ids(groups)}, draws=20_000)
    weights = resampler.weights("a")
    assert weights.mean(axis=0) == pytest.approx(np.ones(groups), abs=0.05)
    totals = resampler.totals(GroupSums(("a",) * groups, tuple(ids(groups)), values))
    assert np.var(totals) == pytest.approx(groups * np.var(values, ddof=1), rel=0.05)


def test_weights_do_not_depend_on_order_other_strata_or_the_number_of_draws() -> None:
    names = ids(30)
    alone = Resampler({"a": names}, draws=40).weights("a")
    shuffled = Resampler({"b": ["x", "y"], "a": [*reversed(names), names[3]]}, draws=40).weights("a")
    longer = Resampler({"a": names}, draws=90).weights("a")
    assert (alone == shuffled).all()
    assert (alone == longer[:40]).all()
    for other in (
        Resampler({"a": names}, draws=40, seed=1).weights("a"),
        Resampler({"b": names}, draws=40).weights("b"),
        Resampler({"a": [*names[:-1], "other"]}, draws=40).weights("a"),
    ):
        assert (alone != other).any()


def test_draws_that_do_not_fit_one_block_have_the_same_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resample, "_BLOCK_CELLS", 70)
    alone = Resampler({"a": ids(10)}, draws=10)
    longer = Resampler({"a": ids(10)}, draws=33)
    assert (alone.weights("a") == longer.weights("a")[:10]).all()
    monkeypatch.setattr(resample, "_CHUNK_CELLS", 20)
    chunks = list(longer.count_chunks("a", np.array([3, 1])))
    assert [rows for rows, _ in chunks] == [slice(0, 10), slice(10, 20), slice(20, 30), slice(30, 33)]
    joined = np.concatenate([counts for _, counts in chunks])
    assert joined * 10 / 9 == pytest.approx(longer.weights("a")[:, [3, 1]])


def test_totals_equal_a_naive_loop() -> None:
    rng = np.random.default_rng(0)
    strata, groups = ("a",) * 5 + ("b",) * 3, (*ids(9)[::2], *ids(3))
    sums = GroupSums(strata, tuple(groups), rng.normal(size=(8, 2, 3)))
    resampler = Resampler({"a": ids(9), "b": ids(3), "c": ["z"]}, draws=25)
    expected = np.zeros((25, 2, 3))
    for stratum, group, value in zip(strata, groups, sums.values, strict=True):
        column = resampler.groups(stratum).index(group)
        for draw in range(25):
            expected[draw] += resampler.weights(stratum)[draw, column] * value
    assert resampler.totals(sums) == pytest.approx(expected, abs=1e-12)


def test_the_cache_is_bounded_and_drawing_again_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resample, "_CACHE_BYTES", 500)
    resampler = Resampler({"a": ids(10), "b": ids(8)}, draws=50)
    first = resampler.counts("a"), resampler.counts("b")
    assert resampler.counts("a") is first[0]
    assert resampler.counts("b") is not first[1]
    assert (resampler.counts("b") == first[1]).all()


def test_huge_strata_are_resampled_by_pools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resample, "POOL_ABOVE", 100)
    monkeypatch.setattr(resample, "POOLS", 50)
    names = ids(1000)
    resampler = Resampler({"a": names}, draws=4000)
    assert resampler.pooled("a") and resampler.weights("a").shape == (4000, 50)
    assert (np.bincount(resampler.units("a", names)) == 20).all()
    values = np.random.default_rng(1).normal(size=(1000, 1))
    totals = resampler.totals(GroupSums(("a",) * 1000, tuple(names), values))
    # 49 degrees of freedom: the relative error of a standard deviation is 10 %.
    assert np.std(totals) == pytest.approx(np.sqrt(1000) * np.std(values), rel=0.3)
    assert totals.mean() == pytest.approx(values.sum(), abs=3 * np.std(totals) / np.sqrt(4000))


def test_any_string_is_an_id() -> None:
    names = ["", "\ud800", "a\x00b", "患者"]
    weights = Resampler({"\udfff": names}, draws=6).weights("\udfff")
    assert weights.sum(axis=1) == pytest.approx(np.full(6, 4.0))


def test_unknown_strata_groups_and_no_draws_are_refused() -> None:
    resampler = Resampler({"a": ids(3)}, draws=10)
    with pytest.raises(ValueError, match="stratum 'b' is not among"):
        resampler.totals(GroupSums(("b",), ("x",), np.ones((1, 2))))
    with pytest.raises(ValueError, match="group 'x' of stratum 'a' is not among"):
        resampler.totals(GroupSums(("a",), ("x",), np.ones((1, 2))))
    with pytest.raises(ValueError, match="at least 1"):
        Resampler({"a": ids(3)}, draws=0)


def test_for_sums_takes_the_groups_of_all_cells() -> None:
    one = GroupSums(("a", "a"), ("p1", "p2"), np.ones((2, 2)))
    other = GroupSums(("a", "b"), ("p3", "q"), np.ones((2, 5)))
    resampler = Resampler.for_sums(one, other, draws=5)
    assert resampler.strata == ("a", "b")
    assert resampler.groups("a") == ("p1", "p2", "p3")
