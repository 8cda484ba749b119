"""Records from cases: masks with foreign names become facts, and the facts become questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from sonogauge._errors import BadInput
from sonogauge.benchmarks.ultrag.facts import ImageFacts, RawMask, image_facts, slug
from sonogauge.benchmarks.ultrag.questions import grounded_report, grounded_vqa, segmentation_tasks
from sonogauge.benchmarks.ultrag.records import ImageRecord
from sonogauge.benchmarks.ultrag.splits import Member, split_source
from sonogauge.benchmarks.ultrag.vocabulary import Category, SourceFacts, category_of_source, load_category
from sonogauge.folders import Folder, read_manifest

_LIGHT: Final = ["case_id", "group", "source", "split", "labels", "masks", "frames", "provenance"]
# Groups that stand for the image alone say nothing of patients.
_IMAGE_GROUP: Final = ":image-"


@dataclass
class CaseSource:
    """One source of cases: its category and UltraG name, its usable images and their split."""

    category: Category
    name: str
    facts: SourceFacts
    members: list[Member] = field(default_factory=list)
    split: dict[str, str] = field(default_factory=dict)


def case_folders(data: Path) -> list[Folder]:
    """Return the folders with cases: `data` itself, or the folders in it.

    Raises:
        BadInput: there is none.
    """
    if not data.is_dir():
        raise BadInput("no such folder", file=data)
    found = [one for one in (data, *sorted(data.iterdir())) if one.is_dir() and (one / "cases.parquet").is_file()]
    if not found:
        raise BadInput("neither cases nor the official layout", file=data, fix="make cases with `sonogauge import`")
    return [Folder(one, read_manifest(one).kind) for one in found]


def scan(
    folders: Iterable[Folder], options: Mapping[str, Any], category: str | None, seed: int, counts: dict[str, Any]
) -> dict[str, CaseSource]:
    """Return the sources of the cases by UltraG name, each with its split; count what is left out.

    Raises:
        BadInput: a source that no table knows, and no `category` for it.
    """
    sources: dict[str, CaseSource] = {}
    left: Counter[str] = Counter()
    for folder in folders:
        for row in folder.rows("cases", _LIGHT):
            one = _source(sources, str(row["source"]), category, folder.path)
            why = _left_out(row, one, options)
            if why is not None:
                left[why] += 1
                continue
            group = str(row["group"] or row["case_id"])
            one.members.append(
                Member(
                    str(row["case_id"]),
                    group,
                    _IMAGE_GROUP not in group,
                    str(row["split"] or ""),
                    _label(row, "pathology"),
                )
            )
    for one in sources.values():
        if one.members:
            one.split = split_source(one.members, one.facts, str(options["split"]), seed)
    counts.update(sorted(left.items()))
    return {name: one for name, one in sources.items() if one.members}


def _source(sources: dict[str, CaseSource], name: str, category: str | None, file: Path) -> CaseSource:
    if category is not None and category_of_source(name) is None:
        return sources.setdefault(name, CaseSource(load_category(category), name, SourceFacts(split="patient")))
    found = category_of_source(name)
    if found is None:
        raise BadInput(
            f"no category for cases of the source '{name}'", file=file, field="source", fix="name one with category="
        )
    return sources.setdefault(found[1], CaseSource(found[0], found[1], found[0].sources[found[1]]))


def _left_out(row: Mapping[str, Any], source: CaseSource, options: Mapping[str, Any]) -> str | None:
    if (row["frames"] or 1) > 1:
        return "cases with several frames, not used"
    if source.name == "AbdomenUS" and row["provenance"] == "simulated" and not options["include_synthetic"]:
        return "synthetic images, not used"
    if row["masks"]:
        return None
    if not is_negative(row, source.facts):
        return "cases without masks that are not stated to show no target, not used"
    return None if options["keep_negatives"] else "images without a target, not kept"


def is_negative(row: Mapping[str, Any], facts: SourceFacts) -> bool:
    """Whether a case states that it shows no target: having no masks may mean that nobody drew them."""
    return any(_label(row, name).lower() in values for name, values in facts.negatives.items())


def _label(row: Mapping[str, Any], name: str) -> str:
    return next((str(one["value"]) for one in row["labels"] or () if one["name"] == name), "")


def read_cases(
    folders: Iterable[Folder], sources: Mapping[str, CaseSource], options: Mapping[str, Any], counts: dict[str, Any]
) -> Iterator[tuple[ImageRecord, dict[str, Any]]]:
    """Yield a record and the row of its case for every usable image, in the order of the folders."""
    source_of = {member.case_id: one for one in sources.values() for member in one.members}
    numbers: Counter[str] = Counter()
    annotations: Counter[str] = Counter()
    seen: set[str] = set()
    for folder in folders:
        for row in folder.rows("cases"):
            one = source_of.get(str(row["case_id"]))
            if one is None:
                continue
            if row["case_id"] in seen:
                raise BadInput(f"case '{row['case_id']}' is there twice", file=folder.path, field="case_id")
            seen.add(str(row["case_id"]))
            numbers[one.name] += 1
            split = one.split[str(row["case_id"])]
            prefix = f"{slug(one.name)}_coco_{split}_img{numbers[one.name]}"
            raw = _raw_masks(row, one, annotations)
            size = (int(row["width"]), int(row["height"]))
            facts = image_facts(raw, size, one.category, one.name, prefix, str(options["cell_of"]))
            if not facts.masks and row["masks"]:
                counts["images without a kept mask, not used"] = (
                    counts.get("images without a kept mask, not used", 0) + 1
                )
                continue
            yield (
                _record(row, one, split, numbers[one.name], size, facts),
                {
                    **row,
                    "masks": [dict(fact.row) for fact in facts.masks],
                },
            )


def _raw_masks(row: Mapping[str, Any], source: CaseSource, annotations: Counter[str]) -> list[RawMask]:
    pathology = _label(row, "pathology").lower()
    found = []
    for mask in row["masks"] or ():
        annotations[source.name] += 1
        name = str(mask["category"])
        region = source.category.canonical(name, source.name)
        # The pathology of a lesion stands on the case: it belongs to its masks that can have one.
        if region and pathology in ("benign", "malignant") and source.category.targets[region].pathology:
            name = f"{pathology} {name}"
        found.append(RawMask(annotations[source.name], name, mask))
    return found


def _record(
    row: Mapping[str, Any], source: CaseSource, split: str, number: int, size: tuple[int, int], facts: ImageFacts
) -> ImageRecord:
    category = source.category
    suffix = Path(str((row["image"] or {}).get("path") or "")).suffix or ".png"
    name = f"{slug(str(row['case_id']))}{suffix.lower()}"
    spacing = row["spacing"]
    record = {
        "sample_id": f"{slug(source.name)}_coco_{split}_{number}",
        "dataset": f"{source.name}_coco",
        "split": split,
        "image_path": f"{source.name}_coco/{split}/{name}",
        "image": {
            "file_name": name,
            "width": size[0],
            "height": size[1],
            "organ": category.organ,
            "modality": "ultrasound",
        },
        "masks": [fact.as_record() for fact in facts.masks],
        "merged_duplicate_annotations": facts.merged,
        "pathology_label_conflicts": list(facts.conflicts),
        "ignored_unknown_categories": list(facts.ignored),
        "annotation_source": "fallback",
        "annotation": {
            "segmentation_tasks": segmentation_tasks(facts.masks, category),
            "grounded_vqa": grounded_vqa(facts.masks, category),
            "grounded_report": grounded_report(facts.masks, category),
        },
    }
    return ImageRecord(
        case_id=str(row["case_id"]),
        group=str(row["group"] or row["case_id"]),
        category=category,
        source=source.name,
        split=split,
        size=size,
        record=record,
        masks={fact.mask_id: fact.row for fact in facts.masks},
        origin="toolkit",
        spacing=(float(spacing["x"]), float(spacing["y"])) if spacing and spacing["x"] and spacing["y"] else None,
    )
