"""Annotation formats and arrays against pycocotools, numpy and hand-made numbers."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from pycocotools import mask as coco
from tests.shared import require_extra
from tests.sources.pictures import SIZE, categories, csv, disc, facts, imported, labels, noise, png, save, write

from sonogauge._errors import BadInput
from sonogauge.cases.geometry import decode_mask
from sonogauge.sources.media import MediaFault
from sonogauge.sources.readers.rows import read_rows
from sonogauge.sources.readers.shapes import polygon_mask
from sonogauge.sources.readers.tree import Template, compile_pattern

pytestmark = [pytest.mark.lookalike, pytest.mark.part("readers")]


def test_coco_polygons_runs_boxes_and_key_points(tmp_path: Path) -> None:
    root = tmp_path / "coco"
    for number in (1, 2):
        save(root / "images" / f"{number}.jpg", noise(number))
    mask = disc(20, 20, 7)
    packed = coco.encode(np.asfortranarray(mask.astype(np.uint8)))
    runs = np.flatnonzero(np.diff(np.concatenate([[0], mask.T.ravel().astype(int), [0]])))
    counts = [int(runs[0]), *np.diff(runs).tolist(), int(mask.size - runs[-1])]
    square = [10, 10, 20, 10, 20, 20, 10, 20]
    content = {
        "images": [
            {"id": 1, "file_name": "1.jpg", "width": SIZE[0], "height": SIZE[1]},
            {"id": 2, "file_name": "2.jpg", "width": SIZE[0], "height": SIZE[1]},
            {"id": 3, "file_name": "3.jpg"},
        ],
        "categories": [{"id": 1, "name": "leiomyoma"}, {"id": 2, "name": "GIST", "keypoints": ["tip", "base"]}],
        "annotations": [
            {"id": 1, "image_id": 1, "category_id": 1, "segmentation": [square], "bbox": [10, 10, 10, 10]},
            {"id": 2, "image_id": 1, "category_id": 2, "segmentation": {"size": [*SIZE[::-1]], "counts": counts}},
            {"id": 3, "image_id": 2, "category_id": 2, "bbox": [1, 2, 3, 4], "keypoints": [5, 6, 2, 7, 8, 0]},
            {
                "id": 4,
                "image_id": 2,
                "category_id": 1,
                "segmentation": {"size": [*SIZE[::-1]], "counts": packed["counts"].decode()},
            },
        ],
    }
    write(root / "annotations.json", json.dumps(content))
    rows, manifest = imported("coco", root, map_file=write(tmp_path / "map.yaml", "options: {labels: kind}\n"))
    one, two = rows["images/1"], rows["images/2"]
    assert categories(one) == ["leiomyoma", "GIST"]
    assert decode_mask(one["masks"][0]).sum() == 100 and np.array_equal(decode_mask(one["masks"][1]), mask)
    assert np.array_equal(decode_mask(two["masks"][0]), mask)
    assert {"category": "GIST", "x": 1.0, "y": 2.0, "w": 3.0, "h": 4.0} in two["boxes"]
    assert two["points"] == [{"name": "tip", "x": 5.0, "y": 6.0}]
    assert manifest.counts["fault: annotated image is not in the folder"] == 1
    assert sorted(label["value"] for label in one["labels"]) == ["GIST", "leiomyoma"]


@pytest.mark.parametrize(
    "segmentation",
    [
        {"size": [40, 48], "counts": [1, 2]},
        {"size": [40, 48], "counts": "zzzz"},
        {"size": [4, 4], "counts": [16]},
        [[1, 1, 2, 2]],
        [[1, 1, "x", 2, 3, 3]],
        [[1, 1, float("nan"), 2, 3, 3]],
    ],
)
def test_coco_with_broken_regions_drops_the_image(tmp_path: Path, segmentation: Any) -> None:
    root = tmp_path / "coco"
    save(root / "1.png", noise(1))
    content = {
        "images": [{"id": 1, "file_name": "1.png"}],
        "categories": [{"id": 1, "name": "x"}],
        "annotations": [{"image_id": 1, "category_id": 1, "segmentation": segmentation}],
    }
    write(root / "a.json", json.dumps(content))
    with pytest.raises(BadInput, match="nothing usable"):
        imported("coco", root)


_POINTS = st.lists(st.tuples(st.floats(0, 48), st.floats(0, 40)), min_size=3, max_size=8)


@given(_POINTS)
def test_polygons_are_those_of_pycocotools(points: list[tuple[float, float]]) -> None:
    flat = [value for point in points for value in point]
    expected = coco.decode(coco.frPyObjects([flat], 40, 48))[:, :, 0]
    assert np.array_equal(polygon_mask(points, 48, 40), expected.astype(bool))


def test_cvat_xml_shapes_attributes_and_what_is_left_out(tmp_path: Path) -> None:
    root = tmp_path / "cvat"
    save(root / "a" / "1.png", noise(1))
    image = (
        f'<image id="0" name="1.png" width="{SIZE[0]}" height="{SIZE[1]}">'
        '<box label="b" xtl="1" ytl="2" xbr="4" ybr="6"/>'
        '<polygon label="p" points="10,10;20,10;20,20;10,20"/>'
        '<points label="k" points="3,4;5,6"/>'
        '<polyline label="l" points="1,1;2,2"/>'
        '<ellipse label="e" cx="30" cy="20" rx="8" ry="4" rotation="90"/>'
        '<tag label="view"><attribute name="side">left</attribute></tag></image>'
    )
    write(root / "x.xml", f"<annotations>{image}</annotations>")
    write(root / "other.xml", "<other/>")
    rows, manifest = imported("cvat", root)
    row = rows["a/1"]
    assert categories(row) == ["p", "e"] and row["boxes"][-1] == {"category": "b", "x": 1, "y": 2, "w": 3, "h": 4}
    assert [(one["x"], one["y"]) for one in row["points"]] == [(3, 4), (5, 6)]
    ellipse = decode_mask(row["masks"][1])
    rows_of, columns_of = np.nonzero(ellipse)
    assert np.ptp(rows_of) > np.ptp(columns_of) and ellipse.sum() == pytest.approx(np.pi * 32, rel=0.06)
    assert "a line of 'l' was left out" in row["known_issues"]
    assert labels(row) == {"tag": "view", "view side": "left"}
    assert manifest.counts["XML files that are not of CVAT"] == 1


def test_cvat_task_with_tracks_tags_and_steps(tmp_path: Path) -> None:
    root = tmp_path / "tasks" / "task_1"
    for number in range(6):
        save(root / "data" / f"{number}.png", noise(number))
    names = [{"name": str(number), "extension": ".png"} for number in (5, 4, 3, 2, 1, 0)]
    write(root / "data" / "manifest.jsonl", "\n".join([json.dumps({"version": "1.1"}), *map(json.dumps, names)]))
    square = [10, 10, 20, 10, 20, 20, 10, 20]
    track = {
        "label": "t",
        "shapes": [
            {"type": "rectangle", "points": [1, 2, 4, 6], "frame": 1, "outside": False},
            {"type": "rectangle", "points": [1, 2, 4, 6], "frame": 2, "outside": True},
        ],
    }
    content = [
        {
            "shapes": [{"type": "polygon", "points": square, "frame": 0, "label": "p"}],
            "tracks": [track],
            "tags": [{"frame": 2, "label": "bad"}],
        }
    ]
    write(root / "annotations.json", json.dumps(content))
    write(root / "task.json", json.dumps({"data": {"start_frame": 1, "frame_filter": "step=2"}}))
    rows, _ = imported("cvat-task", root.parent, map_file=write(tmp_path / "map.yaml", "options: {labels: seen}\n"))
    assert [row["frame"] for row in rows.values()] == [1, 3, 5]
    assert [labels(row).get("seen") for row in rows.values()] == ["p", "t", "bad"]
    # The manifest turns the order of the files round.
    shown = [np.asarray(Image.open(io.BytesIO(row["image"]["bytes"]))) for row in rows.values()]
    assert all(np.array_equal(one, noise(number)) for one, number in zip(shown, (4, 2, 0), strict=True))


def test_via_shapes_quotes_and_empty_attributes(tmp_path: Path) -> None:
    root = tmp_path / "via"
    save(root / "1.png", noise(1))
    shapes = [
        ({"name": "rect", "x": 1, "y": 2, "width": 3, "height": 4}, {"kind": "a"}),
        ({"name": "circle", "cx": 20, "cy": 20, "r": 8}, {"kind": "b"}),
        ({"name": "point", "cx": 5, "cy": 6}, {"kind": {"c": True, "d": False}}),
    ]

    def quoted(value: object) -> str:
        return '"' + json.dumps(value).replace('"', '""') + '"'

    header = "filename,file_size,file_attributes,region_count,region_id,region_shape_attributes,region_attributes"
    lines = [
        f"1.png,9,{'' if place else '{}'},3,{place},{quoted(s)},{quoted(a)}" for place, (s, a) in enumerate(shapes)
    ]
    single = "\"{'name': 'ellipse', 'cx': 30, 'cy': 20, 'rx': 6, 'ry': 3}\""
    lines.append(f"1.png,9,,4,3,{single},\"{{'kind': 'e'}}\"")
    write(root / "a.csv", csv(header, *lines))
    write(root / "b.csv", csv("x,y", "1,2"))
    rows, _ = imported("via", root)
    (row,) = rows.values()
    assert categories(row) == ["b", "e"] and row["points"] == [{"name": "c", "x": 5.0, "y": 6.0}]
    assert decode_mask(row["masks"][0]).sum() == pytest.approx(np.pi * 64, rel=0.05)
    assert row["boxes"][-1]["category"] == "a"


def test_parquet_of_hugging_face_datasets(tmp_path: Path) -> None:
    datasets = require_extra("test", "datasets")
    root = tmp_path / "hub"
    root.mkdir()
    images = [Image.fromarray(noise(number)) for number in range(5)]
    made = datasets.Dataset.from_dict(
        {"image": images, "label": [0, 1, 0, 1, 1], "pid": ["a", "a", "b", "b", "c"]},
        features=datasets.Features(
            {"image": datasets.Image(), "label": datasets.Value("int64"), "pid": datasets.Value("string")}
        ),
    )
    made.to_parquet(str(root / "train-00000.parquet"), batch_size=2)
    text = "patient: '{pid}'\nlabels: {class: {value: '{label}', map: {0: benign, 1: malignant}}}\nsplit: '{split}'\n"
    text += "find: '{split:train|test}-{part}.parquet'\n"
    rows, manifest = imported("records", root, map_file=write(tmp_path / "map.yaml", text))
    assert len(rows) == 5 and manifest.counts["patients"] == 3
    for number, row in enumerate(rows.values()):
        assert np.array_equal(np.asarray(Image.open(io.BytesIO(row["image"]["bytes"]))), noise(number))
        assert row["split"] == "train" and labels(row)["class"] == ("benign", "malignant")[number in (1, 3, 4)]


def test_tables_without_images_may_lie_beside_those_with(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    root = tmp_path / "hub"
    root.mkdir()
    pq.write_table(pa.table({"case_id": ["a"]}), root / "cases.parquet")
    with pytest.raises(BadInput, match=r"cases\.parquet: no image column among case_id; name it"):
        imported("records", root)
    images = [{"bytes": png(noise(number)), "path": None} for number in range(2)]
    pq.write_table(pa.table({"image": images}), root / "test.parquet")
    rows, manifest = imported("records", root)
    assert len(rows) == 2 and manifest.counts["dropped"] == 0
    assert manifest.counts["fault: table without an image column"] == 1


def test_json_lines_with_paths_and_base64(tmp_path: Path) -> None:
    import base64

    root = tmp_path / "lines"
    save(root / "images" / "a.png", noise(1))
    inline = base64.b64encode(png(noise(2))).decode()
    lines = [
        json.dumps({"image": "images/a.png", "caption": "a cyst", "meta": {"age": 3}}),
        json.dumps({"image": {"bytes": inline, "path": None}, "caption": "another"}),
    ]
    write(root / "data.jsonl", "\n".join(lines) + "\n")
    text = "texts: [{kind: caption, text: '{caption}'}]\ndemographics: {age: '{meta.age}'}\n"
    rows, _ = imported("records", root, map_file=write(tmp_path / "map.yaml", text))
    assert sorted(rows) == ["data/000001", "images/a"]
    assert rows["images/a"]["texts"][0]["text"] == "a cyst"
    assert facts(rows["images/a"], "demographics") == {"age": "3"}


def test_vlmevalkit_tables(tmp_path: Path) -> None:
    import base64

    root = tmp_path / "vlm"
    root.mkdir()
    picture = base64.b64encode(png(noise(3))).decode()
    write(root / "Bench.tsv", f"index\timage\tquestion\tA\tB\tanswer\n0\t{picture}\tWhich organ?\tliver\tkidney\tA\n")
    text = "labels: {answer: '{answer}'}\ntexts: [{kind: question, text: '{question}'}]\nmeta: {A: '{A}', B: '{B}'}\n"
    rows, _ = imported("vlmevalkit", root, map_file=write(tmp_path / "map.yaml", text))
    (row,) = rows.values()
    assert row["texts"] == [{"kind": "question", "text": "Which organ?", "language": "en"}]
    assert facts(row) == {"A": "liver", "B": "kidney"} and labels(row) == {"answer": "A"}
    assert row["image"]["bytes"] == png(noise(3))


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("a.csv", "a;b \n1; 2 \n", [{"a": "1", "b": "2"}]),
        ("a.csv", '\ufeffa,b\r\n1,"x;y"\r\n\r\n', [{"a": "1", "b": "x;y"}]),
        ("a.tsv", "a\tb\n1\t2\n", [{"a": "1", "b": "2"}]),
        ("a.jsonl", '{"a": {"b": null}}\n\n{"a": {"b": true}}', [{"a.b": ""}, {"a.b": "true"}]),
        ("a.json", '[{"a": 1.0}]', [{"a": "1"}]),
        ("a.cfg", "ED: 1\nSex:  F\n", [{"ED": "1", "Sex": "F"}]),
    ],
)
def test_tables_of_every_kind(name: str, data: str, expected: list[dict[str, str]]) -> None:
    assert list(read_rows(data.encode(), name)) == expected


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.csv", b"a,a\n1,2\n", "column twice"),
        ("a.csv", b"", "no header"),
        ("a.csv", "a,b".encode("utf-16"), "UTF-16"),
        ("a.csv", b"version https://git-lfs.github.com/spec/v1\n", "LFS"),
        ("a.json", b"[" * 100_000, "not JSON"),
        ("a.json", b"[1]", "not a JSON object"),
        ("a.xlsx", b"PK\x03\x04 no", "xlsx"),
        ("a.pdf", b"", "not a table"),
    ],
)
def test_tables_that_are_none(name: str, data: bytes, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        list(read_rows(data, name))


def test_patterns_and_templates() -> None:
    regex = compile_pattern("{class:benign|malignant}/{class} ({n}).png")
    assert regex.fullmatch("x/benign/benign (4).PNG")
    assert regex.fullmatch("benign/malignant (4).png") is None and regex.fullmatch("benign/benign (4).jpg") is None
    assert regex.fullmatch("benign/x/benign (4).png") is None
    assert Template("{a b(mm)}-{c}").fill({"a b(mm)": " 1 ", "c": "2"}) == "1-2"


def test_shapes_outside_the_image_are_cut_off_and_nonsense_is_refused() -> None:
    assert polygon_mask([(-1e9, -1e9), (1e9, -1e9), (1e9, 1e9), (-1e9, 1e9)], 5, 4).all()
    for points in ([(0, 0), (1, 1)], [(0, 0), (1, float("inf")), (2, 2)]):
        with pytest.raises(MediaFault):
            polygon_mask(points, 5, 4)


def test_an_annotation_of_another_folder_is_not_taken(tmp_path: Path) -> None:
    root = tmp_path / "coco"
    save(root / "train" / "1.png", noise(1))
    images = [{"id": 1, "file_name": "test/1.png"}, {"id": 2, "file_name": "train/1.png"}]
    content = {"images": images, "annotations": [], "categories": []}
    write(root / "a.json", json.dumps(content))
    rows, manifest = imported("coco", root)
    assert list(rows) == ["train/1"] and manifest.counts["fault: annotated image is not in the folder"] == 1


def test_names_that_fit_several_files_go_to_the_nearest_or_to_none(tmp_path: Path) -> None:
    root = tmp_path / "coco"
    for part in ("a", "b"):
        save(root / part / "images" / "1.png", noise(ord(part)))
        content = {"images": [{"id": 1, "file_name": "1.png"}], "annotations": [], "categories": []}
        write(root / part / "labels.json", json.dumps(content))
    rows, _ = imported("coco", root)
    assert sorted(rows) == ["a/images/1", "b/images/1"]
    for part in ("a", "b"):
        (root / part / "labels.json").unlink()
    write(root / "labels.json", json.dumps(content))
    with pytest.raises(BadInput, match="annotated image is not in the folder"):
        imported("coco", root)


def test_a_table_that_cannot_be_read_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sonogauge.sources.readers.tree import Tree

    root = tmp_path / "BUSBRA"
    save(root / "Images" / "bus_1.png", noise(1))
    write(root / "bus_data.csv", csv("ID,Case,Pathology", "bus_1,1,benign"))
    monkeypatch.setattr(Tree.read, "__defaults__", (10,))
    with pytest.raises(BadInput, match="file is too large"):
        imported("bus-bra", root)
