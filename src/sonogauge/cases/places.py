"""Where in an image something lies, by the rules of two benchmarks.

U2-BENCH: bands end at 0.45 and 0.55 of the image. UltraG-Bench: thirds. Both take the centre of the box.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from sonogauge.answers.place import place_of
from sonogauge.cases.geometry import box_centre

THIRDS_ROWS: Final = ("upper", "middle", "lower")
THIRDS_COLUMNS: Final = ("left", "central", "right")
RULES: Final = ("bands", "thirds")


def third(centre: float, size: float) -> int:
    """Return which third of a side a coordinate lies in; exactly on a border = the higher one.

    Source: specification of UltraG-Bench, `location_grid`: min(2, floor(3 c / size)).

    >>> third(99.9, 300), third(100, 300), third(300, 300)
    (0, 1, 2)
    """
    return max(0, min(2, math.floor(3 * centre / size)))


def place_in_thirds(x: float, y: float, width: float, height: float) -> str:
    """Return the cell of a point in pixels.

    >>> place_in_thirds(150, 10, 300, 300)
    'upper-central'
    """
    return f"{THIRDS_ROWS[third(y, height)]}-{THIRDS_COLUMNS[third(x, width)]}"


def place_of_box(box: Mapping[str, Any], width: int, height: int, rule: str = "bands") -> str:
    """Return the place of a box's centre by one of RULES.

    >>> box = {"x": 100.0, "y": 0.0, "w": 40.0, "h": 20.0}
    >>> place_of_box(box, 300, 300), place_of_box(box, 300, 300, "thirds")
    ('upper left', 'upper-central')
    """
    if rule == "bands":
        return place_of(*box_centre(box, width, height))
    if rule == "thirds":
        return place_in_thirds(box["x"] + box["w"] / 2, box["y"] + box["h"] / 2, width, height)
    raise ValueError(f"no rule '{rule}'")
