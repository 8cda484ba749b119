"""The segmenter that knows the reference: for tests and ceilings only, with errors of a known size on request."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from sonogauge._errors import BadInput
from sonogauge.cases.geometry import Mask, box_of_mask, decode_mask
from sonogauge.cases.parts import components
from sonogauge.folders import Folder
from sonogauge.models.segmenters.base import (
    XYXY,
    Instance,
    Pixels,
    SegmenterFault,
    best,
    check_prompts,
    decode_pixels,
    make_instance,
    pixel_digest,
)
from sonogauge.models.segmenters.classical import holds, split_points
from sonogauge.models.segmenters.words import find_category

COLUMNS: Final = ["case_id", "image", "masks"]


@dataclass(frozen=True, slots=True)
class _Known:
    """The masks of one image, still encoded; more than one case can have the same pixels."""

    rows: tuple[dict[str, Any], ...]


class Oracle:
    """Ground truth, found by the pixels of the image.

    Text draws every mask of that category, a box the mask (or union of a category's masks) whose own box fits best, a
    point the smallest mask that holds it. An image that is in none of the cases is a fault, not an empty answer.

    Args:
        where: a folder with a cases table, whose masks are the truth.
        erode, dilate: pixels to take from or add to each mask.
        drop: chance from 0 to 1 that a mask is not found.
        parts: the connected parts of the masks are the objects that a box can mean.
        seed: of the drops; a mask is dropped or not whatever else is asked.
    """

    version = "1"
    weights_id = ""
    licence = "Apache-2.0"
    capabilities: frozenset[str] = frozenset({"text", "box", "point"})
    device = "cpu"
    endpoint = ""

    def __init__(
        self, where: str, *, erode: int = 0, dilate: int = 0, drop: float = 0.0, parts: bool = False, seed: int = 0
    ) -> None:
        if not where:
            raise BadInput("the oracle needs the folder with the masks", field="segmenter", fix="write oracle:CASES")
        if erode < 0 or dilate < 0 or (erode and dilate):
            raise BadInput("erode or dilate, not both, by 0 pixels or more", field="segmenter")
        if not 0 <= drop <= 1:
            raise BadInput(f"{drop} is no chance from 0 to 1", field="segmenter")
        self._folder = Folder(where)
        self._erode, self._dilate, self._drop, self._parts, self._seed = erode, dilate, drop, parts, seed
        errors = {"erode": erode, "dilate": dilate, "drop": drop, "parts": parts, "seed": seed if drop else 0}
        told = ",".join(f"{key}={value:g}" for key, value in errors.items() if value)
        self.name = "oracle" + (f"?{told}" if told else "")
        self._known: dict[str, _Known] | None = None

    def segment(
        self,
        image: Pixels,
        text: str | None = None,
        boxes: Sequence[XYXY] | None = None,
        points: Sequence[tuple[float, float]] | None = None,
        point_labels: Sequence[int] | None = None,
        top_k: int | None = 1,
        score_threshold: float | None = None,
    ) -> list[Instance]:
        """Return the true masks; with a phrase all of them, whatever top_k says, so that a union is whole."""
        check_prompts(self, text, boxes, points, point_labels)
        rows = self._rows(image)
        if text is not None:
            category = find_category(text, {row["category"]: () for row in rows})
            chosen = (row for row in rows if row["category"] == category)
            return best((self._instance(decode_mask(row), row, f"text: {text}") for row in chosen), None, None)
        if boxes is not None:
            objects = _parts(rows) if self._parts else _wholes(rows)
            return [one for box in boxes if (one := self._fitting(objects, box)) is not None]
        on, off = split_points(points, point_labels)
        whole = [(decode_mask(row), row) for row in rows]
        under = [
            (mask, row)
            for mask, row in whole
            if all(holds(mask, point) for point in on) and not any(holds(mask, point) for point in off)
        ]
        under.sort(key=lambda pair: int(pair[0].sum()))
        return best((self._instance(mask, row, f"point: {on}") for mask, row in under), top_k, None)

    def _rows(self, image: Pixels) -> tuple[dict[str, Any], ...]:
        if self._known is None:
            self._known = _read(self._folder)
        known = self._known.get(pixel_digest(image))
        if known is None:
            raise SegmenterFault("failed", "the oracle has no case with these pixels")
        return known.rows

    def _fitting(self, objects: Iterable[tuple[Mask, dict[str, Any]]], box: XYXY) -> Instance | None:
        fits = [(box_iou(own, box), mask, row) for mask, row in objects if (own := _xyxy(mask)) is not None]
        if not fits:
            return None
        fit, mask, row = max(fits, key=lambda one: one[0])
        return self._instance(mask, row, f"box: {list(box)}") if fit > 0 else None

    def _instance(self, mask: Mask, row: dict[str, Any], prompt: str) -> Instance | None:
        # Of the mask itself, not of a counter: what is dropped must not depend on the order of the questions.
        if self._drop and random.Random(f"{self._seed}/{row['mask_id']}/{row['counts']}").random() < self._drop:
            return None
        if self._erode or self._dilate:
            from scipy.ndimage import binary_dilation, binary_erosion

            change = binary_erosion if self._erode else binary_dilation
            mask = np.asarray(change(mask, iterations=self._erode or self._dilate), dtype=np.bool_)
        return make_instance(mask, 1.0, prompt)


def _read(folder: Folder) -> dict[str, _Known]:
    known: dict[str, _Known] = {}
    for case in folder.rows("cases", COLUMNS):
        image = case["image"] or {}
        data = image.get("bytes")
        if data is None:
            file = (folder.path / str(image.get("path") or "")).resolve()
            if not file.is_relative_to(folder.path.resolve()) or not file.is_file():
                continue
            data = file.read_bytes()
        try:
            digest = pixel_digest(decode_pixels(data))
        except SegmenterFault:
            continue  # a case that nobody can be asked about, because its image does not open
        earlier = known[digest].rows if digest in known else ()
        known[digest] = _Known((*earlier, *(row for row in case["masks"] or () if row not in earlier)))
    return known


def _parts(rows: Sequence[dict[str, Any]]) -> list[tuple[Mask, dict[str, Any]]]:
    return [(part, row) for row in rows for part in components(decode_mask(row))]


def _wholes(rows: Sequence[dict[str, Any]]) -> list[tuple[Mask, dict[str, Any]]]:
    """Return each mask, and after them the union of each category that has several."""
    masks = [(decode_mask(row), row) for row in rows]
    for category in dict.fromkeys(row["category"] for row in rows):
        own = [mask for mask, row in masks if row["category"] == category]
        if len(own) > 1:
            first = next(row for row in rows if row["category"] == category)
            masks.append((np.logical_or.reduce(own), first))
    return masks


def _xyxy(mask: Mask) -> XYXY | None:
    box = box_of_mask(mask, "")
    return None if box is None else (box["x"], box["y"], box["x"] + box["w"], box["y"] + box["h"])


def box_iou(one: XYXY, other: XYXY) -> float:
    """Return intersection over union of two boxes, 0 where both are empty.

    >>> box_iou((0, 0, 4, 4), (2, 0, 6, 4)) == 1 / 3
    True
    """
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    shared = max(width, 0.0) * max(height, 0.0)
    total = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (one, other)) - shared
    return shared / total if total > 0 else 0.0
