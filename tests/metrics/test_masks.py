"""Metrics of masks beside pycocotools, surface-distance, MONAI-like definitions and hand-made values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pycocotools import mask as coco
from tests.shared import require_extra

from sonogauge.cases.geometry import encode_mask
from sonogauge.metrics import load_metric
from sonogauge.metrics.masks import ERRORS, error_kind, iou_dice, lesion_counts, overlaps, pair_statistics, union_row
from sonogauge.metrics.surfaces import hd95, nsd, outline, outline_distances

pytestmark = pytest.mark.part("metrics of masks")

Mask = np.ndarray


def row(mask: Mask) -> dict[str, object]:
    return encode_mask(mask, "m", "x")


def box(left: int, top: int, right: int, bottom: int, size: tuple[int, int] = (12, 10)) -> Mask:
    mask = np.zeros((size[1], size[0]), dtype=bool)
    mask[top:bottom, left:right] = True
    return mask


def blobs(seed: int, size: int = 64) -> Mask:
    """Return a random smooth mask, at times empty."""
    from scipy.ndimage import gaussian_filter

    rng = np.random.default_rng(seed)
    return gaussian_filter(rng.normal(size=(size, size + 7)), 4) > rng.uniform(0.0, 0.12)


def test_two_boxes_by_hand() -> None:
    values = pair_statistics(row(box(0, 0, 4, 4)), row(box(2, 0, 6, 4)))
    assert values["iou"] == [pytest.approx(1 / 3), 1.0] and values["dice"] == [0.5, 1.0]
    assert values["ciou"] == [8.0, 24.0]
    assert values["mask_errors"] == [0, 0, 0, 0, 0, 1, 1]


@given(st.integers(0, 10_000), st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_overlap_equals_numpy_and_pycocotools(first: int, second: int) -> None:
    one, two = blobs(first), blobs(second)
    (found,) = overlaps([row(one)], [row(two)])
    assert found.tolist() == [(one & two).sum(), one.sum(), two.sum()]
    iou, dice = iou_dice(found)
    if one.any() and two.any():
        assert iou == pytest.approx((one & two).sum() / (one | two).sum())
        assert dice == pytest.approx(2 * (one & two).sum() / (one.sum() + two.sum()))
        ours, theirs = ({"size": r["size"], "counts": str(r["counts"]).encode()} for r in (row(one), row(two)))
        assert iou == pytest.approx(coco.iou([theirs], [ours], [0])[0, 0])
    union = union_row([row(one), row(two)], (one.shape[1], one.shape[0]))
    assert coco.area(union) == (one | two).sum()


def _directed(one: Mask, two: Mask) -> np.ndarray:
    """Distances of the outline of one to that of two: the definition, point by point."""
    ours, theirs = np.argwhere(outline(one)), np.argwhere(outline(two))
    return np.sqrt(((ours[:, None] - theirs[None]) ** 2).sum(axis=-1)).min(axis=1)


@given(st.integers(0, 10_000), st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_distances_equal_their_definition(first: int, second: int) -> None:
    one, two = blobs(first, 32), blobs(second, 32)
    if not one.any() or not two.any():
        return
    there, back = _directed(one, two), _directed(two, one)
    assert hd95(one, two) == pytest.approx(max(np.percentile(there, 95), np.percentile(back, 95)), rel=1e-5)
    share = ((there <= 2).sum() + (back <= 2).sum()) / (len(there) + len(back))
    assert nsd(one, two) == pytest.approx(share)
    assert hd95(one, two, (0.5, 0.5)) == pytest.approx(0.5 * hd95(one, two), rel=1e-6)
    scaled = outline_distances(one, two, (0.5, 2.0))[0]
    ours, theirs = np.argwhere(outline(one)) * [2.0, 0.5], np.argwhere(outline(two)) * [2.0, 0.5]
    assert sorted(scaled) == pytest.approx(sorted(np.sqrt(((ours[:, None] - theirs[None]) ** 2).sum(-1)).min(axis=1)))


def test_outline_counts_the_border_of_the_image_as_outside() -> None:
    from scipy.ndimage import binary_erosion

    for seed in range(5):
        mask = blobs(seed, 20)
        assert np.array_equal(outline(mask), mask & ~binary_erosion(mask))
    assert outline(np.ones((1, 5), dtype=bool)).all() and outline(np.ones((2, 2), dtype=bool)).all()


def test_hd95_is_near_that_of_surface_distance() -> None:
    surface_distance = require_extra("test", "surface_distance")
    for seed in range(4):
        one, two = blobs(seed, 128), blobs(seed + 100, 128)
        found = surface_distance.compute_surface_distances(one, two, (1.0, 1.0))
        other = surface_distance.compute_robust_hausdorff(found, 95)
        # It puts the outline between pixels and weighs it by length, so that the two differ by about a pixel.
        assert hd95(one, two) == pytest.approx(other, abs=1.6)


def test_empty_masks() -> None:
    full, none = box(0, 0, 3, 3), box(0, 0, 0, 0)
    assert hd95(none, none) == 0.0 and nsd(none, none) == 1.0
    assert hd95(full, none) == pytest.approx(np.hypot(12, 10)) and nsd(none, full) == 0.0
    both = pair_statistics(row(none), row(none), explicit_null=True)
    assert both["giou"] == [1.0, 1.0] and both["iou"] == [0.0, 0.0] and both["null_hits"] == [1.0, 1.0]
    assert both["hd95"] == [0.0, 1.0] and both["mask_errors"][:-1] == [0.0] * len(ERRORS)
    unreadable = pair_statistics(row(none), None)
    assert unreadable["giou"] == [0.0, 1.0] and unreadable["null_hits"] == [0.0, 1.0]
    assert unreadable["hd95"] == [1.0, 1.0] and unreadable["nsd"] == [0.0, 1.0]
    # Points alone are no mask: they do not say that there is nothing.
    assert pair_statistics(row(none), row(none), hint=True)["giou"] == [0.0, 1.0]
    assert pair_statistics(row(full), row(none), explicit_null=True)["false_null"] == [1.0, 1.0]


@pytest.mark.parametrize(
    ("reference", "predicted", "kind"),
    [
        (box(0, 0, 4, 4), None, "format"),
        (box(0, 0, 0, 0), box(0, 0, 1, 1), "hallucinated"),
        (box(0, 0, 4, 4), box(0, 0, 0, 0), "missed"),
        (box(0, 0, 4, 4), box(8, 4, 12, 8), "wrong_target"),
        (box(0, 0, 4, 4), box(0, 0, 12, 10), "over"),
        (box(0, 0, 8, 8), box(0, 0, 4, 4), "under"),
        (box(0, 0, 4, 4), box(0, 0, 4, 3), None),
        (box(0, 0, 0, 0), box(0, 0, 0, 0), None),
    ],
)
def test_errors_by_kind(reference: Mask, predicted: Mask | None, kind: str | None) -> None:
    found = pair_statistics(row(reference), None if predicted is None else row(predicted))["mask_errors"]
    assert [name for name, hit in zip(ERRORS, found, strict=False) if hit] == ([kind] if kind else [])


@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 60))
def test_a_pair_has_one_kind_of_error_at_most(both: int, more: int, own: int) -> None:
    area, predicted = both + more, both + own
    union = area + predicted - both
    kind = error_kind(both, area, predicted, both / union if union else 1.0, False)
    assert kind is None or kind in ERRORS
    assert (kind is None) == (union == 0 or (both > 0 and both / union > 0.5))


def test_iou_of_exactly_a_half_is_not_above_it() -> None:
    values = pair_statistics(row(box(0, 0, 4, 2)), row(box(0, 0, 4, 4)))
    assert values["iou"][0] == 0.5 and values["recall_50"] == [0.0, 1.0] and values["recall_30"] == [1.0, 1.0]
    assert values["mask_errors"][list(ERRORS).index("over")] == 1.0


def test_pointing() -> None:
    target = row(box(0, 0, 4, 4))
    assert pair_statistics(target, row(box(1, 1, 3, 3)))["pointing"] == [1.0, 1.0]
    assert pair_statistics(target, row(box(0, 0, 0, 0)), points=[(3.9, 3.9)], hint=True)["pointing"] == [1.0, 1.0]
    assert pair_statistics(target, row(box(0, 0, 4, 4)), points=[(9.0, 1.0)])["pointing"] == [0.0, 1.0]
    assert pair_statistics(target, row(box(0, 0, 4, 4)), points=[(-1.0, 99.0)])["pointing"] == [0.0, 1.0]
    # Two parts: the centroid of the union lies between them.
    parts = row(box(0, 0, 2, 2) | box(10, 0, 12, 2))
    assert pair_statistics(parts, parts)["pointing"] == [0.0, 1.0]


def test_lesions_match_one_to_one() -> None:
    reference = box(0, 0, 3, 3) | box(6, 0, 9, 3) | box(0, 6, 3, 9)
    predicted = box(0, 0, 3, 3) | box(6, 0, 9, 1) | box(10, 8, 12, 10)
    assert lesion_counts(reference, predicted) == [1.0, 2.0, 2.0]
    assert load_metric("lesion_f1").function(np.array([1.0, 2.0, 2.0])) == pytest.approx(1 / 3)


def test_masks_of_two_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="sizes"):
        overlaps([row(box(0, 0, 1, 1))], [row(box(0, 0, 1, 1, (9, 9)))])
    with pytest.raises(ValueError, match="the image"):
        union_row([row(box(0, 0, 1, 1))], (9, 9))
    with pytest.raises(ValueError, match="shapes"):
        outline_distances(box(0, 0, 1, 1), box(0, 0, 1, 1, (9, 9)))


def test_means_of_sums() -> None:
    assert float(load_metric("over_rate").function(np.array([0, 0, 0, 0, 1, 2, 4.0]))) == 0.25
    assert float(load_metric("acc_grounded").function(np.array([1.0, 1, 1, 1, 4]))) == 0.5
    assert float(load_metric("finding_precision").function(np.array([2.0, 2, 6]))) == 0.5
    assert float(load_metric("finding_recall").function(np.array([2.0, 2, 6]))) == 0.25
    assert float(load_metric("finding_f1").function(np.array([2.0, 2, 6]))) == pytest.approx(1 / 3)


@pytest.mark.parametrize("spacing", [(1.0, 1.0), (0.3, 0.3), (0.2, 0.7)])
@pytest.mark.parametrize(("size", "holes"), [(4, 0.0), (1, 0.4)], ids=["few outline pixels", "many"])
def test_outline_distances_are_those_of_every_pair_of_pixels(
    spacing: tuple[float, float], size: int, holes: float
) -> None:
    from scipy.spatial.distance import cdist

    from sonogauge.metrics.surfaces import outline, outline_distances

    rows, columns = np.mgrid[: 120 * size, : 150 * size] / size
    draws = np.random.default_rng(3)
    masks = [((rows - y) / 45) ** 2 + ((columns - x) / 55) ** 2 < 1 for y, x in ((55, 70), (62, 84))]
    first, second = (mask & (draws.random(mask.shape) >= holes) for mask in masks)
    places = [np.argwhere(outline(mask)) * (spacing[1], spacing[0]) for mask in (first, second)]
    points = sum(map(len, places))
    assert (points <= first.size / 100) == (holes == 0)  # both ways of search
    every = cdist(*places)
    there, back = outline_distances(first, second, spacing)
    assert np.allclose(there, every.min(axis=1), rtol=1e-6) and np.allclose(back, every.min(axis=0), rtol=1e-6)
