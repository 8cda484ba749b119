"""Analysis 8: what a benchmark holds, counted from its own tables, and whether its parts overlap."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from sonogauge.compare.ablations.base import column, table
from sonogauge.folders import Folder
from sonogauge.tables import from_facts

UNKNOWN: Final = "unknown"
_OPTIONAL: Final = ("region", "country", "centre", "scanner", "probe", "gestational_age")


def datasheet(bench: Folder) -> list[dict[str, Any]]:
    """Return images and questions by task, source, split, region, phantom and k; overlap of patients and images.

    A fact that a question does not have counts as "unknown".
    """
    cases = {
        row["case_id"]: (
            _drawn_on(row) or row["sha256"] or row["case_id"],
            row["patient"],
            row["provenance"] or UNKNOWN,
            row["anatomy"] or "",
        )
        for row in bench.rows("cases", ["case_id", "sha256", "patient", "provenance", "anatomy", "meta"])
    }
    tally = _Tally(("task", "source", "split", "task and source", "phantom", "options shown", "anatomy", *_OPTIONAL))
    overlap = _Overlap()
    columns = ["item_id", "task", "source", "group", "split", "images", "answer", "anatomy", "meta"]
    for row in bench.rows("items", columns):
        shown = [one["case_id"] for one in row["images"] or ()]
        facts = [cases.get(name, (name, None, UNKNOWN, "")) for name in shown]
        meta = from_facts(row["meta"])
        provenance = meta.get("provenance") or (facts[0][2] if facts else UNKNOWN)
        size = len(row["answer"]["options"] or ())
        values = {
            "task": row["task"],
            "source": row["source"],
            "split": row["split"] or UNKNOWN,
            "task and source": f"{row['task']}, {row['source']}",
            "phantom": {"phantom": "phantom", UNKNOWN: UNKNOWN}.get(provenance, f"no ({provenance})"),
            "options shown": str(size) if size else "open answer",
            "anatomy": row["anatomy"] or UNKNOWN,
            **{name: meta.get(name) or UNKNOWN for name in _OPTIONAL},
        }
        pictures = [one[0] for one in facts]
        tally.take(values, pictures)
        # A patient id means a person of its source only.
        patients = [one[1] and f"{row['source']}:{one[1]}" for one in facts]
        overlap.take(row["split"] or UNKNOWN, row["group"], patients, pictures)
    return [tally.table(), overlap.table()]


def _drawn_on(row: Mapping[str, Any]) -> str:
    # A picture with a box drawn on it is still that image.
    return from_facts(row["meta"]).get("parent_sha256", "")


class _Tally:
    """Questions and different images by the values of some facts."""

    def __init__(self, names: Iterable[str]) -> None:
        self._questions: dict[str, Counter[str]] = {name: Counter() for name in names}
        self._images: dict[str, dict[str, set[str]]] = {name: {} for name in self._questions}

    def take(self, values: Mapping[str, str], images: Iterable[str]) -> None:
        pictures = list(images)
        for name, value in values.items():
            self._questions[name][value] += 1
            self._images[name].setdefault(value, set()).update(pictures)

    def table(self) -> dict[str, Any]:
        rows = []
        for name, counts in self._questions.items():
            # Where nothing is known of a fact, one line says so.
            for value in sorted(counts):
                images = len(self._images[name][value])
                rows.append({"by": name, "value": value, "questions": counts[value], "images": images})
        columns = [column("by", "by"), column("value", "value"), column("questions", "questions", "count")]
        columns.append(column("images", "images", "count"))
        return table(
            "datasheet", "Questions and images", columns, rows, "images: different files; a drawn box makes none."
        )


class _Overlap:
    """Patients, groups and images by the parts they occur in."""

    def __init__(self) -> None:
        self._parts: dict[str, dict[str, set[str]]] = {"patients": {}, "groups": {}, "images": {}}
        self._unknown: set[str] = set()

    def take(self, part: str, group: str, patients: Iterable[str | None], images: Iterable[str]) -> None:
        self._parts["groups"].setdefault(group, set()).add(part)
        for patient, image in zip(patients, images, strict=True):
            self._parts["images"].setdefault(image, set()).add(part)
            if patient:
                self._parts["patients"].setdefault(patient, set()).add(part)
            else:
                self._unknown.add(image)

    def table(self) -> dict[str, Any]:
        rows = []
        for name, found in self._parts.items():
            both = [parts for parts in found.values() if len(parts) > 1]
            rows.append(
                {
                    "what": name,
                    "n": len(found),
                    "several": len(both),
                    "train_test": _count(both, {"train", "test"}.issubset),
                }
            )
        columns = [
            column("what", "what"),
            column("n", "n", "count"),
            column("several", "in several parts", "count"),
            column("train_test", "in train and test", "count"),
        ]
        note = f"{len(self._unknown)} images have no patient id: overlap of their patients is not checkable."
        return table("overlap", "Overlap of the parts", columns, rows, *([note] if self._unknown else []))


def _count(found: Iterable[set[str]], holds: Callable[[set[str]], bool]) -> int:
    return sum(holds(parts) for parts in found)
