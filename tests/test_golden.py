"""The golden rows go through write, read, score and report: nothing is lost, nothing vanishes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sonogauge.folders import Folder, sort_rows
from sonogauge.items import Item
from sonogauge.report import report, view_rows
from sonogauge.score import score
from tests import golden

pytestmark = pytest.mark.part("tables")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Folder, Folder]:
    place = tmp_path_factory.mktemp("golden")
    benchmark = golden.write_benchmark(place / "bench")
    return benchmark, golden.write_run(place / "run", benchmark)


def test_one_item_for_every_answer_form() -> None:
    forms = {row["answer"]["form"] for row in golden.ITEMS}
    assert forms == {
        *("choice", "multi_choice", "ranking", "place", "box", "point", "number", "text"),
        *("mask", "grounded", "grounded_report"),
    }
    assert {row["variant"] for row in golden.REPLIES} == set(golden.VARIANTS)


@pytest.mark.parametrize("name", ["cases", "items", "replies"])
def test_rows_are_read_back_identical(folders: tuple[Folder, Folder], name: str) -> None:
    folder = folders[1] if name == "replies" else folders[0]
    written = {"cases": golden.CASES, "items": golden.ITEMS, "replies": golden.REPLIES}[name]
    assert list(folder.rows(name)) == sort_rows(written, name)


def test_items_survive_their_typed_form(folders: tuple[Folder, Folder]) -> None:
    for row in folders[0].rows("items"):
        item = Item.from_row(row)
        assert golden.complete(item.to_row(), golden.SCHEMAS["items"]) == row
        assert Item.from_row(item.to_row()) == item


def test_every_form_reaches_scores_and_report(folders: tuple[Folder, Folder], tmp_path: Path) -> None:
    score(folders[1].path, out=tmp_path / "scores", draws=200)
    found = json.loads(report([tmp_path / "scores"], format="json"))
    assert set(found["tasks"]) == {form.upper() for form in golden.METRICS_OF}
    for code, task in found["tasks"].items():
        assert set(golden.METRICS_OF[code.lower()]) <= set(task["metrics"])
        assert task["datasets"]["01"]["n"] >= 1
        headline = task["datasets"]["01"]["metrics"][golden.METRICS_OF[code.lower()][0]]
        assert headline["value"] is not None, headline["why_null"]
    values = {
        code: found["tasks"][code]["datasets"]["01"]["metrics"][golden.METRICS_OF[code.lower()][0]]["value"]
        for code in found["tasks"]
    }
    # One right and one failed choice; the right set in another order; the second of two places; 10 of 100 mm off.
    # The mask itself; a right answer without its pixels; a report cut off.
    drawn = {"MASK": 1.0, "GROUNDED": 0.0, "GROUNDED_REPORT": 0.0}
    # The box itself, a point in it, and the order itself.
    drawn |= {"BOX": 1.0, "POINT": 1.0, "RANKING": 1.0}
    assert values == pytest.approx(
        {"CHOICE": 0.5, "MULTI_CHOICE": 1.0, "PLACE": 1.0, "NUMBER": 0.1, "TEXT": 1.0, **drawn}
    )
    choice = found["tasks"]["CHOICE"]
    assert (choice["n"], choice["valid"]) == (2, 1)
    assert (found["tasks"]["NUMBER"]["n"], found["tasks"]["NUMBER"]["excluded"]) == (1, 1)
    assert found["failures"]["error"] == 1
    # CHOICE 0.5 and BOX 1, the same weight each.
    assert found["composites"]["golden_score"]["value"] == pytest.approx(0.75)
    assert set(found["variants"]) == {"no-image", "reworded"}
    reworded = found["variants"]["reworded"]["tasks"]["CHOICE"]["datasets"]["01"]["metrics"]["accuracy"]
    assert reworded["value"] == 0.0
    for format in ("md", "csv", "latex"):
        text = report([tmp_path / "scores"], format=format)
        assert all(code in text.replace("\\", "") for code in found["tasks"])


def test_a_score_item_row_for_every_reply(folders: tuple[Folder, Folder], tmp_path: Path) -> None:
    score(folders[1].path, out=tmp_path / "scores", draws=200, baselines=False)
    rows = {(row["item_id"], row["variant"]): row for row in Folder(tmp_path / "scores").rows("score_items")}
    assert {(row["item_id"], row["variant"]) for row in golden.REPLIES} <= set(rows)
    assert rows["golden/choice-failed", ""]["reason"] == "error"
    assert rows["golden/grounded_report", ""]["reason"] == "truncated"
    assert rows["golden/number-null", ""]["excluded"] == "null"
    assert rows["golden/choice", ""]["prediction"]["choices"] == ["benign"]
    assert rows["golden/place", ""]["prediction"]["places"] == ["lower left"]
    assert rows["golden/number", ""]["prediction"]["number"] == 22.5
    # What a reply in a variant owes: the other item of the same cell was not answered there.
    assert rows["golden/choice-failed", "reworded"]["reason"] == "missing"


def test_a_published_row_stands_beside_the_scores(folders: tuple[Folder, Folder]) -> None:
    scores = score(folders[1].path, draws=200, baselines=False)
    view = view_rows(scores.spec, scores.manifest, [*scores.metrics, golden.PUBLISHED])
    block = next(one for one in view.tables if one.key == "published")
    assert [cell.plain for cell in block.rows[0]] == ["Known-1", "48.2%"]
    assert block.footnotes == ("averages other data sets",)
    assert "Source: a paper, table 2." in block.notes
