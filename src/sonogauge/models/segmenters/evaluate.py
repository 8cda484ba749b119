"""Segmenters against the masks of cases: IoU and Dice with intervals, and each one against the first, paired."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from sonogauge._errors import BadInput
from sonogauge.cases.fan import fan_mask
from sonogauge.cases.geometry import Mask, box_of_mask, decode_mask, encode_mask
from sonogauge.cases.parts import components
from sonogauge.folders import Folder
from sonogauge.metrics.masks import dice, iou, iou_dice, overlaps
from sonogauge.metrics.sums import GroupSums
from sonogauge.models.addresses import is_loopback
from sonogauge.models.segmenters.base import XYXY, Pixels, Segmenter, SegmenterFault, UnsupportedPrompt, decode_pixels
from sonogauge.models.segmenters.guard import segment_safely
from sonogauge.stats.intervals import Estimate, difference, estimate
from sonogauge.stats.resample import Resampler

# What a segmenter is told: the box of the reference, the box of the scan fan, the name of the category.
PROMPTS: Final = ("reference", "fan", "text")
METRICS: Final = {"iou": iou.metric, "dice": dice.metric}


@dataclass(frozen=True)
class Contender:
    """A segmenter and how it is asked."""

    segmenter: Segmenter
    prompt: str

    @property
    def label(self) -> str:
        """Its name in tables."""
        return f"{self.segmenter.name} ({self.prompt})"


@dataclass(frozen=True)
class Row:
    """A contender on all references; less_first: its value minus that of the first contender, None for the first.

    counts: how many calls ended without a mask, by cause ("nothing", "timeout", "size", …); they count 0.
    """

    label: str
    metric: str
    value: Estimate
    less_first: Estimate | None
    n: int
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class _Reference:
    stratum: str
    group: str
    category: str
    mask: Mask


def evaluate_segmenters(
    folder: Path | str,
    contenders: Sequence[Contender],
    *,
    each: str = "component",
    keep: Callable[[Mapping[str, Any]], bool] | None = None,
    timeout: float | None = None,
    allow_upload: bool = False,
    draws: int = 2_000,
    seed: int = 0,
) -> list[Row]:
    """Draw every reference mask with every contender and compare.

    Args:
        folder: a folder with a cases table.
        contenders: the first is the one that all are compared with.
        each: "component" = each connected part of each mask is a reference of its own, with its own box; "category" =
            the union of the masks of a category in an image.
        keep: which cases count; all by default.
        timeout: seconds for a call.
        allow_upload: let private images leave this machine.
        draws: of the bootstrap, over groups within sources.
        seed: of the draws.

    Raises:
        BadInput: no case with a mask, a contender whose prompt its segmenter cannot use or that lies on another machine
            while a case is private.
    """
    if each not in ("component", "category") or not contenders:
        raise BadInput("each must be component or category, and one contender at least is needed")
    for one in contenders:
        kind = "text" if one.prompt == "text" else "box"
        if one.prompt not in PROMPTS or kind not in one.segmenter.capabilities:
            fix = "prompts: " + ", ".join(PROMPTS)
            raise BadInput(f"{one.segmenter.name} cannot be asked by '{one.prompt}'", field="segmenter", fix=fix)
    scores: list[list[tuple[float, float]]] = [[] for _ in contenders]
    counts: list[Counter[str]] = [Counter() for _ in contenders]
    strata: list[str] = []
    groups: list[str] = []
    if not allow_upload:
        _refuse_private(Folder(folder), contenders)
    for image, found in _references(Folder(folder), each, keep):
        fan = _xyxy(fan_mask(image)) if any(one.prompt == "fan" for one in contenders) else None
        whole: XYXY = (0.0, 0.0, float(image.shape[1]), float(image.shape[0]))
        for reference in found:
            strata.append(reference.stratum)
            groups.append(reference.group)
            for number, one in enumerate(contenders):
                own = _xyxy(reference.mask) or whole
                drawn, cause = _draw(one, image, reference, own if one.prompt == "reference" else fan or whole, timeout)
                if cause:
                    counts[number][cause] += 1
                scores[number].append(_compare(reference.mask, drawn))
    if not strata:
        raise BadInput("no case with a mask", file=folder)
    return _rows(contenders, scores, counts, strata, groups, draws, seed)


def _refuse_private(folder: Folder, contenders: Sequence[Contender]) -> None:
    away = [one.segmenter.endpoint for one in contenders if one.segmenter.endpoint]
    away = [endpoint for endpoint in away if not is_loopback(endpoint)]
    if away and any(row["private"] for row in folder.rows("cases", ["private"])):
        raise BadInput(
            f"private images would leave for {away[0]}",
            file=folder.path,
            fix="use a segmenter on this machine, or pass --allow-upload if you may send them",
        )


def _references(
    folder: Folder, each: str, keep: Callable[[Mapping[str, Any]], bool] | None
) -> Iterator[tuple[Pixels, list[_Reference]]]:
    columns = ["case_id", "image", "masks", "source", "group", "split", "patient"]
    for case in folder.rows("cases", columns):
        data = (case["image"] or {}).get("bytes")
        if data is None or not case["masks"] or (keep is not None and not keep(case)):
            continue
        masks = [(row["category"], decode_mask(row)) for row in case["masks"]]
        if each == "category":
            named = dict.fromkeys(category for category, _ in masks)
            masks = [(name, np.logical_or.reduce([mask for own, mask in masks if own == name])) for name in named]
        stratum, group = case["source"] or "", case["group"] or case["case_id"]
        yield (
            decode_pixels(data),
            [
                _Reference(stratum, group, category, part)
                for category, mask in masks
                for part in (components(mask) if each == "component" else [mask] * bool(mask.any()))
            ],
        )


def _draw(
    one: Contender, image: Pixels, reference: _Reference, box: XYXY, timeout: float | None
) -> tuple[Mask | None, str | None]:
    """Return the union of what was drawn, and why nothing was."""
    text = reference.category if one.prompt == "text" else None
    try:
        found = segment_safely(
            one.segmenter, image, text=text, boxes=None if text is not None else [box], timeout=timeout
        )
    except UnsupportedPrompt:
        return None, "unsupported"
    except SegmenterFault as fault:
        return None, fault.kind
    if not found:
        return None, "nothing"
    return np.asarray(np.logical_or.reduce([instance.mask for instance in found]), dtype=np.bool_), None


def _compare(reference: Mask, drawn: Mask | None) -> tuple[float, float]:
    if drawn is None:
        return 0.0, 0.0
    value, twice = iou_dice(overlaps([encode_mask(reference, "", "")], [encode_mask(drawn, "", "")]))
    return float(value[0]), float(twice[0])


def _rows(
    contenders: Sequence[Contender],
    scores: Sequence[Sequence[tuple[float, float]]],
    counts: Sequence[Counter[str]],
    strata: Sequence[str],
    groups: Sequence[str],
    draws: int,
    seed: int,
) -> list[Row]:
    resampler: Resampler | None = None
    rows = []
    for column, (name, metric) in enumerate(METRICS.items()):
        first: Estimate | None = None
        for one, values, count in zip(contenders, scores, counts, strict=True):
            own = np.array([pair[column] for pair in values])
            sums = GroupSums.from_items(strata, groups, np.stack([own, np.ones_like(own)], axis=-1))
            resampler = resampler or Resampler.for_sums(sums, draws=draws, seed=seed)
            value = estimate(metric, sums, resampler)
            less = None if first is None else difference(value, first, names=(one.label, contenders[0].label))
            first = first or value
            rows.append(Row(one.label, name, value, less, len(values), dict(sorted(count.items()))))
    return rows


def _xyxy(mask: Mask) -> XYXY | None:
    box = box_of_mask(mask, "")
    return None if box is None else (box["x"], box["y"], box["x"] + box["w"], box["y"] + box["h"])


def in_test_part(bench: Path | str) -> Callable[[Mapping[str, Any]], bool]:
    """Return which cases of a benchmark belong to its test part: those whose group has a test item."""
    groups = {item["group"] for item in Folder(bench).rows("items", ["group", "split"]) if item["split"] == "test"}
    return lambda case: case["group"] in groups
