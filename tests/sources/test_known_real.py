"""Known sources on real files, beside what other libraries and the sources' own tables say."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from sonogauge.cases.ellipses import fit_ellipse
from sonogauge.cases.geometry import decode_mask
from sonogauge.folders import Manifest
from tests.shared import require_extra, shared_data
from tests.sources.pictures import facts, imported, labels

pytestmark = pytest.mark.real


def _copy(name: str, tmp_path: Path) -> Path:
    folder = tmp_path / name
    shutil.copytree(shared_data(name), folder)
    return folder


def _check_busi(rows: dict[str, dict[str, Any]], manifest: Manifest) -> None:
    assert len(rows) == manifest.counts["cases"] == 15 and manifest.counts["dropped"] == 0
    assert {name: len(row["masks"]) for name, row in rows.items() if len(row["masks"]) > 1} == {
        "benign (195)": 3,
        "benign (25)": 2,
        "benign (4)": 2,
        "malignant (53)": 2,
    }
    assert manifest.counts["masks"] == 16
    for name, row in rows.items():
        assert labels(row)["pathology"] == name.split()[0]
        assert len(row["boxes"]) == len(row["masks"]) and bool(row["boxes"]) == (not name.startswith("normal"))
        assert row["patient"] is None and "patient_unknown" in row["known_issues"]


@pytest.mark.part("known sources")
def test_busi_in_folders(tmp_path: Path) -> None:
    folder = _copy("busi", tmp_path)
    rows, manifest = imported("busi", folder)
    _check_busi(rows, manifest)
    for name, row in rows.items():
        kind = name.split()[0]
        assert row["image"]["bytes"] == (folder / "data" / kind / "images" / f"{name}.png").read_bytes()
        for number, mask in enumerate(row["masks"]):
            part = "" if number == 0 else f"_{number}"
            drawn = (
                np.asarray(Image.open(folder / "data" / kind / "mask" / f"{name}_mask{part}.png").convert("L")) > 127
            )
            assert np.array_equal(decode_mask(mask), drawn)


@pytest.mark.part("known sources")
def test_busi_in_its_original_layout_gives_the_same_cases(tmp_path: Path) -> None:
    folder = _copy("busi", tmp_path)
    first, _ = imported("busi", folder)
    for kind in ("benign", "malignant", "normal"):
        target = folder / "Dataset_BUSI_with_GT" / kind
        target.mkdir(parents=True)
        for file in (folder / "data" / kind).rglob("*.png"):
            shutil.move(file, target / file.name)
    rows, manifest = imported("busi", folder)
    _check_busi(rows, manifest)
    assert manifest.parameters["layouts"] == ["original"]
    assert rows == first


@pytest.mark.part("known sources")
def test_hc18_circumferences_agree_with_the_table(tmp_path: Path) -> None:
    folder = _copy("hc18", tmp_path)
    rows, manifest = imported("hc18", folder)
    assert len(rows) == 16 and manifest.counts["split train"] == 12 and manifest.counts["split test"] == 4
    with (folder / "training_set_pixel_size_and_HC.csv").open(newline="") as stream:
        table = {row["filename"]: row for row in csv.DictReader(stream)}
    for name, row in rows.items():
        if row["split"] == "test":
            assert not row["masks"] and not row["measurements"] and row["spacing"]
            continue
        stated = table[f"{name.removeprefix('train/')}.png"]
        spacing = (row["spacing"]["x"], row["spacing"]["y"])
        assert spacing[0] == spacing[1] == float(stated["pixel size(mm)"])
        (measured,) = row["measurements"]
        assert measured == {
            "name": "head circumference",
            "value": float(stated["head circumference (mm)"]),
            "unit": "mm",
        }
        ellipse = fit_ellipse(decode_mask(row["masks"][0]), spacing)
        assert ellipse is not None
        assert ellipse.circumference == pytest.approx(measured["value"], rel=0.02)


@pytest.mark.part("known sources")
def test_hc18_outlines_give_what_filled_heads_give(tmp_path: Path) -> None:
    import cv2

    folder = _copy("hc18", tmp_path)
    filled, _ = imported("hc18", folder)
    for file in folder.glob("training_set/*_Annotation.png"):
        mask = (np.asarray(Image.open(file).convert("L")) > 127).astype(np.uint8)
        outlines, _ = cv2.findContours(mask, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
        Image.fromarray(cv2.drawContours(np.zeros_like(mask), outlines, -1, 255, 1)).save(file)
    drawn, _ = imported("hc18", folder)
    for name, row in filled.items():
        assert drawn[name]["masks"] == row["masks"]


@pytest.mark.part("known sources")
def test_hc18_repeats_of_a_head_share_a_group_and_nested_folders_are_one(tmp_path: Path) -> None:
    folder = _copy("hc18", tmp_path)
    nested = folder / "training_set" / "training_set"
    nested.mkdir()
    for file in list(folder.glob("training_set/*.png")):
        shutil.move(file, nested / file.name)
    for ending in (".png", "_Annotation.png"):
        shutil.copy(nested / f"010_HC{ending}", nested / f"010_2HC{ending}")
    rows, _ = imported("hc18", folder)
    # The csv has no pixel size for the copy of this test, so the case says so.
    assert rows["train/010_2HC"]["group"] == rows["train/010_HC"]["group"] == "hc18:train-010"
    assert len(rows) == 17


@pytest.mark.part("known sources")
def test_lung_lines_stand_on_their_frames_and_missing_clips_are_told(tmp_path: Path) -> None:
    av = require_extra("medical", "av")
    folder = _copy("lus_ab_lines", tmp_path)
    rows, manifest = imported("lus-ab-lines", folder)
    task = folder / "Dataset/USG-A-lines/task_195"
    shapes = json.loads((task / "annotations.json").read_text())[0]["shapes"]
    assert {row["frame"] for row in rows.values()} == {shape["frame"] for shape in shapes}
    assert manifest.counts["masks"] == len(shapes) == 56
    assert manifest.counts["fault: annotations without a clip"] == 9 and manifest.counts["dropped"] == 0
    assert any(line.startswith("annotations without a clip: 9 (") for line in manifest.notices)
    with av.open(str(next(task.rglob("*.mp4")))) as clip:
        frames = [frame.to_ndarray(format="rgb24") for frame in clip.decode(video=0)]
    for name, row in rows.items():
        assert name == f"USG-A-lines/task_195/{row['frame']:04d}"
        with Image.open(io.BytesIO(row["image"]["bytes"])) as image:
            assert np.array_equal(np.asarray(image), frames[row["frame"]])
        own = [shape for shape in shapes if shape["frame"] == row["frame"]]
        assert sorted(mask["category"] for mask in row["masks"]) == sorted(shape["label"] for shape in own)
        for mask, shape, box in zip(row["masks"], own, row["boxes"], strict=True):
            xs, ys = shape["points"][::2], shape["points"][1::2]
            area = abs(sum(xs[i - 1] * ys[i] - xs[i] * ys[i - 1] for i in range(len(xs)))) / 2
            assert decode_mask(mask).sum() == pytest.approx(area, rel=0.05)
            assert box["x"] == pytest.approx(min(xs), abs=1.5) and box["y"] == pytest.approx(min(ys), abs=1.5)
    assert {row["group"] for row in rows.values()} == {"lus-ab-lines:USG-A-lines/task_195"}


@pytest.mark.part("known sources")
def test_isic_facts_and_the_size_that_is_no_longer_true(tmp_path: Path) -> None:
    folder = _copy("isic_udal", tmp_path)
    rows, manifest = imported("isic", folder)
    assert manifest.counts["label pathology=benign"] == manifest.counts["label pathology=malignant"] == 9
    for file in folder.glob("*.json"):
        stated = json.loads(file.read_text())["meta"]
        row = rows[file.stem]
        assert labels(row)["diagnosis"] == stated["clinical"]["diagnosis"]
        assert facts(row, "demographics").get("sex") == stated["clinical"]["sex"]
        x, y = stated["acquisition"]["pixelsX"], stated["acquisition"]["pixelsY"]
        assert (row["width"], row["height"]) == (250, 250)
        assert f"its facts speak of {x} x {y} pixels" in row["known_issues"]
