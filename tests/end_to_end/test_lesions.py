"""Open images of skin and breast become a small MedLesionVQA-style benchmark that runs and shows its tables."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from tests.score.made_judges import ScriptedJudge, says
from tests.shared import shared_data

from sonogauge import build, compare, import_cases, report, run, score
from sonogauge.analyses import analyse
from sonogauge.benchmarks.spec import read_spec
from sonogauge.folders import Folder
from sonogauge.items import Item
from sonogauge.score.judge import judge

pytestmark = [pytest.mark.real, pytest.mark.part("medlesionvqa")]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lesions")
    import_cases("isic", shared_data("isic_udal"), folder / "cases" / "isic")
    import_cases("busi", shared_data("busi"), folder / "cases" / "busi")
    build("medlesionvqa", folder / "cases", folder / "bench")
    for name in ("oracle", "random", "majority"):
        run(folder / "bench", f"baseline/{name}", folder / name / "run")
        score(folder / name / "run", out=folder / name / "scores", draws=200)
    return folder


def test_what_was_asked(root: Path) -> None:
    items = [Item.from_row(row) for row in Folder(root / "bench", "benchmark").rows("items")]
    # 18 skin images; 11 breast images with a lesion, the normal ones have nothing to ask about.
    assert Counter(one.source for one in items if one.task == "ranking") == {"isic": 18, "busi": 11}
    assert {one.task for one in items} == set(read_spec(root / "bench").tasks)
    diagnosis = [one for one in items if (one.task, one.dataset) == ("single_choice", "DD")]
    assert Counter(one.reference["choices"][0] for one in diagnosis if one.source == "isic") == {
        "nevus": 9,
        "melanoma": 9,
    }
    shapes = [one for one in items if one.meta.get("attribute_asked") == "shape"]
    assert shapes and all(len(one.reference["choices"]) == 2 for one in shapes)
    groups: dict[str, set[str]] = {}
    for one in items:
        groups.setdefault(one.group, set()).add(one.split)
    assert all(len(found) == 1 for found in groups.values())


def test_the_tables(root: Path) -> None:
    document = json.loads(report([root / "oracle" / "scores"], format="json"))
    for task, facts in document["tasks"].items():
        headline = read_spec(root / "bench").tasks[task].headline
        assert facts["metrics"][headline]["value"] == 1.0
    found = analyse(
        root / "random" / "scores",
        "abilities",
        beside=[root / "majority" / "scores", root / "oracle" / "scores"],
        draws=200,
    )
    rows = {row["ability"]: row for row in found.table("abilities_test")["rows"]}
    assert rows["micro"]["baseline/oracle"]["value"] == rows["macro"]["baseline/oracle"]["value"] == 1.0
    assert rows["micro"]["baseline/random"]["value"] < rows["micro"]["baseline/majority"]["value"]
    sets = {row["model"]: row for row in found.table("sets_test")["rows"]}
    assert sets["baseline/oracle"]["size"] == 1.0 and sets["baseline/oracle"]["f1"] == 1.0
    composition = analyse(root / "bench", "composition")
    assert {row["by"] for row in composition.table("composition")["rows"]} >= {"ability", "type", "attribute", "lesion"}
    differentials = analyse(root / "bench", "differentials")
    assert len(differentials.table("differentials")["rows"]) == 29


def test_a_scripted_judge_gives_verdicts_that_become_tables(root: Path) -> None:
    # Accepts what begins like a reference, half accepts what says anything at all.
    judge_folder = root / "verdicts"
    items = {row["item_id"]: row for row in Folder(root / "bench", "benchmark").rows("items")}
    lines = []
    for item_id, row in items.items():
        if row["split"] == "test" and row["answer"]["form"] == "text":
            right = row["reference"]["texts"][0]
            said = f"Probably {right}" if len(lines) % 2 else "a thing"
            lines.append({"item_id": item_id, "text": said, "model": "talker"})
    file = root / "talker.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    scripted = ScriptedJudge(lambda data, nth: says(1.0 if "Probably" in data["candidate answer"] else 0.5))
    judge(file, judge_folder, [scripted], bench=root / "bench")
    score(file, bench=root / "bench", out=root / "talker", verdicts=judge_folder, scenarios="present", draws=200)
    found = analyse(root / "talker", "verdicts", draws=200)
    rows = {(row["by"], row["part"]): row for row in found.table("verdicts")["rows"]}
    assert {part for by, part in rows if by == "type"} == {"fill_in_blank", "short_answer"}
    whole = [row for (by, _), row in rows.items() if by == "type"]
    assert sum(row["n"] for row in whole) == len(lines)
    for row in rows.values():
        assert sum(row[level]["value"] for level in ("0", "0.5", "1")) == pytest.approx(1.0)
    assert sum(row["n"] * row["1"]["value"] for row in whole) == pytest.approx(len(lines) // 2)


def test_a_comparison_counts_every_way_of_answering(root: Path) -> None:
    found = compare([root / "random" / "run", root / "majority" / "run"], draws=200, swaps=99)
    text = json.dumps(found.document)
    assert "fill_in_blank" in text and "ranking" in text
    assert "not counted for the answer form" not in text
