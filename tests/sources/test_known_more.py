"""Look-alike trees of the sources that are known by description or by the converter of UltraBench."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sonogauge.cases.geometry import decode_mask
from tests.shared import require_extra
from tests.sources.pictures import SIZE, categories, csv, disc, facts, imported, labels, noise, save, write

pytestmark = [pytest.mark.lookalike, pytest.mark.part("known sources")]

MASK = disc(20, 20, 8)


def _clip(path: Path, frames: int = 12) -> None:
    av = require_extra("medical", "av")
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mjpeg", rate=30)
        stream.width, stream.height, stream.pix_fmt = 64, 64, "yuvj420p"
        for number in range(frames):
            pixels = np.full((64, 64, 3), 10 * number, dtype=np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        container.mux(stream.encode())


def _volume(path: Path, values: np.ndarray[Any, Any]) -> None:
    sitk = require_extra("test", "SimpleITK")
    path.parent.mkdir(parents=True, exist_ok=True)
    sitk.WriteImage(sitk.GetImageFromArray(values), str(path))


def _same(row: dict[str, Any], expected: np.ndarray[Any, Any] = MASK) -> bool:
    (mask,) = row["masks"]
    return bool(np.array_equal(decode_mask(mask), expected))


def test_covid_blues_joins_both_tables_and_keeps_patients_together(tmp_path: Path) -> None:
    root = tmp_path / "covid-blues"
    for name in ("patient_1_L1", "patient_1_R3_2", "patient_2_L2"):
        _clip(root / "lus_videos" / f"{name}.mp4")
    header = "video_file,Severity Score,A-lines,B-lines,comments"
    lines = ("patient_1_L1.mp4,2,0,1,", "patient_1_R3_2,0,1,0,good", "patient_2_L2.mp4,1,0,1,")
    write(root / "severity.csv", csv(header, *lines))
    write(root / "clinical_variables.csv", csv("patient_id,cov_test", "1,positive", "2,negative"))
    rows, manifest = imported("covid-blues", root)
    assert len(rows) == 24 and manifest.counts["patients"] == manifest.counts["groups"] == 2
    first = rows["patient_1_L1/0000"]
    assert labels(first) == {"severity": "2", "A-lines": "0", "B-lines": "1", "covid test": "positive"}
    repeat = next(row for name, row in rows.items() if name.startswith("patient_1_R3_2/"))
    assert repeat["view"] == "R3" and repeat["patient"] == "1" and facts(repeat)["comments"] == "good"
    # Modified images may not be shared, and frames are that.
    assert not any(row["redistributable"] for row in rows.values())


def test_gist514_polygons_of_both_parts(tmp_path: Path) -> None:
    root = tmp_path / "usd514_jpeg_roi"
    kinds = [{"id": 1, "name": "leiomyoma"}, {"id": 2, "name": "GIST"}]
    for part, kind in (("train", 1), ("val", 2)):
        save(root / "images" / f"{part}1.jpg", noise(kind))
        square = {"id": 1, "image_id": 1, "category_id": kind, "segmentation": [[10, 10, 20, 10, 20, 20, 10, 20]]}
        content = {
            "images": [{"id": 1, "file_name": f"{part}1.jpg", "width": SIZE[0], "height": SIZE[1]}],
            "annotations": [{**square, "bbox": [10, 10, 10, 10]}],
            "categories": kinds,
        }
        write(root / "annotations" / f"{part}_anno_crop_split_0.json", json.dumps(content))
    rows, _ = imported("gist514", root)
    assert {name: (row["split"], labels(row)["pathology"]) for name, row in rows.items()} == {
        "train1": ("train", "leiomyoma"),
        "val1": ("val", "GIST"),
    }
    assert decode_mask(rows["val1"]["masks"][0]).sum() == 100


def test_microseg_takes_the_expert_and_a_volume_is_a_patient(tmp_path: Path) -> None:
    root = tmp_path / "Micro_Ultrasound_Prostate_Segmentation_Dataset"
    frames, marked = np.stack([noise(one) for one in range(10)]), np.zeros((10, SIZE[1], SIZE[0]), np.uint8)
    marked[5][MASK] = 1
    for part in ("train", "test"):
        _volume(root / part / "micro_ultrasound_scans" / f"microUS_{part}_01.nii.gz", frames)
        _volume(root / part / "expert_annotations" / f"expert_annotation_{part}_01.nii.gz", marked)
        _volume(root / part / "non_expert_annotations" / f"non_expert_annotation_{part}_01.nii.gz", marked * 0 + 1)
    rows, manifest = imported("microseg", root)
    assert manifest.counts["patients"] == 2 and len(rows) == 16
    # The one marked slice of each volume is among the eight, and the others' masks, drawn everywhere, are not read.
    assert [row["frame"] for row in rows.values() if row["masks"]] == [5, 5]
    assert {row["split"] for row in rows.values()} == {"train", "test"}


def test_pocus_classes_in_any_spelling_and_groups_by_source_file(tmp_path: Path) -> None:
    root = tmp_path / "data"
    save(root / "pocus_images" / "convex" / "Cov-a.png", noise(1))
    save(root / "pocus_images" / "linear" / "reg-b.jpg", noise(2))
    save(root / "pocus_videos" / "convex" / "Vir-d.gif", noise(3))
    _clip(root / "pocus_videos" / "convex" / "pneu-everyday.mp4", 4)
    rows, manifest = imported("pocus", root)
    found = {name: labels(row)["pathology"] for name, row in rows.items()}
    assert found["images/convex/Cov-a.png"] == "covid" and found["images/linear/reg-b.jpg"] == "regular"
    assert found["videos/convex/Vir-d.gif"] == "viral pneumonia"
    clip = {row["group"] for name, row in rows.items() if "pneu" in name}
    assert len(clip) == 1 and found["videos/convex/pneu-everyday.mp4/0000"] == "pneumonia"
    assert manifest.counts["without patient"] == len(rows)


def test_luminous_joins_the_masks_of_both_sides(tmp_path: Path) -> None:
    root = tmp_path / "LUMINOUS_Database"
    for name in ("1_1", "12_3"):
        save(root / "B-mode" / f"{name}_Bmode.tif", noise(1))
    save(root / "Masks" / "1_1_Mask.tif", MASK)
    for side, x in ((1, 10), (2, 38)):
        save(root / "Masks" / f"12_3_Mask{side}.tif", disc(x, 20, 6))
    rows, _ = imported("luminous", root)
    assert _same(rows["1_1"]) and len(rows["12_3"]["masks"]) == 2
    assert {row["patient"] for row in rows.values()} == {"1", "12"}


def test_thyroid_cine_joins_bytes_to_its_table_and_keeps_both_labels(tmp_path: Path) -> None:
    h5py = require_extra("medical", "h5py")
    root = tmp_path / "thyroid"
    root.mkdir()
    with h5py.File(root / "dataset.hdf5", "w") as file:
        file["image"] = np.stack([noise(one) for one in range(3)])
        file["mask"] = np.stack([MASK.astype(np.uint8) * 255] * 3)
        file["annot_id"] = np.array([b"159_", b"159_", b"7_"])
        file["frame_num"] = np.array([1, 2, 1])
    header = "annot_id,sex,age,ti-rads_level,histopath_diagnosis,location"
    write(root / "metadata.csv", csv(header, "159_,F,50,5,1,left", "7_,M,40,3,,right", "8_,M,1,1,,right"))
    rows, manifest = imported("thyroid-cine", root)
    assert {row["patient"] for row in rows.values()} == {"159_", "7_"} and len(rows) == 3
    one = next(row for row in rows.values() if row["patient"] == "159_")
    assert labels(one)["TI-RADS"] == "5" and labels(one)["histopathology"] == "1" and _same(one)
    assert "histopathology" not in labels(next(row for row in rows.values() if row["patient"] == "7_"))
    assert manifest.counts["rows without an image in metadata.csv"] == 1


def test_gbcu_lists_give_split_and_class_and_boxes_are_corners(tmp_path: Path) -> None:
    root = tmp_path / "GBCU"
    for number in (1, 2):
        save(root / "imgs" / f"im0000{number}.jpg", noise(number))
    write(root / "train.txt", "im00001.jpg,2\n")
    write(root / "test.txt", "im00002.jpg,0\n")
    boxes = [["gb", [5, 6, 25, 16]], ["mal", [1, 2, 11, 22]]]
    write(root / "bbox_annot.json", json.dumps({"im00001.jpg": {"dim": [48, 40], "bbs": boxes}}))
    rows, _ = imported("gbcu", root)
    assert {name: (row["split"], labels(row)["pathology"]) for name, row in rows.items()} == {
        "im00001": ("train", "malignant"),
        "im00002": ("test", "normal"),
    }
    assert rows["im00001"]["boxes"] == [
        {"category": "gb", "x": 5.0, "y": 6.0, "w": 20.0, "h": 10.0},
        {"category": "mal", "x": 1.0, "y": 2.0, "w": 10.0, "h": 20.0},
    ]
    write(root / "bbox_annot.json", json.dumps({"im00001.jpg": {"dim": [48, 40], "bbs": [["gb", [5, 6, 25]]]}}))
    rows, _ = imported("gbcu", root)
    assert "boxes are no list of categories and corners" in rows["im00001"]["known_issues"]


def test_butterfly_subsets_are_the_split(tmp_path: Path) -> None:
    root = tmp_path / "butterfly"
    for subset, patient in (("MIT_Grand_Hack_Training", "p1"), ("Testing set", "p2")):
        save(root / subset / patient / "morisons_pouch" / "001.png", noise(len(patient + subset)))
    rows, _ = imported("butterfly", root)
    assert sorted((row["split"], row["patient"], labels(row)["region"]) for row in rows.values()) == [
        ("test", "p2", "morisons_pouch"),
        ("train", "p1", "morisons_pouch"),
    ]


def test_udiat_table_and_its_threshold(tmp_path: Path) -> None:
    from openpyxl import Workbook

    root = tmp_path / "BUS"
    save(root / "original" / "000001.png", noise(1))
    save(root / "GT" / "000001.png", np.where(MASK, 255, np.where(disc(40, 30, 5), 140, 0)).astype(np.uint8))
    book = Workbook()
    book.active.append(["Image", "Type"])
    book.active.append([1, "Malignant"])
    book.save(root / "DatasetB.xlsx")
    rows, _ = imported("udiat", root)
    assert _same(rows["000001"]) and labels(rows["000001"]) == {"pathology": "malignant"}


def test_buid_lesion_cut_outs_are_no_masks(tmp_path: Path) -> None:
    root = tmp_path / "BUID"
    for kind in ("Benign", "Malignant"):
        save(root / kind / f"1 {kind} Image.bmp", noise(1))
        save(root / kind / f"1 {kind} Mask.tif", MASK)
        save(root / kind / f"1 {kind} Lesion.bmp", noise(3))
    rows, manifest = imported("buid", root)
    assert {name: labels(row)["pathology"] for name, row in rows.items()} == {
        "Benign_1": "benign",
        "Malignant_1": "malignant",
    }
    assert all(_same(row) for row in rows.values()) and manifest.counts["files not read"] == 2


def test_s1_classes_are_in_the_values_of_the_mask(tmp_path: Path) -> None:
    root = tmp_path / "Data"
    for place, (images, marks) in enumerate(
        (
            ("TrainingDataSet/BreastTumourImages", "TrainingDataSet/Expanded-3-channel-Labels"),
            ("TestingDataSet/Test-Expanded-Images", "TestingDataSet/Test-Expanded-3-channel-Labels"),
        )
    ):
        save(root / images / "a.png", noise(place))
        save(root / marks / "a.png", np.repeat((MASK * (127, 255)[place])[:, :, None], 3, axis=2).astype(np.uint8))
    rows, _ = imported("s1", root)
    assert {row["split"]: labels(row)["pathology"] for row in rows.values()} == {"train": "benign", "test": "malignant"}
    assert all(_same(row) for row in rows.values())


def test_fast_u_net_parts_of_one_name_share_a_group(tmp_path: Path) -> None:
    root = tmp_path / "Dataset"
    for part in ("image1", "image2"):
        save(root / "AC" / part / "7.png", noise(len(part)))
        save(root / "HC" / part / "9.png", noise(len(part)))
    save(root / "AC" / "mask" / "7.png", MASK)
    save(root / "HC" / "mask" / "9_Annotation.png", MASK)
    rows, _ = imported("fast-u-net", root)
    assert len(rows) == 4 and len({row["group"] for row in rows.values()}) == 2
    assert {categories(row)[0] for row in rows.values()} == {"fetal abdomen", "fetal head"}


def test_focus_two_structures_of_one_image(tmp_path: Path) -> None:
    root = tmp_path / "FOCUS"
    save(root / "testing" / "images" / "001.png", noise(1))
    for structure, radius in (("cardiac", 5), ("thorax", 12)):
        save(root / "testing" / "annfiles_mask" / f"001-{structure}.png", disc(20, 20, radius))
    rows, _ = imported("focus", root)
    assert rows["001"]["split"] == "test" and categories(rows["001"]) == ["cardiac", "thorax"]


def test_abdomenus_real_and_simulated_stay_apart(tmp_path: Path) -> None:
    root = tmp_path / "abdominal_US"
    colours = np.zeros((SIZE[1], SIZE[0], 3), np.uint8)
    colours[MASK] = (100, 0, 100)
    for kind in ("AUS", "RUS"):
        save(root / kind / "images" / "test" / "x.png", noise(1, colour=True))
        save(root / kind / "annotations" / "test" / "x.png", colours)
    for name, provenance in (("abdomenus-real", "clinical"), ("abdomenus-simulated", "simulated")):
        rows, _ = imported(name, tmp_path)
        (row,) = rows.values()
        assert categories(row) == ["liver"] and _same(row) and row["provenance"] == provenance


def test_cca_mi_segnet_both_ways_of_naming(tmp_path: Path) -> None:
    root = tmp_path / "MI_SegNet_dataset"
    for part, image, mask in (
        ("Training", "img0001", "label0001"),
        ("ValS", "img0002", "label0002"),
        ("TS1", "img0001", "label0001"),
        ("TS3", "Image_4", "Label_4"),
    ):
        save(root / part / "img" / f"{image}.png", noise(len(part)))
        save(root / part / "label" / f"{mask}.png", MASK)
    rows, manifest = imported("cca-mi-segnet", root)
    assert {name: row["split"] for name, row in rows.items()} == {
        "Training/0001": "train",
        "ValS/0002": "val",
        "TS1/0001": "test",
        "TS3/4": "test",
    }
    assert all(_same(row) for row in rows.values()) and manifest.counts["dropped"] == 0


def test_cubs_pixel_sizes_from_their_files(tmp_path: Path) -> None:
    root = tmp_path / "CUBS"
    for name in ("clin_0001_L", "clin_0002_R"):
        save(root / "IMAGES" / f"{name}.tiff", noise(1))
    write(root / "CF" / "clin_0001_L_CF.txt", "0.0567\n")
    rows, _ = imported("cubs", root)
    assert rows["clin_0001_L"]["spacing"] == {"x": 0.0567, "y": 0.0567} and rows["clin_0002_R"]["spacing"] is None


def test_fass_never_opens_its_pickled_arrays(tmp_path: Path) -> None:
    root = tmp_path / "FASS"
    save(root / "IMAGES" / "P01_IMG1.png", noise(1))
    (root / "ARRAY_FORMAT").mkdir()
    np.save(root / "ARRAY_FORMAT" / "P01_IMG1.npy", np.array([{"image": 1}], dtype=object), allow_pickle=True)
    rows, manifest = imported("fass", root)
    assert list(rows) == ["P01_IMG1"] and manifest.counts["files not read"] == 1
    assert any("pickled" in issue for issue in manifest.model_dump()["source"]["known_issues"])


def test_covidx_us_names_tell_class_and_probe(tmp_path: Path) -> None:
    root = tmp_path / "data"
    _clip(root / "video" / "cropped" / "12_butterfly_covid_prc_convex.avi")
    rows, _ = imported("covidx-us", root)
    assert len(rows) == 8 and {labels(row)["pathology"] for row in rows.values()} == {"covid"}
    assert len({row["group"] for row in rows.values()}) == 1


@pytest.mark.parametrize("source", ["fh-ps-aop", "regpro"])
def test_volumes_of_the_pelvis(tmp_path: Path, source: str) -> None:
    root = tmp_path / "set"
    if source == "regpro":
        _volume(root / "train" / "us_images" / "case000000.nii.gz", np.stack([noise(one) for one in range(10)]))
        rows, _ = imported(source, root)
        assert len(rows) == 8 and {row["patient"] for row in rows.values()} == {"train case000000"}
        return
    sitk = require_extra("test", "SimpleITK")
    for folder, values in (
        ("image_mha", np.stack([noise(1)] * 3)),
        ("label_mha", np.where(disc(30, 20, 9), 2, disc(8, 8, 4)).astype(np.uint8)),
    ):
        (root / folder).mkdir(parents=True)
        sitk.WriteImage(sitk.GetImageFromArray(values), str(root / folder / "00001.mha"))
    rows, _ = imported(source, root)
    assert categories(rows["00001"]) == ["pubic symphysis", "fetal head"]


def _ccaui(root: Path) -> None:
    save(root / "US images" / "a b.png", noise(1))
    save(root / "Expert mask images" / "a b.png", MASK)


def _bus_uc(root: Path) -> None:
    save(root / "Benign" / "images" / "1.png", noise(1))
    save(root / "Benign" / "masks" / "1.png", MASK)


@pytest.mark.parametrize(("source", "make", "name"), [("ccaui", _ccaui, "a b"), ("bus-uc", _bus_uc, "Benign_1")])
def test_images_with_masks_beside_them(tmp_path: Path, source: str, make: Callable[[Path], None], name: str) -> None:
    make(tmp_path / "set")
    rows, manifest = imported(source, tmp_path / "set")
    assert list(rows) == [name] and _same(rows[name]) and manifest.counts["without patient"] == 1
