"""The `published` protocol: the reference scoring with its faults, as plain values without intervals.

Failures (request errors, no JSON, no object, a report that is no list) leave the mean; a readable object whose mask is
missing or unreadable counts as an empty mask. Items are averaged by image, images by source. Coordinates are pixels of
the original image for every model; forms that the reference scorer does not read (pictures, points, phrases, cells)
are unreadable. Run-length codes are read, since agents write them.

The metrics that the reference scorer lacks (cIoU, HD95, NSD, pointing, lesion F1, sweeps, the table of answer against
pixels) follow the same rules: failures left out, an unreadable mask empty.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sonogauge.answers import AnswerSpec, Parsed
from sonogauge.answers.convention import Convention, read_convention
from sonogauge.answers.drawn import Drawn, Shown, draw_shown
from sonogauge.answers.grounded_report import DrawnReport, DrawnSentence
from sonogauge.answers.grounded_report import parse as parse_report
from sonogauge.answers.mask import MARK, read_grounded
from sonogauge.benchmarks.spec import Scenario, Task
from sonogauge.benchmarks.ultrag import semantics, text_scores
from sonogauge.benchmarks.ultrag.vocabulary import vocabulary_of
from sonogauge.items import Item
from sonogauge.metrics.masks import THRESHOLDS, iou_dice, overlaps, pair_statistics, union_row

READ: Final = frozenset({"polygon", "box", "rle"})
# Metrics that the reference scorer does not have, and their statistic in `metrics.masks`.
_EXTRA: Final = {
    "null_accuracy": "null_hits",
    "false_null_rate": "false_null",
    **{name: name for name in ("hd95", "hd95_mm", "nsd", "pointing")},
    **{f"recall_{round(100 * one)}": f"recall_{round(100 * one)}" for one in THRESHOLDS},
}


@dataclass(frozen=True, slots=True)
class PublishedItem:
    """One reply as the reference code sees it; `counted`: whether it enters the mean.

    sums: of the metrics that are a ratio of two sums over all items: (part, whole).
    """

    prediction: Any
    reason: str | None = None
    counted: bool = True
    values: Mapping[str, float] = field(default_factory=dict)
    sums: Mapping[str, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PublishedCell:
    """One task on one source: items in the order of the pairs, metrics as fractions (None where nothing counted)."""

    items: tuple[PublishedItem, ...]
    metrics: Mapping[str, float | None]
    n: int
    valid: int
    excluded: int
    images: Mapping[str, int] = field(default_factory=dict)  # by metric, those with a counted item


def score_cell(
    task: Task, scenario: Scenario, pairs: Sequence[tuple[Item, str, str | None]], coords: str = "pixel"
) -> PublishedCell:
    """Score the replies to one task on one source.

    coords: any other convention than that of the reference scorer; its values are called `published+coords`.
    """
    score = {"mask": _mask, "grounded": _grounded, "grounded_report": _report}[task.form]
    convention = read_convention(coords)
    found = [_item(score, convention, *pair) for pair in pairs]
    usable = [item for item, _, _ in pairs if item.reference_state == "ok"]
    by_image: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    pooled: dict[str, dict[str, list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))
    for (item, _, _), one in zip(pairs, found, strict=True):
        if one.counted:
            image = item.meta.get("sample_id", item.item_id)
            for name, value in one.values.items():
                by_image[image][name].append(value)
            for name, parts in one.sums.items():
                pooled[name][image].append(parts)
    metrics: dict[str, float | None] = {}
    images: dict[str, int] = {}
    for name in task.metrics:
        if name in pooled:
            every = [parts for own in pooled[name].values() for parts in own]
            part, whole = (sum(parts[column] for parts in every) for column in (0, 1))
            metrics[name] = part / whole if whole else None
            images[name] = len(pooled[name])
        elif means := [sum(own[name]) / len(own[name]) for own in by_image.values() if own.get(name)]:
            metrics[name] = sum(means) / len(means)
            images[name] = len(means)
    valid = sum(one.counted for one in found)
    return PublishedCell(tuple(found), metrics, len(usable), valid, len(pairs) - len(usable), images)


def _item(score: Any, convention: Convention, item: Item, status: str, text: str | None) -> PublishedItem:
    if item.reference_state != "ok":
        return PublishedItem(None, None, counted=False)
    if status != "ok":
        return PublishedItem(None, {"error": "error", "truncated": "truncated"}.get(status, "missing"), counted=False)
    found: PublishedItem = score(item, text or "", convention)
    return found


def _draw(shown: Shown, answer: str, item: Item, convention: Convention, name: str = "predicted") -> Drawn:
    """Draw what the reference scorer reads; anything else is an empty mask with its fault."""
    if any(shape.kind not in READ for shape in shown.shapes):
        shown = Shown(fault="format")
    return draw_shown(shown, answer, _size(item), convention, None, name)


def _size(item: Item) -> tuple[int, int]:
    size = item.image_size
    if size is None:
        raise ValueError(f"no image size for item {item.item_id}")
    return size


def _pair(item: Item, masks: Sequence[Mapping[str, Any]], drawn: Drawn) -> tuple[float, float]:
    reference = union_row(list(masks), _size(item))
    iou, dice = iou_dice(overlaps([reference], [drawn.mask])[0])
    return float(iou), float(dice)


def _pixels(item: Item, drawn: Drawn) -> tuple[dict[str, float], dict[str, tuple[float, float]]]:
    """Return the values of an item's pixels and the sums of those metrics that are no means."""
    masks = item.reference["masks"]
    iou, dice = _pair(item, masks, drawn)
    found = pair_statistics(
        union_row(list(masks), _size(item)),
        drawn.mask,
        explicit_null=drawn.empty,
        points=drawn.points,
        spacing=item.spacing,
    )
    values = {"iou": iou, "dice": dice, "giou": iou}
    for name, statistic in _EXTRA.items():
        if statistic in found and found[statistic][1]:
            values[name] = found[statistic][0]
    matched, surplus, missed = found["lesions"]
    both, either = found["ciou"]
    return values, {"ciou": (both, either), "lesion_f1": (2 * matched, 2 * matched + surplus + missed)}


