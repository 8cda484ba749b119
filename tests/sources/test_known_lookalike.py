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
from tests.sources.pictures import SIZE, categories, csv, disc, facts, imported, labels, noise, overlap, save, write

pytestmark = [pytest.mark.lookalike, pytest.mark.part("known sources")]


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
    assert overlap(decode_mask(liver), disc(24, 20, 15)) > 0.93
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
    assert overlap(decode_mask(rows["test/0000"]["masks"][0]), disc(20, 20, 9)) > 0.97
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
