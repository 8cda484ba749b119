"""No mean below the coverage limit of a judge, one yardstick at a time, intervals that end where values end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.analyses.lesions import bench as lesions
from tests.analyses.lesions import items_of
from tests.score.made_judges import ScriptedJudge, says

from sonogauge import score
from sonogauge.analyses import analyse
from sonogauge.analyses.errors import sample_wrong
from sonogauge.analyses.panel import read_panel
from sonogauge.score.judge import judge
from sonogauge.stats.intervals import Estimate

pytestmark = pytest.mark.part("judge")


def _scores(root: Path, folder: Path, name: str, script: Any = None) -> Path:
    """Score one model's replies, judged by a script or not."""
    lines = []
    for place, item in enumerate(items_of(folder, "test")):
        texts = item.reference.get("texts") or ()
        said = f"rather {texts[0]}" if texts and place % 2 else "something else"
        lines.append(json.dumps({"item_id": item.item_id, "text": said, "model": name}) + "\n")
    (root / f"{name}.jsonl").write_text("".join(lines), "utf-8")
    verdicts = None
    if script is not None:
        verdicts = root / f"{name}-verdicts"
        judge(root / f"{name}.jsonl", verdicts, [ScriptedJudge(script)], bench=folder)
    out = root / f"{name}-scores"
    score(root / f"{name}.jsonl", bench=folder, out=out, verdicts=verdicts, draws=200, baselines=False)
    return out


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("panel")
    folder = lesions(root)

    def fair(data: dict[str, Any], nth: int) -> str:
        return says(1.0 if "rather" in data["candidate answer"] else 0.0)

    return {
        "judged": _scores(root, folder, "judged", fair),
        "words": _scores(root, folder, "words"),
        "prose": _scores(root, folder, "prose", lambda data, nth: "well said"),
    }


def test_below_the_limit_of_coverage_nothing_has_a_value(made: dict[str, Path]) -> None:
    found = analyse(made["prose"], "abilities", draws=100)
    types = {row["type"]: row["prose"] for row in found.table("types_test")["rows"]}
    for task in ("fill_in_blank", "short_answer"):
        assert types[task]["value"] is None and "gave 0 of" in types[task]["why_null"]
    assert types["single_choice"]["value"] is not None
    rows = {row["ability"]: row["prose"]["value"] for row in found.table("abilities_test")["rows"]}
    # What holds free text has none, and so neither average.
    assert rows["ST"] is rows["AR"] is rows["micro"] is rows["macro"] is None and rows["LO"] is not None
    for row in analyse(made["prose"], "verdicts", draws=100).table("verdicts")["rows"]:
        assert row["failed"] == row["n"] and row["0"]["value"] is row["1"]["value"] is None


def test_verdicts_are_shown_without_and_with_leniency(made: dict[str, Path]) -> None:
    rows = analyse(made["judged"], "verdicts", draws=100).table("verdicts")["rows"]
    assert {row["leniency"] for row in rows} == {"none", "v1"}
    colour = {row["leniency"]: row for row in rows if (row["by"], row["part"]) == ("type", "short_answer")}
    assert colour["none"]["n"] == colour["v1"]["n"] and colour["none"]["failed"] == 0
    for row in rows:
        assert sum(row[level]["value"] for level in ("0", "0.5", "1")) == pytest.approx(1.0)


def test_models_by_verdicts_and_by_words_are_told_apart(made: dict[str, Path]) -> None:
    def notices(*paths: Path) -> str:
        return " ".join(analyse(paths[0], "abilities", beside=paths[1:], draws=100).document["notices"])

    assert "NOT COMPARABLE in free text: of words some" in notices(made["judged"], made["words"])
    assert "by its words alone (text_match)" in notices(made["words"])
    assert "words" not in notices(made["judged"]) and "NOT COMPARABLE" not in notices(made["words"])


def test_an_answer_that_no_judge_read_is_not_called_wrong(made: dict[str, Path]) -> None:
    wrong = sample_wrong(read_panel([made["prose"]], draws=100).plain("prose"))
    assert wrong and not any(one.item.answer.form == "text" for one in wrong)
    fair = sample_wrong(read_panel([made["judged"]], draws=100).plain("judged"))
    assert any(one.item.answer.form == "text" for one in fair)


def test_intervals_end_where_values_end() -> None:
    wide = Estimate(0.5, -2.0, 3.0, 3, 1.0, False, None)
    assert (wide.within(-1.0, 1.0).low, wide.within(-1.0, 1.0).high) == (-1.0, 1.0)
    none = Estimate(0.5, None, None, 3, 1.0, False, "one rater")
    assert none.within(-1.0, 1.0) is none
