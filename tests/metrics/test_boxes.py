"""Boxes and points against pixels counted one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonogauge.answers import AnswerSpec, Parsed
from sonogauge.items import Item
from sonogauge.metrics.boxes import best_iou, iou
from sonogauge.score.box_counter import BoxCounter, PointCounter

pytestmark = pytest.mark.part("metrics")

SIDE = st.integers(0, 12)


@given(SIDE, SIDE, SIDE, SIDE, SIDE, SIDE, SIDE, SIDE)
def test_iou_against_pixels(a: int, b: int, c: int, d: int, e: int, f: int, g: int, h: int) -> None:
    one, other = (min(a, b), min(c, d), max(a, b), max(c, d)), (min(e, f), min(g, h), max(e, f), max(g, h))
    masks = [np.zeros((12, 12), dtype=bool) for _ in range(2)]
    for mask, box in zip(masks, (one, other), strict=True):
        mask[box[1] : box[3], box[0] : box[2]] = True
    total = (masks[0] | masks[1]).sum()
    expected = (masks[0] & masks[1]).sum() / total if total else 0.0
    assert iou(one, other) == pytest.approx(expected)
    assert best_iou(one, [other, one]) == pytest.approx(max(expected, iou(one, one)))


def _item(form: str) -> Item:
    boxes = ({"category": "head", "x": 100.0, "y": 50.0, "w": 100.0, "h": 50.0},)
    spec = AnswerSpec(form, unit="mille")
    return Item(
        *("i", "VL", "d", "s", "g", "test", (), "?", "p", spec, {"boxes": boxes}, "ok"),
        meta={"width": "400", "height": "200"},
    )


def test_box_in_thousandths_of_the_image() -> None:
    counter = BoxCounter(AnswerSpec("box", unit="mille"), {})
    # The very box, half of it, elsewhere, a word, a failure.
    values: list[tuple[object, str | None]] = [
        ((250.0, 250.0, 500.0, 500.0), None),
        ((250.0, 250.0, 375.0, 500.0), None),
        ((600.0, 600.0, 700.0, 700.0), None),
        ("not visible", None),
        (None, "format"),
    ]
    found = [counter.add(_item("box"), Parsed(value, reason)) for value, reason in values]
    assert [one["box_iou"] for one in found] == pytest.approx([1.0, 0.5, 0.0, 0.0, 0.0])
    assert [one["pointing"] for one in found] == [1.0, 1.0, 0.0, 0.0, 0.0]
    taken = counter.take()
    assert taken["box_iou"].sum(axis=0).tolist() == [1.5, 5.0] and taken["box_iou_50"].sum(axis=0).tolist() == [
        2.0,
        5.0,
    ]
    assert counter.take()["box_iou"].shape == (0, 2)


def test_points_and_units() -> None:
    counter = PointCounter(AnswerSpec("point", unit="mille"), {})
    assert counter.add(_item("point"), Parsed((300.0, 300.0))) == {"pointing": 1.0, "correct": 1.0}
    assert counter.add(_item("point"), Parsed((900.0, 300.0))) == {"pointing": 0.0, "correct": 0.0}
    assert counter.take()["pointing"].tolist() == [[1.0, 1.0], [0.0, 1.0]]
    with pytest.raises(ValueError, match="thousandths"):
        BoxCounter(AnswerSpec("box", unit="pixel"), {})
