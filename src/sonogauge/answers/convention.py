"""How a model counts its coordinates: declared for the model, never guessed from how large its numbers are.

A convention is written SPACE or SPACE:ORDER, as in `mille:yxyx`. SPACE is `pixel` (of the original image),
`sent_pixel` (of the image as sent), `unit` (0 to 1) or `mille` (0 to 1000). ORDER says what four numbers without
names are: `xywh` (corner and size), `xyxy` or `yxyx` (two corners).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from sonogauge._errors import BadInput

SPACES: Final = {
    "pixel": "pixels of the original image",
    "sent_pixel": "pixels of the image as you see it",
    "unit": "fractions of the image width and height, from 0 to 1",
    "mille": "thousandths of the image width and height, from 0 to 1000",
}
ORDERS: Final = ("xywh", "xyxy", "yxyx")
_SCALE: Final = {"unit": 1.0, "mille": 1000.0}

Size = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Convention:
    """The coordinates of one model; see the module. An empty order: none was declared, `xywh` is read."""

    space: str = "pixel"
    order: str = ""

    def __str__(self) -> str:
        return f"{self.space}:{self.order}" if self.order else self.space

    def extent(self, size: Size, sent: Size | None = None) -> tuple[float, float]:
        """Return the largest x and y of an image: size = (width, height) in pixels, sent = the same as sent.

        An image that is not known to have been changed was sent at its own size.

        >>> Convention("mille").extent((800, 540)), Convention("pixel").extent((800, 540))
        ((1000.0, 1000.0), (800.0, 540.0))
        """
        if self.space in _SCALE:
            return _SCALE[self.space], _SCALE[self.space]
        width, height = sent if self.space == "sent_pixel" and sent is not None else size
        return float(width), float(height)

    def factors(self, size: Size, sent: Size | None = None) -> tuple[float, float]:
        """Return what x and y are multiplied by to become pixels of the original image."""
        width, height = self.extent(size, sent)
        return size[0] / width, size[1] / height


@lru_cache(maxsize=64)
def read_convention(text: str) -> Convention:
    """Read SPACE or SPACE:ORDER; an empty text is `pixel`.

    Raises:
        BadInput: an unknown space or order.

    >>> read_convention("mille:yxyx")
    Convention(space='mille', order='yxyx')
    """
    space, _, order = (text or "pixel").partition(":")
    if space not in SPACES:
        raise BadInput(f"no coordinates '{space}'", field="coords", fix="known: " + ", ".join(SPACES))
    if order and order not in ORDERS:
        raise BadInput(f"no order of a box '{order}'", field="coords", fix="known: " + ", ".join(ORDERS))
    return Convention(space, order)
