"""Exports opened by the tools they are for, and read back; what may not be passed on stays."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml
from PIL import Image

from sonogauge._errors import BadInput
from sonogauge.answers import FORMS
from sonogauge.build import build
from sonogauge.build.from_recipe import build_from_recipe
from sonogauge.cases.geometry import decode_mask
from sonogauge.cli import app, main
from sonogauge.export import FORMATS, export
from sonogauge.export.content import item_hash
from sonogauge.folders import Folder, Manifest, new_folder
from tests.build.made_cases import breast_cases, write_cases
from tests.build.test_engine import BOXED
from tests.build.test_recipe import DX, items_of, recipe_of
from tests.shared import ROOT, shared_data

pytestmark = [pytest.mark.part("export"), pytest.mark.filterwarnings("ignore::ResourceWarning")]

TASKS: dict[str, Any] = {
    "DX": {**DX, "letters": True},
    "LP": {
        "title": "place",
        "question": "place",
        "category": "lesion",
        "absent": {"pathology": "normal"},
        "template": "Where?\n{answer_format}",
    },
    "SZ": {
        "title": "size",
        "question": "number",
        "measurement": "diameter",
        "unit": "mm",
        "low": 0,
        "high": 9,
        "template": "How long?\n{answer_format}",
    },
    "RG": {"title": "report", "question": "text", "kind": "report", "template": "Report.\n{answer_format}"},
}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("open")
    write_cases(folder / "cases", breast_cases(24))
    file = recipe_of(folder, TASKS, split={"small_source": 0, "test_fraction": 0.5})
    build_from_recipe(file, folder / "bench")
    return folder / "bench"


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A benchmark of open, closed and private cases."""
    folder = tmp_path_factory.mktemp("mixed")
    rows = breast_cases(12)
    for number, row in enumerate(rows):
        row["redistributable"] = number % 3 == 0
        row["private"] = number % 3 == 2
        row["licence"] = ("CC0", "on request", "private")[number % 3]
    rows[3]["redistributable"] = None
    write_cases(folder / "cases", rows)
    build_from_recipe(recipe_of(folder, TASKS), folder / "bench")
    return folder / "bench"


def hashes_of(bench: Path) -> dict[str, str]:
    folder = Folder(bench)
    media = {row["case_id"]: row["sha256"] for row in folder.rows("cases", ["case_id", "sha256"])}
    return {
        row["item_id"]: item_hash(row, [media[image["case_id"]] for image in row["images"]])
        for row in folder.rows("items")
    }


def all_bytes(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file())


@pytest.mark.parametrize("format", ["hf", "jsonl", "croissant"])
def test_an_export_read_back_has_the_same_items(bench: Path, tmp_path: Path, format: str) -> None:
    export(bench, format, tmp_path / "out")
    build("exported", tmp_path / "out", tmp_path / "again")
    assert hashes_of(tmp_path / "again") == hashes_of(bench)
    assert Folder(tmp_path / "again").manifest.tables["items"] == Folder(bench).manifest.tables["items"]
    old, new = (Folder(one).table("cases").drop_columns("image") for one in (bench, tmp_path / "again"))
    assert old.equals(new)
    media = {row["case_id"]: row["image"]["bytes"] for row in Folder(bench).rows("cases", ["case_id", "image"])}
    for row in Folder(tmp_path / "again").rows("cases", ["case_id", "image"]):
        assert row["image"]["bytes"] == media[row["case_id"]]


@pytest.mark.real
@pytest.mark.parametrize("format", ["hf", "jsonl"])
def test_busi_goes_out_and_comes_back(tmp_path: Path, format: str) -> None:
    build("breast-lesion", shared_data("busi", "data"), tmp_path / "bench")
    done = export(tmp_path / "bench", format, tmp_path / "out")
    assert (done.items, done.withheld, done.private) == (45, 0, 0)
    build("exported", tmp_path / "out", tmp_path / "again")
    assert hashes_of(tmp_path / "again") == hashes_of(tmp_path / "bench")


