"""The tree of UltraBench from our cases: against the package's own converters, and read back by our reader.

`ultrabench_golden.json` holds what the package `ultrabench` 1.0.1 made of the same raw trees (pandas 2, listings of
files sorted, for the package takes them in the order of the disk): members of the test part, whole records, sizes and
hashes of scan masks.
"""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from typer.testing import CliRunner

from sonogauge import BadInput, import_cases
from sonogauge.cases.geometry import decode_mask
from sonogauge.cli import app
from sonogauge.export import export
from sonogauge.export.scan_masks import scan_mask
from sonogauge.export.ultrabench_set import filled, ultrabench_sets
from sonogauge.folders import Folder
from tests.export.ultrabench_raw import RAW
from tests.sources.pictures import imported, labels

pytestmark = [pytest.mark.part("export"), pytest.mark.lookalike]

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parent / "ultrabench_golden.json").read_text("utf-8"))
# Section 1.2 of the dataset specification.
AUL = {"pathology", "label", "image", "scan_mask", "liver_mask", "mass_mask"}
KEYS = {
    "aul_liver": AUL,
    "aul_mass": AUL,
    "butterfly": {"patient", "class", "label", "image", "scan_mask"},
    "camus": {"patient", "view", "frame", "sex", "age", "image_quality", "EF", "frame_rate", "image", "mask"}
    | {"scan_mask", "label", "ED", "ES"},
    "fatty_liver": {"patient", "image", "scan_mask", "steatosis", "label", "pathology"},
    "gbcu": {"image", "scan_mask", "dimensions", "bbox_labels", "bboxes", "pathology", "label"},
    "mmotu": {"image", "tumor_mask_binary", "tumor_mask_multiclass", "scan_mask", "label"},
    "open_kidney": {"filename", "file_size", "region_count", "region_id", "quality", "view", "comments", "transplant"}
    | {"file_id", "image", "scan_mask", "capsule_mask", "regions_mask"},
    "pocus": {"source", "image", "scan_mask", "pathology", "label"},
    "psfhs": {"image", "scan_mask", "psfh_mask"},
    "stanford_thyroid": {"patient", "image", "tumor_mask", "scan_mask", "label", "age", "sex", "location"}
    | {f"lesion_size_{side}" for side in "xyz"}
    | {f"tirads_{name}" for name in ("level", "composition", "echogenicity", "shape", "margin", "echogenicfoci")}
    | {"histopath_diagnosis", "pathology"},
}
# Sets whose pixels never were JPEG: every decoder gives the same scan mask.
EXACT = ("butterfly", "camus", "fatty_liver", "open_kidney", "psfhs", "stanford_thyroid")


