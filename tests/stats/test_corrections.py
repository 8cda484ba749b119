"""Adjusted p-values against statsmodels."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from sonogauge.stats.corrections import CORRECTIONS, benjamini_hochberg, holm

pytestmark = pytest.mark.part("comparison")


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
@pytest.mark.parametrize(("name", "peer"), [("holm", "holm"), ("bh", "fdr_bh")])
def test_adjusted_p_equal_statsmodels(name: str, peer: str, p: list[float]) -> None:
    expected = multipletests(p, method=peer)[1]
    assert CORRECTIONS[name](p) == pytest.approx(list(expected), rel=1e-12, abs=1e-300)


def test_a_missing_p_stays_missing_and_does_not_count() -> None:
    assert holm([None, 0.02, None]) == [None, 0.02, None]
    assert benjamini_hochberg([]) == []
    assert holm([None]) == [None]


@pytest.mark.parametrize("wrong", [-0.1, 1.1, float("nan")])
def test_what_is_no_p_is_refused(wrong: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        holm([0.5, wrong])