def test_hugging_face_datasets_opens_the_parquet_as_images(bench: Path, tmp_path: Path) -> None:
    import datasets

    export(bench, "hf", tmp_path / "out")
    found = datasets.load_dataset(str(tmp_path / "out"), cache_dir=str(tmp_path / "cache"))
    items = items_of(bench)
    assert {split: len(part) for split, part in found.items()} == {
        split: sum(item.split == split for item in items.values()) for split in ("test", "train")
    }
    media = {row["case_id"]: row["image"]["bytes"] for row in Folder(bench).rows("cases", ["case_id", "image"])}
    for row in found["test"]:
        item = items[row["item_id"]]
        assert row["question"] == item.question
        assert tuple(row["answer"]["options"]) == item.answer.options
        with Image.open(io.BytesIO(media[item.images[0].case_id])) as image:
            assert np.array_equal(np.asarray(row["image"]), np.asarray(image))
    cases = datasets.load_dataset(str(tmp_path / "out"), "cases", cache_dir=str(tmp_path / "cache"))
    assert len(cases["cases"]) == 24


def test_the_card_says_what_the_files_are(bench: Path, tmp_path: Path) -> None:
    export(bench, "hf", tmp_path / "out")
    text = (tmp_path / "out" / "README.md").read_text("utf-8")
    _, header, body = text.split("---\n", 2)
    facts = yaml.safe_load(header)
    assert facts["license_name"] == "CC0"
    assert [config["config_name"] for config in facts["configs"]] == ["items", "cases"]
    assert "sonogauge canary " in body
    assert "| DX | diagnosis | choice | made | test |" in body
    assert "Leakage audit" in body


def test_the_canary_is_in_every_file_with_items_and_stays_the_same(bench: Path, tmp_path: Path) -> None:
    texts = {}
    for format, file in (
        ("jsonl", "items.jsonl"),
        ("vlmevalkit", "made_MCQ.tsv"),
        ("coco", "annotations/instances_test.json"),
        ("croissant", "croissant.json"),
    ):
        export(bench, format, tmp_path / format)
        texts[format] = (tmp_path / format / file).read_text("utf-8")
    canaries = {text[text.index("sonogauge canary") :][:53] for text in texts.values()}
    assert len(canaries) == 1
    assert all(canaries.copy().pop() in line for line in texts["jsonl"].splitlines())


def test_what_may_not_be_passed_on_leaves_as_a_recipe(mixed: Path, tmp_path: Path) -> None:
    cases = {row["case_id"]: row for row in Folder(mixed).rows("cases")}
    closed = [row for row in cases.values() if row["redistributable"] is not True and not row["private"]]
    private = [row for row in cases.values() if row["private"]]
    assert len(closed) == 5 and len(private) == 4
    for format in ("hf", "jsonl", "vlmevalkit", "coco", "croissant"):
        done = export(mixed, format, tmp_path / format)
        assert (done.items, done.withheld, done.private) == (12, 20, 16)
        content = all_bytes(tmp_path / format)
        for row in [*closed, *private]:
            assert row["image"]["bytes"] not in content
            assert base64.b64encode(row["image"]["bytes"]) not in content
            assert base64.b64encode(row["image"]["bytes"])[:200] not in content
        for row in private:
            assert row["case_id"].encode() not in content
        lines = [json.loads(line) for line in (tmp_path / format / "withheld.jsonl").read_text("utf-8").splitlines()]
        assert {line["item_id"] for line in lines} == {f"{task}/{row['case_id']}" for row in closed for task in TASKS}
        stated = hashes_of(mixed)
        for line in lines:
            assert set(line) == {"item_id", "item_hash", "cases"}
            assert line["item_hash"] == stated[line["item_id"]]
            assert set(line["cases"][0]) == {"case_id", "source", "licence", "sha256", "pixel_hash"}


# Made for benchmarks of their own kind, they refuse others.
_OWN_KIND = ("questions", "ultrag")


def _contents(folder: Path) -> bytes:
    """All files of a folder, and what Parquet packs."""
    unpacked = (repr(pq.read_table(file).to_pylist()).encode() for file in sorted(folder.rglob("*.parquet")))
    return b"".join((all_bytes(folder), *unpacked))


@pytest.mark.parametrize("format", sorted(set(FORMATS) - set(_OWN_KIND)))
def test_no_format_takes_pictures_drawn_from_closed_or_private_ones(tmp_path: Path, format: str) -> None:
    rows = [row for row in breast_cases(12) if row["boxes"]]
    for number, row in enumerate(rows):
        row["redistributable"] = number % 3 == 0
        row["private"] = number % 3 == 2
    write_cases(tmp_path / "cases", rows)
    build_from_recipe(recipe_of(tmp_path, {"BX": BOXED}), tmp_path / "bench")
    drawn = list(Folder(tmp_path / "bench").rows("cases"))
    assert len(drawn) > 3 and {row["case_id"] for row in drawn}.isdisjoint(row["case_id"] for row in rows)
    export(tmp_path / "bench", format, tmp_path / "out")
    content = _contents(tmp_path / "out")
    left = 0
    for row in drawn:
        data = row["image"]["bytes"]
        # As bytes, as what Python shows of bytes in a table, as text.
        forms = (data, repr(data)[2:-1].encode(), base64.b64encode(data))
        gone = any(form in content for form in forms)
        assert gone == (row["redistributable"] is True and not row["private"]), row["case_id"]
        left += gone
        if row["private"]:
            assert row["case_id"].encode() not in content and row["sha256"].encode() not in content
    assert left


