"""Sums of shards equal the sum of the whole, in any order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonogauge.metrics.sums import Accumulator, GroupSums

pytestmark = pytest.mark.part("metrics")

ITEM = st.tuples(st.sampled_from("ab"), st.sampled_from(["p1", "p2", "p3", "p10"]), st.integers(0, 9))


def sums_of(items: list[tuple[str, str, int]]) -> GroupSums:
    statistics = np.array([[number, 1] for *_, number in items], dtype=float).reshape(len(items), 2)
    return GroupSums.from_items([item[0] for item in items], [item[1] for item in items], statistics)


@given(st.lists(ITEM, max_size=40), st.integers(1, 5), st.randoms(use_true_random=False))
def test_shards_in_any_order_equal_the_whole(items: list[tuple[str, str, int]], shards: int, random: object) -> None:
    whole = sums_of(items)
    parts = [sums_of(items[start::shards]) for start in range(shards)]
    random.shuffle(parts)  # type: ignore[attr-defined]
    merged = parts[0].merge(*parts[1:])
    assert merged.strata == whole.strata
    assert merged.groups == whole.groups
    assert (merged.values == whole.values).all()
    assert list(zip(whole.strata, whole.groups, strict=True)) == sorted({item[:2] for item in items})
    expected: dict[tuple[str, str], int] = {}
    for stratum, group, number in items:
        expected[stratum, group] = expected.get((stratum, group), 0) + number
    assert whole.values[:, 0].tolist() == [expected[key] for key in sorted(expected)]
    assert whole.total().tolist() == [sum(item[2] for item in items), len(items)]


def test_streaming_keeps_the_statistic_shape() -> None:
    accumulator = Accumulator()
    for batch in range(30):
        accumulator.add(["s"] * 2, [f"p{batch}", "p0"], np.ones((2, 3, 4)))
    sums = accumulator.sums()
    assert sums.values.shape == (30, 3, 4)
    assert sums.values[0, 0, 0] == 31
    assert sums.stratum_slices() == {"s": slice(0, 30)}


def test_wrong_shapes_are_refused() -> None:
    accumulator = Accumulator()
    with pytest.raises(ValueError, match="no batch"):
        accumulator.sums()
    accumulator.add(["s"], ["p"], np.ones((1, 2)))
    with pytest.raises(ValueError, match="after"):
        accumulator.add(["s"], ["p"], np.ones((1, 3)))
    with pytest.raises(ValueError, match="groups for statistics"):
        GroupSums.from_items(["s"], ["p"], np.ones((2, 2)))
    with pytest.raises(ValueError, match="must be finite"):
        GroupSums.from_items(["s"], ["p"], [[np.nan, 1.0]])
    with pytest.raises(ValueError, match="argument 2"):
        GroupSums.from_items(["s", "s"], ["p"], np.ones((1, 2)))
