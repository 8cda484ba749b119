"""Segmenters that draw a shape into the box and never look at the image: what any other has to beat."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sonogauge._errors import BadInput
from sonogauge.cases.geometry import Mask
from sonogauge.models.segmenters.base import XYXY, Instance, Pixels, best, check_prompts, make_instance, pixel_box


class BoxFill:
    """The rectangle itself; columns floor(x0) to ceil(x1) - 1, rows likewise."""

    name = "box-fill"
    version = "1"
    weights_id = ""
    licence = "Apache-2.0"
    capabilities: frozenset[str] = frozenset({"box"})
    device = "cpu"
    endpoint = ""

    def __init__(self, where: str = "") -> None:
        if where:
            raise BadInput(f"{self.name} reads nothing from '{where}'", field="segmenter")

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
        """Draw one shape for each box; see `Segmenter.segment`."""
        check_prompts(self, text, boxes, points, point_labels)
        found = []
        for box in boxes or ():
            mask = np.zeros(image.shape[:2], dtype=np.bool_)
            self._draw(mask, box)
            found += best([make_instance(mask, None, f"box: {list(box)}")], top_k, score_threshold)
        return found

    def _draw(self, mask: Mask, box: XYXY) -> None:
        inside = pixel_box(box, mask.shape)
        if inside is not None:
            left, top, right, bottom = inside
            mask[top:bottom, left:right] = True


class InscribedEllipse(BoxFill):
    """The upright ellipse that touches the four sides of the box; a pixel belongs if its centre lies inside."""

    name = "ellipse"

    def _draw(self, mask: Mask, box: XYXY) -> None:
        x0, x1 = sorted((box[0], box[2]))
        y0, y1 = sorted((box[1], box[3]))
        inside = pixel_box(box, mask.shape)
        if inside is None:
            return
        left, top, right, bottom = inside
        # Half a pixel is the least axis, so that the smallest box still has its pixel.
        half_x, half_y = max((x1 - x0) / 2, 0.5), max((y1 - y0) / 2, 0.5)
        x = (np.arange(left, right) + 0.5 - (x0 + x1) / 2) / half_x
        y = (np.arange(top, bottom) + 0.5 - (y0 + y1) / 2) / half_y
        mask[top:bottom, left:right] = x[None, :] ** 2 + y[:, None] ** 2 <= 1
