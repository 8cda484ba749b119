"""A finding to a row of the cases table: templates filled, masks coded, boxes drawn around them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sonogauge.cases.geometry import box_of_mask, encode_mask
from sonogauge.sources.findings import Finding, Regions
from sonogauge.sources.layout import Layout, SourceSpec, Value
from sonogauge.sources.media import Media
from sonogauge.sources.readers.tree import Template
from sonogauge.tables import to_facts

if TYPE_CHECKING:
    import pyarrow as pa

PATIENT_UNKNOWN: Final = "patient_unknown"


@dataclass(frozen=True, slots=True)
class Origin:
    """What all cases of an import share."""

    spec: SourceSpec
    private: bool = False

    def case_id(self, name: str) -> str:
        """Return the id of a case of that name.

        Names of files become ids as they are, in one Unicode form.
        """
        import unicodedata

        return unicodedata.normalize("NFC", f"{self.spec.name}/{name}")


def name_of(finding: Finding, layout: Layout) -> str:
    """Return the id of a finding within its source: the template of the layout, else its path."""
    name = Template(layout.id).fill(finding.fields, empty=True) if layout.id else None
    if name is None:
        return finding.name
    return name if finding.frame is None else f"{name}/{finding.frame:04d}"


@dataclass(frozen=True, slots=True)
class Made:
    """A row of the cases table, the mask pixels that no declared value explains, and what a `Look` saw."""

    row: dict[str, Any]
    far: int
    seen: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Look:
    """A look at each case while its pixels are at hand, so that they need not be decoded again.

    of: of the row and the samples of its image (`Media.samples`) a row of `schema`. file: Arrow file for the results,
    one batch for each row group of the cases.
    """

    schema: pa.Schema
    of: Callable[[dict[str, Any], Any], dict[str, Any]]
    file: Path


def make_row(origin: Origin, finding: Finding, layout: Layout, look: Look | None = None) -> Made:
    """Load a finding and return its row.

    Raises:
        MediaFault: the image or one of its masks cannot be used.
    """
    picture = finding.picture()
    media = picture.media()
    facts = {**picture.meta, **finding.fields}
    regions = _gather(finding, media.width, media.height)
    spec = origin.spec
    name = name_of(finding, layout)
    patient = _value(layout.patient, facts)
    issues = [*finding.notes, *picture.notes, *regions.notes]
    if regions.far:
        issues.append(f"{regions.far} mask pixels of no declared value")
    if name in layout.issues:
        issues.append(layout.issues[name])
    if patient is None:
        issues.append(PATIENT_UNKNOWN)
    issues += _stated(layout, facts, media)
    masks, boxes = _coded(regions)
    measurements = _measurements(layout, facts, finding.rows, issues)
    row = {
        "case_id": origin.case_id(name),
        "image": {"bytes": media.data, "path": f"{_file_name(name)}.{media.ending}"},
        "media_type": media.media_type,
        "sha256": media.sha256,
        "pixel_hash": media.pixel_hash,
        "width": media.width,
        "height": media.height,
        "frames": media.frames,
        "spacing": _spacing(layout, facts, picture.spacing, issues),
        "fan_mask": None if regions.fan is None else encode_mask(regions.fan, "fan", "scan"),
        "patient": patient,
        "group": f"{spec.name}:{_group(patient, layout, facts, finding, media)}",
        "source": spec.name,
        "licence": "private" if origin.private else spec.licence,
        "redistributable": spec.redistributable and not origin.private,
        "private": origin.private,
        "provenance": spec.provenance,
        "reference_standard": spec.reference_standard,
        "device": _value(layout.device, facts),
        "view": _value(layout.view, facts),
        "anatomy": _value(layout.anatomy, facts) or spec.organ,
        "demographics": to_facts(_values(layout.demographics, facts)),
        "labels": _labels(_values(layout.labels, facts), [*finding.labels, *_mask_labels(layout, masks)]),
        "masks": masks,
        "boxes": boxes,
        "points": [{"name": name, "x": x, "y": y} for name, x, y in regions.points],
        "measurements": measurements,
        "texts": [
            {"kind": kind, "text": text, "language": language}
            for kind, text, language in _texts(layout, facts, finding)
        ],
        "split": _value(layout.split, facts),
        "frame": finding.frame,
        "meta": to_facts(_values(layout.meta, facts)),
        "known_issues": sorted(set(issues)),
    }
    return Made(row, regions.far, None if look is None else look.of(row, media.samples))


def _gather(finding: Finding, width: int, height: int) -> Regions:
    total = Regions()
    for load in finding.regions:
        part = load(width, height)
        total.masks += part.masks
        total.boxes += part.boxes
        total.points += part.points
        total.notes += part.notes
        total.far += part.far
        total.fan = part.fan if part.fan is not None else total.fan
    return total


def _coded(regions: Regions) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    masks, boxes = [], []
    numbers: dict[str, int] = {}
    for category, mask in regions.masks:
        box = box_of_mask(mask, category)
        if box is None:
            continue
        numbers[category] = numbers.get(category, 0) + 1
        masks.append(encode_mask(mask, f"{category}-{numbers[category]}", category))
        boxes.append(box)
    boxes += [{"category": category, "x": x, "y": y, "w": w, "h": h} for category, x, y, w, h in regions.boxes]
    return masks, boxes


def _value(value: Value | None, facts: dict[str, str]) -> str | None:
    return None if value is None else value.of(facts)


def _values(values: Mapping[str, Value], facts: dict[str, str]) -> dict[str, str]:
    found = {name: value.of(facts) for name, value in values.items()}
    return {name: text for name, text in found.items() if text is not None}


def _labels(named: Mapping[str, str], found: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in sorted({*named.items(), *found})]


def _mask_labels(layout: Layout, masks: list[dict[str, Any]]) -> list[tuple[str, str]]:
    rule = layout.mask_label
    if rule is None:
        return []
    found = sorted({str(mask["category"]) for mask in masks})
    return [(rule.name, value) for value in found or ([rule.none] if rule.none is not None else [])]


def _stated(layout: Layout, facts: dict[str, str], media: Media) -> list[str]:
    if layout.stated_size is None:
        return []
    width, height = (Template(one).fill(facts) for one in layout.stated_size)
    if width is None or height is None or (width, height) == (str(media.width), str(media.height)):
        return []
    return [f"its facts speak of {width} x {height} pixels"]


def _texts(layout: Layout, facts: dict[str, str], finding: Finding) -> list[tuple[str, str, str]]:
    filled = [(rule.kind, Template(rule.text).fill(facts), rule.language) for rule in layout.texts]
    return [
        *((kind, text, language) for kind, text, language in filled if text is not None),
        *((kind, text, "en") for kind, text in finding.texts),
    ]


def _number(template: str, facts: dict[str, str]) -> float | None:
    text = Template(template).fill(facts)
    if text is None or text.lower() in ("nan", "none", "null", "na", "n/a", "-"):
        return None
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def _measurements(
    layout: Layout, facts: dict[str, str], rows: list[dict[str, str]], issues: list[str]
) -> list[dict[str, Any]]:
    found = []
    for rule in layout.measurements:
        used = {name for text in (rule.name, rule.value, rule.unit) for name in Template(text).fields}
        # Once for each row where rows differ in it, once where it is a fact of the image.
        own = [row for row in rows if not used.isdisjoint(row.keys() - facts.keys())]
        for row in own or [{}]:
            one = {**row, **facts}
            name, unit = (Template(text).fill(one) for text in (rule.name, rule.unit))
            try:
                value = _number(rule.value, one)
            except ValueError:
                issues.append(f"{name or rule.name} is no number")
                continue
            if value is not None and name is not None and unit is not None:
                found.append({"name": name, "value": value, "unit": unit})
    return found


def _spacing(
    layout: Layout, facts: dict[str, str], own: tuple[float, float] | None, issues: list[str]
) -> dict[str, float] | None:
    pair: tuple[float | None, ...] | None = own
    if layout.spacing is not None:
        try:
            pair = tuple(_number(one, facts) for one in layout.spacing)
        except ValueError:
            issues.append("spacing is no number")
            pair = None
    if pair is None or any(one is None for one in pair):
        return None
    x, y = (float(one or 0) for one in pair)
    if not (x > 0 and y > 0):
        issues.append("spacing is not above zero")
        return None
    return {"x": x, "y": y}


def _group(patient: str | None, layout: Layout, facts: dict[str, str], finding: Finding, media: Media) -> str:
    if patient is not None:
        return patient
    return _value(layout.group, facts) or finding.cluster or f"image-{media.pixel_hash[:20]}"


def _file_name(name: str) -> str:
    return name.replace("/", "_").replace("\\", "_")
