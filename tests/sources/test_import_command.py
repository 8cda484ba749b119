"""The commands import, sources and get, and what a user's own map can say."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import sonogauge
from sonogauge._errors import BadInput
from sonogauge.folders import Folder
from sonogauge.sources.catalogue import KINDS, known_source, known_sources
from tests.sources.pictures import csv, disc, imported, labels, noise, save, write

pytestmark = [pytest.mark.lookalike, pytest.mark.part("import")]


def _run(*words: object) -> subprocess.CompletedProcess[str]:
    code = "from sonogauge.cli import main; main()"
    command = [sys.executable, "-c", code, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _scans(root: Path, number: int = 6) -> Path:
    lines = []
    for place in range(number):
        save(root / "scans" / f"s{place}.png", noise(place))
        save(root / "masks" / f"s{place}.png", disc(20, 20, 5 + place))
        lines.append(f"s{place}.png;P{place // 2};{'cyst' if place % 2 else 'none'};0,{place + 1};GE E8")
    write(root / "facts.csv", csv("File ;Patient;Finding;Spacing;Device", *lines))
    return root


MAP = """
title: Own scans
organ: breast
reference_standard: histology
find: "scans/{name}.png"
id: "{name}"
patient: "{Patient}"
device: "{Device}"
labels:
  finding: {value: "{Finding}", map: {none: normal}}
tables:
  - {file: facts.csv, key: "{File}", match: "{file}"}
masks:
  - {files: "masks/{name}.png", category: mass}
"""


def test_a_map_for_own_files(tmp_path: Path) -> None:
    folder = _scans(tmp_path / "data")
    rows, manifest = imported("folder", folder, map_file=write(tmp_path / "map.yaml", MAP), private=True)
    assert manifest.counts["patients"] == 3 and manifest.licences == ["private"]
    row = rows["s3"]
    assert row["group"] == "folder:P1" and labels(row) == {"finding": "cyst"} and row["anatomy"] == "breast"
    assert row["licence"] == "private" and row["private"] and not row["redistributable"]
    assert row["reference_standard"] == "histology"


def test_the_same_files_give_the_same_folder(tmp_path: Path) -> None:
    folder, text = _scans(tmp_path / "data"), write(tmp_path / "map.yaml", MAP)
    for name in ("one", "two"):
        sonogauge.import_cases("folder", folder, tmp_path / name, map_file=text)
    for file in ("cases.parquet", "manifest.json"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()
    one = Folder(tmp_path / "one").manifest
    (folder / "facts.csv").write_text((folder / "facts.csv").read_text().replace("P2", "P9"))
    other = sonogauge.import_cases("folder", folder, tmp_path / "three", map_file=text)
    assert other.hash != one.hash and other.inputs[0].hash != one.inputs[0].hash
    ids = [row["case_id"] for row in Folder(tmp_path / "one").rows("cases")]
    assert ids == sorted(ids)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("find: [", "not YAML"),
        ("- 1", "not a mapping"),
        ("find: '*.png'\nlabel: {a: b}", "field 'layouts.0.label': Extra inputs are not permitted"),
        ("masks: [{kind: circle}]", "layouts.0.masks.0.kind"),
        ("find: '{a:(}.png'", "does not compile"),
        ("reference_standard: gold", "'gold' is none of"),
        ("layouts: []", "layouts"),
        ("layouts: [{find: '*.png'}]\nid: '{x}'", "unknown key beside `layouts`"),
        ("reader: cobol", "no reader 'cobol'"),
        ("tables: [{file: none.csv, key: '{a}', match: '{file}'}]", "no table 'none.csv'"),
        ("tables: [{file: facts.csv, key: '{Nome}', match: '{file}'}]", "field 'Nome': column missing; it has: File"),
    ],
)
def test_maps_that_cannot_be_used(tmp_path: Path, text: str, message: str) -> None:
    folder = _scans(tmp_path / "data", 1)
    with pytest.raises(BadInput, match=message) as caught:
        imported("folder", folder, map_file=write(tmp_path / "map.yaml", text))
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "data.cases").exists()


def test_measurements_boxes_spacing_and_texts_from_cells(tmp_path: Path) -> None:
    root = tmp_path / "data"
    for name in ("a", "b", "c"):
        save(root / f"{name}.png", noise(ord(name)))
    lines = ("a,0.1,12.5,3,4,5,6,a cyst", "b,0,n/a,1,2,x,4,", "c,tiny,long,,,,,")
    write(root / "t.csv", csv("name,mm,size,x,y,w,h,words", *lines))
    text = """
