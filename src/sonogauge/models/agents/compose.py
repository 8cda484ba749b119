"""From facts to an answer: the words of geometry, in a neutral style or that of the benchmark's references."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from sonogauge.benchmarks.ultrag.facts import RawMask, image_facts, slug
from sonogauge.benchmarks.ultrag.questions import grounded_report, listed
from sonogauge.benchmarks.ultrag.semantics import cells
from sonogauge.benchmarks.ultrag.vocabulary import Category, Target
from sonogauge.cases.geometry import encode_mask
from sonogauge.models.agents.facts import TargetFacts, extent_word
from sonogauge.models.agents.planning import Plan
from sonogauge.models.agents.switches import Switches
from sonogauge.models.agents.tasks import Task, question_of

ABSENT: Final = "No target is visible."
_PERCENT: Final = re.compile(r"percent|%|\bshare\b|\bcover", re.IGNORECASE)
_LABEL: Final = re.compile(r"\bbenign\b|malignan", re.IGNORECASE)
# Own words, unlike those of the references: a score of text then speaks of what was seen.
_NEUTRAL: Final[Mapping[str, str]] = {
    "presence_location": "{region} seen, {cells}.",
    "organ_presence": "{region} seen.",
    "organ_location": "{region} lies {cells}.",
    "organ_size": "{region}: box sides {long} by {short} px.",
    "organ_extent": "{region}: {percent} percent of the picture ({extent}).",
    "grounding_scope": "Only {region} was looked for.",
    "largest_target_extent": "Biggest thing: {largest}, box sides {long} by {short} px.",
    "anatomic_summary": "Seen in all: {region}.",
    "segmentation_impression": "In short: {region}.",
    "absence": "No lesion and no other structure asked for is seen.",
    "location_not_applicable": "So no place can be given.",
    "size_not_applicable": "So no size can be given.",
    "no_target": "Drawn: nothing.",
    "no_target_impression": "In short: no target is seen.",
}


@dataclass(frozen=True)
class Sentence:
    """A sentence of a report and the categories whose masks it shows."""

    section: str
    text: str
    finding_type: str
    targets: tuple[str, ...] = ()


def asked_for(text: str, vocabulary: Category, facts: Sequence[TargetFacts]) -> list[TargetFacts]:
    """Return the targets that a question names, all where it names none."""
    named = vocabulary.named(text) if vocabulary.targets else frozenset()
    return [one for one in facts if one.category in named] or list(facts)


def answer_question(
    task: Task, plan: Plan, facts: Sequence[TargetFacts], vocabulary: Category, switches: Switches
) -> tuple[str, list[TargetFacts]]:
    """Return the answer to a question and the targets whose masks show it.

    hybrid: missing mask, count, percentage, size and visibility come from geometry, the rest from the draft if there is
    one. deterministic: all from geometry. api: the draft, geometry where it is empty.
    """
    asked = asked_for(task.text, vocabulary, facts)
    seen = [one for one in asked if one.found]
    kind = question_of(task.text)
    draft = plan.draft.strip() if switches.compose_mode != "deterministic" else ""
    if switches.compose_mode == "api" and draft:
        return draft, seen
    neutral = switches.compose_style == "neutral"
    if kind == "count":
        return str(sum(one.parts for one in seen)), seen
    if kind == "yes_no":
        if _LABEL.search(task.text):
            return draft, seen
        places = cells(task.text)
        yes = any(one.cell in places for one in seen) if places else bool(asked) and all(one.found for one in asked)
        if not neutral:
            return "Yes." if yes else "No.", seen
        names = listed([one.category for one in (seen or asked)])
        return (f"Yes, {names} can be seen." if yes else "No, it cannot be seen."), seen
    if not seen:
        return ("None." if kind == "classification" else ABSENT), []
    if kind == "size":
        biggest = max(seen, key=lambda one: one.area)
        shown = [replace(biggest, mask=biggest.largest)]
        share = f"{100 * _largest_share(biggest):.2f} % of the image"
        return (share if _PERCENT.search(task.text) else f"{_sides(biggest)} pixels"), shown
    if draft:
        return draft, seen
    if kind == "location":
        return listed(list(dict.fromkeys(one.cell for one in seen))), seen
    if kind == "classification" and _LABEL.search(task.text):
        # Pixels say nothing of pathology.
        return "unspecified", seen
    return listed([one.category for one in seen]), seen


def _sides(one: TargetFacts) -> str:
    return f"{one.long_axis:g} x {one.short_axis:g}"


def _largest_share(one: TargetFacts) -> float:
    return 0.0 if one.largest is None else float(one.largest.mean())


def segmentation_answer(facts: Sequence[TargetFacts], neutral: bool) -> str:
    """Return the text beside a segmentation mask; it holds [SEG] exactly where there is a mask."""
    seen = [one.category for one in facts if one.found]
    if not seen:
        return "Nothing to draw." if neutral else ABSENT
    return f"Drawn: {listed(seen)} [SEG]" if neutral else f"The {listed(seen)} is outlined. [SEG]"


def write_report(facts: Sequence[TargetFacts], vocabulary: Category, switches: Switches) -> list[Sentence]:
    """Return a report from the facts alone, in the style of the switches."""
    if switches.compose_style == "benchmark_template":
        return _as_references(facts, vocabulary, switches)
    return _neutral(facts, vocabulary)


def finding_types(facts: Sequence[TargetFacts], vocabulary: Category) -> list[tuple[str, str]]:
    """Return (section, finding type) of the sentences that a report on these facts has."""
    seen = [one for one in facts if one.found]
    if not seen:
        middle = [("Findings", "absence"), ("Findings", "location_not_applicable"), ("Findings", "size_not_applicable")]
        return [*middle, ("Assessment", "no_target"), ("Impression", "no_target_impression")]
    if vocabulary.style == "organs" and len(seen) == 1:
        kinds = ("organ_presence", "organ_location", "organ_size", "organ_extent")
        ends = [("Assessment", "grounding_scope"), ("Impression", "segmentation_impression")]
        return [*(("Findings", kind) for kind in kinds), *ends]
    named = [("Findings", f"{slug(one.category).lower()}_presence_location") for one in seen]
    largest = [("Findings", "largest_target_extent")]
    return [*named, *largest, ("Assessment", "anatomic_summary"), ("Impression", "segmentation_impression")]


def _neutral(facts: Sequence[TargetFacts], vocabulary: Category) -> list[Sentence]:
    seen = [one for one in facts if one.found]
    names = tuple(one.category for one in seen)
    own = {f"{slug(one.category).lower()}_presence_location": one for one in seen}
    sentences = []
    for section, kind in finding_types(facts, vocabulary):
        shown = [own[kind]] if kind in own else seen
        values: dict[str, Any] = {"region": listed([one.category for one in shown])}
        cited = tuple(one.category for one in shown)
        if shown:
            largest = max(shown, key=lambda one: one.area)
            values |= {
                "cells": listed(list(dict.fromkeys(one.cell for one in shown))),
                "largest": largest.category,
                "long": f"{largest.long_axis:g}",
                "short": f"{largest.short_axis:g}",
                "percent": f"{100 * largest.area_ratio:.2f}",
                "extent": extent_word(largest.area_ratio),
            }
            if kind == "largest_target_extent":
                cited = (largest.category,)
        text = _NEUTRAL["presence_location" if kind in own else kind].format(**values)
        sentences.append(Sentence(section, text[:1].upper() + text[1:], kind, cited if names else ()))
    return sentences


def _as_references(facts: Sequence[TargetFacts], vocabulary: Category, switches: Switches) -> list[Sentence]:
    seen = {one.category: one for one in facts if one.mask is not None}
    missing = {name: Target(type="region") for name in seen if name not in vocabulary.targets}
    table = vocabulary.model_copy(update={"targets": {**vocabulary.targets, **missing}})
    raw = [
        RawMask(number, name, encode_mask(one.mask, name, name))
        for number, (name, one) in enumerate(seen.items(), start=1)
        if one.mask is not None
    ]
    shapes = [one.mask.shape for one in seen.values() if one.mask is not None]
    size = (shapes[0][1], shapes[0][0]) if shapes else (1, 1)
    place = "mask_centroid" if switches.cell == "centroid" else "box_centre"
    masks = image_facts(raw, size, table, "", "predicted", place).masks
    category_of = {one.mask_id: one.category for one in masks}
    return [
        Sentence(
            one["section"],
            one["text"],
            one["finding_type"],
            tuple(dict.fromkeys(category_of[mask_id] for mask_id in one["evidence_mask_ids"])),
        )
        for one in grounded_report(masks, table)["sentences"]
    ]
