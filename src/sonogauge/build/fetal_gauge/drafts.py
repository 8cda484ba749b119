"""What a case can be asked: drafts of questions, before options are drawn, and why the rest is left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from sonogauge.benchmarks.fetal_gauge.parameters import APART, LABELS, Parameters
from sonogauge.build.stages.facts import join_boxes
from sonogauge.build.stages.vocabulary import without_signs
from sonogauge.cases.geometry import decode_mask
from sonogauge.cases.parts import boxes_of, union

Box = Mapping[str, Any]
COLUMNS: Final = (
    *("case_id", "pixel_hash", "width", "height", "frames", "spacing", "patient", "group", "source", "licence"),
    *("redistributable", "private", "provenance", "view", "anatomy", "labels", "masks", "boxes", "measurements"),
    *("split", "meta"),
)


@dataclass(frozen=True, slots=True)
class Draft:
    """A question of a case: its task, the word or number that is right, the boxes it is about.

    part: tells questions of one task and case apart ("fetal head-1").
    """

    task: str
    part: str = ""
    answer: str = ""
    raw: str = ""
    boxes: tuple[Box, ...] = ()
    number: float | None = None
    measurement: str = ""


@dataclass
class Left:
    """What was not asked: reason -> number, by (source, task)."""

    counts: dict[tuple[str, str], Counter[str]] = field(default_factory=dict)

    def add(self, source: str, task: str, reason: str) -> None:
        """Count one."""
        self.counts.setdefault((source, task), Counter())[reason] += 1

    def told(self) -> str:
        """Return the counts in one line."""
        return "; ".join(
            f"{place}: " + ", ".join(f"{reason} {number}" for reason, number in own.items())
            for place, own in self.as_json().items()
        )

    def as_json(self) -> dict[str, dict[str, int]]:
        """Return the counts by "source/task"."""
        return {f"{source}/{task}": dict(sorted(own.items())) for (source, task), own in sorted(self.counts.items())}


@lru_cache(4096)
def fold(word: str) -> str:
    """Return a word without case, spaces at the ends and signs: two words that fold alike are one.

    >>> fold(" Fetal-Head_plane "), fold("fetal head plane")
    ('fetal head plane', 'fetal head plane')
    """
    return without_signs(word)


def _core(word: str) -> str:
    return fold(word).removeprefix("fetal ").removesuffix(" plane")


def overlap(one: str, other: str, groups: Sequence[Sequence[str]]) -> bool:
    """Tell whether two words mean the same or overlap, so that both could be right.

    Here every picture is of a fetus and every view is a plane, so the two words tell nothing apart.

    >>> overlap("Fetal-brain", "brain  plane", ()), overlap("a", "b", (("a", "b"),)), overlap("a", "c", (("a", "b"),))
    (True, True, False)
    """
    if _core(one) == _core(other):
        return True
    if one in APART and other in APART:
        return False
    return any(one in group and other in group for group in groups)


def drafts(row: Mapping[str, Any], parameters: Parameters, left: Left) -> Iterator[Draft]:
    """Yield the drafts of a case, in canonical words, and count in `left` what it cannot be asked.

    row: the columns `COLUMNS` of a case, from `intake.canonical_rows`.
    """
    source = row["source"]
    if (row["frames"] or 1) > 1:
        for task in parameters.tasks:
            left.add(source, task, "not a still image")
        return
    for task in parameters.tasks:
        if task in LABELS:
            yield from _label(row, task, parameters, left)
    if "VG" in parameters.tasks or "VL" in parameters.tasks:
        yield from _structures(row, parameters, left)
    if "MS" in parameters.tasks:
        yield from _measured(row, parameters, left)


def _label(row: Mapping[str, Any], task: str, parameters: Parameters, left: Left) -> Iterator[Draft]:
    source = row["source"]
    dropped = set(map(fold, parameters.drop))
    unwanted = ""
    for name in label_names(task, source, parameters):
        words = (
            {row["view"]} if name == "view" else {one["value"] for one in row["labels"] or () if one["name"] == name}
        )
        words.discard(None)
        kept = sorted(word for word in words if word and fold(word) not in dropped)
        if len(kept) > 1:
            left.add(source, task, f"several values of '{name}'")
            return
        if kept:
            # Line breaks in a label would break the list of options.
            yield Draft(task, answer=" ".join(kept[0].split()), raw=_raw(row, name, kept[0]))
            return
        unwanted = next(iter(sorted(words)), unwanted)
    left.add(source, task, f"class left out: {fold(unwanted)}" if unwanted else "no label")


def label_names(task: str, source: str, parameters: Parameters) -> list[str]:
    """Return the labels that give a task its answer in a source, those named for the source first.

    >>> label_names("PI", "acouslic-ai", Parameters()), label_names("VC", "acouslic-ai", Parameters())[0]
    (['brain plane', 'view'], 'plane')
    """
    own, plain = [], []
    claimed = {
        entry.partition(":")[2]
        for other, entries in parameters.labels.items()
        for entry in entries
        if other != task and entry.startswith(f"{source}:")
    }
    for entry in parameters.labels[task]:
        place, colon, name = entry.partition(":")
        if not colon:
            plain.append(entry)
        elif place == source:
            own.append(name)
    return [*own, *(name for name in plain if name not in claimed)]


def _raw(row: Mapping[str, Any], name: str, word: str) -> str:
    return str(row["raw_words"].get((name, word), word))


def _structures(row: Mapping[str, Any], parameters: Parameters, left: Left) -> Iterator[Draft]:
    source, p = row["source"], parameters
    dropped = set(map(fold, p.drop))
    categories = sorted({one["category"] for name in ("masks", "boxes") for one in row[name] or ()} - {None, ""})
    tasks = [task for task in ("VG", "VL") if task in p.tasks]
    if not categories:
        for task in tasks:
            left.add(source, task, "no mask and no box")
    for category in categories:
        if fold(category) in dropped:
            for task in tasks:
                left.add(source, task, f"class left out: {fold(category)}")
            continue
        boxes = []
        found = structure_boxes(row, category, p.vg_component_rule)
        for box in found:
            inside, fault = visible_box(box, row["width"], row["height"], p)
            if inside is not None:
                boxes.append(inside)
            else:
                for task in tasks:
                    left.add(source, task, fault)
        if not found:
            for task in tasks:
                left.add(source, task, "an empty mask")
        raw = _raw(row, "category", category)
        name = " ".join(category.split())
        if "VG" in tasks:
            for number, box in enumerate(boxes, start=1):
                yield Draft("VG", f"{name}-{number}", name, raw, (box,))
        if "VL" in tasks and boxes:
            yield Draft("VL", name, name, raw, tuple(boxes))


def visible_box(box: Box, width: int, height: int, parameters: Parameters) -> tuple[dict[str, Any] | None, str]:
    """Return the part of a box inside the image, or None with the reason why it cannot be asked about."""
    left, top = max(0.0, box["x"]), max(0.0, box["y"])
    right, bottom = min(float(width), box["x"] + box["w"]), min(float(height), box["y"] + box["h"])
    if min(right - left, bottom - top) <= 0:
        return None, "box outside the image"
    if min(right - left, bottom - top) < parameters.vg_min_box_side_px:
        return None, f"box with a side below {parameters.vg_min_box_side_px} pixels"
    pad = parameters.vg_pad_px
    whole = left <= pad and top <= pad and right + pad >= width and bottom + pad >= height
    if whole and parameters.box_side == "outward":
        return None, "box as large as the image, so that no line of it is seen"
    return {"category": box["category"], "x": left, "y": top, "w": right - left, "h": bottom - top}, ""


def structure_boxes(row: Mapping[str, Any], category: str, rule: str) -> list[dict[str, Any]]:
    """Return the upright boxes of a structure by the component rule: of its masks, else of its annotated boxes."""
    masks = [one for one in row["masks"] or () if one["category"] == category]
    if masks:
        whole = union(decode_mask(one) for one in masks)
        assert whole is not None
        return boxes_of(whole, category, rule)
    return join_boxes([one for one in row["boxes"] or () if one["category"] == category], rule)


def _measured(row: Mapping[str, Any], parameters: Parameters, left: Left) -> Iterator[Draft]:
    source, (low, high) = row["source"], parameters.ms_range
    by_name: dict[str, set[tuple[float, str]]] = {}
    for one in row["measurements"] or ():
        by_name.setdefault(one["name"], set()).add((one["value"], one["unit"] or ""))
    if not by_name:
        left.add(source, "MS", "no measurement")
    for name, values in sorted(by_name.items()):
        value, unit = min(values)
        spacing = row["spacing"]
        if len(values) > 1:
            left.add(source, "MS", f"several values of '{name}'")
        elif unit != "mm":
            left.add(source, "MS", f"measured in '{unit}', not in mm")
        elif not spacing:
            left.add(source, "MS", "no pixel spacing, so no image tells millimetres")
        elif abs(spacing["x"] - spacing["y"]) > 1e-6 * spacing["x"]:
            left.add(source, "MS", "pixels that are not square")
        elif not low <= value <= high:
            left.add(source, "MS", "outside ms_range")
        else:
            yield Draft("MS", name, number=float(value), measurement=name)
