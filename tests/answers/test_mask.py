"""Masks in replies: every form of the specification, conventions, and that nothing raises or changes its size."""

from __future__ import annotations

import base64
import io
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from pycocotools import mask as coco

from sonogauge._errors import BadInput
from sonogauge.answers import FORMS, AnswerSpec
from sonogauge.answers.convention import Convention, read_convention
from sonogauge.answers.drawn import Drawn
from sonogauge.answers.raster import draw
from sonogauge.answers.shapes import ShapeFault, read_shapes
from sonogauge.cases.geometry import decode_mask
from sonogauge.tables import REASONS

pytestmark = pytest.mark.part("answers that draw")

SIZE = (60, 40)  # width, height


def drawn(value: Any, unit: str = "", sent: tuple[int, int] | None = None) -> Any:
    """Return the mask (rows, columns) of a mask value in a reply, or the reason why there is none."""
    spec = AnswerSpec("mask", unit=unit)
    form = FORMS.load("mask")
    assert form.settle is not None
    parsed = form.parse(json.dumps({"answer": "x [SEG]", "predicted_mask": value}), spec)
    settled = form.settle(parsed.value, spec, SIZE, sent) if parsed.valid else parsed
    return decode_mask(settled.value.mask) if settled.valid else settled.reason


def box(left: int, top: int, right: int, bottom: int) -> np.ndarray:
    mask = np.zeros((SIZE[1], SIZE[0]), dtype=bool)
    mask[top:bottom, left:right] = True
    return mask


BOX = box(10, 20, 30, 35)
CORNERS = [[10, 20], [30, 20], [30, 35], [10, 35]]
PNG = io.BytesIO()
Image.fromarray(BOX.astype(np.uint8) * 255).save(PNG, "PNG")
BITS = io.BytesIO()
Image.fromarray(BOX).save(BITS, "PNG")
RUNS = coco.encode(np.asfortranarray(BOX.astype(np.uint8)))


def _runs(mask: np.ndarray) -> list[int]:
    flat = mask.T.ravel()
    edges = np.flatnonzero(np.diff(flat.astype(int))) + 1
    counts = np.diff(np.r_[0, edges, flat.size]).tolist()
    return [0, *counts] if flat[0] else counts


def uri(stream: io.BytesIO) -> str:
    return "data:image/png;base64," + base64.b64encode(stream.getvalue()).decode()


SAME = {
    "polygon": {"type": "polygon", "points": CORNERS},
    "flat polygon": {"type": "polygon", "polygon": [value for point in CORNERS for value in point]},
    "dict polygon": {"coordinates": [{"x": x, "y": y} for x, y in CORNERS]},
    "coords polygon": {"type": "polygon", "coords": CORNERS},
    "bare points": CORNERS,
    "multi": {"type": "multi", "masks": [{"bbox": [10, 20, 20, 10]}, {"bbox": [10, 30, 20, 5]}]},
    "list of masks": [
        {"bbox": [10, 20, 20, 10]},
        {"type": "polygon", "points": [[10, 30], [30, 30], [30, 35], [10, 35]]},
    ],
    "list of boxes": [[10, 20, 20, 10], [10, 30, 20, 5]],
    "bbox_xywh": {"type": "bbox", "bbox_xywh": [10, 20, 20, 15]},
    "bbox": {"bbox": [10, 20, 20, 15]},
    "bare list": [10, 20, 20, 15],
    "xywh keys": {"x": 10, "y": 20, "w": 20, "h": 15},
    "width keys": {"type": "bbox", "x": 10, "y": 20, "width": 20, "height": 15},
    "box": {"type": "bbox", "box": [10, 20, 30, 35]},
    "swapped corners": {"box": [30, 35, 10, 20]},
    "coords": {"type": "bbox", "coords": [10, 20, 30, 35]},
    "coordinates": {"coordinates": [10, 20, 30, 35]},
    "x0": {"x0": 10, "y0": 20, "x1": 30, "y1": 35},
    "x1 x2": {"x1": 10, "y1": 20, "x2": 30, "y2": 35},
    "xmin": {"xmin": 10, "ymin": 20, "xmax": 30, "ymax": 35},
    "x_min": {"x_min": 10, "y_min": 20, "x_max": 30, "y_max": 35},
    "left": {"left": 10, "top": 20, "right": 30, "bottom": 35},
    "two points": [[10, 20], [30, 35]],
    "rle": {"type": "rle", "size": [40, 60], "counts": _runs(BOX)},
    "coco rle": {"size": [40, 60], "counts": RUNS["counts"].decode()},
    "png": uri(PNG),
    "png of bits": {"type": "png", "data": uri(BITS)},
}


