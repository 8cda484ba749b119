"""Segmenters without training: Otsu's threshold and GrabCut, inside the box or around the point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from sonogauge._errors import BadInput
from sonogauge.cases.geometry import Mask
from sonogauge.cases.parts import components
from sonogauge.models.segmenters.base import (
    XYXY,
    Instance,
    Pixels,
    UnsupportedPrompt,
    best,
    check_prompts,
    colour,
    grey,
    make_instance,
    pixel_box,
)

POLARITIES: Final = ("dark", "bright")
_LEAST_PIXELS: Final = 5  # a colour model of GrabCut has five parts


class Otsu:
    """Otsu's threshold inside the box (of the whole image for a point); largest part or that at the point, filled.

    Args:
        where: nothing.
        polarity: whether the object is "dark" (cysts, most lesions) or "bright".

    Source: Otsu 1979, doi:10.1109/TSMC.1979.4310076; ties of the threshold as in OpenCV.
    """

    version = "1"
    weights_id = ""
    licence = "Apache-2.0"
    capabilities: frozenset[str] = frozenset({"box", "point"})
    device = "cpu"
    endpoint = ""

    def __init__(self, where: str = "", *, polarity: str = "dark") -> None:
        if where:
            raise BadInput(f"otsu reads nothing from '{where}'", field="segmenter")
        if polarity not in POLARITIES:
            raise BadInput(f"no polarity '{polarity}'", field="segmenter", fix="use dark or bright")
        self._dark = polarity == "dark"
        self.name = "otsu" if self._dark else "otsu?polarity=bright"

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
        """Threshold each box, or the image for points; see `Segmenter.segment`."""
        check_prompts(self, text, boxes, points, point_labels)
        on, off = split_points(points, point_labels)
        pixels = grey(image)
        found: list[Instance] = []
        whole: XYXY = (0.0, 0.0, float(pixels.shape[1]), float(pixels.shape[0]))
        for box in boxes if boxes is not None else (whole,):
            mask = np.zeros(pixels.shape, dtype=np.bool_)
            inside = pixel_box(box, pixels.shape)
            if inside is not None:
                left, top, right, bottom = inside
                mask[top:bottom, left:right] = self._threshold(pixels[top:bottom, left:right])
            prompt = f"box: {list(box)}" if boxes is not None else f"point: {on}"
            found += best([make_instance(keep_part(mask, on, off), None, prompt)], top_k, score_threshold)
        return found

    def _threshold(self, part: Pixels) -> Mask:
        import cv2

        if part.min() == part.max():
            return np.zeros(part.shape, dtype=np.bool_)
        level, _ = cv2.threshold(np.ascontiguousarray(part), 0, 255, cv2.THRESH_BINARY + cv2.THRESH_OTSU)
        return np.asarray(part <= level if self._dark else part > level)


class GrabCut:
    """GrabCut: what lies in the box is perhaps the object, what lies around it is not.

    Args:
        where: nothing.
        iterations: of the colour models.
        context: how far around the box the background is taken from, in parts of its longer side.
        core: size of the ellipse in the middle of the box that is the object for sure, in parts of the box; 0 = none,
            and then speckle often leaves nothing of the object.
        max_side: a larger part of the image is worked on at this size, in pixels.

    Source: Rother et al. 2004, doi:10.1145/1015706.1015720, as in OpenCV.
    """

    version = "1"
    weights_id = ""
    licence = "Apache-2.0"
    capabilities: frozenset[str] = frozenset({"box"})
    device = "cpu"
    endpoint = ""

    def __init__(
        self, where: str = "", *, iterations: int = 5, context: float = 0.5, core: float = 0.7, max_side: int = 256
    ) -> None:
        if where:
            raise BadInput(f"grabcut reads nothing from '{where}'", field="segmenter")
        if iterations < 1 or context <= 0 or not 0 <= core < 1 or max_side < 16:
            raise BadInput(
                "grabcut needs iterations from 1, a context above 0, a core below 1, a max_side from 16",
                field="segmenter",
            )
        self._iterations, self._context, self._core, self._side = iterations, context, core, max_side
        changed = [f"iterations={iterations}"] * (iterations != 5) + [f"context={context:g}"] * (context != 0.5)
        changed += [f"core={core:g}"] * (core != 0.7) + [f"max_side={max_side}"] * (max_side != 256)
        self.name = "grabcut" + ("?" + ",".join(changed) if changed else "")

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
        """Cut out one object for each box; see `Segmenter.segment`."""
        check_prompts(self, text, boxes, points, point_labels)
        pixels = colour(image)
        found: list[Instance] = []
        for box in boxes or ():
            found += best([make_instance(self._cut(pixels, box), None, f"box: {list(box)}")], top_k, score_threshold)
        return found

    def _cut(self, pixels: Pixels, box: XYXY) -> Mask:
        import cv2

        mask = np.zeros(pixels.shape[:2], dtype=np.bool_)
        inside = pixel_box(box, pixels.shape)
        if inside is None:
            return mask
        left, top, right, bottom = inside
        margin = max(2, round(self._context * max(right - left, bottom - top)))
        x0, y0 = max(0, left - margin), max(0, top - margin)
        x1, y1 = min(pixels.shape[1], right + margin), min(pixels.shape[0], bottom + margin)
        part = np.ascontiguousarray(pixels[y0:y1, x0:x1])
        seeds = np.full(part.shape[:2], cv2.GC_BGD, dtype=np.uint8)
        seeds[top - y0 : bottom - y0, left - x0 : right - x0] = cv2.GC_PR_FGD
        if int((seeds == cv2.GC_BGD).sum()) < _LEAST_PIXELS:
            # A box around everything leaves no background to learn from.
            return mask
        if int((seeds == cv2.GC_PR_FGD).sum()) < _LEAST_PIXELS:
            mask[top:bottom, left:right] = True
            return mask
        if self._core:
            middle = ((left + right) / 2 - x0, (top + bottom) / 2 - y0)
            half = (self._core * (right - left) / 2, self._core * (bottom - top) / 2)
            x = (np.arange(part.shape[1]) + 0.5 - middle[0]) / max(half[0], 0.5)
            y = (np.arange(part.shape[0]) + 0.5 - middle[1]) / max(half[1], 0.5)
            seeds[x[None, :] ** 2 + y[:, None] ** 2 <= 1] = cv2.GC_FGD
        scale = self._side / max(part.shape[:2])
        worked: Any = part
        marks: Any = seeds
        if scale < 1:
            size = (max(1, round(scale * part.shape[1])), max(1, round(scale * part.shape[0])))
            worked = cv2.resize(part, size, interpolation=cv2.INTER_AREA)
            marks = cv2.resize(seeds, size, interpolation=cv2.INTER_NEAREST)
        # Its first colour models come from a k-means with a random start.
        cv2.setRNGSeed(0)
        cv2.grabCut(worked, marks, (0, 0, 1, 1), _model(), _model(), self._iterations, cv2.GC_INIT_WITH_MASK)
        kept = ((marks == cv2.GC_FGD) | (marks == cv2.GC_PR_FGD)).astype(np.uint8)
        native = cv2.resize(kept, part.shape[1::-1], interpolation=cv2.INTER_NEAREST) > 0
        mask[y0:y1, x0:x1] = native & (seeds != cv2.GC_BGD)
        return keep_part(mask, [], [])


def _model() -> Any:
    return np.zeros((1, 65), dtype=np.float64)


def split_points(
    points: Sequence[tuple[float, float]] | None, labels: Sequence[int] | None
) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    """Return the points on and off the object; raise UnsupportedPrompt where none lies on it."""
    chosen = list(points or ())
    marks = [1] * len(chosen) if labels is None else list(labels)
    on = [point for point, mark in zip(chosen, marks, strict=True) if mark]
    if points is not None and not on:
        raise UnsupportedPrompt("at least one point must lie on the object")
    return on, [point for point, mark in zip(chosen, marks, strict=True) if not mark]


def holds(mask: Mask, point: tuple[float, float]) -> bool:
    """Return whether the pixel under a point belongs to a mask."""
    column, row = int(np.floor(point[0])), int(np.floor(point[1]))
    return 0 <= row < mask.shape[0] and 0 <= column < mask.shape[1] and bool(mask[row, column])


def keep_part(mask: Mask, on: Sequence[tuple[float, float]], off: Sequence[tuple[float, float]]) -> Mask:
    """Return the largest part of a mask with its holes filled, or the largest that holds all points on and none off."""
    from scipy.ndimage import binary_fill_holes

    for part in components(mask):
        filled = np.asarray(binary_fill_holes(part), dtype=np.bool_)
        if all(holds(filled, point) for point in on) and not any(holds(filled, point) for point in off):
            return filled
    return np.zeros(mask.shape, dtype=np.bool_)
