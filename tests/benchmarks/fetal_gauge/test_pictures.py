"""The red box: around the structure, in the declared colour and width, and every other pixel as it was."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image
from tests.benchmarks.fetal_gauge.made import case, facts_of, rows_of, write_cases
from tests.shared import shared_data

import sonogauge
from sonogauge.benchmarks.fetal_gauge.parameters import Parameters
from sonogauge.build.fetal_gauge.build import build_fetal_gauge
from sonogauge.build.fetal_gauge.pictures import boxed_pixels
from sonogauge.cases.geometry import decode_mask
from sonogauge.cases.render import draw_box, line_width
from sonogauge.folders import Folder
from sonogauge.sources.media import read_media

pytestmark = pytest.mark.part("fetal-gauge build")

# Structures of the itkpocus frames, seen by eye: left, top, width, height in pixels.
PHANTOM_BOXES = {
    "interson-phantom.png": [("acoustic shadow", 639, 588, 118, 235)],
    "butterfly_axial-lateral-resolution-2020.png": [
        ("dark target", 862, 270, 135, 132),
        ("row of wires", 848, 549, 281, 111),
    ],
    "clarius_axial-lateral-resolution-2020.png": [
        ("dark target", 569, 347, 104, 102),
        ("row of wires", 548, 565, 211, 87),
    ],
}
BOXES = sum(map(len, PHANTOM_BOXES.values()))


def _pixels(data: bytes) -> NDArray[np.uint8]:
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


def _frame(box: tuple[int, int, int, int], line: int, width: int, height: int) -> NDArray[np.bool_]:
    """The oracle: pixels within `line` of the box on the outside, by their distance to it."""
    left, top, right, bottom = box
    columns, rows = np.meshgrid(np.arange(width), np.arange(height))
    across = np.maximum(np.maximum(left - columns, columns - (right - 1)), 0)
    down = np.maximum(np.maximum(top - rows, rows - (bottom - 1)), 0)
    away = np.maximum(across, down)
    return (away >= 1) & (away <= line)


@pytest.fixture(scope="module")
def real_bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("real")
    sonogauge.import_cases("hc18", shared_data("hc18"), folder / "cases" / "hc18")
    frames = shared_data("itkpocus", "itkpocus", "tests", "data")
    rows = [
        case(
            "itkpocus",
            name.partition(".")[0],
            pixels=np.asarray(Image.open(frames / name).convert("RGB")),
            boxes=boxes,
            provenance="phantom",
        )
        for name, boxes in PHANTOM_BOXES.items()
    ]
    write_cases(folder / "cases" / "itkpocus", rows)
    build_fetal_gauge(folder / "cases", folder / "bench", parameters={"tasks": ["VG"]})
    return folder


@pytest.mark.real
def test_the_box_encloses_the_structure_and_leaves_all_else_alone(real_bench: Path) -> None:
    parents = {
        row["case_id"]: row
        for name in ("hc18", "itkpocus")
        for row in Folder(real_bench / "cases" / name, "cases").rows("cases")
    }
    drawn = {row["case_id"]: row for row in rows_of(real_bench / "bench", "cases")}
    items = [row for row in rows_of(real_bench / "bench") if row["task"] == "VG"]
    assert {row["source"] for row in items} == {"hc18", "itkpocus"} and len(items) == 12 + BOXES
    for item in items:
        row = drawn[item["images"][0]["case_id"]]
        parent = parents[facts_of(row)["drawn_on"]]
        before, after = _pixels(parent["image"]["bytes"]), _pixels(row["image"]["bytes"])
        height, width = before.shape[:2]
        x, y, w, h = (float(part) for part in facts_of(item)["box_xywh"].split(","))
        if parent["masks"]:
            mask = np.any([decode_mask(one) for one in parent["masks"]], axis=0)
            rows, columns = np.nonzero(mask)
            assert (x, y, w, h) == (
                columns.min(),
                rows.min(),
                columns.max() - columns.min() + 1,
                rows.max() - rows.min() + 1,
            )
        line = max(2, round(0.004 * max(width, height)))
        frame = _frame((int(x), int(y), int(x + w), int(y + h)), line, width, height)
        assert frame.any() and (after[frame] == (255, 0, 0)).all()
        assert np.array_equal(after[~frame], before[~frame])
        assert not frame[int(y) : int(y + h), int(x) : int(x + w)].any()
        assert float(facts_of(item)["box_area_ratio"]) == pytest.approx(w * h / (width * height), abs=1e-6)
        media = read_media(row["image"]["bytes"])
        assert (media.sha256, media.pixel_hash) == (row["sha256"], row["pixel_hash"])
        assert "red box" in item["question"]


@given(
    st.integers(0, 30), st.integers(0, 20), st.integers(1, 30), st.integers(1, 20), st.integers(1, 5), st.integers(0, 4)
)
def test_outline_against_distances(x: int, y: int, w: int, h: int, line: int, pad: int) -> None:
    pixels = np.full((30, 40), 77, dtype=np.uint8)
    box = {"x": x, "y": y, "w": w, "h": h}
    drawn = draw_box(pixels, box, colour=(1, 2, 3), line=line, pad=pad)
    frame = _frame((x - pad, y - pad, x + w + pad, y + h + pad), line, 40, 30)
    assert (drawn[frame] == (1, 2, 3)).all() and (drawn[~frame] == 77).all()
    assert np.array_equal(draw_box(pixels, box, colour=(1, 2, 3), line=line, pad=pad, antialias=True), drawn)


def test_inward_line_stays_in_the_box_and_a_box_at_the_border_is_clipped() -> None:
    pixels = np.zeros((20, 20), dtype=np.uint8)
    box = {"x": 4, "y": 4, "w": 8, "h": 8}
    inward = draw_box(pixels, box, line=2, side="inward")
    red = (inward == (255, 0, 0)).all(axis=2)
    assert red[4:12, 4:12].sum() == red.sum() == 64 - 16
    whole = draw_box(pixels, {"x": 0, "y": 0, "w": 20, "h": 20}, line=3)
    assert not whole.any()


def test_antialias_blends_where_an_edge_lies_inside_a_pixel() -> None:
    pixels = np.zeros((20, 20), dtype=np.uint8)
    drawn = draw_box(pixels, {"x": 5.5, "y": 5.0, "w": 6.0, "h": 6.0}, line=2, antialias=True)
    assert drawn[8, 3:7, 0].tolist() == [128, 255, 128, 0]
    hard = draw_box(pixels, {"x": 5.5, "y": 5.0, "w": 6.0, "h": 6.0}, line=2)
    assert hard[8, 3:7, 0].tolist() == [255, 255, 0, 0] and set(np.unique(hard)) == {0, 255}


def test_drawn_before_or_after_resizing() -> None:
    pixels = np.full((100, 200), 50, dtype=np.uint8)
    box = {"category": "head", "x": 40.0, "y": 20.0, "w": 80.0, "h": 40.0}
    after = boxed_pixels(pixels, box, Parameters(image_size=100, draw_stage="after"))
    assert after.shape == (50, 100, 3)
    red = (after == (255, 0, 0)).all(axis=2)
    # The line of the small picture is that of its own size, and every pixel is red or as it was.
    assert line_width(100, 50) == 2 and red[20, 18:22].tolist() == [True, True, False, False]
    assert np.unique(after[~red]).tolist() == [50]
    before = boxed_pixels(pixels, box, Parameters(image_size=100))
    assert before.shape == (50, 100, 3) and not np.array_equal(before, after)


def test_a_declared_size_resizes_all_pictures_and_the_boxes_of_vl(tmp_path: Path) -> None:
    rows = [
        case("s", "0", boxes=[("head", 10, 10, 20, 20)], labels={"plane": "Fetal brain"}),
        case("s", "1", boxes=[("abdomen", 10, 10, 20, 20)], labels={"plane": "Fetal femur"}),
    ]
    write_cases(tmp_path / "cases", rows)
    build_fetal_gauge(tmp_path / "cases", tmp_path / "b", parameters={"image_size": 32})
    sizes = {(row["width"], row["height"]) for row in rows_of(tmp_path / "b", "cases")}
    assert sizes == {(32, 24)}
    for row in rows_of(tmp_path / "b", "cases"):
        assert _pixels(row["image"]["bytes"]).shape == (24, 32, 3)
    (first, _) = (row for row in rows_of(tmp_path / "b") if row["task"] == "VL")
    box = first["reference"]["boxes"][0]
    assert (box["x"], box["y"], box["w"], box["h"]) == (5, 5, 10, 10)


def test_every_part_of_a_structure_or_the_largest(tmp_path: Path) -> None:
    mask = np.zeros((48, 64), dtype=bool)
    mask[4:16, 4:20] = True
    mask[30:40, 40:50] = True
    other: dict[str, Any] = {"boxes": [("abdomen", 5, 5, 20, 20)]}
    write_cases(tmp_path / "cases", [case("s", "0", masks={"head": mask}), case("s", "1", **other)])
    expected = {"union": ["4,4,46,36"], "largest": ["4,4,16,12"], "each": ["4,4,16,12", "40,30,10,10"]}
    for rule, boxes in expected.items():
        out = tmp_path / rule
        build_fetal_gauge(tmp_path / "cases", out, parameters={"vg_component_rule": rule, "tasks": ["VG"]})
        found = [facts_of(row)["box_xywh"] for row in rows_of(out) if row["reference"]["choices"][0] == "fetal head"]
        assert found == boxes
