"""Short answers about real photographs, judged, scored, checked by reviewers and cleaned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.review.made_reviews import by_hand, write_export
from tests.score.made_judges import ScriptedJudge, says
from tests.score.small import value_of, write_replies
from tests.shared import shared_data

from sonogauge import build, import_cases, score
from sonogauge.folders import Folder
from sonogauge.review import clean, export_review, import_review
from sonogauge.score.judge import judge
from sonogauge.score.judging.agreement import judge_agreement

pytestmark = [pytest.mark.real, pytest.mark.part("judge"), pytest.mark.part("review")]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("isic")
    import_cases("isic_udal", shared_data("isic_udal"), folder / "cases")
    build("medlesionvqa", folder / "cases", folder / "bench")
    return folder / "bench"


def test_short_answers_on_real_photographs(bench: Path, tmp_path: Path) -> None:
    items = [row for row in Folder(bench).rows("items") if row["task"] == "short_answer" and row["split"] == "test"]
    assert len(items) >= 15
    right = {row["item_id"]: row["reference"]["texts"][0] for row in items}
    said = {
        item_id: f"Most likely a {word}." if number % 2 else "a lesion"
        for number, (item_id, word) in enumerate(sorted(right.items()))
    }
    replies = write_replies(tmp_path / "model.jsonl", dict(said))

    def scripted(data: dict[str, Any], nth: int) -> str:
        return says(1 if any(one in data["candidate answer"] for one in data["reference answers"]) else 0)

    done = judge(replies, tmp_path / "v", [ScriptedJudge(scripted)], bench=bench)
    assert done.statuses == {"ok": len(items)}
    found = score(replies, bench=bench, verdicts=tmp_path / "v", scenarios="present", draws=200, baselines=False)
    row = value_of(found.metrics, "judge_score", "short_answer")
    share = sum(number % 2 for number in range(len(items))) / len(items)
    assert row["value"] == pytest.approx(share)

    export_review(bench, tmp_path / "e", "verdict", run=replies, verdicts=tmp_path / "v", views=2)
    file = write_export(
        tmp_path / "a.json",
        by_hand(
            tmp_path / "e", [1, 2], lambda item_id, who: {"verdict": ["1" if right[item_id] in said[item_id] else "0"]}
        ),
    )
    import_review(file, tmp_path / "e", tmp_path / "votes")
    agreed = judge_agreement(tmp_path / "v", tmp_path / "votes", draws=100)
    assert agreed.agreements[0].kappa.value == 1.0
    assert agreed.corrected[0].estimate.value == pytest.approx(share)


def test_a_reviewed_benchmark_of_real_photographs_scores(bench: Path, tmp_path: Path) -> None:
    export_review(bench, tmp_path / "e", "engineer", sample=10)
    shown = Folder(tmp_path / "e").manifest.parameters["items"]
    file = write_export(
        tmp_path / "a.json",
        by_hand(
            tmp_path / "e",
            [1],
            lambda item_id, who: {"files": ["fault" if item_id == shown[0] else "ok"], "metadata": ["ok"]},
        ),
    )
    import_review(file, tmp_path / "e", tmp_path / "votes")
    done = clean(bench, [tmp_path / "votes"], tmp_path / "cleaned")
    assert done.counts["removed"] == 1
    left = {row["item_id"] for row in Folder(tmp_path / "cleaned", "benchmark").rows("items")}
    assert left == {row["item_id"] for row in Folder(bench).rows("items")} - {shown[0]}
    one = next(row for row in Folder(tmp_path / "cleaned").rows("items") if row["task"] == "short_answer")
    replies = write_replies(tmp_path / "r.jsonl", {one["item_id"]: one["reference"]["texts"][0]})
    found = score(replies, bench=tmp_path / "cleaned", scenarios="present", draws=200, baselines=False)
    assert "+reviewed.1" in value_of(found.metrics, "text_match", "short_answer")["signature"]
