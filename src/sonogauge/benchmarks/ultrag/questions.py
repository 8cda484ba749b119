"""Segmentation, question and report items of one image, from its facts and our own sentences (`texts.yaml`).

Each function returns dicts in the shape of the official records (section 2 of the specification).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final

import yaml

from sonogauge.benchmarks.ultrag.facts import MaskFact, slug
from sonogauge.benchmarks.ultrag.vocabulary import Category

FEWEST, MOST = 4, 6
REPORT_FEWEST, REPORT_MOST = 3, 10
ANSWER_TYPES: Final = ("yes_no", "location", "size", "category", "classification", "count", "open")


@lru_cache(maxsize=1)
def _texts() -> dict[str, Any]:
    text = (files("sonogauge.benchmarks.ultrag") / "texts.yaml").read_text("utf-8")
    return dict(yaml.safe_load(text))


def by_region(masks: Iterable[MaskFact]) -> dict[str, list[MaskFact]]:
    """Return the masks by canonical region, in order of appearance."""
    found: dict[str, list[MaskFact]] = {}
    for one in masks:
        found.setdefault(one.category, []).append(one)
    return found


def cells_text(masks: Iterable[MaskFact]) -> str:
    """Return the cells of masks as words.

    >>> cells_text([])
    ''
    """
    cells = list(dict.fromkeys(one.location_grid for one in masks))
    return listed(cells)


def listed(names: Sequence[str]) -> str:
    """Return names as a list in a sentence.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)


def _ids(masks: Iterable[MaskFact]) -> list[str]:
    return [one.mask_id for one in masks]


def _values(category: Category, masks: Sequence[MaskFact], region: str = "") -> dict[str, str]:
    values = {"organ": category.organ, "region": region, "cells": cells_text(masks), "count": str(len(masks))}
    if masks:
        largest = max(masks, key=lambda one: one.mask_area_px)
        values |= {
            "long": f"{largest.long_axis_px:g}",
            "short": f"{largest.short_axis_px:g}",
            "percent": f"{100 * largest.area_ratio:.2f}",
            "label": label_of(masks) or "",
        }
    return values


def label_of(masks: Iterable[MaskFact]) -> str | None:
    """Return benign or malignant where all masks say the same, else None."""
    said = {one.pathology_label for one in masks}
    return said.pop() if len(said) == 1 and said <= {"benign", "malignant"} else None


def segmentation_tasks(masks: Sequence[MaskFact], category: Category) -> list[dict[str, Any]]:
    """Return one task for all targets and one per region; one without a target where there is no mask."""
    texts = _texts()["segmentation"]
    regions = by_region(masks)
    if not regions:
        wanted: list[tuple[str, str, list[str], str]] = [("none", "", [], "no_target")]
    else:
        wanted = [("all", listed(list(regions)), _ids(masks), "answerable")]
        wanted += [("one", region, _ids(own), "answerable") for region, own in regions.items()]
    return [
        {
            "task_id": f"seg{number}",
            "instruction": texts[kind]["ask"].format(organ=category.organ, region=region),
            "answer": texts[kind]["answer"].format(organ=category.organ, region=region),
            "target_mask_ids": ids,
            "answerability": state,
        }
        for number, (kind, region, ids, state) in enumerate(wanted, start=1)
    ]


def grounded_vqa(masks: Sequence[MaskFact], category: Category) -> list[dict[str, Any]]:
    """Return four to six questions; every one about something visible cites its masks."""
    texts = _texts()["vqa"]
    found: list[dict[str, Any]] = []

    def add(kind: str, answer_type: str, values: Mapping[str, str], ids: list[str], reasoning: str) -> None:
        found.append(
            {
                "qa_id": f"qa{len(found) + 1}",
                "question": texts[kind]["ask"].format(**values),
                "answer": texts[kind]["answer"].format(**values),
                "answer_type": answer_type,
                "requires_grounding": bool(ids),
                "evidence_mask_ids": ids,
                "reasoning_type": reasoning,
                "evidence_source": "mask_geometry" if ids else "none",
            }
        )

    regions = by_region(masks)
    if not regions:
        region = next(reversed(category.targets))
        values = _values(category, (), region)
        add("absence", "yes_no", values, [], "presence")
        add("location_none", "location", values, [], "location")
        add("category_none", "category", values, [], "category")
        add("count_none", "count", values, [], "count")
        return found
    # The smallest region is the one worth asking about: a lesion rather than the organ around it.
    region, own = min(regions.items(), key=lambda entry: max(one.mask_area_px for one in entry[1]))
    largest = max(own, key=lambda one: one.mask_area_px)
    values = _values(category, own, region)
    add("presence", "yes_no", values, _ids(own), "presence")
    add("location", "location", values, _ids(own), "location")
    add("size", "size", values, [largest.mask_id], "measurement")
    add("category", "category", {**values, "region": listed(list(regions))}, _ids(masks), "category")
    add("count", "count", values, _ids(own), "count")
    if label_of(own):
        add("classification", "classification", values, _ids(own), "label")
    else:
        add("extent", "size", values, [largest.mask_id], "measurement")
    return found


def grounded_report(masks: Sequence[MaskFact], category: Category) -> dict[str, Any]:
    """Return the report: a finding per region, its label, the extent of the largest, an assessment, an impression."""
    texts = _texts()["report"]
    sentences: list[dict[str, Any]] = []

    def add(section: str, kind: str, finding: str, values: Mapping[str, str], ids: list[str]) -> None:
        sentences.append(
            {
                "section": section,
                "text": texts[kind].format(**values),
                "evidence_mask_ids": ids,
                "finding_type": finding,
                "evidence_source": "mask_geometry" if ids else "none",
            }
        )

    regions = by_region(masks)
    values = _values(category, masks, listed(list(regions)))
    if not regions:
        for section, finding in (
            ("Findings", "absence"),
            ("Findings", "location_not_applicable"),
            ("Findings", "size_not_applicable"),
            ("Assessment", "no_target"),
            ("Impression", "no_target_impression"),
        ):
            add(section, finding, finding, values, [])
    elif category.style == "organs" and len(regions) == 1:
        for section, kind, finding in (
            ("Findings", "presence", "organ_presence"),
            ("Findings", "location", "organ_location"),
            ("Findings", "size", "organ_size"),
            ("Findings", "extent", "organ_extent"),
            ("Assessment", "scope", "grounding_scope"),
            ("Impression", "impression", "segmentation_impression"),
        ):
            add(section, kind, finding, values, _ids(masks))
    else:
        for region, own in list(regions.items())[: REPORT_MOST - 4]:
            finding = f"{slug(region).lower()}_presence_location"
            add("Findings", "presence_location", finding, _values(category, own, region), _ids(own))
        for label in ("benign", "malignant"):
            own = [one for one in masks if one.pathology_label == label]
            if own:
                region_values = {**_values(category, own, listed(list(by_region(own)))), "label": label}
                noun = slug(own[0].category).lower().rpartition("_")[2]
                add("Findings", "label", f"supplied_{label}_{noun}_label", region_values, _ids(own))
        if len(sentences) < 4:
            largest = max(masks, key=lambda one: one.mask_area_px)
            largest_values = _values(category, [largest], largest.category)
            add("Findings", "largest", "largest_target_extent", largest_values, [largest.mask_id])
        add("Assessment", "summary", "anatomic_summary", values, _ids(masks))
        add("Impression", "impression", "segmentation_impression", values, _ids(masks))
    return {"prompt": texts["ask"].format(organ=category.organ), "sentences": sentences}
