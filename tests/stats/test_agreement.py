"""Agreement coefficients against scikit-learn, krippendorff and statsmodels, and by hand."""

from __future__ import annotations

import krippendorff
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.inter_rater import cohens_kappa

from sonogauge import BadInput
from sonogauge.stats.agreement import agreement, kappa_of_table, votes_agreement

pytestmark = pytest.mark.part("rater agreement")

EXAMPLE = [[20, 5, 0], [5, 10, 5], [0, 5, 50]]


def spread(table: list[list[int]]) -> np.ndarray:
    """Return the ratings of two raters whose table this is."""
    return np.array([(a, b) for a, row in enumerate(table) for b, count in enumerate(row) for _ in range(count)])


def values(found: object) -> dict[str, float]:
    return {name: one.value for name, one in found.estimates.items()}  # type: ignore[attr-defined]


def test_frequent_acceptance_leaves_kappa_low_and_ac1_high() -> None:
    # Each of the two accepts 96 of 100.
    found = agreement(spread([[93, 3], [3, 1]]), ["accept", "reject"])
    got = values(found)
    assert [round(got[name], 2) for name in ("percent", "kappa", "ac1")] == [0.94, 0.22, 0.94]  # .935 shows as .94
    assert found.prevalence == pytest.approx({"accept": 0.96, "reject": 0.04})
    for one in found.estimates.values():
        assert one.low < one.value < one.high
    # Gwet's AC1 by hand: chance is 2 * .96 * .04.
    assert got["ac1"] == pytest.approx((0.94 - 0.0768) / (1 - 0.0768), abs=1e-12)


@pytest.mark.parametrize(("weights", "expected"), [("quadratic", 0.859), ("linear", 0.770)])
def test_weighted_kappa_of_the_specification(weights: str, expected: float) -> None:
    got = kappa_of_table(EXAMPLE, weights)
    assert round(got, 3) == expected
    a, b = spread(EXAMPLE).T
    assert got == pytest.approx(cohen_kappa_score(a, b, weights=weights), abs=1e-12)
    assert got == pytest.approx(
        cohens_kappa(EXAMPLE, wt={"quadratic": "fc", "linear": "linear"}[weights]).kappa, abs=1e-12
    )
    assert agreement(spread(EXAMPLE), list("abc")).estimates["percent"].value == pytest.approx(0.80)


def test_kappa_of_one_category_is_not_defined() -> None:
    assert kappa_of_table([[5, 0], [0, 0]]) is None
    found = agreement(np.zeros((5, 2), dtype=int), ["a", "b"])
    assert found.estimates["kappa"].value is None and "one category" in found.estimates["kappa"].why_null
    assert found.estimates["percent"].value == 1.0


RATINGS = st.integers(3, 12).flatmap(
    lambda units: st.integers(2, 4).flatmap(
        lambda raters: st.lists(
            st.lists(st.integers(-1, 2), min_size=raters, max_size=raters), min_size=units, max_size=units
        )
    )
)


@given(RATINGS)
def test_alpha_equals_krippendorff(rows: list[list[int]]) -> None:
    matrix = np.array(rows)
    for level in ("nominal", "interval"):
        got = agreement(matrix, list("abc"), level=level, draws=10).estimates["alpha"].value
        data = np.where(matrix < 0, np.nan, matrix.astype(float)).T
        pairable = ((matrix >= 0).sum(axis=1) >= 2).any()
        used = set(matrix[(matrix >= 0).sum(axis=1) >= 2].ravel().tolist()) - {-1}
        if not pairable or len(used) < 2:
            assert got is None
            continue
        oracle = krippendorff.alpha(reliability_data=data, level_of_measurement=level, value_domain=[0.0, 1.0, 2.0])
        assert got == pytest.approx(oracle, abs=1e-9)


@given(RATINGS)
def test_order_of_raters_and_units_changes_nothing(rows: list[list[int]]) -> None:
    matrix = np.array(rows)
    one, other = agreement(matrix, list("abc"), draws=10), agreement(matrix[::-1, ::-1], list("abc"), draws=10)
    assert values(one) == pytest.approx(values(other), nan_ok=True)


def test_units_that_nobody_rated_have_no_agreement_and_say_why() -> None:
    found = agreement(np.full((3, 2), -1), list("abc"), draws=10)
    assert found.units == found.raters == 0
    assert all(one.value is None and one.why_null for one in found.estimates.values())


def test_kappa_of_three_raters_is_the_mean_of_pairs() -> None:
    matrix = np.random.default_rng(3).integers(0, 3, size=(60, 3))
    expected = np.mean([cohen_kappa_score(matrix[:, a], matrix[:, b]) for a, b in ((0, 1), (0, 2), (1, 2))])
    found = agreement(matrix, list("abc"))
    assert found.estimates["kappa"].value == pytest.approx(expected)
    assert "mean of pairs" in found.signature("kappa")


def test_roles_and_questions_are_never_pooled() -> None:
    votes = [
        {"item_id": f"i{number}", "reviewer": who, "role": role, "question": question, "vote": vote}
        for number in range(10)
        for role, question in (("clinician", "diagnosis"), ("engineer", "files"), ("clinician", "prompt"))
        for who, vote in (
            (f"{role}1", "accept"),
            (f"{role}2", "reject" if number < 3 and question == "diagnosis" else "accept"),
        )
    ]
    found = {(one.role, one.question): one.agreement for one in votes_agreement(votes)}
    assert set(found) == {("clinician", "diagnosis"), ("clinician", "prompt"), ("engineer", "files")}
    assert found["clinician", "diagnosis"].estimates["percent"].value == pytest.approx(0.7)
    assert found["engineer", "files"].estimates["percent"].value == 1.0
    with pytest.raises(BadInput, match="clinician1 voted twice on i0"):
        votes_agreement([*votes, votes[0]])
    with pytest.raises(BadInput, match="no role"):
        votes_agreement([{**votes[0], "role": None}])


def test_units_of_one_patient_widen_the_interval() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, size=40)
    second = np.where(rng.random(40) < 0.25, 1 - truth, truth)
    matrix = np.repeat(np.stack([truth, second], axis=1), 5, axis=0)
    alone = agreement(matrix, ["a", "b"]).estimates["kappa"]
    grouped = agreement(matrix, ["a", "b"], groups=[f"p{row // 5}" for row in range(200)]).estimates["kappa"]
    assert alone.value == grouped.value
    assert grouped.high - grouped.low > 1.5 * (alone.high - alone.low)