def _read(item: Item, text: str, convention: Convention) -> tuple[Parsed, Drawn | None]:
    found = read_grounded(text, need_answer=False)
    return found, _draw(found.value.shown, found.value.answer, item, convention) if found.valid else None


def _mask(item: Item, text: str, convention: Convention) -> PublishedItem:
    found, drawn = _read(item, text, convention)
    if drawn is None:
        return PublishedItem(None, found.reason, counted=False)
    values, sums = _pixels(item, drawn)
    marked = float((MARK in drawn.answer) == bool(item.reference["masks"]))
    return PublishedItem(drawn, drawn.fault, values={**values, "seg_mark": marked}, sums=sums)


def _grounded(item: Item, text: str, convention: Convention) -> PublishedItem:
    found, drawn = _read(item, text, convention)
    if drawn is None:
        return PublishedItem(None, found.reason, counted=False)
    kind = item.meta.get("answer_type", "open")
    reference = str(item.reference["texts"][0])
    right = semantics.answer_right(kind, reference, drawn.answer, vocabulary_of(item.meta), strict=False)
    values, sums = _pixels(item, drawn)
    values |= {"acc": float(right), f"acc_{kind}": float(right)}
    if item.meta.get("requires_grounding", "1") == "1" and item.reference["masks"]:
        seen = values["iou"] > 0.5
        values["g_acc"] = float(right and seen)
        values["acc_grounded"] = float(right)
        values["right_wrong_pixels"] = float(right and not seen)
        values["wrong_right_pixels"] = float(not right and seen)
        values["wrong_wrong_pixels"] = float(not right and not seen)
        values |= {f"g_acc_{round(100 * one)}": float(right and values["iou"] > one) for one in THRESHOLDS}
    return PublishedItem(drawn, drawn.fault, values=values, sums=sums)


def _report(item: Item, text: str, convention: Convention) -> PublishedItem:
    found = parse_report(text, AnswerSpec("grounded_report"))
    if not found.valid:
        return PublishedItem(None, found.reason, counted=False)
    types = json.loads(item.meta["finding_types"])
    reference = semantics.Text(
        tuple((str(one["text"]), str(kind)) for one, kind in zip(item.reference["sentences"], types, strict=True))
    )
    predicted = semantics.Text(tuple((one.text, one.finding_type) for one in found.value.sentences))
    theirs, ours = reference.whole, predicted.whole
    flags = semantics.flags(reference, predicted, vocabulary_of(item.meta), strict=False)
    values = {"rouge_l_beta1": text_scores.rouge_l(theirs, ours), "meteor_exact": text_scores.meteor(theirs, ours)}
    values |= {f"bleu_{order}": one for order, one in enumerate(text_scores.bleu(theirs, ours), start=1)}
    values |= {f"sem_{name}": float(right) for name, right in flags.items()}
    if flags:
        values["sem_acc"] = sum(flags.values()) / len(flags)
    values |= _set_scores({kind for _, kind in reference.parts}, {kind for _, kind in predicted.parts if kind})
    drawn = DrawnReport(
        tuple(
            DrawnSentence(
                one.section, one.text, one.finding_type, _draw(one.shown, one.text, item, convention, f"p{number}")
            )
            for number, one in enumerate(found.value.sentences, start=1)
        )
    )
    scores = _sentence_scores(item, types, drawn)
    if scores:
        values["report_grounding"] = sum(scores) / len(scores)
        values["report_recall_50"] = sum(one > 0.5 for one in scores) / len(scores)
    return PublishedItem(drawn, values=values)


def _set_scores(wanted: set[str], given: set[str]) -> dict[str, float]:
    shared = len(wanted & given)
    precision, recall = shared / len(given) if given else 0.0, shared / len(wanted) if wanted else 0.0
    f1 = 2 * precision * recall / (precision + recall) if shared else 0.0
    return {"finding_precision": precision, "finding_recall": recall, "finding_f1": f1}


def _sentence_scores(item: Item, types: Sequence[str], report: DrawnReport) -> list[float]:
    masks = {str(mask["mask_id"]): mask for mask in item.reference["masks"]}
    drawn = {one.finding_type: one.drawn for one in report.sentences}
    scores = []
    for sentence, kind in zip(item.reference["sentences"], types, strict=True):
        if sentence["mask_ids"] and semantics.is_spatial(kind):
            own = drawn.get(kind)
            scores.append(_pair(item, [masks[name] for name in sentence["mask_ids"]], own)[0] if own else 0.0)
    return scores
