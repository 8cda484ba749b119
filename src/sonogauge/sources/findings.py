"""What readers find: an image that can be loaded, the facts beside it, and what is drawn on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from sonogauge.cases.geometry import Mask
from sonogauge.sources.readers.pictures import Picture

MAX_EXAMPLES: Final = 5


@dataclass
class Regions:
    """What is drawn on one image. boxes: category, x, y, width, height in pixels; points: name, x, y.

    far: pixels of masks that no declared value explains. fan: where the scan is.
    """

    masks: list[tuple[str, Mask]] = field(default_factory=list)
    boxes: list[tuple[str, float, float, float, float]] = field(default_factory=list)
    points: list[tuple[str, float, float]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    far: int = 0
    fan: Mask | None = None


# Called with width and height of the image.
RegionLoader = Callable[[int, int], Regions]


@dataclass(slots=True)
class Finding:
    """One case as a reader finds it; pixels and masks are loaded later, off the main thread.

    path: of its media file. name: its id within the source, before a layout's own `id` template. fields: facts for the
    templates of the layout. rows: facts of each row of a table that has several for one image. labels, texts: what
    annotations say themselves. cluster: video or source file that it shares with other cases.
    """

    path: str
    name: str
    fields: dict[str, str]
    picture: Callable[[], Picture]
    regions: list[RegionLoader] = field(default_factory=list)
    labels: list[tuple[str, str]] = field(default_factory=list)
    texts: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    rows: list[dict[str, str]] = field(default_factory=list)
    cluster: str | None = None
    frame: int | None = None
    frames: int = 1


@dataclass
class ReadLog:
    """What a reader met: files it used, counts, notices and faults with a few examples of each."""

    used: set[str] = field(default_factory=set)
    counts: Counter[str] = field(default_factory=Counter)
    faults: dict[str, list[str]] = field(default_factory=dict)
    dropped: int = 0
    notices: list[str] = field(default_factory=list)

    def count(self, what: str, number: int = 1) -> None:
        """Add to a count."""
        if number:
            self.counts[what] += number

    def drop(self, where: str, reason: str, number: int = 1) -> None:
        """Count something that cannot be used; it counts towards `--max-dropped`."""
        self.dropped += number
        self.miss(where, reason)

    def miss(self, where: str, reason: str) -> None:
        """Report something that is absent or odd without counting it as dropped."""
        self.counts[f"fault: {reason}"] += 1
        examples = self.faults.setdefault(reason, [])
        if len(examples) < MAX_EXAMPLES:
            examples.append(where)

    def lines(self) -> list[str]:
        """Return the faults as lines: reason, number and examples."""
        return [
            f"{reason}: {self.counts[f'fault: {reason}']} ({', '.join(examples)})"
            for reason, examples in sorted(self.faults.items())
        ]
