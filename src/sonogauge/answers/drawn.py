"""What a reply shows: a mask as written (`Shown`), and the same on the pixels of an image (`Drawn`).

Three states are kept apart: an explicit empty mask (null), a hint that has no pixels without a segmenter (points or a
phrase alone), and a mask that could not be read, which carries the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sonogauge.answers.convention import Convention, Size
from sonogauge.answers.raster import draw, inner_points, outside
from sonogauge.answers.shapes import Shape, ShapeFault, read_shapes
from sonogauge.cases.geometry import encode_mask


@dataclass(frozen=True, slots=True)
class Shown:
    """A mask as written. fault: why it could not be read (one of `tables.REASONS`), then there are no shapes."""

    shapes: tuple[Shape, ...] = ()
    fault: str | None = None

    @property
    def is_null(self) -> bool:
        """Whether it says that there is nothing to show."""
        return not self.shapes and self.fault is None


@dataclass(frozen=True, slots=True)
class Drawn:
    """A mask on the pixels of the original image.

    answer: the text that goes with it. mask: a row of `tables.MASK`. empty: an explicit empty mask. hint: points or a
    phrase alone, which no segmenter has turned into pixels. points: (x, y) marked as inside, in pixels.
    outside: (coordinates outside the declared range, coordinates). fault: why there are no pixels.
    """

    answer: str
    mask: Mapping[str, Any]
    empty: bool = False
    hint: bool = False
    points: tuple[tuple[float, float], ...] = ()
    outside: tuple[int, int] = (0, 0)
    fault: str | None = None

    def as_row(self) -> dict[str, Any]:
        """Return the VALUE struct of this prediction."""
        return {
            "texts": [self.answer],
            "masks": [] if self.empty or self.hint or self.fault else [dict(self.mask)],
            "points": [{"name": "", "x": x, "y": y} for x, y in self.points],
        }


def read_shown(fields: Mapping[str, Any], key: str = "predicted_mask") -> Shown:
    """Read the mask of an object; a missing key is a fault (`none`), null is not.

    >>> read_shown({"predicted_mask": None}).is_null, read_shown({}).fault
    (True, 'none')
    """
    if key not in fields:
        return Shown(fault="none")
    try:
        return Shown(read_shapes(fields[key]))
    except ShapeFault as fault:
        return Shown(fault=fault.reason)


def draw_shown(
    shown: Shown, answer: str, size: Size, convention: Convention, sent: Size | None = None, name: str = "predicted"
) -> Drawn:
    """Draw what a reply shows; a mask that does not fit the image becomes an empty one with its fault.

    size, sent: (width, height) of the original image and of the image as sent.
    """
    fault = shown.fault
    mask = draw((), size, convention)
    beyond = (0, 0)
    points: tuple[tuple[float, float], ...] = ()
    if fault is None:
        try:
            mask = draw(shown.shapes, size, convention, sent)
            beyond = outside(shown.shapes, size, convention, sent)
            points = tuple(inner_points(shown.shapes, size, convention, sent))
        except ShapeFault as found:
            fault = found.reason
    draws = any(shape.draws for shape in shown.shapes)
    raster = bool(shown.shapes) and all(shape.kind in ("rle", "png") for shape in shown.shapes)
    return Drawn(
        answer,
        encode_mask(mask, name, ""),
        empty=fault is None and (shown.is_null or (raster and not mask.any())),
        hint=fault is None and bool(shown.shapes) and not draws,
        points=points,
        outside=beyond,
        fault=fault,
    )