@pytest.mark.parametrize("name", SAME)
def test_every_form_draws_the_same_box(name: str) -> None:
    assert np.array_equal(drawn(SAME[name]), BOX)


@pytest.mark.parametrize(
    "value", [None, "", "null", {"type": None}, {"type": "none"}, {"type": "empty"}, {"type": ""}, []]
)
def test_explicit_empty_masks(value: Any) -> None:
    form = FORMS.load("mask")
    parsed = form.parse(json.dumps({"answer": "none", "predicted_mask": value}), AnswerSpec("mask"))
    assert parsed.value.shown.is_null and form.settle is not None
    settled = form.settle(parsed.value, AnswerSpec("mask"), SIZE, None).value
    assert settled.empty and not settled.hint and not decode_mask(settled.mask).any()


@pytest.mark.parametrize(
    ("unit", "value", "sent"),
    [
        ("pixel", [10, 20, 20, 15], None),
        ("unit", [10 / 60, 0.5, 1 / 3, 0.375], None),
        ("mille", [1000 / 6, 500, 1000 / 3, 375], None),
        ("sent_pixel", [5, 10, 10, 7.5], (30, 20)),
        ("sent_pixel", [10, 20, 20, 15], None),
        ("pixel:xyxy", [10, 20, 30, 35], None),
        ("pixel:yxyx", [20, 10, 35, 30], None),
        ("mille:yxyx", {"box_2d": [500, 1000 / 6, 875, 500]}, None),
        ("mille:xyxy", {"bbox_2d": [1000 / 6, 500, 500, 875]}, None),
        # The order is that of lists without names: named ones keep theirs.
        ("pixel:yxyx", {"bbox_xywh": [10, 20, 20, 15]}, None),
    ],
)
def test_declared_conventions(unit: str, value: Any, sent: tuple[int, int] | None) -> None:
    found = drawn(value, unit, sent)
    # Thirds have no exact decimal: floor and ceil may take one pixel more on a side.
    assert found.sum() - BOX.sum() in (0, 15, 20, 35, 36) and (found & BOX).sum() == BOX.sum()
    if unit.startswith("pixel") or "sent" in unit:
        assert np.array_equal(found, BOX)


def test_the_same_numbers_are_never_rescaled_by_their_size() -> None:
    assert np.array_equal(drawn([0.1, 0.1, 0.5, 0.5]), box(0, 0, 1, 1))
    assert not drawn([100, 200, 300, 400]).any()


def test_a_vendor_key_without_a_declared_order_is_no_guess() -> None:
    assert drawn({"box_2d": [1, 2, 3, 4]}) == "ambiguous"


def test_part_pixels_round_outwards() -> None:
    assert drawn([0.4, 0.4, 1.2, 1.2]).sum() == 4


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"type": "rle", "size": [40, 60], "counts": [10, 20]}, "size"),
        ({"type": "rle", "size": [60, 40], "counts": [2400]}, "size"),
        ({"type": "rle", "size": [40, 60], "counts": "00"}, "size"),
        ({"type": "rle", "size": [40, 60], "counts": [-1, 2401]}, "format"),
        ({"type": "rle", "size": [10**9, 10**9], "counts": [10**18]}, "size"),
        ({"type": "polygon", "points": [[1, 2], [3, 4]]}, "format"),
        ({"type": "polygon", "points": [[float("nan"), 2], [3, 4], [5, 6]]}, "format"),
        ({"type": "polygon", "points": [[float("inf"), 2], [3, 4], [5, 6]]}, "format"),
        ({"type": "polygon", "points": [[1e9, 2], [3, 4], [5, 6]]}, "range"),
        ({"type": "polygon", "points": [[10**400, 2], [3, 4], [5, 6]]}, "range"),
        ({"type": "polygon", "points": [["1", 2], [3, 4], [5, 6]]}, "format"),
        ({"type": "polygon", "points": [[1, 2]] * 60_000}, "size"),
        ({"bbox_xywh": [1, 2, -3, 4]}, "format"),
        ({"bbox": [True, 2, 3, 4]}, "format"),
        ("data:image/png;base64,AAAA", "format"),
        ("data:image/png;base64,!!", "format"),
        ("data:image/jpeg;base64,AAAA", "format"),
        ("the upper left", "format"),
        (12, "format"),
        ([1, 2, 3], "format"),
        ({"type": "circle", "x": 1, "y": 2, "r": 3}, "format"),
        ({"type": "cell", "cell": "top-left"}, "format"),
        ({"type": "points", "points": [[1, 2, 3]]}, "format"),
        ({"type": "text", "phrase": ""}, "format"),
    ],
)
def test_faults_by_cause(value: Any, reason: str) -> None:
    assert drawn(value) == reason


