"""Known sources of clips and of trees of sets, on look-alikes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from sonogauge.cases.geometry import decode_mask
from tests.shared import require_extra
from tests.sources.pictures import categories, csv, disc, facts, imported, labels, noise, overlap, save, write

pytestmark = [pytest.mark.lookalike, pytest.mark.part("known sources")]


def _clip(path: Path, frames: int, size: tuple[int, int] = (64, 64)) -> None:
    av = require_extra("medical", "av")
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mjpeg", rate=30)
        stream.width, stream.height, stream.pix_fmt = *size, "yuvj420p"
        for number in range(frames):
            pixels = np.full((size[1], size[0], 3), 8 * number, dtype=np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        container.mux(stream.encode())


def test_echonet_traced_frames_and_the_two_spellings_of_a_name(tmp_path: Path) -> None:
    root = tmp_path / "EchoNet-Dynamic"
    _clip(root / "Videos" / "0X1A.avi", 12)
    header = "FileName,EF,ESV,EDV,FrameHeight,FrameWidth,FPS,NumberOfFrames,Split"
    write(root / "FileList.csv", csv(header, "0X1A,55.5,40,90,64,64,30,12,VAL", "0X2B,60,1,2,64,64,30,9,TRAIN"))
    discs = [f"0X1A.avi,20,{y},40,{y},7" for y in (20, 30, 40, 50)]
    write(root / "VolumeTracings.csv", csv("FileName,X1,Y1,X2,Y2,Frame", "0X1A.avi,30,10,30,55,7", *discs))
    rows, manifest = imported("echonet-dynamic", root)
    (row,) = rows.values()
    assert row["frame"] == 7 and row["patient"] == "0X1A" and row["split"] == "val"
    assert {one["name"]: one["value"] for one in row["measurements"]}["ejection fraction"] == 55.5
    # Triangle from the apex to the first disc and three rectangles: 20 x 30 + 20 x 10 / 2.
    assert decode_mask(row["masks"][0]).sum() == pytest.approx(700, rel=0.05)
    import io

    shade = np.asarray(Image.open(io.BytesIO(row["image"]["bytes"]))).mean()
    assert shade == pytest.approx(56, abs=3)
    assert manifest.counts["rows without an image in FileList.csv"] == 1


def test_echonet_pediatric_outlines(tmp_path: Path) -> None:
    root = tmp_path / "pediatric_echo_avi"
    for view in ("A4C", "PSAX"):
        _clip(root / view / "Videos" / "CR1.avi", 4)
        write(root / view / "FileList.csv", csv("FileName,EF,Sex,Age,Split", "CR1.avi,61,F,3,7"))
        points = [f"CR1.avi,{x},{y},2" for x, y in ((10, 10), (30, 10), (30, 30), (10, 30))]
        write(root / view / "VolumeTracings.csv", csv("FileName,X,Y,Frame", *points, "CR1.avi,1,1,No Systolic"))
    rows, manifest = imported("echonet-pediatric", root)
    assert sorted(rows) == ["A4C/CR1/0002", "PSAX/CR1/0002"]
    assert manifest.counts["fault: tracing without a frame number"] == 2


def test_acouslic_keeps_frames_with_masks_and_some_without(tmp_path: Path) -> None:
    sitk = require_extra("test", "SimpleITK")
    root = tmp_path / "acouslic-ai-train-set"
    images, masks = root / "images/stacked_fetal_ultrasound", root / "masks/stacked_fetal_abdomen"
    images.mkdir(parents=True)
    masks.mkdir(parents=True)
    frames = np.stack([noise(number) for number in range(20)])
    marked = np.zeros(frames.shape, dtype=np.uint8)
    marked[5][disc(20, 20, 8)] = 1
    marked[6][disc(20, 20, 8)] = 2
    image = sitk.GetImageFromArray(frames)
    image.SetSpacing((0.28, 0.28, 1.0))
    sitk.WriteImage(image, str(images / "aa-11.mha"), True)
    sitk.WriteImage(sitk.GetImageFromArray(marked), str(masks / "aa-11.mha"), True)
    table = root / "circumferences" / "fetal_abdominal_circumferences_per_sweep.csv"
    write(table, csv("uuid,subject_id,sweep_1_ac_mm,sweep_2_ac_mm", "aa-11,s7,251.5,"))
    rows, _ = imported("acouslic-ai", root)
    assert len(rows) == 6 and {row["patient"] for row in rows.values()} == {"s7"}
    assert categories(rows["aa-11/0005"]) == ["optimal plane"] and categories(rows["aa-11/0006"]) == [
        "suboptimal plane"
    ]
    assert labels(rows["aa-11/0005"]) == {"plane": "optimal plane"}
    assert sum(labels(row)["plane"] == "none" for row in rows.values()) == 4
    assert rows["aa-11/0005"]["spacing"] == pytest.approx({"x": 0.28, "y": 0.28})
    assert facts(rows["aa-11/0005"])["sweep_1_ac_mm"] == "251.5"


def test_camus_turns_arrays_and_reads_the_settings(tmp_path: Path) -> None:
    sitk = require_extra("test", "SimpleITK")
    root = tmp_path / "database_nifti"
    folder = root / "patient0001"
    folder.mkdir(parents=True)
    image, mask = noise(1), np.where(disc(30, 10, 6), 1, np.where(disc(10, 30, 6), 3, 0)).astype(np.uint8)
    for values, name in ((image, "2CH_ED"), (mask, "2CH_ED_gt")):
        volume = sitk.GetImageFromArray(values)
        volume.SetSpacing((0.3, 0.15))
        sitk.WriteImage(volume, str(folder / f"patient0001_{name}.nii.gz"))
    settings = "ED: 1\nES: 18\nNbFrame: 18\nSex: F\nAge: 56\nImageQuality: Good\nEF: 53\nFrameRate: 48.8\n"
    write(folder / "Info_2CH.cfg", settings)
    rows, _ = imported("camus", root)
    row = rows["patient0001_2CH_ED"]
    import io

    # The converter of UltraBench holds (x, y) and turns it clockwise.
    expected = np.rot90(image.T, axes=(1, 0))
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(row["image"]["bytes"]))), expected)
    found = {one["category"]: decode_mask(one) for one in row["masks"]}
    assert np.array_equal(found["left ventricle cavity"], np.rot90((mask == 1).T, axes=(1, 0)))
    assert sorted(found) == ["left atrium", "left ventricle cavity"]
    assert labels(row) == {"image quality": "good", "phase": "ED", "view": "2CH"} and row["patient"] == "patient0001"
    assert row["spacing"] == pytest.approx({"x": 0.3, "y": 0.15}) and row["measurements"][0]["value"] == 53


def test_camus_sequences_give_every_frame(tmp_path: Path) -> None:
    sitk = require_extra("test", "SimpleITK")
    folder = tmp_path / "database_nifti" / "patient0002"
    folder.mkdir(parents=True)
    frames = np.stack([noise(number) for number in range(5)])
    marked = np.stack([np.where(disc(20, 20, 4 + number), 2, 0) for number in range(5)]).astype(np.uint8)
    for values, name in ((frames, "4CH_half_sequence"), (marked, "4CH_half_sequence_gt")):
        sitk.WriteImage(sitk.GetImageFromArray(values), str(folder / f"patient0002_{name}.nii.gz"))
    write(
        folder / "Info_4CH.cfg",
        "ED: 1\nES: 5\nNbFrame: 5\nSex: M\nAge: 70\nImageQuality: Poor\nEF: 30\nFrameRate: 50\n",
    )
    rows, _ = imported("camus", folder.parent)
    assert [row["frame"] for row in rows.values()] == list(range(5))
    assert [decode_mask(row["masks"][0]).sum() for row in rows.values()] == [(one == 2).sum() for one in marked]


def test_ultrabench_tree_with_two_sets(tmp_path: Path) -> None:
    root = tmp_path / "out"
    liver = root / "aul_liver_v1.0.1"
    save(liver / "images" / "benign_1.jpg", noise(1))
    save(liver / "masks" / "scan" / "benign_1.png", disc(24, 20, 18).astype(np.uint8))
    save(liver / "masks" / "liver" / "benign_1.png", disc(24, 20, 9).astype(np.uint8))
    record = {
        "pathology": "Benign",
        "label": 1,
        "image": "images/benign_1.jpg",
        "scan_mask": "masks/scan/benign_1.png",
        "liver_mask": "masks/liver/benign_1.png",
        "mass_mask": None,
    }
    write(liver / "test.json", json.dumps([record]))
    heads = root / "psfhs_v1.0.1"
    save(heads / "images" / "00001.png", noise(2))
    save(heads / "masks" / "scan" / "00001.png", disc(24, 20, 18).astype(np.uint8))
    save(heads / "masks" / "psfh" / "00001.png", np.where(disc(30, 20, 9), 2, disc(8, 8, 4)).astype(np.uint8))
    entry = {"image": "images/00001.png", "scan_mask": "masks/scan/00001.png", "psfh_mask": "masks/psfh/00001.png"}
    write(heads / "train_val.json", json.dumps([entry]))
    rows, manifest = imported("ultrabench", root)
    assert {name: row["split"] for name, row in rows.items()} == {
        "aul_liver/benign_1": "test",
        "psfhs/00001": "train_val",
    }
    assert categories(rows["aul_liver/benign_1"]) == ["liver"] and manifest.counts["dropped"] == 0
    assert categories(rows["psfhs/00001"]) == ["pubic symphysis", "fetal head"]
    fan = rows["aul_liver/benign_1"]["fan_mask"]
    assert np.array_equal(decode_mask(fan), disc(24, 20, 18))


def test_ultrabench_boxes_lossy_scan_masks_and_both_tumour_masks(tmp_path: Path) -> None:
    root = tmp_path / "out"
    gall = root / "gbcu_v1.0.1"
    save(gall / "images" / "im00001.jpg", noise(1))
    save(gall / "masks" / "scan" / "im00001.jpg", disc(24, 20, 18), quality=60)
    assert len(np.unique(np.asarray(Image.open(gall / "masks" / "scan" / "im00001.jpg")))) > 2  # the trap is there
    record = {
        "image": "images/im00001.jpg",
        "scan_mask": "masks/scan/im00001.jpg",
        "dimensions": [48, 40],
        "bbox_labels": ["gb", "mal"],
        "bboxes": [[5, 6, 25, 16], [1, 2, 11, 22]],
        "pathology": "malignant",
        "label": 2,
    }
    write(gall / "test.json", json.dumps([record]))
    ovary = root / "mmotu_v1.0.1"
    save(ovary / "images" / "1.png", noise(2))
    save(ovary / "masks" / "binary" / "1.png", disc(20, 20, 9).astype(np.uint8))
    save(ovary / "masks" / "multi" / "1.png", (disc(20, 20, 9) * 3).astype(np.uint8))
    entry = {
        "image": "images/1.png",
        "tumor_mask_binary": "masks/binary/1.png",
        "tumor_mask_multiclass": "masks/multi/1.png",
        "label": 2,
    }
    write(ovary / "test.json", json.dumps([entry]))
    rows, manifest = imported("ultrabench", root)
    assert manifest.counts["dropped"] == 0
    found = rows["gbcu/im00001"]
    assert [(one["category"], one["x"], one["y"], one["w"], one["h"]) for one in found["boxes"]] == [
        ("gb", 5.0, 6.0, 20.0, 10.0),
        ("mal", 1.0, 2.0, 10.0, 20.0),
    ]
    assert overlap(decode_mask(found["fan_mask"]), disc(24, 20, 18)) > 0.97
    assert categories(rows["mmotu/1"]) == ["tumour", "teratoma"]
    assert all(np.array_equal(decode_mask(one), disc(20, 20, 9)) for one in rows["mmotu/1"]["masks"])


def test_open_kidney_reads_one_reader_only(tmp_path: Path) -> None:
    root = tmp_path / "kidney"
    save(root / "images" / "484_IM-0421-0005_anon.png", noise(4))
    shape = {"name": "polygon", "all_points_x": [10, 30, 30, 10], "all_points_y": [5, 5, 25, 25]}
    cell = json.dumps(shape).replace('"', '""')
    attributes = '"{""Quality"": ""Good"", ""View"": ""Transverse"", ""Comments"": """"}"'
    header = "filename,file_size,file_attributes,region_count,region_id,region_shape_attributes,region_attributes"
    line = f'484_IM-0421-0005_anon.png,1,{attributes},1,0,"{cell}","{{""Anatomy"": ""Capsule""}}"'
    write(root / "labels" / "reviewed_labels_1.csv", csv(header, line))
    write(root / "labels" / "reviewed_labels_2.csv", csv(header, line.replace(attributes, "").replace("30", "12")))
    rows, _ = imported("open-kidney", root)
    (row,) = rows.values()
    assert categories(row) == ["Capsule"] and decode_mask(row["masks"][0]).sum() == 400 and row["view"] == "Transverse"
