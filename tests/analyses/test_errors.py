"""Causes of wrong answers: what is filled in, what readers say, how far they agree."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sklearn.metrics import cohen_kappa_score
from tests.analyses.lesions import bench, scored

from sonogauge import BadInput
from sonogauge.analyses import analyse
from sonogauge.analyses.abilities import ability_of
from sonogauge.analyses.errors import AUTOMATIC, CAUSES, SHARED, automatic_cause, cause_of, cause_votes, sample_wrong
from sonogauge.analyses.panel import read_panel

pytestmark = pytest.mark.part("error causes")


@pytest.mark.parametrize(
    ("reason", "given", "right", "cause"),
    [
        ("refusal_insufficient", "", "AB", "refusal"),
        ("ambiguous", "", "AB", "format_or_extraction"),
        ("truncated", "", "AB", "format_or_extraction"),
        (None, "ABC", "AB", "over_answer"),
        (None, "A", "AB", "under_answer"),
        (None, "AC", "AB", None),
        (None, "C", "AB", None),
        (None, "", "", None),
    ],
)
def test_what_follows_from_the_reply(reason: str | None, given: str, right: str, cause: str | None) -> None:
    assert automatic_cause(reason, given, right) == cause
    assert cause is None or cause in AUTOMATIC


def test_taxonomies_share_their_causes() -> None:
    own = SHARED.extended("fetal-1", {"wrong_plane": "another plane"})
    assert set(own.causes) == {*CAUSES, "wrong_plane"} and len(CAUSES) == 11
    with pytest.raises(BadInput, match="no cause 'wrong_plane'"):
        SHARED.check("wrong_plane")
    row = {"item_id": "i", "reviewer": "r", "role": "reader", "question": "cause", "vote": "wrong_plane"}
    assert cause_votes([row], own)[0]["vote"] == "wrong_plane"
    with pytest.raises(BadInput, match="no cause"):
        cause_votes([row])


@pytest.fixture(scope="module")
def scores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("errors")
    return scored(bench(root), root / "constant", "constant")


def test_samples_are_stated_and_repeatable(scores: Path) -> None:
    given = read_panel([scores], draws=100).plain("baseline/constant")
    wrong = sample_wrong(given)
    assert wrong and all(one.score < 1 for one in wrong)
    some = sample_wrong(given, 14, "random", seed=3)
    assert len(some) == 14 and some == sample_wrong(list(reversed(given)), 14, "random", seed=3)
    even = sample_wrong(given, 12, "per_ability", seed=3)
    counts = [sum(ability_of(one) == name for one in even) for name in {ability_of(one) for one in wrong}]
    assert max(counts) - min(counts) <= 1
    with pytest.raises(BadInput, match="no sampling rule"):
        sample_wrong(given, 5, "first")


def test_shares_and_agreement(scores: Path, tmp_path: Path) -> None:
    given = read_panel([scores], draws=100).plain("baseline/constant")
    open_ = [one for one in sample_wrong(given) if cause_of(one) is None]
    first = ["knowledge" if place % 3 else "not_grounded" for place in range(len(open_))]
    second = ["knowledge" if place % 4 else "not_grounded" for place in range(len(open_))]
    file = tmp_path / "votes.jsonl"
    lines = [
        {"item_id": one.item.item_id, "reviewer": reader, "vote": cause}
        for reader, causes in (("r1", first), ("r2", second))
        for one, cause in zip(open_, causes, strict=True)
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    with file.open("a", encoding="utf-8") as stream:
        for reader in ("r1", "r2"):
            line = {
                "item_id": open_[0].item.item_id,
                "reviewer": reader,
                "question": "second_cause",
                "vote": "reasoning",
            }
            stream.write(json.dumps(line) + "\n")
    found = analyse(scores, "causes", votes=file, draws=200)
    # Named by two readers of one answer: one answer.
    assert [row["cause"] for row in found.table("causes")["rows"] if row["second"] == 1] == ["reasoning"]
    rows = {row["cause"]: row for row in found.table("causes")["rows"]}
    assert sum(row["share"]["value"] for row in rows.values()) == pytest.approx(1.0)
    wrong = len(sample_wrong(given))
    halves = sum((a == "knowledge") + (b == "knowledge") for a, b in zip(first, second, strict=True)) / 2
    assert rows["knowledge"]["share"]["value"] == pytest.approx(halves / wrong)
    (agreed,) = found.table("cause_agreement")["rows"]
    assert agreed["kappa"]["value"] == pytest.approx(cohen_kappa_score(first, second))
    assert agreed["units"] == len(open_) and agreed["raters"] == 2
    unread = analyse(scores, "causes", draws=200)
    assert f"{len(open_)} wait for readers" in unread.table("causes")["notes"][0]


@pytest.mark.parametrize(
    ("text", "what"), [("{", "not JSON"), ('{"item_id": "i"}', "needs item_id and reviewer"), ("3", "needs item_id")]
)
def test_votes_that_cannot_be_read(scores: Path, tmp_path: Path, text: str, what: str) -> None:
    file = tmp_path / "votes.jsonl"
    file.write_text(text + "\n", "utf-8")
    with pytest.raises(BadInput, match=what):
        analyse(scores, "causes", votes=file, draws=100)
