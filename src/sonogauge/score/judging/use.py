"""Stored verdicts as scoring uses them: per reply the median over judges, per cell sums and coverage."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np

from sonogauge._errors import BadInput
from sonogauge.folders import Folder
from sonogauge.metrics.base import Array
from sonogauge.tables import REPLY_KEY

COVERAGE: Final = 0.95  # least share of the verdicts asked of a judge that a value needs
# Statistic to the leniency that it counts.
STATISTICS: Final = {"judge": "none", "judge_v1": "v1"}
ReplyKey = tuple[str, str, int, str]


@dataclass(frozen=True)
class ItemVerdict:
    """The verdict on one reply: a value for each leniency, who was asked and who failed."""

    values: Mapping[str, float]
    asked: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()

    @property
    def nobody(self) -> bool:
        """Whether judges were asked and none gave a verdict."""
        return bool(self.asked) and set(self.asked) <= set(self.failed)


@dataclass(frozen=True)
class Verdicts:
    """The verdicts of a folder by reply key, with what a value from them must name."""

    found: Mapping[ReplyKey, ItemVerdict]
    facts: str
    tasks: frozenset[str]
    hash: str
    path: Path
    coverage: float = COVERAGE


def read_verdicts(path: Path | str, bench_hash: str, replies_hash: str, coverage: float = COVERAGE) -> Verdicts:
    """Read a folder of verdicts for these replies.

    The verdict on a reply is the median of the judges that gave one; where none did it is 0, a failure that counts.

    Raises:
        BadInput: no folder of verdicts, those on other replies or another benchmark, or a coverage outside 0 to 1.
    """
    if not 0.0 <= coverage <= 1.0:
        raise BadInput(f"{coverage} is no share", field="judge-coverage", fix="use a number from 0 to 1")
    folder = Folder(path, "verdicts")
    manifest = folder.manifest
    for role, wanted in (("benchmark", bench_hash), ("replies", replies_hash)):
        given = manifest.input(role)
        if given is None or given.hash != wanted:
            raise BadInput(
                f"verdicts on another {role} than these",
                file=folder.path,
                fix="give the judge command again with this run; what did not change is not asked twice",
            )
    by_key: dict[ReplyKey, list[dict[str, Any]]] = {}
    for row in folder.rows("verdicts", [*REPLY_KEY, "judge", "status", "verdict", "leniency"]):
        by_key.setdefault((row["item_id"], row["variant"], row["epoch"], row["rater_id"]), []).append(row)
    parameters = manifest.parameters
    names = "+".join(one["name"] for one in parameters["judges"])
    return Verdicts(
        {key: _median(rows) for key, rows in by_key.items()},
        f"judge:{names},prompt:{parameters['prompt_hash'][:12]},{parameters['rules']}",
        frozenset(parameters["tasks"]),
        manifest.hash,
        folder.path,
        coverage,
    )


def _median(rows: list[dict[str, Any]]) -> ItemVerdict:
    values = {}
    for leniency in STATISTICS.values():
        given = [row["verdict"] for row in rows if row["leniency"] == leniency and row["status"] != "judge_failed"]
        values[leniency] = float(median(given)) if given else 0.0
    asked = [row for row in rows if row["leniency"] == "none" and row["status"] in ("ok", "judge_failed")]
    return ItemVerdict(
        values,
        tuple(row["judge"] for row in asked),
        tuple(row["judge"] for row in asked if row["status"] == "judge_failed"),
    )


@dataclass
class VerdictCounter:
    """Collects the verdicts of one cell beside its other statistics."""

    coverage: float
    _rows: list[tuple[float, ...]] = field(default_factory=list)
    _asked: Tally[str] = field(default_factory=Tally)
    _failed: Tally[str] = field(default_factory=Tally)

    def add(self, verdict: ItemVerdict) -> dict[str, float]:
        """Count the verdict on one reply; return its values for the table of scored items.

        judge_failed: 1 where judges were asked and none gave a verdict, so that the 0 beside it is told from a verdict.
        """
        self._rows.append(tuple(verdict.values[leniency] for leniency in STATISTICS.values()))
        self._asked.update(verdict.asked)
        self._failed.update(verdict.failed)
        return {
            "judge_score": verdict.values["none"],
            "judge_score_v1": verdict.values["v1"],
            "judge_failed": float(verdict.nobody),
        }

    def take(self) -> dict[str, Array]:
        """Return [verdict, 1] of each reply since the last call, by statistic."""
        rows = np.array(self._rows, dtype=np.float64).reshape(-1, len(STATISTICS))
        self._rows = []
        ones = np.ones(len(rows))
        return {name: np.stack([rows[:, place], ones], axis=-1) for place, name in enumerate(STATISTICS)}

    def why_null(self) -> str | None:
        """Return why the cell has no aggregate: a judge that gave too few of the verdicts asked of it."""
        for judge, asked in sorted(self._asked.items()):
            given = asked - self._failed[judge]
            if given / asked < self.coverage:
                return f"judge {judge} gave {given} of {asked} verdicts, below the limit of {self.coverage:.0%}"
        return None