def test_nothing_to_pass_on_still_gives_a_recipe(tmp_path: Path) -> None:
    rows = breast_cases(6)
    for row in rows:
        row["redistributable"] = False
    write_cases(tmp_path / "cases", rows)
    build_from_recipe(recipe_of(tmp_path, TASKS), tmp_path / "bench")
    for format in ("hf", "jsonl", "vlmevalkit", "coco", "croissant"):
        done = export(tmp_path / "bench", format, tmp_path / format)
        assert (done.items, done.withheld) == (0, 24)
        assert (tmp_path / format / "withheld.jsonl").is_file()


def test_vlmevalkit_tables(bench: Path, tmp_path: Path) -> None:
    done = export(bench, "vlmevalkit", tmp_path / "out")
    items = items_of(bench)
    media = {row["case_id"]: row["image"]["bytes"] for row in Folder(bench).rows("cases", ["case_id", "image"])}
    csv.field_size_limit(10**8)
    seen = set()
    for kind in ("MCQ", "VQA"):
        with (tmp_path / "out" / f"made_{kind}.tsv").open(encoding="utf-8", newline="") as stream:
            for row in csv.DictReader(stream, delimiter="\t"):
                item = items[row["item_id"]]
                seen.add(row["item_id"])
                assert base64.b64decode(row["image"]) == media[item.images[0].case_id]
                if kind == "MCQ":
                    right = (item.reference.get("choices") or item.reference["places"])[0]
                    assert row[row["answer"]] == right
                    assert [row[letter] for letter in "ABCDEFGHIJ" if row[letter]] == list(item.answer.options)
                    assert "Options:" not in row["question"] and row["question"]
                else:
                    assert FORMS.load(item.answer.form).parse(row["answer"], item.answer).valid
    assert seen == {name for name, item in items.items() if item.split == "test"}
    assert sum(done.files.values()) == len(seen)


def test_coco_opens_and_its_masks_are_the_same(bench: Path, tmp_path: Path) -> None:
    from pycocotools.coco import COCO

    export(bench, "coco", tmp_path / "out")
    cases = {row["case_id"]: row for row in Folder(bench).rows("cases")}
    total = 0
    for part in ("test", "train"):
        found = COCO(str(tmp_path / "out" / "annotations" / f"instances_{part}.json"))
        for image in found.imgs.values():
            data = (tmp_path / "out" / "images" / image["file_name"]).read_bytes()
            row = cases[image["case_id"]]
            assert hashlib.sha256(data).hexdigest() == row["sha256"]
            own = found.loadAnns(found.getAnnIds(image["id"]))
            assert len(own) == len(row["masks"])
            for one, mask, box in zip(own, row["masks"], row["boxes"], strict=True):
                assert np.array_equal(found.annToMask(one).astype(bool), decode_mask(mask))
                assert one["area"] == decode_mask(mask).sum()
                assert one["bbox"] == [box["x"], box["y"], box["w"], box["h"]]
                assert found.cats[one["category_id"]]["name"] == "lesion"
            total += 1
    assert total == 24


@pytest.mark.filterwarnings("ignore")
def test_croissant_is_valid_and_gives_the_records(bench: Path, tmp_path: Path) -> None:
    import mlcroissant

    export(bench, "croissant", tmp_path / "out")
    found = mlcroissant.Dataset(jsonld=str(tmp_path / "out" / "croissant.json"))
    assert not found.metadata.issues.errors
    items = items_of(bench)
    records = list(found.records("test"))
    assert {record["test/item_id"].decode() for record in records} == {
        name for name, item in items.items() if item.split == "test"
    }
    assert records[0]["test/image"].size == (128, 128)


