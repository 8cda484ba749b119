"""Facts of the masks of an image: what every question and every official record is made from.

A raw annotation is a mask with a foreign name. Names become canonical regions, unknown ones are kept apart, masks of
the same region, box and area are merged, and each mask gets its geometry, pathology and cell.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sonogauge.benchmarks.ultrag.semantics import COLUMNS, ROWS
from sonogauge.benchmarks.ultrag.vocabulary import Category, normalise
from sonogauge.cases.geometry import Mask, box_of_mask, decode_mask

LEAST_PIXELS: Final = 10
_NOT_NAME: Final = re.compile(r"[^A-Za-z0-9]+")
_LAST: Final = frozenset({"tumor", "tumour"})


def slug(text: str) -> str:
    """Return a name with each run of other characters than letters and digits as "_", trimmed.

    >>> slug("EchoNet-Pediatric ")
    'EchoNet_Pediatric'
    """
    return _NOT_NAME.sub("_", text).strip("_")


def grid_cell(x: float, y: float, width: int, height: int) -> str:
    """Return the ninth of the image that a point lies in; a point on a third belongs to the higher cell.

    >>> grid_cell(100, 0, 300, 300)
    'upper-central'
    """
    column, row = (min(2, max(0, int(3 * value // size))) for value, size in ((x, width), (y, height)))
    return f"{ROWS[row]}-{COLUMNS[column]}"


@dataclass(frozen=True, slots=True)
class RawMask:
    """A mask as a source gives it. row: of `tables.MASK`; crowd: a region of many objects, which is skipped."""

    annotation_id: int
    name: str
    row: Mapping[str, Any]
    crowd: bool = False


@dataclass(frozen=True, slots=True)
class MaskFact:
    """One kept mask; fields as in the official records, section 2 of the specification, and its pixels as `row`."""

    mask_id: str
    annotation_id: int
    source_annotation_ids: tuple[int, ...]
    source_categories: tuple[str, ...]
    category: str
    source_category: str
    target_type: str
    pathology_label: str
    bbox_xywh: tuple[float, float, float, float]
    mask_area_px: int
    image_size: tuple[int, int]
    location_grid: str
    row: Mapping[str, Any]

    @property
    def long_axis_px(self) -> float:
        """The longer side of the box."""
        return max(self.bbox_xywh[2:])

    @property
    def short_axis_px(self) -> float:
        """The shorter side of the box."""
        return min(self.bbox_xywh[2:])

    @property
    def area_ratio(self) -> float:
        """Mask area over image area, 6 decimals."""
        return round(self.mask_area_px / (self.image_size[0] * self.image_size[1]), 6)

    def as_record(self) -> dict[str, Any]:
        """Return the mask as it stands in an official record, without pixels."""
        x, y, w, h = (round(value, 2) for value in self.bbox_xywh)
        return {
            "mask_id": self.mask_id,
            "annotation_id": self.annotation_id,
            "source_annotation_ids": list(self.source_annotation_ids),
            "source_categories": list(self.source_categories),
            "category": self.category,
            "canonical_region": self.category,
            "source_category": self.source_category,
            "target_type": self.target_type,
            "pathology_label": self.pathology_label,
            "bbox_xywh": [x, y, w, h],
            "bbox_area_px": round(w * h, 2),
            "mask_area_px": round(float(self.mask_area_px), 2),
            "image_area_px": self.image_size[0] * self.image_size[1],
            "area_ratio": self.area_ratio,
            "long_axis_px": round(self.long_axis_px, 2),
            "short_axis_px": round(self.short_axis_px, 2),
            "location_grid": self.location_grid,
        }


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """All that is known of the masks of one image.

    merged: annotations merged away; conflicts: {geometry, labels} of masks both benign and malignant; ignored: raw
    names that no alias knows; skipped: annotations left out (crowds, under ten pixels).
    """

    masks: tuple[MaskFact, ...]
    merged: int = 0
    conflicts: tuple[Mapping[str, Any], ...] = ()
    ignored: tuple[str, ...] = ()
    skipped: int = 0


def image_facts(
    raw: Iterable[RawMask],
    size: tuple[int, int],
    category: Category,
    source: str,
    prefix: str,
    cell_of: str = "box_centre",
) -> ImageFacts:
    """Return the facts of an image.

    Args:
        raw: its annotations.
        size: (width, height) in pixels.
        category: whose alias table names the regions.
        source: the UltraG source, whose own value meanings and renamings hold.
        prefix: of the mask ids, `<slug(source)>_<split>_img<image id>`.
        cell_of: "box_centre" (as the official references) or "mask_centroid" (as the agent).

    Raises:
        BadInput: a mask whose run lengths do not add up.
    """
    kept: dict[tuple[Any, ...], list[RawMask]] = {}
    geometry: dict[tuple[Any, ...], tuple[Mask, tuple[float, float, float, float]]] = {}
    ignored: list[str] = []
    skipped = 0
    for one in raw:
        region = category.canonical(one.name, source)
        if one.crowd:
            skipped += 1
            continue
        if region is None:
            ignored.append(one.name)
            continue
        mask = decode_mask(one.row)
        box = box_of_mask(mask, region)
        area = int(mask.sum())
        if box is None or area < LEAST_PIXELS:
            skipped += 1
            continue
        key = (region, box["x"], box["y"], box["w"], box["h"], area)
        kept.setdefault(key, []).append(one)
        geometry.setdefault(key, (mask, (box["x"], box["y"], box["w"], box["h"])))
    facts, conflicts = [], []
    for key, members in kept.items():
        mask, bounds = geometry[key]
        fact = _fact(key[0], members, mask, bounds, size, category, prefix, cell_of)
        if fact.pathology_label == "conflicting":
            conflicts.append({"geometry": list(bounds), "labels": ["benign", "malignant"]})
        facts.append(fact)
    merged = sum(len(members) - 1 for members in kept.values())
    return ImageFacts(tuple(facts), merged, tuple(conflicts), tuple(sorted(set(ignored))), skipped)


def _fact(
    region: str,
    members: list[RawMask],
    mask: Mask,
    bounds: tuple[float, float, float, float],
    size: tuple[int, int],
    category: Category,
    prefix: str,
    cell_of: str,
) -> MaskFact:
    target = category.targets[region]
    # A specific pathology says more than a generic name, and that more than "tumor".
    first = min(members, key=lambda one: (_rank(one.name), one.annotation_id))
    x, y, w, h = bounds
    if cell_of == "mask_centroid":
        rows, columns = mask.nonzero()
        centre = float(columns.mean()) + 0.5, float(rows.mean()) + 0.5
    else:
        centre = x + w / 2, y + h / 2
    mask_id = f"{prefix}_ann{first.annotation_id}"
    return MaskFact(
        mask_id=mask_id,
        annotation_id=first.annotation_id,
        source_annotation_ids=tuple(sorted(one.annotation_id for one in members)),
        source_categories=tuple(sorted({one.name for one in members})),
        category=region,
        source_category=first.name,
        target_type=target.type,
        pathology_label=_pathology([one.name for one in members], target.pathology),
        bbox_xywh=bounds,
        mask_area_px=int(mask.sum()),
        image_size=size,
        location_grid=grid_cell(*centre, *size),
        row={**members[0].row, "mask_id": mask_id, "category": region},
    )


def _rank(name: str) -> int:
    words = set(normalise(name).split())
    if words & {"benign", "malignant"}:
        return 0
    return 2 if words & _LAST else 1


def _pathology(names: Iterable[str], applies: bool) -> str:
    if not applies:
        return "not_applicable"
    words = {word for name in names for word in normalise(name).split()}
    said = words & {"benign", "malignant"}
    return "conflicting" if len(said) == 2 else said.pop() if said else "unspecified"
