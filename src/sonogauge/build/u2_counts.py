"""What an import of U2-BENCH read, kept, marked and dropped, and how the command line tells it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from sonogauge.folders import Manifest


@dataclass
class ScenarioCounts:
    """Counts of one (task, data set); `rows` includes explanation and dropped rows."""

    rows: int = 0
    explanation_rows: int = 0
    items: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    states: Counter[str] = field(default_factory=Counter)
    reference_errors: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)
    images: set[str] = field(default_factory=set)
    repeated_rows: int = 0
    without_patient: int = 0

    def as_json(self) -> dict[str, Any]:
        """Return the counts as they stand in the manifest."""
        return {
            "rows": self.rows,
            "explanation_rows": self.explanation_rows,
            "items": self.items,
            "dropped": _sorted(self.dropped),
            "reference_states": _sorted(self.states),
            "reference_errors": _sorted(self.reference_errors),
            "notes": _sorted(self.notes),
            "images": len(self.images),
            "repeated_rows": self.repeated_rows,
            "without_patient": self.without_patient,
        }


def _sorted(counter: Counter[str]) -> dict[str, int]:
    return dict(sorted(counter.items()))


class ImportCounts:
    """Counts of a whole import, by (task, data set)."""

    def __init__(self) -> None:
        self.scenarios: dict[tuple[str, str], ScenarioCounts] = {}
        self.unknown: Counter[str] = Counter()
        self.rows = 0
        self.explanation_rows = 0  # of files whose rows name no known data set
        self.first_drop = ""

    def of(self, task: str, dataset: str) -> ScenarioCounts:
        """Return the counts of a pair."""
        return self.scenarios.setdefault((task, dataset), ScenarioCounts())

    def drop(self, where: str, reason: str, task: str, dataset: str) -> None:
        """Count a dropped row of a known data set."""
        self.of(task, dataset).dropped[reason] += 1
        self.first_drop = self.first_drop or f"{where}: {reason}"

    def drop_unknown(self, where: str, task: str, name: str) -> None:
        """Count a row whose data set the registry does not know for its task."""
        self.unknown[f"{task}: {name or '(no name)'}"] += 1
        self.first_drop = self.first_drop or f"{where}: unknown dataset '{name}'"

    @property
    def dropped(self) -> Counter[str]:
        """Dropped rows by reason."""
        total: Counter[str] = Counter()
        for one in self.scenarios.values():
            total += one.dropped
        if self.unknown:
            total["unknown dataset"] += self.unknown.total()
        return total

    def as_json(self) -> dict[str, Any]:
        """Return the counts as they stand in the manifest."""
        parts = [self.scenarios[key] for key in sorted(self.scenarios)]
        states: Counter[str] = Counter()
        for part in parts:
            states += part.states
        return {
            "rows": self.rows,
            "explanation_rows": self.explanation_rows + sum(part.explanation_rows for part in parts),
            "items": sum(part.items for part in parts),
            "dropped": self.dropped.total(),
            "dropped_by_reason": _sorted(self.dropped),
            "reference_states": _sorted(states),
            "scenarios": {"/".join(key): self.scenarios[key].as_json() for key in sorted(self.scenarios)},
            "unknown_datasets": _sorted(self.unknown),
        }


def import_report(manifest: Manifest) -> list[str]:
    """Return the lines that say what an import read, for people; the same manifest gives the same lines."""
    counts = manifest.counts
    states = counts["reference_states"]
    lines = [
        f"{manifest.name}: {counts['rows']} rows read from {len(manifest.inputs)} files, {counts['items']} items, "
        f"{counts['cases']} distinct images",
        f"explanation rows left out: {counts['explanation_rows']}",
        f"dropped rows: {counts['dropped']}{_reasons(counts['dropped_by_reason'])}",
        f"references: {', '.join(f'{states[name]} {name}' for name in states)}",
    ]
    for pair, one in counts["scenarios"].items():
        extra = [
            *(f"{number} dropped ({reason})" for reason, number in one["dropped"].items()),
            *(f"{number} reference errors ({reason})" for reason, number in one["reference_errors"].items()),
            *(
                f"{number} without reference ({state})"
                for state, number in one["reference_states"].items()
                if state in ("absent", "null")
            ),
            *(f"{number} x {note}" for note, number in one["notes"].items()),
        ]
        if one["images"] < one["items"]:
            extra.append(f"{one['items'] - one['images']} items share an image with another")
        if one["repeated_rows"]:
            extra.append(f"{one['repeated_rows']} rows repeat another")
        lines.append(f"  {pair}: {one['rows']} rows, {one['items']} items" + "".join(f"; {part}" for part in extra))
    shared = counts["duplicates"]
    lines.append(
        f"duplicates: {shared['images_across_tasks']} images serve several tasks, "
        f"{shared['items_sharing_an_image']} items share an image within their data set, "
        f"{shared['repeated_rows']} rows repeat another"
    )
    unknown = counts["unknown_datasets"]
    lines.append("unknown datasets: " + ("; ".join(f"{name} ({n} rows)" for name, n in unknown.items()) or "none"))
    lines.extend(f"note: {notice}" for notice in manifest.notices)
    lines.append("licence: " + ", ".join(manifest.licences))
    return lines


def _reasons(reasons: dict[str, int]) -> str:
    return f" ({', '.join(f'{number} {reason}' for reason, number in reasons.items())})" if reasons else ""