spacing: "{mm}"
measurements: [{name: size, value: "{size}", unit: mm}]
texts: [{kind: caption, text: "{words}"}]
tables: [{file: t.csv, key: "{name}", match: "{stem}"}]
masks: [{kind: box, category: lesion, box: ["{x}", "{y}", "{w}", "{h}"]}]
"""
    rows, _ = imported("folder", root, map_file=write(tmp_path / "map.yaml", text))
    one, two, three = (rows[name] for name in "abc")
    assert one["spacing"] == {"x": 0.1, "y": 0.1} and one["measurements"][0]["value"] == 12.5
    assert one["boxes"] == [{"category": "lesion", "x": 3, "y": 4, "w": 5, "h": 6}]
    assert one["texts"] == [{"kind": "caption", "text": "a cyst", "language": "en"}]
    assert two["spacing"] is None and not two["measurements"] and not two["boxes"] and not two["texts"]
    assert {"spacing is not above zero", "box is not of numbers"} <= set(two["known_issues"])
    assert {"spacing is no number", "size is no number"} <= set(three["known_issues"])


def test_two_rows_for_one_image_and_images_without_a_row_are_told(tmp_path: Path) -> None:
    root = tmp_path / "data"
    for name in ("a", "b"):
        save(root / f"{name}.png", noise(ord(name)))
    write(root / "t.csv", csv("name,kind", "a,x", "a,y", "z,x", ",x"))
    text = "labels: {kind: '{kind}'}\ntables: [{file: t.csv, key: '{name}', match: '{stem}'}]\n"
    rows, manifest = imported("folder", root, map_file=write(tmp_path / "map.yaml", text))
    assert labels(rows["a"]) == {"kind": "x"} and not labels(rows["b"])
    assert manifest.counts["fault: two rows for one image that differ"] == 1
    assert manifest.counts["fault: image without a row in t.csv"] == 1
    assert manifest.counts["fault: row without an id"] == 1
    assert manifest.counts["rows without an image in t.csv"] == 1
    assert "no row in t.csv" in rows["b"]["known_issues"]


EACH = """
patient: "{person}"
labels: {finding: "{finding}"}
tables: [{file: t.csv, key: "{name}", match: "{stem}", rows: each}]
masks:
  - {kind: box, category: "{finding}", box: ["{x}", "{y}", "{w}", "{h}"]}
  - {kind: point, category: "{landmark}", point: ["{px}", "{py}"]}
measurements:
  - {name: "{what}", value: "{size}", unit: "{unit}"}
  - {name: age, value: "{age}", unit: years}