def test_a_changed_export_is_refused(bench: Path, tmp_path: Path) -> None:
    export(bench, "jsonl", tmp_path / "out")
    file = tmp_path / "out" / "items.jsonl"
    good = file.read_text("utf-8")
    file.write_text(good.replace('"benign"]', '"normal"]', 1), "utf-8")
    with pytest.raises(BadInput, match="the item is not what it was at the export"):
        build("exported", tmp_path / "out", tmp_path / "again")
    file.write_text(good[: len(good) // 2], "utf-8")
    with pytest.raises(BadInput, match="not JSON"):
        build("exported", tmp_path / "out", tmp_path / "again")
    file.write_text(good, "utf-8")
    image = next((tmp_path / "out" / "images").iterdir())
    image.write_bytes(image.read_bytes() + b"x")
    with pytest.raises(BadInput, match="the image is not what it was at the export"):
        build("exported", tmp_path / "out", tmp_path / "again")
    image.unlink()
    with pytest.raises(BadInput, match="cannot be read"):
        build("exported", tmp_path / "out", tmp_path / "again")
    cases = tmp_path / "out" / "cases.jsonl"
    cases.write_text(
        cases.read_text("utf-8").replace('"image_file":"images/', '"image_file":"../../../etc/', 1), "utf-8"
    )
    with pytest.raises(BadInput):
        build("exported", tmp_path / "out", tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_a_damaged_parquet_export_is_refused(bench: Path, tmp_path: Path) -> None:
    export(bench, "hf", tmp_path / "out")
    file = tmp_path / "out" / "data" / "test.parquet"
    file.write_bytes(file.read_bytes()[:500])
    with pytest.raises(BadInput, match="damaged"):
        build("exported", tmp_path / "out", tmp_path / "again")


def test_same_benchmark_same_bytes(bench: Path, tmp_path: Path) -> None:
    for format in ("hf", "jsonl", "vlmevalkit", "coco", "croissant"):
        export(bench, format, tmp_path / f"{format}-1")
        export(bench, format, tmp_path / f"{format}-2")
        assert all_bytes(tmp_path / f"{format}-1") == all_bytes(tmp_path / f"{format}-2")


def test_the_command(
    bench: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*words: str) -> Any:
        monkeypatch.setattr("sys.argv", ["sonogauge", "export", str(bench), *words])
        with pytest.raises(SystemExit) as end:
            main()
        return end.value.code

    assert run("--format", "jsonl", "--out", str(tmp_path / "out")) == 0
    assert "items exported as jsonl" in capsys.readouterr().out
    assert run("--format", "jsonl", "--out", str(tmp_path / "out")) == 2
    assert "exists already; pass --overwrite" in capsys.readouterr().err
    assert run("--format", "excel", "--out", str(tmp_path / "other")) == 2
    assert "no export format 'excel'; known: coco, croissant, hf" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("table", "column", "value", "message"),
    [
        ("items", "split", "../../out", "no part of a benchmark"),
        ("cases", "sha256", "../../../../etc/passwd", "has no SHA-256"),
        ("cases", "sha256", "0" * 64, "is not the one of its hash"),
        ("cases", "licence", "CC0 |\n---\n# Not a heading", ""),
    ],
)
def test_hostile_values_reach_no_file_name_and_no_heading(
    bench: Path, tmp_path: Path, table: str, column: str, value: str, message: str
) -> None:
    folder = Folder(bench)
    with new_folder(tmp_path / "bench") as out:
        for name in ("cases", "items"):
            rows = [{**row, **({column: value} if name == table else {})} for row in folder.rows(name)]
            out.table(name).write(rows)
        (out.path / "benchmark.json").write_bytes((bench / "benchmark.json").read_bytes())
        out.finish(Manifest(kind="benchmark", maker="test", name="made"))
    if message:
        with pytest.raises(BadInput, match=message):
            export(tmp_path / "bench", "jsonl", tmp_path / "out")
        assert sorted(one.name for one in tmp_path.iterdir()) == ["bench"]
    else:
        export(tmp_path / "bench", "jsonl", tmp_path / "out")
        assert "\n# Not a heading" not in (tmp_path / "out" / "README.md").read_text("utf-8")


def test_help_and_docs_name_every_format() -> None:
    import typer

    command = typer.main.get_command(app).commands["export"]  # type: ignore[attr-defined]
    told = next(one.help for one in command.params if one.name == "format")
    page = (ROOT / "docs" / "recipes.md").read_text("utf-8")
    for format in FORMATS:
        assert format in re.findall(r"\w+", told), format
        assert f"| `{format}` |" in page, format
