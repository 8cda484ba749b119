"""Size bins of boxes by a declared rule. Source: specification of Fetal-Gauge, section 4."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

BINS: Final = ("large", "medium", "small")
RULES: Final = ("relative", "pixel", "quantile")


@dataclass(frozen=True)
class SizeRule:
    """How a box is binned: small below the first threshold, medium below the second, else large.

    name: relative (box area / image area), pixel (COCO: box area in native pixels) or quantile (thresholds that give
    declared shares of the questions; a box of exactly a threshold belongs to the smaller bin, so ties stay together).
    """

    name: str
    thresholds: tuple[float, float]

    def bin_of(self, width: float, height: float, image_area: float) -> str:
        """Return the bin of a box.

        >>> SizeRule("relative", (0.05, 0.15)).bin_of(10, 5, 1000), SizeRule("pixel", (1024, 9216)).bin_of(32, 31, 1e6)
        ('medium', 'small')
        """
        size = width * height if self.name == "pixel" else width * height / image_area
        low, high = self.thresholds
        if self.name == "quantile":
            return "small" if size <= low else "medium" if size <= high else "large"
        return "small" if size < low else "medium" if size < high else "large"

    @property
    def told(self) -> str:
        """The rule in words."""
        what = "box area in native pixels" if self.name == "pixel" else "box area / image area"
        low, high = (f"{one:.4g}" for one in self.thresholds)
        up = "up to" if self.name == "quantile" else "below"
        return f"size_rule {self.name}: {what}, small {up} {low}, medium {up} {high}, else large"


RELATIVE: Final = SizeRule("relative", (0.05, 0.15))
# The thresholds of COCO.
PIXEL: Final = SizeRule("pixel", (32.0**2, 96.0**2))