"""


def test_each_row_of_an_image_adds_its_box_point_and_measurement(tmp_path: Path) -> None:
    root = tmp_path / "data"
    for name in ("a", "b", "c", "d"):
        save(root / f"{name}.png", noise(ord(name)))
    lines = (
        "a,p1,41,cyst,1,2,3,4,,,,,",
        "a,p1,41,mass,5,6,7,8,,,,,",
        "b,p2,52,,,,,,tip,10,11,,",
        "a,p1,41,cyst,9,2,3,4,,,,depth,3.5",
        "a,p1,41,cyst,1,2,3,4,,,,,",  # stands there twice
        "b,p2,52,,,,,,base,12,13,length,8",
        "b,p2,52,,,,,,,,,width,6.5",
        "c,p3,63,mass,1,,3,4,,,,,",  # half a box
        "c,p3,63,mass,1,1,3,4,x,y,2,,",  # half a point
        "z,p9,1,cyst,1,2,3,4,,,,,",
        "z,p9,1,mass,1,2,3,4,,,,,",
    )
    header = "name,person,age,finding,x,y,w,h,landmark,px,py,what,size,unit"
    write(root / "t.csv", csv(header, *(f"{line},{'mm' if line[-1].isdigit() else ''}" for line in lines)))
    rows, manifest = imported("folder", root, map_file=write(tmp_path / "map.yaml", EACH))
    boxes = {name: [tuple(one.values()) for one in row["boxes"]] for name, row in rows.items()}
    assert boxes["a"] == [("cyst", 1, 2, 3, 4), ("mass", 5, 6, 7, 8), ("cyst", 9, 2, 3, 4)]
    assert boxes["b"] == [] and boxes["c"] == [("mass", 1, 1, 3, 4)] and boxes["d"] == []
    assert [tuple(one.values()) for one in rows["b"]["points"]] == [("tip", 10, 11), ("base", 12, 13)]
    numbers = {name: [tuple(one.values()) for one in row["measurements"]] for name, row in rows.items()}
    assert numbers["a"] == [("depth", 3.5, "mm"), ("age", 41, "years")]
    assert numbers["b"] == [("length", 8, "mm"), ("width", 6.5, "mm"), ("age", 52, "years")]
    # Facts of an image are what all its rows agree on.
    assert [row["patient"] for row in rows.values()] == ["p1", "p2", "p3", None]
    assert labels(rows["a"]) == {} and labels(rows["c"]) == {"finding": "mass"}
    assert {"box is not of numbers", "point is not of numbers"} <= set(rows["c"]["known_issues"])
    assert manifest.counts["rows read from t.csv"] == 8 and manifest.counts["rows without an image in t.csv"] == 2
    assert manifest.counts["fault: row for an image that stands there twice"] == 1
    assert manifest.counts["fault: image without a row in t.csv"] == 1 and manifest.counts["boxes"] == 4
    assert "fault: two rows for one image that differ" not in manifest.counts


def test_boxes_may_be_given_by_their_corners(tmp_path: Path) -> None:
    root = tmp_path / "data"
    save(root / "a.png", noise(1))
    write(root / "t.csv", csv("file,x0,y0,x1,y1", "a.png,1,2,11,22", "a.png,3,4,5,6"))
    text = """