def test_a_picture_of_another_size_or_kind() -> None:
    for image, reason in ((Image.new("L", (40, 60)), "size"), (Image.new("RGB", SIZE), "format")):
        stream = io.BytesIO()
        image.save(stream, "PNG")
        assert drawn(uri(stream)) == reason
    cut = io.BytesIO(PNG.getvalue()[:60])
    assert drawn(uri(cut)) == "format"


def test_grey_above_half_is_foreground() -> None:
    stream = io.BytesIO()
    Image.fromarray(np.where(BOX, 128, 127).astype(np.uint8)).save(stream, "PNG")
    assert np.array_equal(drawn(uri(stream)), BOX)


def test_cells_are_ninths() -> None:
    cells = [f"{row}-{column}" for row in ("upper", "middle", "lower") for column in ("left", "central", "right")]
    masks = [drawn({"type": "cell", "cell": cell}) for cell in cells]
    assert np.array_equal(np.sum(masks, axis=0), np.ones((40, 60)))
    assert np.array_equal(masks[0], box(0, 0, 20, 13))


def test_points_and_phrases_have_no_pixels_of_their_own() -> None:
    form = FORMS.load("mask")
    assert form.settle is not None
    for value in ({"type": "points", "points": [[5, 6, 1], [7, 8, 0]]}, {"type": "text", "phrase": "the dark spot"}):
        parsed = form.parse(json.dumps({"answer": "", "predicted_mask": value}), AnswerSpec("mask"))
        settled = form.settle(parsed.value, AnswerSpec("mask"), SIZE, None).value
        assert settled.hint and not settled.empty and settled.as_row()["masks"] == []
        assert settled.points == (((5.0, 6.0),) if "points" in value else ())


def _even_odd(points: list[tuple[float, float]], width: int, height: int) -> np.ndarray:
    """Ray casting, pixel by pixel: the definition."""
    mask = np.zeros((height, width), dtype=bool)
    for row in range(height):
        for column in range(width):
            x, y, inside = column + 0.5, row + 0.5, False
            for (x0, y0), (x1, y1) in zip(points, points[1:] + points[:1], strict=True):
                if (y0 <= y) != (y1 <= y) and x > x0 + (y - y0) * (x1 - x0) / (y1 - y0):
                    inside = not inside
            mask[row, column] = inside
    return mask


@given(st.lists(st.tuples(st.integers(-30, 130), st.integers(-30, 130)), min_size=3, max_size=8))
@settings(max_examples=60, deadline=None)
def test_polygons_follow_the_even_odd_rule_at_pixel_centres(points: list[tuple[int, int]]) -> None:
    # Coordinates in tenths, none of which meets the centre of a pixel exactly.
    real = [(x / 10 + 0.013, y / 10 + 0.017) for x, y in points]
    shapes = read_shapes({"type": "polygon", "points": [list(point) for point in real]})
    assert np.array_equal(draw(shapes, (12, 9), Convention()), _even_odd(real, 12, 9))


def test_a_polygon_of_ten_thousand_points() -> None:
    angle = np.linspace(0, 2 * np.pi, 10_000, endpoint=False)
    points = np.stack([300 + 200 * np.cos(angle), 250 + 150 * np.sin(angle)], axis=-1)
    mask = draw(read_shapes({"type": "polygon", "points": points.tolist()}), (600, 500), Convention())
    assert mask.sum() == pytest.approx(np.pi * 200 * 150, rel=1e-3)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-200, 200) | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=6)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "points",
                    "polygon",
                    "bbox",
                    "box",
                    "counts",
                    "size",
                    "masks",
                    "x",
                    "y",
                    "w",
                    "h",
                    "cell",
                    "phrase",
                ]
            )
            | st.text(max_size=4),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(
    value=JSON,
    form=st.sampled_from(["mask", "grounded", "grounded_report"]),
    size=st.tuples(st.integers(1, 9), st.integers(1, 9)),
)
@settings(max_examples=300, deadline=None)
def test_never_raises_and_never_another_size(value: Any, form: str, size: tuple[int, int]) -> None:
    found = FORMS.load(form)
    assert found.settle is not None
    for content in (
        {"answer": "yes", "predicted_mask": value},
        {"report": [{"text": "a", "predicted_mask": value}]},
        value,
    ):
        parsed = found.parse(json.dumps(content), AnswerSpec(form, unit="mille:xyxy"))
        settled = (
            found.settle(parsed.value, AnswerSpec(form, unit="mille:xyxy"), size, None) if parsed.valid else parsed
        )
        assert settled.valid or settled.reason in REASONS
        if settled.valid:
            masks = (
                [settled.value] if isinstance(settled.value, Drawn) else [one.drawn for one in settled.value.sentences]
            )
            assert all(decode_mask(one.mask).shape == (size[1], size[0]) for one in masks)
            assert all(one.fault is None or one.fault in REASONS for one in masks)