@pytest.fixture(scope="module", params=sorted(RAW))
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with raw/, cases/ and out/ of one source."""
    build, source, options = RAW[request.param]
    root = tmp_path_factory.mktemp(request.param)
    build(root / "raw")
    import_cases(source, root / "raw", root / "cases", **options)
    export(root / "cases", "ultrabench", root / "out", own_use=True)
    return root


def _records(folder: Path) -> dict[str, list[dict[str, Any]]]:
    return {part: json.loads((folder / f"{part}.json").read_text("utf-8")) for part in ("train_val", "test")}


def test_parts_and_records_are_those_of_the_package(made: Path) -> None:
    for folder in (made / "out").iterdir():
        golden, found = GOLDEN[folder.name], _records(folder)
        assert sorted(Path(one["image"]).name for one in found["test"]) == golden["test"]
        by_image = {one["image"]: one for rows in found.values() for one in rows}
        assert len(by_image) == golden["images"] == sum(map(len, found.values()))
        for record in golden["records"]:
            assert by_image[record["image"]] == record and list(by_image[record["image"]]) == list(record)


def test_scan_masks_are_those_of_the_package(made: Path) -> None:
    for folder in (made / "out").iterdir():
        for image, (size, digest) in GOLDEN[folder.name]["scan"].items():
            mask = np.asarray(Image.open(folder / "masks" / "scan" / Path(image).name))
            assert mask.sum() == pytest.approx(size, rel=0.02)
            if folder.name.partition("_v")[0] in EXACT:
                assert hashlib.sha256(np.packbits(mask.astype(bool)).tobytes()).hexdigest()[:16] == digest


def test_the_layout_is_that_of_the_specification(made: Path) -> None:
    folders = sorted(made.joinpath("out").iterdir())
    for folder in folders:
        name, _, version = folder.name.partition("_v")
        assert version == "1.0.1" and (folder / "version.txt").read_text("utf-8").startswith(
            f"UltraBench Version: {version}\nCreated: 2"
        )
        named = set()
        for record in (one for rows in _records(folder).values() for one in rows):
            assert set(record) == KEYS[name]
            paths = [
                value for key, value in record.items() if value and key.endswith(("image", "mask", "binary", "class"))
            ]
            files = [path for path in paths if "/" in str(path)]
            named.update(files)
            height, width = np.asarray(Image.open(folder / record["image"])).shape[:2]
            for file in files:
                values = np.asarray(Image.open(folder / file))
                assert values.shape[:2] == (height, width) and values.dtype == np.uint8
                if file.startswith("masks/") and file.endswith(".png"):
                    assert values.ndim == 2 and values.max() <= 8
        there = {str(file.relative_to(folder)) for top in ("images", "masks") for file in (folder / top).rglob("*.*")}
        assert named == there
        suffixes = {Path(file).suffix for file in there if file.startswith("images/")}
        assert suffixes == ({".jpg"} if name.startswith(("aul", "gbcu")) else {".png"})


# Categories that our reader of the tree calls otherwise than our reader of the raw files.
RENAMED = {"nodule": "tumour", "capsule": "kidney capsule"}


def test_our_reader_reads_it_back(made: Path) -> None:
    cases = list(Folder(made / "cases").rows("cases"))
    back, manifest = imported("ultrabench", made / "out")
    assert manifest.counts["dropped"] == 0
    for folder in (made / "out").iterdir():
        name = folder.name.partition("_v")[0]
        one = ultrabench_sets()[name]
        read = {key.partition("/")[2]: row for key, row in back.items() if key.startswith(f"{name}/")}
        part_of = {Path(entry["image"]).stem: part for part, rows in _records(folder).items() for entry in rows}
        assert {key: row["split"] for key, row in read.items()} == part_of
        compared = 0
        for row in cases:
            facts = one.facts_of(row)
            found = None if facts is None else read.get(filled(one.file, facts, row["case_id"]))
            if found is None:
                continue
            compared += 1
            if row["media_type"] == "image/png" and Image.open(io.BytesIO(row["image"]["bytes"])).mode == "L":
                assert one.colour or found["image"]["bytes"] == row["image"]["bytes"]
            used = {kind for rule in one.masks.values() for kinds in rule.classes.values() for kind in kinds}
            assert _by_category(found) == _by_category(row, used)
            fans = [None if case["fan_mask"] is None else decode_mask(case["fan_mask"]) for case in (found, row)]
            assert fans[0] is not None and (fans[1] is None or (fans[0] == fans[1]).all())
            assert name != "gbcu" or (found["boxes"] == row["boxes"] and found["boxes"])
            assert "patient" not in one.record or found["patient"] is not None
        assert compared == len(read) == GOLDEN[folder.name]["images"]
        if "pathology" in one.record:
            assert all(labels(row)["pathology"] for row in read.values())


def _by_category(row: dict[str, Any], used: set[str] | None = None) -> dict[str, bytes]:
    total: dict[str, Any] = {}
    for mask in row["masks"]:
        if used is None or mask["category"] in used:
            name = RENAMED.get(mask["category"].lower(), mask["category"].lower())
            total[name] = total.get(name, False) | decode_mask(mask)
    return {name: mask.tobytes() for name, mask in total.items()}


def test_a_set_is_never_overwritten(made: Path) -> None:
    before = {file: file.stat().st_mtime_ns for file in (made / "out").rglob("*")}
    with pytest.raises(BadInput, match="exists already"):
        export(made / "cases", "ultrabench", made / "out", own_use=True)
    with pytest.raises(BadInput, match="never overwritten"):
        export(made / "cases", "ultrabench", made / "out", own_use=True, overwrite=True)
    assert {file: file.stat().st_mtime_ns for file in (made / "out").rglob("*")} == before


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Cases of the fatty liver set; of each patient one image is private and one may not be passed on."""
    root = tmp_path_factory.mktemp("mixed")
    build, source, _ = RAW["fatty_liver"]
    build(root / "raw")
    import_cases(source, root / "raw", root / "cases")
    table = pq.read_table(root / "cases/cases.parquet")
    for column, wrong in (("private", 1), ("redistributable", 2)):
        values = pa.array([(frame == wrong) == (column == "private") for frame in table["frame"].to_pylist()])
        table = table.set_column(table.schema.get_field_index(column), table.schema.field(column), values)
    pq.write_table(table, root / "cases/cases.parquet")
    return root


