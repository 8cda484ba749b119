"""Parts, places, ellipses, areas and fans against OpenCV, scipy and shapes drawn here."""

from __future__ import annotations

import math

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import ellipe

from sonogauge.answers.place import place_of
from sonogauge.cases.ellipses import fit_ellipse, ramanujan
from sonogauge.cases.fan import fan_mask
from sonogauge.cases.geometry import Mask, box_of_mask
from sonogauge.cases.parts import boxes_of, components, union
from sonogauge.cases.places import place_in_thirds, place_of_box

pytestmark = [pytest.mark.lookalike, pytest.mark.part("case geometry")]

masks = arrays(bool, st.tuples(st.integers(1, 30), st.integers(1, 30)))


@given(masks)
def test_parts_are_those_of_opencv_and_make_up_the_mask(mask: Mask) -> None:
    parts = components(mask)
    count, numbered = cv2.connectedComponents(mask.astype(np.uint8), connectivity=8)
    assert len(parts) == count - 1
    for part in parts:
        assert len(np.unique(numbered[part])) == 1
    areas = [int(part.sum()) for part in parts]
    assert areas == sorted(areas, reverse=True) and sum(areas) == int(mask.sum())
    if parts:
        joined = union(parts)
        assert joined is not None and np.array_equal(joined, mask)


@given(masks)
def test_boxes_by_rule(mask: Mask) -> None:
    whole = box_of_mask(mask, "x")
    assert boxes_of(mask, "x") == ([] if whole is None else [whole])
    each, largest = boxes_of(mask, "x", "each"), boxes_of(mask, "x", "largest")
    assert largest == each[:1]
    if whole is not None:
        assert min(box["x"] for box in each) == whole["x"] and min(box["y"] for box in each) == whole["y"]
        assert max(box["x"] + box["w"] for box in each) == whole["x"] + whole["w"]


def test_small_parts_can_be_left_out_and_unknown_rules_are_errors() -> None:
    mask = np.zeros((10, 20), dtype=bool)
    mask[1:5, 1:5] = mask[8, 15] = True
    assert len(components(mask, min_area=2)) == 1 and len(boxes_of(mask, "x", "each", min_area=2)) == 1
    assert union([]) is None
    with pytest.raises(ValueError, match="no rule"):
        boxes_of(mask, "x", "all")
    with pytest.raises(ValueError, match="no rule"):
        place_of_box({"x": 0, "y": 0, "w": 1, "h": 1}, 10, 10, "quarters")


@pytest.mark.parametrize(
    ("x", "y", "thirds", "bands"),
    [
        (100, 50, "upper-central", "upper left"),  # exactly on a third: the higher cell
        (99.9, 50, "upper-left", "upper left"),
        (150, 150, "middle-central", "center"),
        (200, 200, "lower-right", "lower right"),
        (300, 300, "lower-right", "lower right"),
        (160, 100, "middle-central", "upper center"),
        (135, 165, "middle-central", "lower center"),
    ],
)
def test_places_by_both_rules(x: float, y: float, thirds: str, bands: str) -> None:
    box = {"x": x - 5, "y": y - 5, "w": 10, "h": 10}
    assert place_of_box(box, 300, 300, "thirds") == place_in_thirds(x, y, 300, 300) == thirds
    assert place_of_box(box, 300, 300) == place_of(x / 300, y / 300) == bands


@given(st.floats(0.05, 1))
def test_ramanujan_is_the_elliptic_integral(ratio: float) -> None:
    exact = 4 * float(ellipe(1 - ratio**2))
    assert ramanujan(1, ratio) == pytest.approx(exact, rel=5e-3)
    if ratio > 0.4:
        assert ramanujan(1, ratio) == pytest.approx(exact, rel=5e-5)
    assert ramanujan(ratio, 1) == pytest.approx(ramanujan(1, ratio), rel=1e-12)


def _drawn(cx: float, cy: float, a: float, b: float, degrees: float, shape: tuple[int, int] = (400, 500)) -> Mask:
    x, y = np.meshgrid(np.arange(shape[1]) + 0.5 - cx, np.arange(shape[0]) + 0.5 - cy)
    turn = math.radians(degrees)
    along, across = x * math.cos(turn) + y * math.sin(turn), -x * math.sin(turn) + y * math.cos(turn)
    return np.asarray((along / a) ** 2 + (across / b) ** 2 <= 1)


