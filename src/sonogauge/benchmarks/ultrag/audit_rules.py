"""The rules of the audit, part by part of a record: facts, segmentation, questions, report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from sonogauge.answers.mask import MARK
from sonogauge.benchmarks.ultrag.questions import FEWEST, MOST, REPORT_FEWEST, REPORT_MOST
from sonogauge.benchmarks.ultrag.semantics import presence
from sonogauge.benchmarks.ultrag.vocabulary import PATHOLOGIES, Category, normalise
from sonogauge.benchmarks.ultrag.wording import WHOLE_EXAM, aliases_used, forbidden, substructures, unsupported

PENALTIES: Final = {"critical": 25, "major": 10, "minor": 3, "info": 0}
_SOURCES: Final = ("mask_geometry", "image_and_mask")


class Issue(NamedTuple):
    """One broken rule; scope: facts, segmentation, vqa, report or record."""

    severity: str
    rule: str
    detail: str
    scope: str


def issues_of(record: Mapping[str, Any], category: Category) -> Iterator[Issue]:
    """Yield every broken rule of a record."""
    masks, annotation = record.get("masks"), record.get("annotation")
    if not isinstance(masks, list) or not all(isinstance(one, Mapping) for one in masks):
        yield Issue("critical", "missing or mistyped masks", "", "record")
        return
    if not isinstance(annotation, Mapping):
        yield Issue("critical", "missing or mistyped annotation", "", "record")
        return
    yield from _facts(record, masks, category)
    by_id = {str(one.get("mask_id")): dict(one) for one in masks}
    for part, rules in (
        ("segmentation_tasks", _segmentation),
        ("grounded_vqa", _questions),
        ("grounded_report", _report),
    ):
        try:
            yield from rules(annotation[part], by_id, category)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            yield Issue("critical", f"missing or mistyped {part}", str(error), _SCOPE[part])
    if annotation.get("api_error"):
        yield Issue("minor", "the model failed and templates were used", str(annotation["api_error"]), "vqa")
    if record.get("annotation_source") != "api":
        yield Issue("info", "questions not written by a model", "", "vqa")


_SCOPE: Final = {"segmentation_tasks": "segmentation", "grounded_vqa": "vqa", "grounded_report": "report"}


def _facts(record: Mapping[str, Any], masks: list[Mapping[str, Any]], category: Category) -> Iterator[Issue]:
    ids = Counter(str(one.get("mask_id")) for one in masks)
    for name, number in ids.items():
        if name in ("None", "") or number > 1:
            yield Issue("critical", "missing or repeated mask id", name, "facts")
    geometries = Counter(
        (str(one.get("category")), str(one.get("bbox_xywh")), one.get("mask_area_px")) for one in masks
    )
    if any(number > 1 for number in geometries.values()):
        yield Issue("critical", "same geometry kept twice", "", "facts")
    if record.get("pathology_label_conflicts"):
        yield Issue("critical", "conflicting labels", "", "facts")
    if record.get("ignored_unknown_categories"):
        yield Issue("major", "unknown categories were ignored", str(record["ignored_unknown_categories"]), "facts")
    if not masks and not _is_negative(record):
        yield Issue("major", "no mask kept", "", "facts")
    image = record.get("image") or {}
    source = str(record.get("dataset", "")).removesuffix("_coco")
    for one in masks:
        try:
            yield from _mask(one, image, category, source)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            yield Issue("critical", "missing or mistyped mask fact", str(error), "facts")


def _is_negative(record: Mapping[str, Any]) -> bool:
    tasks = (record.get("annotation") or {}).get("segmentation_tasks") or ()
    return bool(tasks) and all(isinstance(one, Mapping) and one.get("answerability") == "no_target" for one in tasks)


def _mask(one: Mapping[str, Any], image: Mapping[str, Any], category: Category, source: str) -> Iterator[Issue]:
    name = str(one["mask_id"])
    region = one["category"]
    target = category.targets.get(region)
    if target is None:
        known = category.canonical(str(region), source) is not None
        yield Issue("critical", "alias not normalised" if known else "unknown category", f"{name}: {region}", "facts")
        return
    raw = [str(value) for value in one.get("source_categories") or ()]
    if not raw:
        yield Issue("major", "source names missing", name, "facts")
    elif any(category.canonical(value, source) != region for value in raw):
        yield Issue("critical", "source name not valid for its region", f"{name}: {raw}", "facts")
    if one.get("target_type") != target.type:
        yield Issue("major", "wrong target_type", name, "facts")
    label = one["pathology_label"]
    words = {word for value in raw for word in normalise(value).split()} & {"benign", "malignant"}
    if label not in PATHOLOGIES or (label == "not_applicable") == target.pathology:
        yield Issue("critical", "pathology not allowed for its category", f"{name}: {label}", "facts")
    elif label == "conflicting":
        yield Issue("critical", "conflicting labels", name, "facts")
    elif label in ("benign", "malignant") and label not in words:
        yield Issue("critical", "pathology without a source label", f"{name}: {label}", "facts")
    elif label == "unspecified" and words:
        yield Issue("critical", "pathology lost in merging", name, "facts")
    x, y, w, h = (float(value) for value in one["bbox_xywh"])
    area = float(one["mask_area_px"])
    width, height = float(image["width"]), float(image["height"])
    if not (w > 0 and h > 0 and 0 < area <= w * h + 1e-6):
        yield Issue("critical", "non-positive or invalid geometry", name, "facts")
    if min(x, y) < -1 or x + w > width + 1 or y + h > height + 1:
        yield Issue("major", "box outside the image", name, "facts")
    share = float(one["area_ratio"])
    if not 0 < share <= 1 or abs(share - area / (width * height)) > 1e-4:
        yield Issue("major", "area_ratio off", name, "facts")


def _segmentation(
    tasks: list[Mapping[str, Any]], by_id: Mapping[str, dict[str, Any]], category: Category
) -> Iterator[Issue]:
    regions = {str(one["category"]) for one in by_id.values()}
    if not 1 <= len(tasks) <= len(regions) + 1:
        yield Issue("major", "number of segmentation tasks", str(len(tasks)), "segmentation")
    covered = set()
    for task in tasks:
        ids = [str(name) for name in task["target_mask_ids"]]
        yield from _cited(ids, by_id, "segmentation")
        if not str(task["instruction"]).strip() or not str(task["answer"]).strip():
            yield Issue("critical", "empty text", str(task.get("task_id")), "segmentation")
        if (MARK in task["answer"]) != bool(ids):
            yield Issue("critical", "[SEG] does not fit the targets", str(task.get("task_id")), "segmentation")
        for claim in forbidden(f"{task['instruction']} {task['answer']}"):
            severity = "critical" if claim == "diagnostic claim" else "major"
            yield Issue(severity, claim, str(task["instruction"]), "segmentation")
        own = {str(by_id[name]["category"]) for name in ids if name in by_id}
        covered |= own if len(own) == 1 else set()
    for region in sorted(regions - covered):
        yield Issue("major", "category without its own segmentation task", region, "segmentation")


def _cited(ids: list[str], by_id: Mapping[str, Any], scope: str) -> Iterator[Issue]:
    for name in ids:
        if name not in by_id:
            yield Issue("critical", "unknown cited id", name, scope)


def _claims(
    text: str, ids: list[str], by_id: Mapping[str, dict[str, Any]], category: Category, scope: str
) -> Iterator[Issue]:
    """Yield the issues of what a text says; a text that denies may name what it denies."""
    cited = [by_id[name] for name in ids if name in by_id]
    for found in unsupported(text, cited, category) if ids or presence(text, category) is not False else ():
        if ids or scope == "report":
            yield Issue("critical", "names what its masks do not carry", found, scope)
    for claim in forbidden(text):
        severity = "critical" if claim == "diagnostic claim" else "major"
        yield Issue(severity, claim, text, scope)
    if WHOLE_EXAM.search(normalise(text)):
        yield Issue("major", "whole-exam claim", text, scope)
    for alias in aliases_used(text, category):
        yield Issue("major", "non-canonical term", alias, scope)
    for part in substructures(text, category):
        yield Issue("major", "unsupported sub-structure", part, scope)


def _weak(text: str, ids: list[str], by_id: Mapping[str, dict[str, Any]], category: Category) -> bool:
    """Whether a text cites masks of which it names no region."""
    cited = {str(by_id[name]["category"]) for name in ids if name in by_id}
    return bool(cited) and not cited & category.named(text)


def _questions(
    questions: list[Mapping[str, Any]], by_id: Mapping[str, dict[str, Any]], category: Category
) -> Iterator[Issue]:
    if not FEWEST <= len(questions) <= MOST:
        yield Issue("major", "number of questions", str(len(questions)), "vqa")
    seen: set[str] = set()
    for one in questions:
        name, ids = str(one.get("qa_id")), [str(value) for value in one["evidence_mask_ids"]]
        question, answer = str(one["question"]), str(one["answer"])
        if not question.strip() or not answer.strip():
            yield Issue("critical", "empty text", name, "vqa")
        if normalise(question) in seen:
            yield Issue("minor", "repeated question", name, "vqa")
        seen.add(normalise(question))
        yield from _cited(ids, by_id, "vqa")
        yield from _claims(f"{question} {answer}", ids, by_id, category, "vqa")
        if _weak(f"{question} {answer}", ids, by_id, category):
            yield Issue("minor", "weak link to its masks", name, "vqa")
        source = one.get("evidence_source")
        if one["requires_grounding"]:
            if not ids:
                yield Issue("major", "grounded item without evidence", name, "vqa")
            if source not in _SOURCES:
                yield Issue("major", "grounded item with a wrong evidence_source", name, "vqa")
        else:
            if ids:
                yield Issue("minor", "evidence on an ungrounded item", name, "vqa")
            if source != "none":
                yield Issue("minor", "ungrounded item whose evidence_source is not none", name, "vqa")


def _report(report: Mapping[str, Any], by_id: Mapping[str, dict[str, Any]], category: Category) -> Iterator[Issue]:
    sentences = report["sentences"]
    if not REPORT_FEWEST <= len(sentences) <= REPORT_MOST:
        yield Issue("major", "number of report sentences", str(len(sentences)), "report")
    sections = {str(one["section"]) for one in sentences}
    for needed in ("Findings", "Impression"):
        if needed not in sections:
            yield Issue("major", f"{needed} missing", "", "report")
    named: set[str] = set()
    for one in sentences:
        text, ids = str(one["text"]), [str(name) for name in one["evidence_mask_ids"]]
        if not text.strip():
            yield Issue("critical", "empty text", "", "report")
        yield from _cited(ids, by_id, "report")
        yield from _claims(text, ids, by_id, category, "report")
        regions = category.named(text)
        named |= regions
        if regions and not ids and presence(text, category) is True:
            yield Issue("major", "positive claim without evidence", text, "report")
        if ids and one.get("evidence_source") not in _SOURCES:
            yield Issue("major", "grounded item with a wrong evidence_source", text, "report")
        if _weak(text, ids, by_id, category):
            empty = "scope" in str(one.get("finding_type")) or one["section"] in ("Assessment", "Impression")
            yield Issue("minor", "empty scope statement" if empty else "weak link to its masks", text, "report")
    for region in sorted({str(one["category"]) for one in by_id.values()} - named):
        yield Issue("major", "category omitted from the report", region, "report")