@pytest.mark.parametrize("own_use", [False, True])
def test_private_images_never_leave_and_closed_ones_only_for_own_use(
    mixed: Path, tmp_path: Path, own_use: bool
) -> None:
    done = export(mixed / "cases", "ultrabench", tmp_path / "out", own_use=own_use)
    assert (done.items, done.withheld, done.private) == ((24, 0, 12) if own_use else (12, 12, 12))
    content = b"".join(file.read_bytes() for file in sorted((tmp_path / "out").rglob("*")) if file.is_file())
    for row in Folder(mixed / "cases").rows("cases"):
        leaves = not row["private"] and (own_use or row["redistributable"])
        assert (row["image"]["bytes"] in content) == leaves
        assert not (row["private"] and row["sha256"].encode() in content)
    folder = tmp_path / "out" / "fatty_liver_v1.0.1"
    assert (folder / "withheld.jsonl").is_file() != own_use
    # What stays back moves no other image to another part.
    left = {Path(one["image"]).name for one in _records(folder)["test"]}
    assert left and left == set(GOLDEN[folder.name]["test"]) & {Path(one).name for one in (folder / "images").iterdir()}


def test_what_cannot_be_written_is_refused_with_a_way_out(tmp_path: Path) -> None:
    build, source, _ = RAW["butterfly"]
    build(tmp_path / "raw")
    import_cases(source, tmp_path / "raw", tmp_path / "cases")
    with pytest.raises(BadInput, match=r"none of its images may be passed on; pass --own-use"):
        export(tmp_path / "cases", "ultrabench", tmp_path / "out")
    import_cases(source, tmp_path / "raw", tmp_path / "private", private=True)
    with pytest.raises(BadInput, match="private images are never written"):
        export(tmp_path / "private", "ultrabench", tmp_path / "out", own_use=True)
    import_cases("folder", tmp_path / "raw", tmp_path / "other")
    with pytest.raises(BadInput, match=r"'folder' is no source of UltraBench; it has: aul, butterfly"):
        export(tmp_path / "other", "ultrabench", tmp_path / "out")
    with pytest.raises(BadInput, match="own_use"):
        export(tmp_path / "cases", "hf", tmp_path / "out", own_use=True)
    assert not (tmp_path / "out").exists()
    words = ["export", str(tmp_path / "cases"), "--format", "ultrabench", "--own-use", "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0 and "butterfly_v1.0.1/test.json: 3" in result.output
    assert "keep them on this machine" in result.output


def test_a_layout_may_be_chosen_and_camus_tells_which(tmp_path: Path) -> None:
    build, source, options = RAW["camus"]
    build(tmp_path / "raw")
    import_cases(source, tmp_path / "raw", tmp_path / "stills")
    assert {row["frame"] for row in Folder(tmp_path / "stills").rows("cases")} == {None}
    with pytest.raises(BadInput, match="import the source again with --layout sequences"):
        export(tmp_path / "stills", "ultrabench", tmp_path / "out", own_use=True)
    with pytest.raises(BadInput, match=r"no layout 'clips' of 'camus'; it has: stills, sequences"):
        import_cases(source, tmp_path / "raw", tmp_path / "none", layout="clips")
    words = ["import", source, str(tmp_path / "raw"), "--layout", options["layout"], "--out", str(tmp_path / "all")]
    assert CliRunner().invoke(app, words).exit_code == 0
    assert {row["frame"] for row in Folder(tmp_path / "all").rows("cases")} == set(range(5))
    shown = CliRunner().invoke(app, [*words[:5], "--explain"])
    assert shown.exit_code == 0 and "layout sequences" in shown.output and "layout stills" not in shown.output


def test_steps_of_a_scan_mask_by_hand() -> None:
    image = np.zeros((7, 9), dtype=np.uint8)
    image[1:6, 1:4] = 9
    image[3, 2] = 0
    image[0, 8] = 5
    filled = scan_mask(image, [{"above": 0}, {"objects": 2}, {"holes": 2}])
    assert filled.sum() == 15 and filled[1:6, 1:4].all()
    assert scan_mask(image, [{"above": 0}, {"erode": 1}]).sum() == 0
    assert scan_mask(image, [{"above": 0}, {"holes": 2}, {"erode": 1}]).sum() == 3
    assert scan_mask(image, [{"above": 0}, {"objects": 2}, {"dilate": 1}])[0, 1:4].all()
    assert not scan_mask(image, [{"above": 0}, "largest"])[0, 8]
    assert scan_mask(image, [{"above": 0}, {"objects": 2}, {"mirror": "both"}]).sum() == 28
    assert not scan_mask(np.zeros((4, 4), dtype=np.uint8), [{"above": 0}, "hull"]).any()
