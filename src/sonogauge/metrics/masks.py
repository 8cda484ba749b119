"""Metrics of masks: what a pair of masks yields, and the metrics as functions of its sums.

A pair is a reference and a prediction, each the union of the masks of an item, as rows of `tables.MASK` (run-length
code). `pair_statistics` gives one row of numbers per statistic; an unreadable answer is `predicted=None`.

Statistics, all over items, [sum, count] unless said otherwise: `iou`, `dice` (references with pixels), `giou` (all),
`ciou` [intersection, union], `null_hits` (empty references: an explicit empty mask), `false_null` (references with
pixels: an explicit empty mask), `hd95` (share of the diagonal), `hd95_mm`, `nsd`, `pointing`, `recall_T` (IoU > T),
`lesions` [true positive, false positive, false negative parts], `mask_errors` [each of `ERRORS`, items], `coords`
[outside the declared range, all].
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from sonogauge.cases.geometry import Mask, decode_mask
from sonogauge.metrics.base import Array, Direction, Interval, MetricFunction, metric, ratio
from sonogauge.metrics.choice import hit_share, hits_gradient
from sonogauge.metrics.surfaces import TOLERANCE, VARIANT, diagonal, hd95, nsd, outline_distances, shared_box

Row = Mapping[str, Any]

THRESHOLDS: Final = (0.1, 0.3, 0.5, 0.7, 0.9)
# What went wrong with the pixels of an item; the first kind that fits is its kind.
ERRORS: Final[dict[str, str]] = {
    "format": "the reply ended badly or could not be read",
    "hallucinated": "pixels where the reference has none",
    "missed": "no pixels where the reference has some",
    "wrong_target": "less than a tenth of either mask lies in the other",
    "over": "IoU of 0.5 or less, the prediction larger than the reference",
    "under": "IoU of 0.5 or less, the prediction at most as large as the reference",
}
_FAR: Final = 0.1


def overlaps(references: Sequence[Row], predictions: Sequence[Row]) -> Array:
    """Return [pixels in both, pixels of the reference, pixels of the prediction] of pairs of masks, (n, 3).

    Works on the run-length codes, which must be sound (`cases.geometry.decode_mask` tells).

    Raises:
        ValueError: the lists or a pair of masks differ in size.
    """
    from pycocotools import mask as coco

    both = []
    for first, second in zip(references, predictions, strict=True):
        if list(first["size"]) != list(second["size"]):
            raise ValueError(f"masks of sizes {list(first['size'])} and {list(second['size'])}")
        both.append(coco.merge([first, second], intersect=True))
    if not both:
        return np.zeros((0, 3))
    areas = [_areas(rows) for rows in (both, references, predictions)]
    return np.asarray(np.stack(areas, axis=-1), dtype=np.float64)


def _areas(rows: Sequence[Row]) -> Array:
    from pycocotools import mask as coco

    # It counts the masks of a call in eight bits.
    parts = [coco.area(list(rows[start : start + 255])) for start in range(0, len(rows), 255)]
    return np.asarray(np.concatenate(parts), dtype=np.float64)


def union_row(rows: Sequence[Row], size: tuple[int, int], name: str = "union") -> dict[str, Any]:
    """Return the union of masks as one row; size: (width, height), needed for no mask.

    Raises:
        ValueError: a mask of another size.
    """
    from pycocotools import mask as coco

    height_width = [size[1], size[0]]
    for row in rows:
        if list(row["size"]) != height_width:
            raise ValueError(f"mask '{row.get('mask_id')}' has size {list(row['size'])}, the image {height_width}")
    if len(rows) == 1:
        return {**rows[0]}
    if rows:
        code = coco.merge([dict(row) for row in rows])
    else:
        code = coco.encode(np.zeros((size[1], size[0]), dtype=np.uint8, order="F"))
    return {"mask_id": name, "category": "", "size": height_width, "counts": code["counts"].decode("ascii")}


def iou_dice(overlap: Array) -> tuple[Array, Array]:
    """Return IoU and Dice of rows of `overlaps`; two empty masks give 1, one empty mask gives 0.

    >>> [float(one) for one in iou_dice(np.array([8.0, 16.0, 16.0]))]
    [0.3333333333333333, 0.5]
    """
    both, first, second = (np.asarray(overlap, dtype=np.float64)[..., column] for column in range(3))
    return (
        ratio(both, first + second - both, empty=1.0),
        ratio(2 * both, first + second, empty=1.0),
    )


def pair_statistics(
    reference: Row,
    predicted: Row | None,
    *,
    explicit_null: bool = False,
    hint: bool = False,
    points: Sequence[tuple[float, float]] = (),
    spacing: tuple[float, float] | None = None,
    tolerance: float = TOLERANCE,
) -> dict[str, list[float]]:
    """Return the statistics of one pair, as the module lists them (without `coords`).

    predicted: None = a reply that could not be read; it gets the worst value everywhere, on an empty reference too.
    explicit_null: the reply says that there is nothing. hint: it has points or a phrase, but no pixels.
    points: what the reply points at, x and y in pixels. spacing: mm per pixel along x and y, where known.
    """
    empty = {**reference, "counts": _empty_counts(reference["size"])}
    both, area, own = (float(one) for one in overlaps([reference], [predicted or empty])[0])
    failed = predicted is None
    present = area > 0
    silent = failed or (hint and own == 0)
    iou, dice = (0.0, 0.0) if silent else (float(one) for one in iou_dice(np.array([both, area, own])))
    first, second = decode_mask(reference), decode_mask(predicted or empty)
    distance, near, distance_mm = _surface_values(first, second, silent, spacing, tolerance)
    box = shared_box(first, second)
    found = {
        "iou": [iou * present, float(present)],
        "dice": [dice * present, float(present)],
        "giou": [iou, 1.0],
        "ciou": [both, area + own - both],
        "null_hits": [float(not present and explicit_null and not failed), float(not present)],
        "false_null": [float(present and explicit_null and not failed), float(present)],
        "hd95": [distance, 1.0],
        "nsd": [near, 1.0],
        "pointing": [float(present and not failed and _points_inside(first, second, points)), float(present)],
        "lesions": lesion_counts(first[box], second[box]) if present or own else [0.0, 0.0, 0.0],
        "mask_errors": [*_error(both, area, own, iou, failed), 1.0],
    }
    if distance_mm is not None:
        found["hd95_mm"] = [distance_mm, 1.0]
    for threshold in THRESHOLDS:
        found[f"recall_{round(100 * threshold)}"] = [float(present and iou > threshold), float(present)]
    return found


def _empty_counts(size: Sequence[int]) -> str:
    from pycocotools import mask as coco

    code = coco.encode(np.zeros(tuple(int(side) for side in size), dtype=np.uint8, order="F"))
    return str(code["counts"].decode("ascii"))


def _surface_values(
    first: Mask, second: Mask, silent: bool, spacing: tuple[float, float] | None, tolerance: float
) -> tuple[float, float, float | None]:
    """Return HD95 as a share of the diagonal, NSD, and HD95 in mm where the spacing is known."""
    whole = diagonal(first.shape)
    if silent or not first.any() or not second.any():
        worst = silent or bool(first.any() or second.any())
        in_mm = None if spacing is None else diagonal(first.shape, spacing) * worst
        return float(worst), float(not worst), in_mm
    distances = outline_distances(first, second)
    share = hd95(first, second, distances=distances) / whole
    near = nsd(first, second, tolerance, distances=distances)
    if spacing is None:
        return share, near, None
    # Square pixels, the rule: the same distances in another unit.
    square = math.isclose(*spacing, rel_tol=1e-9)
    return share, near, share * whole * spacing[0] if square else hd95(first, second, spacing)


def _points_inside(reference: Mask, predicted: Mask, points: Sequence[tuple[float, float]]) -> bool:
    """Whether the point meant (the first emitted, else the centroid of the mask) lies in the reference."""
    if points:
        x, y = points[0]
    elif predicted.any():
        rows, columns = np.nonzero(predicted)
        x, y = float(columns.mean()) + 0.5, float(rows.mean()) + 0.5
    else:
        return False
    height, width = reference.shape
    return 0 <= x < width and 0 <= y < height and bool(reference[int(y), int(x)])


def lesion_counts(reference: Mask, predicted: Mask) -> list[float]:
    """Return [matched, surplus, missed] connected parts; parts match where their IoU is above 0.5.

    >>> lesion_counts(np.array([[1, 0, 1]], dtype=bool), np.array([[1, 0, 0]], dtype=bool))
    [1.0, 0.0, 1.0]
    """
    import cv2

    # Above 0.5 a part can match one other part at most, and only one that it shares pixels with.
    (many, theirs), (some, ours) = (
        cv2.connectedComponents(one.astype(np.uint8), connectivity=8) for one in (reference, predicted)
    )
    sizes, own = np.bincount(theirs.ravel(), minlength=many), np.bincount(ours.ravel(), minlength=some)
    both = (theirs > 0) & (ours > 0)
    pairs, shared = np.unique(theirs[both].astype(np.int64) * some + ours[both], return_counts=True)
    matched = int((3 * shared > sizes[pairs // some] + own[pairs % some]).sum())
    return [float(matched), float(some - 1 - matched), float(many - 1 - matched)]


def _error(both: float, area: float, own: float, iou: float, failed: bool) -> list[float]:
    kind = error_kind(both, area, own, iou, failed)
    return [float(name == kind) for name in ERRORS]


def error_kind(both: float, area: float, own: float, iou: float, failed: bool) -> str | None:
    """Return which of `ERRORS` a pair shows, None for none: pixels in both, of the reference, of the prediction.

    >>> error_kind(10, 100, 12, 10 / 102, False), error_kind(0, 0, 0, 1.0, False)
    ('under', None)
    """
    if failed:
        return "format"
    if not area:
        return "hallucinated" if own else None
    if not own:
        return "missed"
    if both < _FAR * area and both < _FAR * own:
        return "wrong_target"
    if iou > 0.5:
        return None
    return "over" if own > area else "under"


def mean_metric(
    name: str,
    says: str,
    *,
    statistic: str = "",
    direction: Direction = "up",
    interval: Interval = "studentised",
    unit: str = "fraction",
    facts: str = "",
    source: str = "UltraG-Bench specification, section 5",
    undefined: str = "no item that this metric counts",
    column: int | None = None,
) -> MetricFunction:
    """Return a metric that is the ratio of two sums: of a statistic [sum, count], or of one column to the last one.

    >>> function = mean_metric("example", "An example.", column=1)
    >>> float(function(np.array([9.0, 1.0, 4.0])))
    0.25
    """

    def value(sums: Any) -> Array:
        sums = np.asarray(sums, dtype=np.float64)
        return hit_share(sums) if column is None else ratio(sums[..., column], sums[..., -1])

    def gradient(sums: Array) -> Array:
        if column is None:
            return hits_gradient(sums)
        result = np.zeros(np.shape(sums))
        parts = hits_gradient(np.stack([sums[..., column], sums[..., -1]], axis=-1))
        result[..., column], result[..., -1] = parts[..., 0], parts[..., 1]
        return result

    value.__doc__ = says
    return metric(
        name,
        statistic=statistic or name,
        direction=direction,
        identity=1.0 if direction == "up" else 0.0,
        interval=interval,
        unit=unit,
        gradient=gradient,
        source=source,
        facts=facts,
        undefined=undefined,
        partial=True,
    )(value)


_NO_TARGET: Final = "no item with an empty reference"
_NO_MASK: Final = "no item with a reference mask"
_SURFACE: Final = f"{VARIANT},empty:both 0|one diagonal".replace("|", "/")

iou = mean_metric("iou", "Mean IoU over items whose reference has pixels.", facts="empty:apart", undefined=_NO_MASK)
dice = mean_metric("dice", "Mean Dice over items whose reference has pixels.", facts="empty:apart", undefined=_NO_MASK)
giou = mean_metric("giou", "Mean IoU over all items, two empty masks being 1; not the box loss of that name.")
ciou = mean_metric("ciou", "Sum of intersections over sum of unions.", undefined="no pixel in any mask")
null_accuracy = mean_metric(
    "null_accuracy",
    "Share of items with an empty reference that got an explicit empty mask.",
    statistic="null_hits",
    interval="proportion",
    undefined=_NO_TARGET,
)
false_null_rate = mean_metric(
    "false_null_rate",
    "Share of items with a reference mask that got an explicit empty mask.",
    statistic="false_null",
    direction="down",
    interval="proportion",
    undefined=_NO_MASK,
)
hd95_share = mean_metric(
    "hd95",
    "Mean 95th percentile of the Hausdorff distance as a share of the image diagonal.",
    direction="down",
    facts=_SURFACE,
)
hd95_mm = mean_metric(
    "hd95_mm",
    "Mean HD95 in mm, over items of known spacing.",
    direction="down",
    unit="mm",
    facts=_SURFACE,
    undefined="no item of known spacing",
)
nsd_mean = mean_metric("nsd", "Mean normalised surface distance.", facts=f"{VARIANT},tolerance:{TOLERANCE:g} px")
coords_outside = mean_metric(
    "coords_outside",
    "Share of the coordinates that lie outside the declared range: above a half, the declaration is doubtful.",
    statistic="coords",
    direction="down",
    undefined="no reply with coordinates",
)
recall_10, recall_30, recall_50, recall_70, recall_90 = (
    mean_metric(
        f"recall_{round(100 * threshold)}",
        f"Share of items with a reference mask found at IoU > {threshold}.",
        interval="proportion",
        undefined=_NO_MASK,
    )
    for threshold in THRESHOLDS
)
format_rate, hallucinated_rate, missed_rate, wrong_target_rate, over_rate, under_rate = (
    mean_metric(
        f"{name}_rate",
        f"Share of items: {says}.",
        statistic="mask_errors",
        direction="down",
        interval="proportion",
        column=position,
    )
    for position, (name, says) in enumerate(ERRORS.items())
)


def _f1_gradient(sums: Array) -> Array:
    matched, surplus, missed = (np.asarray(sums)[..., column] for column in range(3))
    total = 2 * matched + surplus + missed
    slope = -ratio(2 * matched, total * total)
    return np.stack([ratio(2 * (surplus + missed), total * total), slope, slope], axis=-1)


@metric(
    "lesion_f1",
    statistic="lesions",
    direction="up",
    identity=1.0,
    interval="averaged",
    gradient=_f1_gradient,
    facts="match:IoU>0.5,parts:8-connected",
    source="UltraG-Bench specification, section 5",
    undefined="no part in any mask",
    partial=True,
)
def lesion_f1(sums: Array) -> Array:
    """F1 of connected parts, matched where their IoU is above 0.5; sums: (..., 3) = [matched, surplus, missed].

    >>> float(lesion_f1(np.array([2.0, 1.0, 1.0])))
    0.6666666666666666
    """
    matched, surplus, missed = (np.asarray(sums, dtype=np.float64)[..., column] for column in range(3))
    return ratio(2 * matched, 2 * matched + surplus + missed)
