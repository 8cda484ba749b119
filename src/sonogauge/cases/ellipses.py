"""Ellipses: fitted to a mask by its moments, measured by Ramanujan's circumference."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sonogauge.cases.geometry import Mask
from sonogauge.cases.parts import components


@dataclass(frozen=True, slots=True)
class Ellipse:
    """An ellipse in the units of its spacing: centre x and y, half axes, turn of the long axis.

    angle: degrees from the x axis towards the y axis (clockwise in an image), in [0, 180).
    """

    x: float
    y: float
    half_long: float
    half_short: float
    angle: float

    @property
    def long_axis(self) -> float:
        """Length of the long axis, end to end."""
        return 2 * self.half_long

    @property
    def short_axis(self) -> float:
        """Length of the short axis, end to end."""
        return 2 * self.half_short

    @property
    def circumference(self) -> float:
        """Length of the outline, see `ramanujan`."""
        return ramanujan(self.half_long, self.half_short)

    @property
    def area(self) -> float:
        """Area inside."""
        return math.pi * self.half_long * self.half_short


def ramanujan(a: float, b: float) -> float:
    """Return the circumference of an ellipse of half axes a and b, to 0.05 % at any shape that occurs in anatomy.

    Source: S. Ramanujan 1914, "Modular equations and approximations to pi", first approximation:
    pi (3 (a + b) - sqrt((3 a + b) (a + 3 b))).

    >>> round(ramanujan(1, 1) / math.pi, 12)
    2.0
    """
    return math.pi * (3 * (a + b) - math.sqrt((3 * a + b) * (a + 3 * b)))


def fit_ellipse(mask: Mask, spacing: tuple[float, float] = (1.0, 1.0)) -> Ellipse | None:
    """Return the ellipse with the second moments of a mask, None for an empty or straight one.

    Holes are filled first, so that an outline counts like the region inside; only the largest part counts.

    Args:
        mask: boolean (rows, columns).
        spacing: size of a pixel in x and y, for example in mm; the result has this unit.
    """
    from scipy.ndimage import binary_fill_holes

    parts = components(np.asarray(binary_fill_holes(mask)))
    if not parts:
        return None
    rows, columns = np.nonzero(parts[0])
    x, y = (columns + 0.5) * spacing[0], (rows + 0.5) * spacing[1]
    # A pixel is a small square, with a variance of its own.
    xx = float(x.var()) + spacing[0] ** 2 / 12
    yy = float(y.var()) + spacing[1] ** 2 / 12
    xy = float(((x - x.mean()) * (y - y.mean())).mean())
    values, vectors = np.linalg.eigh(np.array([[xx, xy], [xy, yy]]))
    short, long = (2 * math.sqrt(max(float(value), 0.0)) for value in values)
    angle = math.degrees(math.atan2(float(vectors[1, 1]), float(vectors[0, 1]))) % 180
    return Ellipse(float(x.mean()), float(y.mean()), long, short, angle)
