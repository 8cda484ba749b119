"""How often each verdict was given: by task, attribute and leniency."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sonogauge.folders import Folder
from sonogauge.items import Item
from sonogauge.score.judging.leniency import LENIENCIES
from sonogauge.score.judging.use import ItemVerdict, read_verdicts
from sonogauge.score.judging.verdict import LEVELS

_ALL: Final = ""


@dataclass(frozen=True)
class VerdictShares:
    """Shares of the levels 0, 0.5 and 1 of one task and attribute (empty = all).

    n: replies. failed: those on which every judge failed, which are in no share. between: share of medians between
    levels.
    """

    task: str
    attribute: str
    leniency: str
    n: int
    failed: int
    shares: Mapping[str, float]
    between: float


def verdict_shares(verdicts: Path | str, bench: Path | str) -> list[VerdictShares]:
    """Return the shares of the plain replies' verdicts, sorted.

    Raises:
        BadInput: no such folders, or verdicts on another benchmark.
    """
    folder = Folder(verdicts, "verdicts")
    replies = folder.manifest.input("replies")
    benchmark = Folder(bench, "benchmark")
    found = read_verdicts(verdicts, benchmark.manifest.hash, replies.hash if replies else "").found
    columns = ["item_id", "task", "dataset", "source", "group", "images", "answer", "meta"]
    cells: dict[tuple[str, str], list[ItemVerdict]] = {}
    for row in benchmark.rows("items", columns):
        verdict = found.get((row["item_id"], "", 0, ""))
        if verdict is not None:
            item = Item.from_row(row)
            for attribute in {_ALL, item.meta.get("attribute_asked", _ALL)}:
                cells.setdefault((item.task, attribute), []).append(verdict)
    out = []
    for (task, attribute), own in sorted(cells.items()):
        for leniency in LENIENCIES:
            values = [one.values[leniency] for one in own if not one.nobody]
            shares = {f"{level:g}": values.count(level) / len(values) for level in LEVELS} if values else {}
            between = 1.0 - sum(shares.values()) if values else 0.0
            out.append(VerdictShares(task, attribute, leniency, len(own), len(own) - len(values), shares, between))
    return out
