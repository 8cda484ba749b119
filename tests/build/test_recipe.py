"""From a recipe to a benchmark that run, score and report take as it is."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import sonogauge
from sonogauge._errors import BadInput
from sonogauge.benchmarks.prompts import load_prompt
from sonogauge.benchmarks.spec import read_spec
from sonogauge.build.fingerprint import decode
from sonogauge.build.from_recipe import build_from_recipe
from sonogauge.build.recipe import read_recipe
from sonogauge.cli import main
from sonogauge.folders import Folder
from sonogauge.items import Item
from tests.build.made_cases import breast_cases, case, disc, picture, write_cases
from tests.shared import shared_data

pytestmark = pytest.mark.part("recipes")

QUESTION = "Image of the {anatomy}.\n{answer_format}"
DX: dict[str, Any] = {"title": "diagnosis", "question": "choice", "label": "pathology", "template": QUESTION}


def recipe_of(folder: Path, tasks: dict[str, Any], **keys: Any) -> Path:
    file = folder / "recipe.yaml"
    whole = {"name": "made", "version": "1", "title": "Made", "sources": [{"cases": "cases"}], "tasks": tasks, **keys}
    file.write_text(yaml.safe_dump(whole, sort_keys=False), "utf-8")
    return file


def items_of(bench: Path) -> dict[str, Item]:
    return {row["item_id"]: Item.from_row(row) for row in Folder(bench).rows("items")}


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    return write_cases(tmp_path / "cases", breast_cases(24))


@pytest.mark.real
def test_busi_becomes_a_benchmark_that_is_run_scored_and_reported(tmp_path: Path) -> None:
    bench = tmp_path / "bench"
    manifest = sonogauge.build("breast-lesion", shared_data("busi", "data"), bench)
    items = items_of(bench)
    assert Counter(item.task for item in items.values()) == {"DX": 15, "LP": 15, "RG": 15}
    answers = Counter(item.reference["choices"][0] for item in items.values() if item.task == "DX")
    assert answers == {"benign": 6, "malignant": 5, "normal": 4}
    places = {item.item_id: item.reference["places"][0] for item in items.values() if item.task == "LP"}
    assert sum(place == "not visible" for place in places.values()) == 4
    report = items["RG/busi/normal (1)"].reference["texts"]
    assert report == ("Ultrasound image of the breast. No focal lesion is seen.",)
    assert "Several lesions are seen" in items["RG/busi/benign (4)"].reference["texts"][0]
    flagged = manifest.counts["quality"]["flagged"]
    assert flagged["burned-in text"] == 5
    assert not list(tmp_path.glob(".*"))
    run = sonogauge.run(bench, "baseline/majority", tmp_path / "run")
    assert run.statuses["ok"] == 45
    sonogauge.score(tmp_path / "run", out=tmp_path / "scores", draws=200)
    document = json.loads(sonogauge.report([tmp_path / "scores"], format="json"))
    assert document["tasks"]["DX"]["n"] == 15
    assert document["tasks"]["LP"]["metrics"]["accuracy"]["value"] is not None


def test_same_recipe_same_bytes(cases: Path, tmp_path: Path) -> None:
    file = recipe_of(tmp_path, {"DX": {**DX, "shuffle": "hash", "letters": True}}, split={"small_source": 0})
    one = build_from_recipe(file, tmp_path / "one")
    two = build_from_recipe(file, tmp_path / "two", workers=1)
    assert one.hash == two.hash
    for name in ("items.parquet", "cases.parquet", "benchmark.json", "audit.json", "manifest.json"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    other = build_from_recipe(file, tmp_path / "other", seed=5)
    assert other.tables["items"].hash != one.tables["items"].hash


def test_every_kind_of_question(cases: Path, tmp_path: Path) -> None:
    file = recipe_of(
        tmp_path,
        {
            "DX": {**DX, "letters": True, "shuffle": "hash"},
            "LP": {
                "title": "place",
                "question": "place",
                "category": "lesion",
                "absent": {"pathology": "normal"},
                "template": "Where is the {structure}?\n{answer_format}",
            },
            "SZ": {
                "title": "size",
                "question": "number",
                "measurement": "diameter",
                "unit": "mm",
                "low": 0,
                "high": 4,
                "template": "One pixel is {pixel_size_mm} mm.\n{answer_format}",
            },
            "RG": {"title": "report", "question": "text", "kind": "report", "template": "Report.\n{answer_format}"},
            "BX": {
                "title": "box",
                "question": "boxed",
                "options": ["lesion", "vessel"],
                "template": "What is in the red box?\n{answer_format}",
            },
        },
    )
    manifest = build_from_recipe(file, tmp_path / "bench")
    items = items_of(tmp_path / "bench")
    rows = {row["case_id"]: row for row in Folder(tmp_path / "bench").rows("cases")}
    choice = items["DX/made/001"]
    assert choice.answer.letters == ("A", "B", "C")
    assert set(choice.answer.options) == {"normal", "benign", "malignant"}
    assert choice.chance == pytest.approx(1 / 3)
    assert "Image of the breast." in choice.question and "A. " in choice.question
    place = items["LP/made/001"]
    assert place.reference["places"] == ("upper right",)
    assert items["LP/made/000"].reference["places"] == ("not visible",)
    size = items["SZ/made/003"]
    assert size.reference["number"] == pytest.approx(2.3)
    assert "One pixel is 0.1 mm" in size.question
    assert "SZ/made/023" not in items
    assert manifest.counts["questions"]["not asked"]["SZ"] == {"outside the declared range": 3}
    assert items["RG/made/005"].reference["texts"] == ("Report 5.",)
    boxed = items["BX/made/001~lesion-1"]
    (image,) = boxed.images
    drawn = decode(rows[image.case_id]["image"]["bytes"])
    original = decode(rows["made/001"]["image"]["bytes"])
    assert drawn is not None and original is not None
    red = (drawn == (255, 0, 0)).all(axis=2)
    box = rows["made/001"]["boxes"][0]
    assert (
        red.any() and not red[int(box["y"]) : int(box["y"] + box["h"]), int(box["x"]) : int(box["x"] + box["w"])].any()
    )
    assert (drawn[~red][:, 0] == original[~red]).all()
    assert list(rows) == sorted(rows)
    assert boxed.group == "made:p-001" == rows[image.case_id]["group"]
    spec = read_spec(tmp_path / "bench")
    assert {one.key for one in spec.scenarios} == {(code, "made") for code in ("DX", "LP", "SZ", "RG", "BX")}
    template = load_prompt("made", "dx", "1", tmp_path / "bench" / "prompts")
    assert template == QUESTION


def test_splits_stages_and_sampling_are_counted(cases: Path, tmp_path: Path) -> None:
    rows = breast_cases(24)
    rows[3]["image"] = {"bytes": b"broken", "path": "x"}
    rows[5]["labels"] = []
    rows[7]["labels"] = [{"name": "pathology", "value": "other"}]
    write_cases(tmp_path / "more", rows)
    file = recipe_of(
        tmp_path,
        {"DX": DX},
        sources=[{"cases": "more"}],
        vocabulary={"drop": {"pathology": ["other"]}},
        quality={"needs": ["pathology"]},
        split={"small_source": 0, "test_fraction": 0.5},
        sampling={"per_scenario": 4},
        max_dropped=0.1,
    )
    counts = build_from_recipe(file, tmp_path / "bench").counts
    assert counts["quality"]["left out"] == {"missing label": 1, "unreadable": 1}
    assert counts["vocabulary"]["class filter"] == {"pathology=other": 1}
    assert counts["items"] == {"test": 4, "train": 4}
    assert sum(counts["splits"]["cases"].values()) == 21
    assert len(Folder(tmp_path / "bench").table("cases")) == 8
    with pytest.raises(BadInput, match="2 of 24 cases cannot be used: 1 missing label, 1 unreadable; first made/003"):
        build_from_recipe(file, tmp_path / "strict", max_dropped=0.05)
    assert not (tmp_path / "strict").exists()


def test_words_are_mapped_in_cases_and_items(tmp_path: Path) -> None:
    row = case("a", picture(1), {"Tumour": disc(128, 0.5, 0.5, 0.2)}, labels={"pathology": "B9"})
    other = case("b", picture(2), labels={"pathology": "malignant"})
    write_cases(tmp_path / "cases", [row, other])
    (tmp_path / "words.csv").write_text("raw,canonical\nB9,benign\ntumour,lesion\nmalignant,malignant\n", "utf-8")
    file = recipe_of(tmp_path, {"DX": DX}, vocabulary={"file": "words.csv"})
    manifest = build_from_recipe(file, tmp_path / "bench")
    assert items_of(tmp_path / "bench")["DX/made/a"].reference["choices"] == ("benign",)
    assert items_of(tmp_path / "bench")["DX/made/a"].meta["raw_label"] == "B9"
    (first, _) = Folder(tmp_path / "bench").rows("cases")
    assert first["masks"][0]["category"] == "lesion"
    assert manifest.counts["vocabulary"]["words changed"] == 2
    plain = recipe_of(tmp_path, {"DX": DX}, vocabulary={"file": "words.csv", "use": False})
    build_from_recipe(plain, tmp_path / "plain")
    assert items_of(tmp_path / "plain")["DX/made/a"].reference["choices"] == ("B9",)
    strict = recipe_of(tmp_path, {"DX": DX}, vocabulary={"file": "words.csv", "unmapped": "refuse"})
    with pytest.raises(BadInput, match="field 'anatomy': 'breast' of made is not in the vocabulary"):
        build_from_recipe(strict, tmp_path / "strict")


def test_several_sources_in_one_benchmark(tmp_path: Path) -> None:
    write_cases(tmp_path / "one", breast_cases(9, "b"))
    write_cases(tmp_path / "two", [*breast_cases(6, "a"), *breast_cases(6, "c")])
    file = recipe_of(tmp_path, {"DX": {**DX, "sources": ["a", "b"]}}, sources=[{"cases": "one"}, {"cases": "two"}])
    build_from_recipe(file, tmp_path / "bench")
    table = Folder(tmp_path / "bench").table("cases").column("case_id").to_pylist()
    assert table == sorted(table) and len(table) == 15
    assert {item.dataset for item in items_of(tmp_path / "bench").values()} == {"a", "b"}
    twice = recipe_of(tmp_path, {"DX": DX}, sources=[{"cases": "one"}, {"cases": "one"}])
    with pytest.raises(BadInput, match="two cases are called 'b/000'"):
        build_from_recipe(twice, tmp_path / "twice")


def test_a_leak_is_told_or_refused(tmp_path: Path) -> None:
    rows = breast_cases(12)
    for number, row in enumerate(rows):
        row["split"] = "test" if number % 2 else "train"
    rows[1]["image"], rows[1]["pixel_hash"] = rows[0]["image"], rows[0]["pixel_hash"]
    write_cases(tmp_path / "cases", rows)
    file = recipe_of(tmp_path, {"DX": DX}, split={"rule": "official"})
    manifest = build_from_recipe(file, tmp_path / "bench")
    assert manifest.counts["leakage"]["leaks"] == 1
    assert "leakage audit: same pixels: leaks; see audit.json" in manifest.notices
    with pytest.raises(BadInput, match="1 leaks between the parts; leak: same pixels: made/001"):
        build_from_recipe(file, tmp_path / "checked", check=True)
    assert not (tmp_path / "checked").exists()
    # Split by group, the twins stay together.
    safe = recipe_of(tmp_path, {"DX": DX}, split={"rule": "published", "small_source": 0})
    for row in rows:
        row["split"] = None
    write_cases(tmp_path / "again", rows)
    safe = recipe_of(tmp_path, {"DX": DX}, sources=[{"cases": "again"}], split={"small_source": 0})
    assert build_from_recipe(safe, tmp_path / "safe", check=True).counts["leakage"]["leaks"] == 0


def test_near_copies_are_kept_together_where_the_recipe_says_so(tmp_path: Path) -> None:
    rows = []
    for number in range(20):
        rows.append(case(f"{number:02d}", picture(number), labels={"pathology": "ab"[number % 2]}))
        flipped = np.ascontiguousarray(picture(number)[:, ::-1])
        rows.append(case(f"{number:02d}-flipped", flipped, labels={"pathology": "ab"[number % 2]}))
    write_cases(tmp_path / "cases", rows)
    exact = recipe_of(tmp_path, {"DX": DX}, split={"small_source": 0, "test_fraction": 0.5})
    assert build_from_recipe(exact, tmp_path / "exact").counts["leakage"]["states"]["near copies"] == "leaks"
    near = recipe_of(tmp_path, {"DX": DX}, split={"small_source": 0, "test_fraction": 0.5, "copies": "near"})
    manifest = build_from_recipe(near, tmp_path / "near")
    assert manifest.counts["leakage"]["states"]["near copies"] == "clean"
    assert manifest.counts["items"] == {"test": 20, "train": 20}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tasks": {}}, "field 'tasks'"),
        ({"colour": 1}, "field 'colour': Extra inputs are not permitted"),
        ({"sources": [{"cases": "x", "import": "busi"}]}, "give either `cases` or `import`"),
        ({"quality": {"checks": {"ugly": "drop"}}}, "no check 'ugly'; known: unreadable"),
        ({"tasks": {"A": {**DX, "label": ""}}}, "a question of kind 'choice' needs `label`"),
        ({"tasks": {"A": {**DX, "template": "x"}}}, "the template lacks {answer_format}"),
        ({"tasks": {"A": {**DX, "question": "number", "measurement": "x", "unit": "mm"}}}, "needs `low` and `high`"),
        ({"tasks": {"A": {**DX, "question": "text"}}}, "needs either `kind`"),
        ({"tasks": {"A": {**DX, "options": ["a", "A"]}}}, "an option is there twice"),
        ({"name": "Not A Name"}, "field 'name'"),
        ({"seed": -1}, "field 'seed'"),
        ({"quality": {"checks": {"blurred": True}}}, "'drop', 'flag' or 'off'"),
    ],
)
def test_a_wrong_recipe_is_refused_in_one_line(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    file = recipe_of(tmp_path, **{"tasks": {"DX": DX}, **change})
    with pytest.raises(BadInput) as error:
        read_recipe(file)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        read_recipe(tmp_path / "none.yaml")
    for text in ("a: [", "- 1", "a: !!python/object/apply:os.system ['x']"):
        (tmp_path / "bad.yaml").write_text(text, "utf-8")
        with pytest.raises(BadInput):
            read_recipe(tmp_path / "bad.yaml")
    with pytest.raises(BadInput, match="no such folder"):
        build_from_recipe(recipe_of(tmp_path, {"DX": DX}), tmp_path / "out")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["bad.yaml", "recipe.yaml"]


def test_nothing_to_ask_says_why(cases: Path, tmp_path: Path) -> None:
    file = recipe_of(tmp_path, {"DX": {**DX, "label": "grade"}})
    with pytest.raises(BadInput, match="nothing to ask \\(DX: 24 no label\\)"):
        build_from_recipe(file, tmp_path / "bench")


def test_a_template_that_tells_the_answer_is_not_asked(tmp_path: Path) -> None:
    rows = [
        case(f"{n}", picture(n), labels={"pathology": "ab"[n % 2]}, anatomy=f"{'ab'[n % 2]} breast") for n in range(4)
    ]
    write_cases(tmp_path / "cases", rows)
    with pytest.raises(BadInput, match="a variable of the template tells the answer"):
        build_from_recipe(recipe_of(tmp_path, {"DX": DX}), tmp_path / "bench")


def test_the_command_builds_from_a_recipe(
    cases: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = recipe_of(tmp_path, {"DX": DX})
    out = tmp_path / "bench"
    monkeypatch.setattr("sys.argv", ["sonogauge", "build", str(file), "--out", str(out), "--check", "--workers", "2"])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 0
    printed = capsys.readouterr().out
    assert "made: 24 cases, 24 items" in printed
    assert "splits: rules: made small source" in printed