@given(
    st.floats(200, 300), st.floats(180, 220), st.floats(60, 120), st.floats(0.4, 0.95), st.floats(0, 179), st.booleans()
)
def test_ellipses_are_found_again(cx: float, cy: float, a: float, ratio: float, degrees: float, outline: bool) -> None:
    mask = _drawn(cx, cy, a, a * ratio, degrees)
    if outline:
        mask &= ~_drawn(cx, cy, a - 4, a * ratio - 4, degrees)
    found = fit_ellipse(mask)
    assert found is not None
    assert (found.x, found.y) == (pytest.approx(cx, abs=0.2), pytest.approx(cy, abs=0.2))
    assert found.long_axis == pytest.approx(2 * a, rel=0.01) and found.short_axis == pytest.approx(
        2 * a * ratio, rel=0.01
    )
    assert found.area == pytest.approx(float(_drawn(cx, cy, a, a * ratio, degrees).sum()), rel=0.01)
    off = abs(found.angle - degrees) % 180
    assert min(off, 180 - off) < 3


def test_ellipses_in_millimetres_with_unequal_spacing() -> None:
    # A circle of radius 20 mm, seen with pixels of 0.2 x 0.4 mm.
    x, y = np.meshgrid((np.arange(400) + 0.5) * 0.2, (np.arange(200) + 0.5) * 0.4)
    found = fit_ellipse((x - 40) ** 2 + (y - 40) ** 2 <= 400, (0.2, 0.4))
    assert found is not None
    assert found.circumference == pytest.approx(2 * math.pi * 20, rel=0.005)
    assert (found.x, found.y) == (pytest.approx(40, abs=0.1), pytest.approx(40, abs=0.1))


def test_the_largest_part_counts_and_nothing_gives_none() -> None:
    mask = _drawn(250, 200, 80, 60, 30)
    alone = fit_ellipse(mask)
    mask[0:4, 0:4] = True
    assert fit_ellipse(mask) == alone
    assert fit_ellipse(np.zeros((5, 5), dtype=bool)) is None


def _sector(seed: int, size: tuple[int, int] = (480, 640)) -> tuple[np.ndarray, Mask]:
    random = np.random.default_rng(seed)
    x, y = np.meshgrid(np.arange(size[1]) - size[1] / 2, np.arange(size[0]) + 40.0)
    radius, angle = np.hypot(x, y), np.degrees(np.arctan2(x, y))
    fan = (radius > 80) & (radius < 460) & (np.abs(angle) < 35)
    speckle = np.clip(random.rayleigh(30, size), 0, 255).astype(np.uint8)
    image = np.where(fan, speckle, 0).astype(np.uint8)
    dark = np.hypot(x - 20, y - 280) < 40  # a cyst
    image[dark & fan] = 0
    return image, np.asarray(fan)


def _iou(one: Mask, other: Mask) -> float:
    return float((one & other).sum() / (one | other).sum())


@pytest.mark.parametrize("seed", range(4))
def test_the_fan_is_found_beside_text_and_a_scale(seed: int) -> None:
    image, fan = _sector(seed)
    cv2.putText(image, "MI 1.1 TIS 0.4", (8, 24), cv2.FONT_HERSHEY_SIMPLEX, 0.7, 255, 2)
    image[::20, 625:632] = 255
    image[100:400, 600:616] = np.linspace(255, 0, 300).astype(np.uint8)[:, None]
    assert _iou(fan_mask(image), fan) > 0.95
    assert _iou(fan_mask(np.dstack([image] * 3)), fan) > 0.95


def test_frames_of_a_clip_fill_what_is_dark_in_one() -> None:
    one, fan = _sector(1)
    one[300:, :] = 0
    other, _ = _sector(2)
    assert _iou(fan_mask(one), fan) < 0.8
    assert _iou(fan_mask([one, other]), fan) > 0.95


def test_dark_and_bright_images() -> None:
    assert not fan_mask(np.zeros((60, 80), dtype=np.uint8)).any()
    assert fan_mask(np.full((60, 80), 200, dtype=np.uint8)).all()