tables: [{file: t.csv, key: "{file}", match: "{file}", rows: each}]
masks: [{kind: box, corners: ["{x0}", "{y0}", "{x1}", "{y1}"]}]
"""
    rows, _ = imported("folder", root, map_file=write(tmp_path / "map.yaml", text))
    assert [tuple(one.values()) for one in rows["a"]["boxes"]] == [("lesion", 1, 2, 10, 20), ("lesion", 3, 4, 2, 2)]


@pytest.mark.parametrize(
    ("kind", "text", "told"),
    [
        ("folder", "masks: [{kind: box}]", "kind 'box' needs `box` or `corners`"),
        ("folder", "masks: [{kind: point}]", "kind 'point' needs `point`"),
        ("mat", "tables: [{file: t.csv, key: '{a}', match: '{a}', rows: each}]", "beside image files only"),
        ("npy", "tables: [{file: t.csv, key: '{file}', match: '{file}', rows: each}]", "do not say their frame"),
    ],
)
def test_rules_that_could_give_nothing_are_refused(tmp_path: Path, kind: str, text: str, told: str) -> None:
    root = tmp_path / "data"
    root.mkdir()
    np.save(root / "clip.npy", np.stack([noise(number) for number in range(3)]))
    write(root / "t.csv", csv("file,x", "clip.npy,1", "clip.npy,2"))
    with pytest.raises(BadInput, match=told):
        imported(kind, root, map_file=write(tmp_path / "map.yaml", text))


def test_the_same_picture_in_two_splits_is_told(tmp_path: Path) -> None:
    root = tmp_path / "data"
    for part, seed in (("train", 1), ("test", 1), ("test", 2)):
        save(root / part / f"{seed}{part}.png", noise(seed))
    save(root / "train" / "3.bmp", noise(3))
    save(root / "train" / "3.png", noise(3))
    text = "find: ['{part:train|test}/{n}.png', '{part:train|test}/{n}.bmp']\nid: '{file}'\nsplit: '{part}'\n"
    rows, manifest = imported("folder", root, map_file=write(tmp_path / "map.yaml", text))
    assert manifest.counts["images twice"] == 2 and manifest.counts["images in two splits"] == 1
    # Without a patient the pixels are the group, whatever the file format.
    assert (
        rows["3.bmp"]["group"] == rows["3.png"]["group"] and rows["1train.png"]["group"] == rows["1test.png"]["group"]
    )


@pytest.mark.parametrize("name", ["FETAL_PLANES_DB", "fetal planes db", "Fetal-Planes-Db"])
def test_a_source_in_any_spelling(name: str) -> None:
    assert known_source(name).name == "fetal-planes-db"


def test_masks_that_no_image_has_are_told(tmp_path: Path) -> None:
    root = tmp_path / "busi"
    save(root / "benign" / "benign (1).png", noise(1))
    save(root / "benign" / "benign (1)_mask.png", disc(20, 20, 5))
    save(root / "benign" / "benign (2)_mask.png", disc(20, 20, 5))
    _, manifest = imported("busi", root)
    assert manifest.counts["fault: mask without an image"] == 1


def test_import_through_the_command_line(tmp_path: Path) -> None:
    folder, text = _scans(tmp_path / "data"), write(tmp_path / "map.yaml", MAP)
    shown = _run("import", "folder", folder, "--map", text, "--explain")
    assert shown.returncode == 0 and "labels: finding=normal" in shown.stdout and "masks: mass-1" in shown.stdout
    assert "patient: P0, group: folder:P0" in shown.stdout and not (tmp_path / "cases").exists()
    done = _run("import", "folder", folder, "--map", text, "--out", tmp_path / "cases", "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["counts"]["cases"] == 6
    again = _run("import", "folder", folder, "--map", text, "--out", tmp_path / "cases")
    assert again.returncode == 2 and again.stderr.count("\n") == 1 and "exists already" in again.stderr
    plain = _run("import", "folder", folder, "--map", text, "--out", tmp_path / "cases", "--overwrite")
    assert plain.returncode == 0 and "cases: 6" in plain.stdout
    for words in (("import", "nothing", folder, "--out", tmp_path / "x"), ("import", "folder", folder)):
        failed = _run(*words)
        assert failed.returncode == 2 and failed.stderr.startswith("error: ") and failed.stderr.count("\n") == 1


def test_sources_lists_everything() -> None:
    listed = json.loads(_run("sources", "--json").stdout)
    assert [one["name"] for one in listed["sources"]] == list(known_sources()) and listed["kinds"] == list(KINDS)
    shown = _run("sources").stdout
    assert all(f"{name}: " in shown for name in known_sources()) and "layout verified by: real files" in shown


def test_get_asks_for_the_licence_first(tmp_path: Path) -> None:
    refused = _run("get", "hc18", "--out", tmp_path / "hc18")
    assert refused.returncode == 2 and "licence: CC BY 4.0" in refused.stderr
    assert refused.stderr.splitlines()[-1] == "error: the licence was not accepted; read it and pass --accept-licence"
    assert not (tmp_path / "hc18").exists()
    closed = _run("get", "camus", "--out", tmp_path / "camus", "--accept-licence")
    assert closed.returncode == 2 and "register with the organisers" in closed.stderr


def test_a_missing_extra_is_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("av", "pydicom", "nibabel", "h5py"):
        monkeypatch.setitem(sys.modules, module, None)
    folder = tmp_path / "data"
    folder.mkdir()
    for name, kind in (("a.mp4", "video"), ("a.dcm", "dicom"), ("a.nii", "volume")):
        (folder / name).write_bytes(b"\0" * 128 + b"DICM" + b"\0" * 64)
        with pytest.raises(BadInput, match=r"reading .* needs \w+; pip install 'sonogauge\[medical\]'"):
            imported(kind, folder)