@given(text=st.text(max_size=200), form=st.sampled_from(["mask", "grounded", "grounded_report"]))
@settings(max_examples=200, deadline=None)
def test_any_text_has_an_outcome(text: str, form: str) -> None:
    parsed = FORMS.load(form).parse(text, AnswerSpec(form))
    assert parsed.valid or parsed.reason in REASONS


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("", "empty"),
        ("   ", "empty"),
        ("The lesion is in the upper left.", "format"),
        ('{"answer": "x", "predicted_mask": ', "format"),
        ("[[1, 2], [3, 4]]", "format"),
        ("I'm sorry, but I cannot determine this from the image.", "refusal_insufficient"),
        ('{"answer": "x"}', "none"),
        ("{" * 100_000, "format"),
        ("[" * 100_000 + "{", "format"),
        ('{"answer": "' + "x" * 50_000_000 + '"}', "size"),
    ],
)
def test_replies_that_hold_no_mask(reply: str, reason: str) -> None:
    assert FORMS.load("mask").parse(reply, AnswerSpec("mask")).reason == reason


@pytest.mark.parametrize(
    "reply",
    [
        '{"answer": "here [SEG]", "predicted_mask": {"bbox": [1, 2, 3, 4]}}',
        '```json\n{"answer": "here [SEG]", "predicted_mask": {"bbox": [1, 2, 3, 4]}}\n```',
        'Sure! {"answer": "here [SEG]", "predicted_mask": {"bbox": [1, 2, 3, 4]}} That is all.',
        '<think>{"answer": "no"}</think>{"answer": "here [SEG]", "predicted_mask": {"bbox": [1, 2, 3, 4]}}',
    ],
)
def test_json_is_found_whatever_stands_around_it(reply: str) -> None:
    value = FORMS.load("mask").parse(reply, AnswerSpec("mask")).value
    assert value.answer == "here [SEG]" and value.shown.shapes[0].numbers == (1.0, 2.0, 3.0, 4.0)


def test_coordinates_outside_the_declared_range_are_counted() -> None:
    form = FORMS.load("mask")
    assert form.settle is not None
    spec = AnswerSpec("mask", unit="unit")
    parsed = form.parse('{"answer": "", "predicted_mask": {"box": [100, 0.5, 900, 1]}}', spec)
    assert form.settle(parsed.value, spec, SIZE, None).value.outside == (2, 4)


@pytest.mark.parametrize("text", ["percent", "mille:wxyz", "unit:"])
def test_unknown_conventions(text: str) -> None:
    if text == "unit:":
        assert read_convention(text) == Convention("unit")
    else:
        with pytest.raises(BadInput, match="known: "):
            read_convention(text)


def test_reports_keep_a_sentence_whose_mask_does_not_read() -> None:
    form = FORMS.load("grounded_report")
    assert form.settle is not None
    reply = json.dumps(
        {
            "sentences": [
                {"section": "Findings", "text": "A mass.", "finding_type": "organ_presence", "predicted_mask": [1, 2]},
                {"section": "Findings", "text": "It is small.", "finding_type": "organ_size"},
                {"text": "Done.", "predicted_mask": {"bbox": [1, 1, 2, 2]}},
            ]
        }
    )
    parsed = form.parse(reply, AnswerSpec("grounded_report"))
    report = form.settle(parsed.value, AnswerSpec("grounded_report"), SIZE, None).value
    assert report.text == "A mass. It is small. Done."
    assert [one.drawn.fault for one in report.sentences] == ["format", None, None]
    assert [one.drawn.empty for one in report.sentences] == [False, True, False]
    assert report.as_row()["sentences"][2] == {"text": "Done.", "mask_ids": ["predicted-3"]}
    assert FORMS.load("grounded_report").parse('{"report": "a"}', AnswerSpec("grounded_report")).reason == "format"
    assert FORMS.load("grounded_report").parse("{}", AnswerSpec("grounded_report")).reason == "none"


def test_depth_and_number_of_shapes_are_bounded() -> None:
    deep: Any = {"bbox": [1, 1, 1, 1]}
    for _ in range(30):
        deep = [deep]
    with pytest.raises(ShapeFault, match="format"):
        read_shapes(deep)
    with pytest.raises(ShapeFault, match="size"):
        read_shapes([[1, 1, 1, 1]] * 10_001)
