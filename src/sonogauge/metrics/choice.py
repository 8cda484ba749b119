"""Metrics of answers chosen from options: hits, and confusion counts over a fixed class set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sonogauge.metrics.base import Array, Metric, metric, ratio

ClassKind = Literal["precision", "recall", "f1"]


def hit_statistics(hits: ArrayLike) -> Array:
    """Turn hits (n,), 0 to 1, into the statistic "hits" (n, 2): [hit, 1].

    >>> hit_statistics([1, 0])
    array([[1., 1.],
           [0., 1.]])
    """
    values = np.asarray(hits, dtype=np.float64)
    return np.stack([values, np.ones_like(values)], axis=-1)


def confusion_statistics(reference_index: ArrayLike, predicted_index: ArrayLike, classes: Sequence[int]) -> Array:
    """Turn option indices into one confusion matrix per item, the statistic "confusion".

    reference_index: (n,), each one of `classes`.
    predicted_index: (n,); -1 = no valid answer; an option outside `classes` counts in the last column too.
    classes: the class set C, fixed from the full data: the options that at least one reference names.
    Returns (n, C, C + 1): rows = reference, last column = no valid answer or an option nobody's reference names.
    Raises ValueError when a reference is outside the class set.

    >>> confusion_statistics([0, 3], [3, 1], classes=[0, 3]).sum(axis=0)
    array([[0., 1., 0.],
           [0., 0., 1.]])
    """
    size = len(classes)
    place = {option: position for position, option in enumerate(classes)}
    references: NDArray[np.int64] = np.asarray(reference_index, dtype=np.int64)
    predictions: NDArray[np.int64] = np.asarray(predicted_index, dtype=np.int64)
    try:
        rows = [place[int(option)] for option in references]
    except KeyError as missing:
        raise ValueError(f"reference {missing} is outside the class set {list(classes)}") from None
    columns = [place.get(int(option), size) for option in predictions]
    result = np.zeros((len(rows), size, size + 1))
    result[np.arange(len(rows)), rows, columns] = 1.0
    return result


def hits_gradient(sums: Array) -> Array:
    """Return the derivatives of a ratio of two sums, (..., 2)."""
    hits, count = sums[..., 0], sums[..., 1]
    return np.stack([ratio(np.ones_like(hits), count), -ratio(hits, count * count)], axis=-1)


def hit_share(sums: Array) -> Array:
    """Return the ratio of two sums (..., 2); NaN where the second is 0."""
    sums = np.asarray(sums, dtype=np.float64)
    return ratio(sums[..., 0], sums[..., 1])


@metric(
    "accuracy",
    statistic="hits",
    direction="up",
    identity=1.0,
    interval="proportion",
    gradient=hits_gradient,
    source="u2-bench specification, section 5: hits / rows; scikit-learn accuracy_score",
)
def accuracy(sums: Array) -> Array:
    """Share of items answered right; failures count as wrong.

    sums: (..., 2) = [hits, n]. Nothing scored gives NaN, which `stats.intervals` reports as "no item".

    >>> float(accuracy(np.array([3.0, 4.0])))
    0.75
    """
    return hit_share(sums)


def _parts(confusion: Array) -> tuple[Array, Array, Array]:
    """Return hits, reference counts and prediction counts per class, each (..., C)."""
    confusion = np.asarray(confusion, dtype=np.float64)
    square = confusion[..., :-1]
    return np.diagonal(square, axis1=-2, axis2=-1), confusion.sum(axis=-1), square.sum(axis=-2)


def class_recall(confusion: Array) -> Array:
    """Recall per class (..., C); 0 without references. Source: scikit-learn `recall_score`, zero_division=0."""
    hits, references, _ = _parts(confusion)
    return ratio(hits, references, empty=0.0)


def class_precision(confusion: Array) -> Array:
    """Precision per class (..., C); 0 when never predicted. Source: scikit-learn `precision_score`, zero_division=0."""
    hits, _, predictions = _parts(confusion)
    return ratio(hits, predictions, empty=0.0)


def class_f1(confusion: Array) -> Array:
    """F1 per class (..., C) = 2 hits / (references + predictions); 0 with an empty denominator."""
    hits, references, predictions = _parts(confusion)
    return ratio(2.0 * hits, references + predictions, empty=0.0)


def _class_gradient(confusion: Array, kind: ClassKind, weights: Array) -> Array:
    """Gradient of sum_c weights[c] * value_c; every value is a * hits / d with d a sum of rows and columns."""
    confusion = np.asarray(confusion, dtype=np.float64)
    hits, references, predictions = _parts(confusion)
    rows, columns = {"recall": (1.0, 0.0), "precision": (0.0, 1.0), "f1": (1.0, 1.0)}[kind]
    factor = rows + columns
    denominator = rows * references + columns * predictions
    slope = weights * ratio(np.full_like(denominator, factor), denominator, empty=0.0)
    pull = weights * ratio(factor * hits, denominator * denominator, empty=0.0)
    gradient = np.zeros_like(confusion)
    gradient -= rows * pull[..., :, None]
    gradient[..., :-1] -= columns * pull[..., None, :]
    index = np.arange(hits.shape[-1])
    gradient[..., index, index] += slope
    return gradient


def _macro_gradient(confusion: Array, kind: ClassKind) -> Array:
    size = np.shape(confusion)[-2]
    return _class_gradient(confusion, kind, np.full(size, 1.0 / max(size, 1)))


def _macro(values: Array) -> Array:
    result: Array = values.mean(axis=-1) if values.shape[-1] else np.full(values.shape[:-1], np.nan)
    return result


@metric(
    "macro_recall",
    statistic="confusion",
    direction="up",
    identity=1.0,
    interval="standard_error",
    gradient=lambda sums: _macro_gradient(sums, "recall"),
    source="scikit-learn recall_score(average='macro', labels=classes, zero_division=0)",
)
def macro_recall(confusion: Array) -> Array:
    """Unweighted mean of per-class recall over the class set.

    confusion: counts, shape (..., classes, classes + 1), rows = reference, last column = no valid answer.

    >>> float(macro_recall(np.array([[2, 0, 0], [1, 1, 0]])))
    0.75
    """
    return _macro(class_recall(confusion))


@metric(
    "balanced_accuracy",
    statistic="confusion",
    direction="up",
    identity=1.0,
    interval="standard_error",
    gradient=lambda sums: _macro_gradient(sums, "recall"),
    source="scikit-learn balanced_accuracy_score",
)
def balanced_accuracy(confusion: Array) -> Array:
    """Mean recall of the classes that have reference items; the class set has no others, so it equals macro recall.

    confusion: as in `macro_recall`.
    """
    return _macro(class_recall(confusion))


@metric(
    "macro_precision",
    statistic="confusion",
    direction="up",
    identity=1.0,
    interval="averaged",
    gradient=lambda sums: _macro_gradient(sums, "precision"),
    source="scikit-learn precision_score(average='macro', labels=classes, zero_division=0)",
)
def macro_precision(confusion: Array) -> Array:
    """Unweighted mean of per-class precision over the class set; a class never predicted counts 0.

    confusion: as in `macro_recall`.
    """
    return _macro(class_precision(confusion))


@metric(
    "macro_f1",
    statistic="confusion",
    direction="up",
    identity=1.0,
    interval="averaged",
    gradient=lambda sums: _macro_gradient(sums, "f1"),
    source="Opitz & Burst 2019, arXiv:1911.03347, 'averaged F1'",
)
def macro_f1(confusion: Array) -> Array:
    """Unweighted mean of per-class F1 over the class set.

    confusion: counts, shape (..., classes, classes + 1), rows = reference, last column = no valid answer.
    The class set is fixed from the full data; a class with an empty denominator counts 0.
    Source: Opitz & Burst 2019, arXiv:1911.03347, "averaged F1".

    >>> round(float(macro_f1(np.array([[2, 0, 0], [1, 1, 0]]))), 3)
    0.733
    """
    return _macro(class_f1(confusion))


def class_metric(kind: ClassKind, position: int, name: str) -> Metric:
    """Return precision, recall or F1 of the class at `position` of the class set, as a metric called `name`.

    >>> metric_of_b = class_metric("f1", 1, "f1_malignant")
    >>> round(float(metric_of_b.function(np.array([[2, 0, 0], [1, 1, 0]]))), 3)
    0.667
    """
    base, values = {
        "precision": (macro_precision.metric, class_precision),
        "recall": (macro_recall.metric, class_recall),
        "f1": (macro_f1.metric, class_f1),
    }[kind]

    def value(confusion: Any) -> Array:
        result: Array = values(confusion)[..., position]
        return result

    def gradient(confusion: Array) -> Array:
        weights = np.zeros(np.shape(confusion)[-2])
        weights[position] = 1.0
        return _class_gradient(confusion, kind, weights)

    return replace(base, name=name, function=value, gradient=gradient)
