"""Metrics of answers and reports that show their pixels: an answer counts when its pixels are right as well.

Statistics: `acc` and `acc_TYPE` [right, items]; `grounding` [right answer and pixels, right answer alone, right
pixels alone, neither, items] over items that need evidence; `g_acc_T` [right answer and IoU > T, items]; of reports
[sum, count] each: `sem_acc`, its flags, `rouge_l_beta1`, `bleu_1` to `bleu_4`, `meteor_exact`,
`report_grounding` (mean IoU over reference sentences with evidence), `report_recall_50`, and counts
[true positive, false positive, false negative] of finding types, categories and (category, cell) pairs.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from sonogauge.metrics.base import Array, Direction, MetricFunction, metric, ratio
from sonogauge.metrics.masks import THRESHOLDS, mean_metric

ANSWER_TYPES: Final = ("yes_no", "location", "size", "category", "classification", "count", "open")
FLAGS: Final = ("presence", "category", "location", "size", "extent")
_NO_EVIDENCE: Final = "no item that needs evidence"

acc = mean_metric("acc", "Share of answers that are right, each by the rule of its type.", interval="proportion")
acc_yes_no, acc_location, acc_size, acc_category, acc_classification, acc_count, acc_open = (
    mean_metric(
        f"acc_{kind}",
        f"Share of answers that are right, over items of type {kind}.",
        interval="proportion",
        undefined=f"no item of type {kind}",
    )
    for kind in ANSWER_TYPES
)
_TABLE: Final[tuple[tuple[str, Direction, str], ...]] = (
    ("g_acc", "up", "Share of items that need evidence with the answer right and IoU > 0.5."),
    ("right_wrong_pixels", "down", "Right answer on wrong pixels: Acc minus G-Acc on the same items."),
    ("wrong_right_pixels", "down", "Wrong answer on right pixels."),
    ("wrong_wrong_pixels", "down", "Wrong answer on wrong pixels."),
)
g_acc, right_wrong_pixels, wrong_right_pixels, wrong_wrong_pixels = (
    mean_metric(
        name, says, statistic="grounding", direction=way, interval="proportion", column=column, undefined=_NO_EVIDENCE
    )
    for column, (name, way, says) in enumerate(_TABLE)
)
iou_items, dice_items, acc_items, g_acc_items = (
    mean_metric(f"{name}_items", f"The same as {name}, every item weighing the same.", facts="mean:items")
    for name in ("iou", "dice", "acc", "g_acc")
)
g_acc_10, g_acc_30, g_acc_50, g_acc_70, g_acc_90 = (
    mean_metric(
        f"g_acc_{round(100 * threshold)}",
        f"G-Acc at IoU > {threshold}.",
        interval="proportion",
        undefined=_NO_EVIDENCE,
    )
    for threshold in THRESHOLDS
)


def _grounded_gradient(sums: Array) -> Array:
    result = np.zeros(np.shape(sums))
    items = np.asarray(sums)[..., -1]
    right = np.asarray(sums)[..., 0] + np.asarray(sums)[..., 1]
    result[..., 0] = result[..., 1] = ratio(np.ones_like(items), items)
    result[..., -1] = -ratio(right, items * items)
    return result


@metric(
    "acc_grounded",
    statistic="grounding",
    direction="up",
    identity=1.0,
    interval="proportion",
    gradient=_grounded_gradient,
    source="UltraG-Bench specification, section 5",
    undefined=_NO_EVIDENCE,
    partial=True,
)
def acc_grounded(sums: Array) -> Array:
    """Acc on the items that G-Acc counts; sums: (..., 5) as `grounding`.

    >>> float(acc_grounded(np.array([1.0, 2.0, 0.0, 1.0, 4.0])))
    0.75
    """
    sums = np.asarray(sums, dtype=np.float64)
    return ratio(sums[..., 0] + sums[..., 1], sums[..., -1])


seg_mark = mean_metric(
    "seg_mark", "Share of answers that contain [SEG] exactly where a target is present.", interval="proportion"
)
sem_acc = mean_metric("sem_acc", "Mean over reports of the mean of the flags that apply.", facts="flags:4")
sem_presence, sem_category, sem_location, sem_size, sem_extent = (
    mean_metric(
        f"sem_{flag}",
        f"Share of reports whose {flag} is right, over those where it applies.",
        interval="proportion",
        undefined="no report where this flag applies",
    )
    for flag in FLAGS
)
meteor_exact = mean_metric("meteor_exact", "Mean METEOR with exact matches alone: F (1 - 0.5 (chunks/matches)^3).")
bleu_1, bleu_2, bleu_3, bleu_4 = (
    mean_metric(
        f"bleu_{order}", f"Mean cumulative BLEU-{order} of a report, one added on every order.", facts="add-one"
    )
    for order in (1, 2, 3, 4)
)
report_grounding = mean_metric(
    "report_grounding",
    "Mean over reports of the mean IoU of their reference sentences with evidence, matched by finding type.",
    undefined="no report sentence with evidence",
)
report_recall_50 = mean_metric(
    "report_recall_50",
    "Mean over reports of the share of their reference sentences with evidence found at IoU > 0.5.",
    undefined="no report sentence with evidence",
)


def _counted(name: str, statistic: str, kind: str, says: str) -> MetricFunction:
    """Return precision, recall or F1 of counts [true positive, false positive, false negative]."""
    rows, columns = {"precision": (0.0, 1.0), "recall": (1.0, 0.0), "f1": (1.0, 1.0)}[kind]
    factor = rows + columns

    def value(sums: Array) -> Array:
        true, surplus, missed = (np.asarray(sums, dtype=np.float64)[..., column] for column in range(3))
        return ratio(factor * true, factor * true + columns * surplus + rows * missed, empty=0.0)

    def gradient(sums: Array) -> Array:
        true, surplus, missed = (np.asarray(sums, dtype=np.float64)[..., column] for column in range(3))
        rest = columns * surplus + rows * missed
        total = factor * true + rest
        slope = -ratio(factor * true, total * total, empty=0.0)
        return np.stack([ratio(factor * rest, total * total, empty=0.0), columns * slope, rows * slope], axis=-1)

    value.__doc__ = says
    return metric(
        name,
        statistic=statistic,
        direction="up",
        identity=1.0,
        interval="averaged",
        gradient=gradient,
        source="UltraG-Bench specification, section 5",
        partial=True,
    )(value)


finding_precision, finding_recall, finding_f1 = (
    _counted(f"finding_{kind}", "finding_types", kind, f"Pooled {kind} of the finding types of reports.")
    for kind in ("precision", "recall", "f1")
)
category_precision, category_recall = (
    _counted(f"category_{kind}", "report_categories", kind, f"Pooled {kind} of the categories that reports name.")
    for kind in ("precision", "recall")
)
location_f1 = _counted("location_f1", "report_cells", "f1", "Pooled F1 of the (category, cell) pairs of reports.")
