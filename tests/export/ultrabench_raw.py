"""Raw look-alike trees of the ten sources of UltraBench, as its own converters and our importers both read them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from tests.shared import require_extra
from tests.sources.pictures import csv, save, write

Pixels = np.ndarray[Any, Any]
SIZE = (120, 96)  # width, height


def fan(seed: int, size: tuple[int, int] = SIZE, *, colour: bool = False) -> Pixels:
    """A scan as a sector, with a shadow, dark holes and specks of text outside, as real ones have."""
    width, height = size
    draw = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]
    inside = (np.hypot(y + 4, x - width / 2) < height * 0.97) & (np.abs(x - width / 2) < (y + 8) * 0.62)
    values = np.where(inside, draw.integers(3, 256, (height, width)), 0)
    values[height // 3 : height // 2, width // 2 - 8 : width // 2 - 3] = 0
    values[draw.random((height, width)) < 0.02] = 0
    values[2:5, 2:9] = 200
    if seed % 2:
        values[height // 2 :, : width // 3] = 0
    grey = values.astype(np.uint8)
    return np.stack([grey, grey // 2, grey // 3], axis=-1) if colour else grey


def _blob(x: float, y: float, radius: float, size: tuple[int, int] = SIZE) -> Pixels:
    columns, rows = np.meshgrid(np.arange(size[0]), np.arange(size[1]))
    return np.asarray((columns - x) ** 2 + (rows - y) ** 2 <= radius**2)


def _ring(x: float, y: float, radius: float) -> list[list[float]]:
    turns = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    return [[round(x + radius * float(np.cos(turn)), 2), round(y + radius * float(np.sin(turn)), 2)] for turn in turns]


def _polygon(points: list[list[float]], value: int) -> Pixels:
    image = Image.new("L", SIZE)
    ImageDraw.Draw(image).polygon([(x, y) for x, y in points], fill=value)
    return np.asarray(image)


def aul(root: Path) -> Path:
    for kind, numbers in (
        ("Normal", range(1, 9)),
        ("Benign", (20, 21, 22, 23, 24, 25, 229)),
        ("Malignant", (*range(370, 382), 306)),
    ):
        for number in numbers:
            save(root / kind / "image" / f"{number}.jpg", fan(number, colour=number % 3 == 0), quality=95)
            places = {"outline": _ring(60, 45, 42), "liver": _ring(60, 50, 25), "mass": _ring(60, 50, 9)}
            if number in (229, 306):
                places = {"outline": _ring(60, 50, 25), "mass": _ring(60, 50, 9)}
            if number == 374:
                del places["liver"]
            if kind == "Normal":
                del places["mass"]
            for place, points in places.items():
                write(root / kind / "segmentation" / place / f"{number}.json", json.dumps(points))
    return root


def butterfly(root: Path) -> Path:
    for part, patients in (("butterfly training", (3, 11)), ("butterfly test", (5,))):
        for patient in patients:
            for kind in ("carotid", "2ch", "morisons_pouch"):
                save(root / part / str(patient) / kind / "7.png", fan(patient))
    return root


def camus(root: Path) -> Path:
    require_extra("medical", "nibabel")  # for our reader
    sitk = require_extra("test", "SimpleITK")
    for patient in range(1, 11):
        folder = root / "database_nifti" / f"patient{patient:04d}"
        folder.mkdir(parents=True)
        for view in ("2CH", "4CH"):
            frames = np.stack([fan(patient + frame).T[:, ::-1] for frame in range(5)])
            marks = np.where(_blob(60, 40, 14), 1, np.where(_blob(60, 40, 20), 2, np.where(_blob(60, 75, 9), 3, 0)))
            marked = np.stack([marks.astype(np.uint8).T[:, ::-1]] * 5)
            for values, ending in ((frames, ""), (marked, "_gt")):
                file = folder / f"patient{patient:04d}_{view}_half_sequence{ending}.nii.gz"
                sitk.WriteImage(sitk.GetImageFromArray(np.ascontiguousarray(values)), str(file))
                still = folder / f"patient{patient:04d}_{view}_ED{ending}.nii.gz"
                sitk.WriteImage(sitk.GetImageFromArray(np.ascontiguousarray(values[0])), str(still))
            quality = ("Poor", "Medium", "Good")[patient % 3]
            about = {"ED": 1, "ES": 5, "NbFrame": 5, "Sex": "F", "Age": 40 + patient, "ImageQuality": quality}
            lines = [f"{name}: {value}\n" for name, value in {**about, "EF": 53, "FrameRate": 48.8}.items()]
            write(folder / f"Info_{view}.cfg", "".join(lines))
    return root


def fatty_liver(root: Path) -> Path:
    from scipy.io import savemat

    data = np.zeros((1, 12), dtype=[("id", "O"), ("class", "O"), ("fat", "O"), ("images", "O")])
    for place in range(12):
        frames = np.stack([fan(100 * place + frame) for frame in range(3)])
        data[0, place] = (place + 1, int(place % 3 > 0), 30 * (place % 3), frames)
    root.mkdir(parents=True)
    savemat(root / "dataset_liver_bmodes_steatosis_assessment_IJCARS.mat", {"data": data})
    return root


def gbcu(root: Path) -> Path:
    boxes = {}
    lists: dict[str, list[str]] = {"train": [], "test": []}
    for number in range(14):
        name = f"im{number:05d}.jpg"
        save(root / "imgs" / name, fan(number), quality=95)
        found = [["abn", [10, 12, 50, 60]], ["stn", [14, 20, 30, 44]]][: 1 + number % 2]
        boxes[name] = {"dim": list(SIZE), "bbs": found}
        lists["test" if number % 5 == 0 else "train"].append(f"{name},{number % 2 * 2}")
    for part, lines in lists.items():
        write(root / f"{part}.txt", "\n".join(lines) + "\n")
    write(root / "bbox_annot.json", json.dumps(boxes))
    return root


def mmotu(root: Path) -> Path:
    colours = ((64, 0, 0), (0, 64, 0), (0, 0, 64), (64, 0, 64), (64, 64, 0), (64, 64, 64), (0, 128, 0), (0, 0, 128))
    base = root / "OTU_2d"
    parts: dict[str, list[int]] = {"train": [], "val": []}
    for number in range(1, 21):
        kind = number % 2 * 3
        mask = _blob(50 + number, 40, 12)
        save(
            base / "images" / f"{number}.JPG",
            fan(number, (150, 120), colour=True)[:96, :120],
            format="JPEG",
            quality=95,
        )
        save(base / "annotations" / f"{number}_binary.PNG", mask.astype(np.uint8), format="PNG")
        save(
            base / "annotations" / f"{number}.PNG",
            (mask[..., None] * np.array(colours[kind])).astype(np.uint8),
            format="PNG",
        )
        parts["val" if number % 4 == 0 else "train"].append(number)
    for part, numbers in parts.items():
        write(base / f"{part}.txt", "\n".join(map(str, numbers)) + "\n")
        write(base / f"{part}_cls.txt", "".join(f"{one}.JPG  {one % 2 * 3}\n" for one in numbers))
    return root


def open_kidney(root: Path) -> Path:
    header = "filename,file_size,file_attributes,region_count,region_id,region_shape_attributes,region_attributes"
    lines = []
    for number in range(1, 31):
        file_id = f"IM-0421-{number if number != 30 else 29:04d}"  # the last shows the image before it once more
        name = f"{400 + number}_{file_id}_anon.png"
        save(root / "images" / name, fan(number, colour=number % 2 == 0))
        rings = {
            "Capsule": _ring(60, 50, 24),
            "Central Echo Complex": _ring(60, 50, 7),
            "Medulla": _ring(45, 50, 5),
            "Cortex": _ring(75, 50, 5),
        }
        regions = sum(_polygon(rings[kind], 1 + place) for place, kind in enumerate(list(rings)[1:]))
        save(root / "labels" / "reviewed_masks_1" / "capsule" / name, _polygon(rings["Capsule"], 1))
        save(root / "labels" / "reviewed_masks_1" / "regions" / name, regions)
        about = {
            "Quality": "Good",
            "View": ("Transverse", "Longitudinal", "Other")[number % 3],
            "Comments": "Transplant kidney" if number % 4 == 0 else "",
        }
        for place, (kind, points) in enumerate(rings.items()):
            xs, ys = zip(*points, strict=True)
            shape = {"name": "polygon", "all_points_x": xs, "all_points_y": ys}
            cells = ['"' + json.dumps(one).replace('"', '""') + '"' for one in (about, shape, {"Anatomy": kind})]
            lines.append(f"{name},{1000 + number},{cells[0]},{len(rings)},{place},{cells[1]},{cells[2]}")
    write(root / "labels" / "reviewed_labels_1.csv", csv(header, *lines))
    return root


def pocus(root: Path) -> Path:
    (root / "data" / "pocus_videos" / "convex").mkdir(parents=True)
    for number in range(14):
        kind = ("Cov", "pneu", "Reg", "vir")[number % 4]
        ending = ("png", "jpg")[number % 2]
        save(
            root / "data" / "pocus_images" / "convex" / f"{kind}-{number}.{ending}", fan(number, (121, 96), colour=True)
        )
    save(root / "data" / "pocus_images" / "linear" / "Cov-99.png", fan(5, colour=True))
    return root


def psfhs(root: Path) -> Path:
    sitk = require_extra("test", "SimpleITK")
    for folder in ("image_mha", "label_mha"):
        (root / folder).mkdir(parents=True)
    for number in range(1, 16):
        colour = np.ascontiguousarray(np.moveaxis(fan(number, colour=True), -1, 0))
        marks = np.where(_blob(70, 60, 18), 2, np.where(_blob(40, 30, 7), 1, 0)).astype(np.uint8)
        for values, folder in ((colour, "image_mha"), (marks, "label_mha")):
            sitk.WriteImage(sitk.GetImageFromArray(values), str(root / folder / f"{number:05d}.mha"))
    return root


def stanford_thyroid(root: Path) -> Path:
    h5py = require_extra("medical", "h5py")
    from sonogauge.export.ultrabench_set import ultrabench_sets

    people = [*ultrabench_sets()["stanford_thyroid"].only["person"], "1000"]  # the last has no convex probe
    names = [f"{person}_" for person in people]
    root.mkdir(parents=True)
    with h5py.File(root / "dataset.hdf5", "w") as file:
        file["annot_id"] = np.array(names, dtype=h5py.string_dtype())
        file["image"] = np.stack([fan(place, (160, 150)) for place in range(len(names))])
        file["mask"] = np.stack([_blob(80, 60, 12, (160, 150)).astype(np.uint8) * 255] * len(names))
    header = "annot_id,age,sex,location,size_x,size_y,size_z,ti-rads_level,ti-rads_composition,ti-rads_echogenicity,"
    header += "ti-rads_shape,ti-rads_margin,ti-rads_echogenicfoci,histopath_diagnosis"
    lines = [
        f"{name},{30 + place % 40},F,left,1.5,2.5,3,{1 + place % 5},2,1,0,0,3,{place % 2}"
        for place, name in enumerate(names)
    ]
    write(root / "metadata.csv", csv(header, *lines))
    return root


# Name of the package's converter -> the raw tree, the name of our source, options of the import.
RAW: dict[str, tuple[Callable[[Path], Path], str, dict[str, Any]]] = {
    "aul": (aul, "aul", {}),
    "butterfly": (butterfly, "butterfly", {}),
    "camus": (camus, "camus", {"layout": "sequences"}),
    "fatty_liver": (fatty_liver, "fatty-liver", {}),
    "gbcu": (gbcu, "gbcu", {}),
    "mmotu": (mmotu, "mmotu", {}),
    "open_kidney": (open_kidney, "open-kidney", {}),
    "pocus": (pocus, "pocus", {}),
    "psfhs": (psfhs, "psfhs", {}),
    "stanford_thyroid": (stanford_thyroid, "thyroid-cine", {}),
}
