"""Look-alike trees of known sources, each with the traps that the real one is known for."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from sonogauge._errors import BadInput
from sonogauge.cases.geometry import decode_mask
from sonogauge.sources.catalogue import known_source, known_sources
from tests.shared import require_extra
from tests.sources.pictures import SIZE, categories, csv, disc, facts, imported, labels, noise, save, write

pytestmark = [pytest.mark.lookalike, pytest.mark.part("known sources")]


def _iou(one: np.ndarray, other: np.ndarray) -> float:  # type: ignore[type-arg]
    return float((one & other).sum() / (one | other).sum())


@pytest.mark.parametrize("name", known_sources())
def test_every_source_says_where_it_comes_from(name: str) -> None:
    spec = known_source(name)
    assert spec.name == name and spec.licence and spec.citation and spec.obtain.how and spec.annotations
    assert spec.verified in ("real files", "converter code", "description")
    assert any(layout.patient for layout in spec.layouts) == spec.patient_id
    if "check at source" in spec.licence:
        assert not spec.licence_checked


def test_bus_bra_joins_its_table_and_groups_by_case(tmp_path: Path) -> None:
    root = tmp_path / "BUSBRA"
    for number, name in enumerate(("0001-l", "0001-r", "0002-s")):
        save(root / "Images" / f"bus_{name}.png", noise(number))
        save(root / "Masks" / f"mask_{name}.png", disc(20, 20, 6 + number))
    write(
        root / "bus_data.csv",
        csv(
            "ID,Case,Histology,Pathology,BIRADS,Device,Width,Height,Side,BBOX",
            'bus_0001-l,1,Fibroadenoma,benign,3,GE,48,40,left,"[1, 2, 3, 4]"',
            'bus_0001-r,1,Fibroadenoma,benign,3,GE,48,40,right,"[1, 2, 3, 4]"',
            'bus_0002-s,2,IDC,malignant,5,GE,48,40,left,"[1, 2, 3, 4]"',
        ),
    )
    write(root / "5-fold-cv.csv", csv("ID,Pathology,kFold", "bus_0001-l,benign,3"))
    rows, manifest = imported("bus-bra", root)
    assert {row["group"] for row in rows.values()} == {"bus-bra:1", "bus-bra:2"}
    assert labels(rows["bus_0002-s"]) == {"pathology": "malignant", "BI-RADS": "5", "histology": "IDC"}
    assert np.array_equal(decode_mask(rows["bus_0002-s"]["masks"][0]), disc(20, 20, 8))
    assert facts(rows["bus_0001-l"]) == {"fold5": "3"} and rows["bus_0001-r"]["view"] == "right"
    assert manifest.counts["patients"] == 2 and manifest.counts["without patient"] == 0


def test_bus_bra_with_the_verified_columns_only(tmp_path: Path) -> None:
    root = tmp_path / "BUSBRA"
    save(root / "Images" / "bus_0001-l.png", noise(0))
    save(root / "Masks" / "mask_0001-l.png", disc(20, 20, 6))
    write(root / "bus_data.csv", csv("ID,Case,Pathology", "bus_0001-l,1,benign"))
    rows, _ = imported("bus-bra", root)
    assert labels(rows["bus_0001-l"]) == {"pathology": "benign"} and rows["bus_0001-l"]["view"] is None


def test_fetal_planes_semicolons_and_a_column_with_a_trailing_space(tmp_path: Path) -> None:
    root = tmp_path / "planes"
    header = "Image_name;Patient_num;Plane;Brain_plane;Operator;US_Machine;Train "
    write(
        root / "FETAL_PLANES_DB_data.csv",
        csv(
            header,
            "Patient00001_Plane1_1_of_15;1;Other;Not A Brain;Op. 1;Aloka;1 ",
            "Patient00002_Plane3_1_of_1;2;Fetal brain;Trans-thalamic;Other;Voluson E6;0 ",
        ),
    )
    for number, name in enumerate(("Patient00001_Plane1_1_of_15", "Patient00002_Plane3_1_of_1")):
        save(root / "Images" / f"{name}.png", noise(number))
    rows, manifest = imported("fetal-planes-db", root)
    one, two = (rows[name] for name in sorted(rows))
    assert (one["split"], two["split"]) == ("train", "test")
    assert labels(one) == {"plane": "Other"} and labels(two) == {
        "plane": "Fetal brain",
        "brain plane": "Trans-thalamic",
    }
    assert two["group"] == "fetal-planes-db:2" and two["device"] == "Voluson E6"
    assert "cases: 2, the source is described with 12400" in manifest.notices


def test_fetal_planes_of_africa_names_with_and_without_ending(tmp_path: Path) -> None:
    root = tmp_path / "africa"
    save(root / "Zenodo_dataset" / "Egypt" / "P1_a.png", noise(1))
    save(root / "Zenodo_dataset" / "Malawi" / "P1_b.png", noise(2))
    table = csv(
        "Patient_num,Plane,Train,Center,Filename", "1,Fetal brain,1,Egypt,P1_a", "1,Fetal femur,0,Malawi,P1_b.png"
    )
    write(root / "Zenodo_dataset" / "African_planes_database.csv", table)
    rows, _ = imported("fetal-planes-africa", root)
    assert {row["patient"] for row in rows.values()} == {"Egypt 1", "Malawi 1"}


def _sweep(number: int, images: int, doubled: int) -> str:
    poses = ("huvf", "huvb", "hdvf", "hdvb")
    pose = poses[number % 4]
    elements = []
    for place in range(images):
        tag = f'<tag label="{pose}" source="manual"></tag>'
        box = '<box label="head" occluded="0" xtl="2.5" ytl="3" xbr="12.5" ybr="13" z_order="0"></box>'
        elements.append(
            f'<image id="{place}" name="frame_{place:05d}.png" width="{SIZE[0]}" height="{SIZE[1]}">'
            f"{box}{tag}{tag if place < doubled else ''}</image>"
        )
    return f'<?xml version="1.0"?><annotations><version>1.1</version>{"".join(elements)}</annotations>'


def test_fpus23_doubled_tags_count_once_at_full_size(tmp_path: Path) -> None:
    from sonogauge.sources.findings import ReadLog
    from sonogauge.sources.importer import READERS
    from sonogauge.sources.readers.tree import Tree

    root = tmp_path / "FPUS23"
    first = save(root / "frame.png", noise(1))
    sizes = [388] * 38 + [15_113 - 38 * 388]
    doubled = [16] * 38 + [615 - 38 * 16]
    for number, (images, twice) in enumerate(zip(sizes, doubled, strict=True)):
        write(root / "boxes" / "annotation" / f"sweep{number:02d}.xml", _sweep(number, images, twice))
        folder = root / "Dataset" / "four_poses" / "pose" / f"sweep{number:02d}"
        folder.mkdir(parents=True)
        for place in range(images):
            (folder / f"frame_{place:05d}.png").hardlink_to(first)
    layout = known_source("fpus23").layouts[0]
    log = ReadLog()
    found = list(READERS.load(layout.reader)(Tree(root), layout, log))
    orientations = [value for one in found for name, value in one.labels if name == "orientation"]
    assert len(found) == len(orientations) == 15_113
    assert log.counts["doubled tags"] == 615 and len(orientations) + 615 == 15_728
    assert len({one.cluster for one in found}) == 39


def test_fpus23_sweeps_and_planes(tmp_path: Path) -> None:
    root = tmp_path / "FPUS23"
    write(root / "boxes" / "annotation" / "sweep00.xml", _sweep(0, 3, 1))
    for place in range(2):  # the third image is not there
        save(root / "Dataset" / "four_poses" / "huvf" / "sweep00" / f"frame_{place:05d}.png", noise(place))
    save(root / "Dataset_Plane" / "AC_PLANE" / "1.png", noise(9))
    rows, manifest = imported("fpus23", root)
    assert sorted(rows) == ["planes/AC_PLANE/1", "sweep00/frame_00000", "sweep00/frame_00001"]
    row = rows["sweep00/frame_00000"]
    assert labels(row) == {"orientation": "huvf"} and row["group"] == "fpus23:sweep sweep00"
    assert row["boxes"] == [{"category": "head", "x": 2.5, "y": 3.0, "w": 10.0, "h": 10.0}]
    assert row["provenance"] == "phantom" and labels(rows["planes/AC_PLANE/1"]) == {"plane": "abdominal circumference"}
    assert manifest.counts["doubled tags"] == 1 and manifest.counts["fault: annotated image is not in the folder"] == 1


def _ring(x: float, y: float, radius: float) -> str:
    angles = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    return json.dumps([[x + radius * np.cos(a), y + radius * np.sin(a)] for a in angles])


def test_aul_outlines_that_hold_the_liver_and_the_missing_one(tmp_path: Path) -> None:
    root = tmp_path / "AUL"
    for kind, number in (("Benign", 1), ("Malignant", 229), ("Malignant", 374), ("Normal", 1)):
        inner = root / kind / kind  # nested as some copies are
        save(inner / "image" / f"{number}.jpg", noise(number))
        write(inner / "segmentation" / "outline" / f"{number}.json", _ring(24, 20, 15))
        if number == 1:
            write(inner / "segmentation" / "liver" / f"{number}.json", _ring(24, 20, 10))
        if kind != "Normal":
            write(inner / "segmentation" / "mass" / f"{number}.json", _ring(24, 20, 5))
    rows, _ = imported("aul", root)
    assert sorted(rows) == ["Benign_1", "Malignant_229", "Malignant_374", "Normal_1"]
    assert categories(rows["Benign_1"]) == ["liver", "mass"] and categories(rows["Normal_1"]) == ["liver"]
    assert categories(rows["Malignant_374"]) == ["mass"] and rows["Malignant_374"]["fan_mask"] is not None
    swapped = rows["Malignant_229"]
    assert sorted(categories(swapped)) == ["liver", "mass"] and swapped["fan_mask"] is None
    liver = next(mask for mask in swapped["masks"] if mask["category"] == "liver")
    assert _iou(decode_mask(liver), disc(24, 20, 15)) > 0.93
    assert labels(rows["Malignant_229"]) == {"pathology": "malignant"}


def test_fatty_liver_frames_of_a_struct_array(tmp_path: Path) -> None:
    from scipy.io import savemat

    root = tmp_path / "fatty"
    root.mkdir()
    frames = [np.random.default_rng(seed).integers(0, 256, (10, 24, 32), dtype=np.uint8) for seed in range(3)]
    kinds = [("id", object), ("class", object), ("fat", object), ("images", object)]
    data = np.empty((1, 3), dtype=kinds)
    for place, images in enumerate(frames):
        data[0, place] = (place + 1, int(place > 0), 3.5 + 10 * place, images)
    savemat(root / "dataset_liver_bmodes_steatosis_assessment_IJCARS.mat", {"data": data}, do_compression=True)
    rows, manifest = imported("fatty-liver", root)
    assert len(rows) == 30 and manifest.counts["patients"] == 3
    row = rows["2/0007"]
    assert labels(row) == {"steatosis": "fatty"} and row["patient"] == "2" and row["frame"] == 7
    assert row["measurements"] == [{"name": "liver fat", "value": 13.5, "unit": "%"}]
    import io

    assert np.array_equal(np.asarray(Image.open(io.BytesIO(row["image"]["bytes"]))), frames[1][7])


def test_psfhs_colour_volumes_and_swapped_classes(tmp_path: Path) -> None:
    sitk = require_extra("test", "SimpleITK")
    root = tmp_path / "PSFHS"
    (root / "image_mha").mkdir(parents=True)
    (root / "label_mha").mkdir()
    for number, swapped in ((1, False), (2, True)):
        image = np.moveaxis(noise(number, colour=True), -1, 0)
        small, large = disc(10, 10, 4), disc(30, 22, 12)
        mask = np.where(small, 2 if swapped else 1, 0) + np.where(large & ~small, 1 if swapped else 2, 0)
        sitk.WriteImage(sitk.GetImageFromArray(image), str(root / "image_mha" / f"{number:05d}.mha"))
        sitk.WriteImage(sitk.GetImageFromArray(mask.astype(np.uint8)), str(root / "label_mha" / f"{number:05d}.mha"))
    rows, _ = imported("psfhs", root)
    assert categories(rows["00001"]) == ["pubic symphysis", "fetal head"]
    assert np.array_equal(decode_mask(rows["00001"]["masks"][1]), disc(30, 22, 12) & ~disc(10, 10, 4))
    assert not any("swapped" in one for one in rows["00001"]["known_issues"])
    assert any("swapped" in one for one in rows["00002"]["known_issues"])
    import io

    shown = np.asarray(Image.open(io.BytesIO(rows["00001"]["image"]["bytes"])))
    assert np.array_equal(shown, noise(1, colour=True))


def test_mmotu_two_spaces_two_kinds_of_binary_masks_and_smoothed_colours(tmp_path: Path) -> None:
    root = tmp_path / "MMOTU" / "OTU_2d"
    palette = {1: ((64, 0, 0), 0), 2: ((0, 64, 0), 1), 3: ((64, 64, 64), 5)}
    for number, (colour, _) in palette.items():
        save(root / "images" / f"{number}.JPG", noise(number, colour=True))
        mask = disc(20, 20, 9)
        values = mask.astype(np.uint8) if number == 1 else mask
        save(root / "annotations" / f"{number}_binary.PNG", values)
        pixels = np.zeros((SIZE[1], SIZE[0], 3), dtype=np.uint8)
        pixels[mask] = colour
        save(root / "annotations" / f"{number}.PNG", pixels)
    write(root / "train.txt", "1\n2\n")
    write(root / "val.txt", "3\n")
    write(root / "train_cls.txt", "1.JPG  0\n2.JPG  1\n")
    write(root / "val_cls.txt", "3.JPG  5\n")
    rows, manifest = imported("mmotu", root.parent)
    assert {name: row["split"] for name, row in rows.items()} == {"1": "train", "2": "train", "3": "test"}
    assert labels(rows["2"]) == {"pathology": "serous cystadenoma"}
    for name, category in (("1", "chocolate cyst"), ("2", "serous cystadenoma"), ("3", "normal ovary")):
        assert categories(rows[name]) == ["tumour", category]
        for mask in rows[name]["masks"]:
            assert np.array_equal(decode_mask(mask), disc(20, 20, 9))
    assert manifest.counts["mask pixels of no declared value"] == 0


def test_breast_lesions_mask_names_joined_by_ampersands(tmp_path: Path) -> None:
    from openpyxl import Workbook

    root = tmp_path / "BrEaST"
    images = root / "BrEaST-Lesions_USG-images_and_masks"
    for name in ("case001", "case045"):
        save(images / f"{name}.png", noise(len(name) + int(name[-1])))
    save(images / "case001_tumor.png", disc(20, 20, 8))
    save(images / "case001_other1.png", disc(8, 8, 4))
    save(images / "case001_other2.png", disc(40, 30, 4))
    book = Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.title = "BrEaST-Lesions-USG clinical dat"
    header = ["CaseID", "Image_filename", "Mask_tumor_filename", "Mask_other_filename", "Pixel_size", "Age", "BIRADS"]
    sheet.append([*header, "Classification"])
    tumour, other = "case001_tumor.png", "case001_other1.png&case001_other2.png"
    sheet.append([1, "case001.png", tumour, other, 0.0078, 57, "4a", "malignant"])
    sheet.append([45, "case045.png", None, None, 0.0078, "not available", "1", "normal"])
    book.save(root / "BrEaST-Lesions-USG-clinical-data-Dec-15-2023.xlsx")
    rows, manifest = imported("breast-lesions-usg", root)
    assert sorted(rows) == ["case001", "case045"] and manifest.counts["dropped"] == 0
    assert categories(rows["case001"]) == ["tumour", "other", "other"] and not rows["case045"]["masks"]
    assert labels(rows["case001"]) == {"pathology": "malignant", "BI-RADS": "4a"}
    assert facts(rows["case001"], "demographics") == {"age": "57"} and not rows["case045"]["demographics"]
    assert rows["case001"]["patient"] == "1" and rows["case001"]["spacing"] is None


def test_bus_uclm_colours_give_the_label(tmp_path: Path) -> None:
    root = tmp_path / "BUS-UCLM"
    for name, colour in (("ALWI_000", (0, 255, 0)), ("ALWI_001", (255, 0, 0)), ("BOGO_000", None)):
        save(root / "images" / f"{name}.png", noise(3 + len(root.parts)))
        pixels = np.zeros((SIZE[1], SIZE[0], 3), dtype=np.uint8)
        if colour is not None:
            pixels[disc(20, 20, 8)] = colour
        save(root / "masks" / f"{name}.png", pixels)
    rows, _ = imported("bus-uclm", root)
    assert {name: labels(row)["pathology"] for name, row in rows.items()} == {
        "ALWI_000": "benign",
        "ALWI_001": "malignant",
        "BOGO_000": "normal",
    }
    assert rows["ALWI_000"]["patient"] == rows["ALWI_001"]["patient"] == "ALWI"


def test_tn3k_jpeg_masks_need_their_threshold(tmp_path: Path) -> None:
    root = tmp_path / "tn3k"
    for part, numbers in (("trainval", (0, 1)), ("test", (0,))):
        for number in numbers:
            save(root / f"{part}-image" / f"{number:04d}.jpg", noise(number))
            save(root / f"{part}-mask" / f"{number:04d}.jpg", disc(20, 20, 9), quality=60)
    write(root / "tn3k-trainval-fold0.json", json.dumps({"train": [0], "val": [1]}))
    write(root / "label4trainval.csv", csv("image,label", "0000.jpg,0", "0001.jpg,1"))
    write(root / "label4test.csv", csv("name,malignant", "0000.jpg,1"))
    stored = np.asarray(Image.open(root / "test-mask" / "0000.jpg"))
    assert len(np.unique(stored)) > 2  # the trap is there
    rows, manifest = imported("tn3k", root)
    assert {name: row["split"] for name, row in rows.items()} == {
        "test/0000": "test",
        "trainval/0000": "train",
        "trainval/0001": "train",
    }
    assert _iou(decode_mask(rows["test/0000"]["masks"][0]), disc(20, 20, 9)) > 0.97
    assert labels(rows["trainval/0001"]) == {"pathology": "malignant"}
    assert facts(rows["trainval/0001"]) == {"fold0": "val"}
    assert not labels(rows["test/0000"])
    assert manifest.counts["fault: table without the column 'image', left out"] == 1


def test_tg3k_masks_are_the_gland(tmp_path: Path) -> None:
    root = tmp_path / "tg3k"
    save(root / "thyroid-image" / "0007.jpg", noise(7))
    save(root / "thyroid-mask" / "0007.jpg", disc(20, 20, 9))
    write(root / "tg3k-trainval.json", json.dumps({"train": [7], "val": []}))
    rows, _ = imported("tg3k", root)
    assert categories(rows["0007"]) == ["thyroid gland"] and rows["0007"]["split"] == "train"


def test_ddti_in_both_forms(tmp_path: Path) -> None:
    root = tmp_path / "ddti"
    square = [{"x": x, "y": y} for x, y in ((10, 10), (20, 10), (20, 20), (10, 20))]
    mark = json.dumps([{"points": square, "annotation": {}, "regionType": "freehand"}])
    write(
        root / "5.xml",
        f"<case><number>5</number><age>42</age><sex>F</sex><composition>solid</composition><tirads>4a</tirads>"
        f"<mark><image>1</image><svg>{mark}</svg></mark><mark><image>2</image><svg></svg></mark></case>",
    )
    save(root / "5_1.jpg", noise(1))
    save(root / "5_2.jpg", noise(2))
    rows, _ = imported("ddti", root)
    assert rows["5_1"]["patient"] == "5" and labels(rows["5_1"]) == {"TI-RADS": "4a", "composition": "solid"}
    assert decode_mask(rows["5_1"]["masks"][0]).sum() == 100 and not rows["5_2"]["masks"]
    assert {row["group"] for row in rows.values()} == {"ddti:5"}

    processed = tmp_path / "processed" / "DDTI" / "1_or_data"
    save(processed / "image" / "1.PNG", noise(1))
    save(processed / "mask" / "1.PNG", disc(20, 20, 5))
    write(processed / "category.csv", csv("ID,CATE", "1.PNG,1"))
    rows, _ = imported("ddti", tmp_path / "processed")
    assert labels(rows["1"]) == {"pathology": "malignant"} and rows["1"]["patient"] is None


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
    assert _iou(decode_mask(found["fan_mask"]), disc(24, 20, 18)) > 0.97
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


def test_another_layout_is_refused_with_what_was_found(tmp_path: Path) -> None:
    save(tmp_path / "data" / "x" / "a.png", noise(1))
    with pytest.raises(BadInput, match=r"not the layout of 'busi': found x/a\.png; expected files like"):
        imported("busi", tmp_path / "data")
    assert [one.name for one in tmp_path.iterdir()] == ["data"]


def test_masks_of_another_size_are_dropped_and_too_many_refused(tmp_path: Path) -> None:
    root = tmp_path / "busi"
    for number in range(30):
        save(root / "benign" / f"benign ({number}).png", noise(number))
        size = (10, 10) if number == 7 else SIZE
        save(root / "benign" / f"benign ({number})_mask.png", disc(5, 5, 3, size))
    rows, manifest = imported("busi", root)
    assert len(rows) == 29 and manifest.counts["dropped"] == 1
    assert any("mask of another size than the image (benign (7)_mask.png): 1" in line for line in manifest.notices)
    with pytest.raises(BadInput, match="1 of 30 dropped: mask of another size"):
        imported("busi", root, max_dropped=0.01)
