"""Differential fusion: the cases of the specification under every tie rule, and what any rule must keep."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonogauge import BadInput
from sonogauge.benchmarks.medlesionvqa.fusion import TIE_RULES, fuse, fusion_report

pytestmark = pytest.mark.part("medlesionvqa")


def order(found: object) -> list[tuple[str, float, int]]:
    return [(one.id, round(one.score, 3), one.rank) for one in found.placed]  # type: ignore[attr-defined]


def test_cases_of_the_specification() -> None:
    assert order(fuse([["x", "y"], ["y", "x"]])) == [("x", 1.5, 1), ("y", 1.5, 1)]
    assert order(fuse([["x", "y", "z"], ["y", "w"]])) == [("y", 1.5, 1), ("x", 1.0, 2), ("w", 0.5, 3), ("z", 0.333, 4)]
    assert order(fuse([["x"], ["y", "x", "z"]])) == [("x", 1.5, 1), ("y", 1.0, 2), ("z", 0.333, 3)]


def test_shared_ranks_skip() -> None:
    found = fuse([["x", "y", "z"], ["y", "x", "z"]])
    assert [one.rank for one in found.placed] == [1, 1, 3]
    assert found.first == ("x", "y") and found.ties == 1 and found.scored


# a: 1/2 + 1/2 = 1; b: 1/1 = 1. Both score 1.0 (c 1.333 leads).
TIED = [["b", "a"], ["c", "a"], ["d", "e", "c"]]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("shared", ["c", "a", "b", "d", "e"]),
        ("best_rank", ["c", "b", "d", "a", "e"]),
        ("alphabetical", ["c", "a", "b", "d", "e"]),
    ],
)
def test_tie_rules_order(rule: str, expected: list[str]) -> None:
    found = fuse(TIED, tie_rule=rule)
    assert [one.id for one in found.placed] == expected
    ranks = [one.rank for one in found.placed]
    # a, b and d all score 1; under best_rank b and d still tie.
    assert ranks == {"shared": [1, 2, 2, 2, 5], "best_rank": [1, 2, 2, 4, 5], "alphabetical": [1, 2, 3, 4, 5]}[rule]


def test_the_senior_breaks_ties() -> None:
    lists = [["x", "y"], ["y", "x"]]
    assert fuse(lists, tie_rule="senior_first", senior=1).first == ("y",)
    assert fuse(lists, tie_rule="senior_first", senior=0).first == ("x",)
    # Neither tied disease is on the senior's list: the tie remains and is shared.
    found = fuse([["s"], ["p"], ["q"]], tie_rule="senior_first", senior=0)
    assert order(found) == [("s", 1.0, 1), ("p", 1.0, 2), ("q", 1.0, 2)]
    with pytest.raises(BadInput, match="needs to know the senior"):
        fuse(lists, tie_rule="senior_first")


def test_adjudication_leaves_a_tie_unscored_until_it_is_decided() -> None:
    lists = [["x", "y"], ["y", "x"]]
    assert not fuse(lists, tie_rule="adjudicate").scored
    decided = fuse(lists, tie_rule="adjudicate", decided=["y", "x"])
    assert decided.scored and decided.first == ("y",)
    assert fuse([["x", "y"], ["x", "y"]], tie_rule="adjudicate").scored


def test_synonyms_are_merged_before_fusion() -> None:
    names = {"mole": "nevus", "nevus": "nevus", "melanoma": "melanoma"}
    found = fuse([["mole", "melanoma"], ["nevus"]], resolve=names.__getitem__)
    assert order(found) == [("nevus", 2.0, 1), ("melanoma", 0.5, 2)]
    assert len(fuse([["mole"], ["nevus"]]).placed) == 2
    with pytest.raises(BadInput, match="twice"):
        fuse([["mole", "nevus"]], resolve=names.__getitem__)


def test_parameters() -> None:
    lists = [["x", "y", "z"], ["y", "w"]]
    assert fuse(lists, normalise="physicians").placed[0].score == 0.75
    assert sum(one.score for one in fuse(lists, normalise="sum").placed) == pytest.approx(1.0)
    assert [one.id for one in fuse(lists, keep_top=1).placed] == ["y"]
    assert len(fuse(lists, keep_top=3).placed) == 3
    assert order(fuse([[["x", "y"], "z"]], tied_ranks="average")) == [("x", 0.667, 1), ("y", 0.667, 1), ("z", 0.333, 3)]


@pytest.mark.parametrize(
    ("lists", "what"),
    [
        ([], "no ranked list"),
        ([[]], "0 diseases"),
        ([["a", "b", "c", "d"]], "4 diseases"),
        ([["a", "a"]], "twice"),
        ([[["a", "b"]]], "share a rank"),
    ],
)
def test_lists_that_cannot_be_fused(lists: list, what: str) -> None:
    with pytest.raises(BadInput, match=what):
        fuse(lists)


LISTS = st.lists(st.permutations("vwxyz").map(lambda one: one[:3]), min_size=1, max_size=4)


@given(LISTS, st.sampled_from(TIE_RULES))
def test_what_every_rule_keeps(lists: list[list[str]], rule: str) -> None:
    found = fuse(lists, tie_rule=rule, senior=0)
    scores = {name: sum(1 / (own.index(name) + 1) for own in lists if name in own) for name in set().union(*lists)}
    assert {one.id: pytest.approx(one.score) for one in found.placed} == scores
    assert [one.score for one in found.placed] == sorted((one.score for one in found.placed), reverse=True)
    assert found.first and found.placed[0].rank == 1
    assert fuse(list(reversed(lists)), tie_rule=rule, senior=len(lists) - 1).placed == found.placed


def test_report_counts() -> None:
    found = [fuse([["x", "y"], ["y", "x"]], tie_rule="adjudicate"), fuse([["x"]], tie_rule="adjudicate")]
    assert fusion_report(found) == {
        "lists": 2,
        "with_ties": 1,
        "ties": 1,
        "several_first": 1,
        "undecided": 1,
        "tie_rule": "adjudicate",
    }
