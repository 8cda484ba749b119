"""Corrections of sets, disagreement under either rule, causes for the answers that need a reader."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.analyses.lesions import bench as lesions
from tests.analyses.lesions import items_of, scored
from tests.review.made_reviews import by_hand, write_export
from tests.score.small import u2_item, write_bench
from typer.testing import CliRunner

from sonogauge import BadInput
from sonogauge.analyses import analyse
from sonogauge.cli import app
from sonogauge.folders import Folder
from sonogauge.review import clean, export_review, import_review
from sonogauge.review.labelstudio import TASKS

pytestmark = [pytest.mark.part("review"), pytest.mark.lookalike]

OK = {"label": ["ok"], "image": ["ok"], "unit": ["ok"], "terms": ["ok"]}


def test_a_set_is_corrected_with_what_guessing_expects(tmp_path: Path) -> None:
    bench = lesions(tmp_path)
    export_review(bench, tmp_path / "e", "expert", views=3, tasks=["multi_choice"], split="val")
    wrong, other, *_ = sorted(one.item_id for one in items_of(bench, "val") if one.task == "multi_choice")
    before = {row["item_id"]: row for row in Folder(bench).rows("items")}
    options = before[wrong]["answer"]["options"]
    assert len(options) == 4

    def expert(item_id: str, reviewer: int) -> dict[str, Any]:
        if item_id == wrong:
            return OK | {"label": ["fault"], "correction": [options[2], options[0], options[1]]}
        if item_id == other:  # a correction each, but none that more than half hold
            return OK | {"label": ["fault"], "correction": [before[other]["answer"]["options"][reviewer]]}
        return dict(OK)

    file = write_export(tmp_path / "a.json", by_hand(tmp_path / "e", [0, 1, 2], expert))
    import_review(file, tmp_path / "e", tmp_path / "v")
    done = clean(bench, [tmp_path / "v"], tmp_path / "cleaned")
    assert (done.counts["changed"], done.counts["removed"]) == (1, 1)
    after = {row["item_id"]: row for row in Folder(tmp_path / "cleaned").rows("items")}
    assert after[wrong]["reference"]["choices"] == options[:3] and other not in after
    # Three of four options right: 2^(3-1) / (2^4 - 1).
    assert after[wrong]["chance"] == pytest.approx(4 / 15)
    same = next(name for name in after if name != wrong)
    assert after[same] == before[same]


def test_every_disagreement_can_go_to_an_adjudicator(tmp_path: Path) -> None:
    bench = write_bench(tmp_path / "bench", [u2_item("DD", "23", n, {"choices": ("benign",)}) for n in range(4)])
    export_review(bench, tmp_path / "e", "engineer", views=3)

    def answer(item_id: str, reviewer: int) -> dict[str, list[str]]:
        return {"files": ["fault" if item_id.endswith("2") and reviewer == 1 else "ok"], "metadata": ["ok"]}

    file = write_export(tmp_path / "a.json", by_hand(tmp_path / "e", [1, 2, 3], answer))
    import_review(file, tmp_path / "e", tmp_path / "v")
    # Two of three are a majority; --rule unanimous leaves it open, and the very same rule exports it.
    with pytest.raises(BadInput, match=r"open in these votes under the rule 'majority'; with --rule unanimous"):
        export_review(bench, tmp_path / "s", "engineer", adjudicate=[tmp_path / "v"])
    with pytest.raises(BadInput, match="1 questions are not decided"):
        clean(bench, [tmp_path / "v"], tmp_path / "cleaned", rule="unanimous")
    arguments = [
        "review",
        "export",
        bench,
        "--for",
        "engineer",
        "--adjudicate",
        tmp_path / "v",
        "--out",
        tmp_path / "s",
    ]
    result = CliRunner().invoke(app, [*map(str, arguments), "--rule", "unanimous"])
    assert result.exit_code == 0, result.output
    (task,) = json.loads((tmp_path / "s" / TASKS).read_text())
    assert task["data"]["earlier"] == "files: 1 x fault, 2 x ok"
    settled = by_hand(tmp_path / "s", [9], lambda item_id, reviewer: {"files": ["fault"], "metadata": ["ok"]})
    import_review(write_export(tmp_path / "s.json", settled), tmp_path / "s", tmp_path / "sv")
    done = clean(bench, [tmp_path / "v", tmp_path / "sv"], tmp_path / "cleaned", rule="unanimous")
    assert done.counts == {"kept": 3, "removed": 1, "reviewed": 4}


def test_readers_see_the_wrong_answers_whose_cause_no_rule_tells(tmp_path: Path) -> None:
    bench = lesions(tmp_path)
    scores = scored(bench, tmp_path / "m", "random")
    run = tmp_path / "m" / "run"
    done = export_review(bench, tmp_path / "e", "cause", run=run, scores=scores, sample=40, sampling="per_ability")
    shown = {task["data"]["item_id"] for task in json.loads((tmp_path / "e" / TASKS).read_text())}
    values = {row["item_id"]: dict(row["values"]) for row in Folder(scores).rows("score_items")}
    assert shown and all(values[name].get("set_score", values[name].get("correct", 0.0)) < 1.0 for name in shown)
    assert done.tasks == len(shown) < 40
    reading = by_hand(tmp_path / "e", [1, 2], lambda item_id, reviewer: {"cause": ["knowledge"]})
    import_review(write_export(tmp_path / "a.json", reading), tmp_path / "e", tmp_path / "v")
    options = {"votes": tmp_path / "v", "size": 40, "sampling": "per_ability", "draws": 100}
    table = analyse(scores, "causes", **options).table("causes")
    # The same sample: rules and readers together tell the cause of each of the forty.
    assert table["notes"][0].startswith("40 of 40 wrong answers")
    counts = {row["cause"]: row["n"] for row in table["rows"]}
    assert counts["knowledge"] == len(shown) and sum(counts.values()) == 40
    with pytest.raises(BadInput, match="for the form 'cause'"):
        export_review(bench, tmp_path / "x", "verdict", run=run, scores=scores)
