"""The `published` protocol of U2-BENCH: the reference scoring with its faults, as plain values.

Section 5 of the specification, column `published`: replies that failed or could not be read leave the denominator,
class names are compared as strings, macro averages run over the union of true and predicted strings. Replies are
joined by item id all the same, and a missing reply leaves the denominator as a failed one does.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sonogauge.answers.place import NOT_VISIBLE
from sonogauge.benchmarks.spec import Scenario, Task
from sonogauge.items import Item

# Data sets whose class labels are integers: a reply that is no integer leaves the denominator.
INTEGER_LABELS: Final = frozenset({("DD", "44"), ("DD", "57")})
# The reference code never scores the head circumferences.
NEVER_SCORED: Final = frozenset({("CVE", "31")})
TOLERANCE: Final = 0.1

_DECIMAL: Final = re.compile(r"\d+\.\d+")
_INTEGER: Final = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class PublishedItem:
    """One reply as the reference code sees it.

    prediction: class or place string, number or text; None where nothing could be read.
    reason: why not (one of `tables.REASONS`). counted: whether it enters the denominator.
    values: per-item values ("accuracy", "scaled_error", "rouge_l").
    """

    prediction: str | float | None
    reason: str | None = None
    counted: bool = True
    values: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PublishedCell:
    """One task on one data set under the published protocol.

    items: in the order of the pairs. metrics: fractions, None where nothing was counted.
    n: items with a reference that the reference code scores; valid: those in the denominator; excluded: the others.
    """

    items: tuple[PublishedItem, ...]
    metrics: Mapping[str, float | None]
    n: int
    valid: int
    excluded: int


Pairs = Sequence[tuple[Item, str, str | None]]


def _class_string(text: str) -> str:
    return text.strip().strip("'\"").lower()


def parse_choice_published(reply: str, *, integer: bool = False) -> tuple[str | None, str | None]:
    """Return (string that is compared, reason): trimmed, outer quotes stripped, lower-cased; never against the options.

    integer: the labels are integers and the reply goes through `int`; what fails leaves the denominator.

    >>> parse_choice_published(" 'Benign' "), parse_choice_published("It is benign.")
    (('benign', None), ('it is benign.', None))
    >>> parse_choice_published("2.0", integer=True)
    (None, 'format')
    """
    if not integer:
        return _class_string(reply), None
    try:
        return str(int(reply)), None
    except ValueError:
        return None, "format"


def parse_place_published(reply: str, *, trim: bool = False) -> tuple[str | None, str | None]:
    r"""Return (string that is compared, reason): lower-cased only, so that a final line break makes it wrong.

    trim: also strip outer white space (a declared departure from the reference code).

    >>> parse_place_published("Center\n"), parse_place_published("Center\n", trim=True)
    (('center\n', None), ('center', None))
    """
    return (reply.strip() if trim else reply).lower(), None


def parse_number_published(reply: str) -> tuple[float | None, str | None]:
    """Return (number, reason): `float`, else the first decimal number anywhere, else the first integer.

    Sign, range and unit are ignored in the two fallbacks. A number that is not finite is a failure: the reference code
    would turn the whole data set into NaN.

    >>> parse_number_published("-3"), parse_number_published("between -12.5 cm and 3"), parse_number_published("null")
    ((-3.0, None), (12.5, None), (None, 'none'))
    """
    text = reply.strip()
    if not text:
        return None, "empty"
    if text.lower() == "null":
        return None, "none"
    try:
        number = float(text)
    except ValueError:
        found = _DECIMAL.search(text) or _INTEGER.search(text)
        if found is None:
            return None, "none"
        number = float(found[0])
    return (number, None) if math.isfinite(number) else (None, "format")


def score_cell(task: Task, scenario: Scenario, pairs: Pairs, *, trim: bool = False) -> PublishedCell:
    """Score one task on one data set under the published protocol.

    pairs: (item, status, text); status as in the replies table or "missing"; a truncated reply is scored as it is.
    trim: strip outer white space of place replies.
    """
    if scenario.key in NEVER_SCORED:
        items = tuple(PublishedItem(None, None, counted=False) for _ in pairs)
        return PublishedCell(items, dict.fromkeys(task.metrics), 0, 0, len(pairs))
    if task.form == "number":
        return _score_numbers(task, scenario, pairs)
    if task.form == "text":
        return _score_texts(task, pairs)
    if task.form == "place":
        return _score_strings(task, pairs, places=True, integer=False, trim=trim)
    return _score_strings(task, pairs, places=False, integer=scenario.key in INTEGER_LABELS, trim=False)


def _failed(status: str, text: str | None) -> PublishedItem | None:
    if status == "error":
        return PublishedItem(None, "error", counted=False)
    return PublishedItem(None, "missing", counted=False) if status == "missing" or text is None else None


def _reference_string(item: Item, *, places: bool, integer: bool) -> str | None:
    """Return the string a reply must equal, None for an item that has no reference."""
    if places:
        if item.reference_state == "error":
            return NOT_VISIBLE
        known = item.reference.get("places")
        return str(known[0]).lower() if item.reference_state == "ok" and known else None
    known = item.reference.get("choices")
    if item.reference_state != "ok" or not known:
        return None
    label = _class_string(re.sub(r"[\[\]]", "", str(known[0])))
    return str(int(float(label))) if integer else label


def _score_strings(task: Task, pairs: Pairs, *, places: bool, integer: bool, trim: bool) -> PublishedCell:
    items: list[PublishedItem] = []
    truth: list[str] = []
    predicted: list[str] = []
    excluded = 0
    for item, status, text in pairs:
        reference = _reference_string(item, places=places, integer=integer)
        failed = _failed(status, text)
        if reference is None:
            excluded += 1
            items.append(PublishedItem(None, None, counted=False))
            continue
        if failed is not None or text is None:
            items.append(failed or PublishedItem(None, "missing", counted=False))
            continue
        said, reason = (
            parse_place_published(text, trim=trim) if places else parse_choice_published(text, integer=integer)
        )
        if said is None:
            items.append(PublishedItem(None, reason, counted=False))
            continue
        truth.append(reference)
        predicted.append(said)
        items.append(PublishedItem(said, values={"accuracy": float(said == reference)}))
    return _cell(task, items, _string_metrics(truth, predicted), len(truth), excluded)


def _string_metrics(truth: Sequence[str], predicted: Sequence[str]) -> dict[str, float | None]:
    if not truth:
        return {}
    # A dictionary, because numpy strings cut trailing NULs and take the length of the longest reply.
    codes = {name: code for code, name in enumerate(dict.fromkeys([*truth, *predicted]))}
    true_codes = np.array([codes[name] for name in truth])
    predicted_codes = np.array([codes[name] for name in predicted])
    size = len(codes)
    hits = np.bincount(true_codes[true_codes == predicted_codes], minlength=size).astype(np.float64)
    support = np.bincount(true_codes, minlength=size)
    named = np.bincount(predicted_codes, minlength=size)
    return {
        "accuracy": float(hits.sum() / len(truth)),
        "macro_precision": float(np.divide(hits, named, out=np.zeros(size), where=named > 0).mean()),
        "macro_recall": float(np.divide(hits, support, out=np.zeros(size), where=support > 0).mean()),
        "macro_f1": float((2.0 * hits / (support + named)).mean()),
    }


def _score_numbers(task: Task, scenario: Scenario, pairs: Pairs) -> PublishedCell:
    assert scenario.low is not None and scenario.high is not None
    width = scenario.high - scenario.low
    tolerance = TOLERANCE if scenario.tolerance is None else scenario.tolerance
    items: list[PublishedItem] = []
    errors: list[float] = []
    excluded = 0
    for item, status, text in pairs:
        reference = item.reference.get("number")
        if item.reference_state != "ok" or reference is None:
            excluded += 1
            items.append(PublishedItem(None, None, counted=False))
            continue
        failed = _failed(status, text)
        if failed is not None or text is None:
            items.append(failed or PublishedItem(None, "missing", counted=False))
            continue
        number, reason = parse_number_published(text)
        if number is None:
            items.append(PublishedItem(None, reason, counted=False))
            continue
        error = (reference - scenario.low) / width - (number - scenario.low) / width
        errors.append(error)
        items.append(PublishedItem(number, values={"scaled_error": error}))
    metrics: dict[str, float | None] = {}
    if errors:
        # Replies are unlimited: square in a range where that cannot overflow.
        array = np.clip(np.array(errors), -1e150, 1e150)
        metrics = {
            "rmse_scaled": float(np.sqrt(np.mean(array**2))),
            "mae_scaled": float(np.mean(np.abs(array))),
            "std_scaled": float(np.std(array)),
            "within_tolerance": float(np.mean(np.abs(array) <= tolerance)),
        }
    return _cell(task, items, metrics, len(errors), excluded)


def _score_texts(task: Task, pairs: Pairs) -> PublishedCell:
    from sonogauge.metrics.text import bleu4, bleu_statistics, rouge_l_scores

    found: list[PublishedItem | int] = []
    references: list[tuple[str, ...]] = []
    hypotheses: list[str] = []
    excluded = 0
    for item, status, text in pairs:
        known: Any = item.reference.get("texts")
        if item.reference_state != "ok" or not known:
            excluded += 1
            found.append(PublishedItem(None, None, counted=False))
            continue
        failed = _failed(status, text)
        if failed is not None or text is None:
            found.append(failed or PublishedItem(None, "missing", counted=False))
            continue
        found.append(len(hypotheses))
        references.append(tuple(known))
        hypotheses.append(text)
    metrics: dict[str, float | None] = {}
    scores: NDArray[np.float64] = np.zeros(0)
    if hypotheses:
        scores = rouge_l_scores(references, hypotheses)
        sums = bleu_statistics(references, hypotheses).sum(axis=0)
        metrics = {"bleu4": float(bleu4(sums)), "rouge_l": float(scores.mean())}
    items = [
        PublishedItem(hypotheses[one], values={"rouge_l": float(scores[one])}) if isinstance(one, int) else one
        for one in found
    ]
    return _cell(task, items, metrics, len(hypotheses), excluded)


def _cell(
    task: Task, items: Sequence[PublishedItem], metrics: Mapping[str, float | None], valid: int, excluded: int
) -> PublishedCell:
    """Put a cell together; a metric of the task that the reference code does not know is left out."""
    known = _METRICS[task.form]
    shown = {name: metrics.get(name) for name in task.metrics if name in known}
    return PublishedCell(tuple(items), shown, len(items) - excluded, valid, excluded)


_METRICS: Final = {
    "choice": ("accuracy", "macro_precision", "macro_recall", "macro_f1"),
    "place": ("accuracy", "macro_precision", "macro_recall", "macro_f1"),
    "number": ("rmse_scaled", "mae_scaled", "std_scaled", "within_tolerance"),
    "text": ("bleu4", "rouge_l"),
}
