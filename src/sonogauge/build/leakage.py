"""The leakage audit: does anything of the test lie in another part too?

Three checks, each with its own state: groups (patients, videos) in two parts; images of the same pixels; images that
show the same after another compression, a new size, a flip, a turn or a crop. What the third can find is measured on
the benchmark's own images, altered on purpose.
"""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from sonogauge._errors import BadInput
from sonogauge.build.duplicates import DEFAULT, Limits, Pair, Picked, find_copies
from sonogauge.build.engine import Engine, LocalEngine
from sonogauge.build.fingerprint import ORIENTATIONS, THUMB, WINDOWS, Pixels, decode, sign
from sonogauge.build.probe import measure_detection, sample_pictures
from sonogauge.build.shards import WorkFolder, read_arrow
from sonogauge.folders import Folder
from sonogauge.tables import STRING

AUDIT_FILE: Final = "audit.json"
CANNOT: Final = "cannot be checked"
PARTS: Final = ("test", "val", "train")  # the first of two parts in a pair stands first
SIGNED: Final = pa.schema(
    [
        ("case_id", STRING),
        ("pixels", STRING),
        ("codes", pa.binary(8 * len(WINDOWS) * ORIENTATIONS)),
        ("thumb", pa.binary(THUMB * THUMB)),
    ]
)


@dataclass(frozen=True, slots=True)
class AuditCase:
    """What the audit knows of a case besides its picture: the parts in which it is asked, its group, a patient id."""

    case_id: str
    parts: tuple[str, ...]
    group: str
    patient_known: bool


@dataclass(frozen=True, slots=True)
class Copy:
    """Two cases of different parts that show the same; correlation 1 and no orientation: the same pixels."""

    left: str
    right: str
    parts: tuple[str, str]
    correlation: float
    orientation: int


@dataclass
class Audit:
    """What the audit found.

    groups: of two parts; two_parts: cases asked in two parts; exact, near: copies. unknown: cases without a patient id.
    probe: alteration -> [found, planted]; false: [pairs taken for copies, pairs of different images compared].
    """

    parts: dict[str, int]
    unknown: int
    groups: list[tuple[str, list[str]]] = field(default_factory=list)
    two_parts: list[str] = field(default_factory=list)
    exact: list[Copy] = field(default_factory=list)
    near: list[Copy] = field(default_factory=list)
    unreadable: int = 0
    candidates: int = 0
    cut: int = 0
    probe: dict[str, tuple[int, int]] = field(default_factory=dict)
    false: tuple[int, int] = (0, 0)

    @property
    def leaks(self) -> int:
        """How many leaks were found."""
        return len(self.groups) + len(self.two_parts) + len(self.exact) + len(self.near)

    @property
    def states(self) -> dict[str, str]:
        """The state of each check: "clean", "leaks", "cannot be checked" or, with one part, "one part only"."""
        if len(self.parts) < 2:
            return dict.fromkeys(("groups", "same pixels", "near copies"), "one part only")
        groups = "leaks" if self.groups or self.two_parts else CANNOT if self.unknown else "clean"
        return {
            "groups": groups,
            "same pixels": "leaks" if self.exact else "clean",
            "near copies": "leaks" if self.near else "clean",
        }

    def to_json(self) -> dict[str, Any]:
        """Return all of it as a JSON value."""

        def pairs(copies: Sequence[Copy]) -> list[dict[str, Any]]:
            return [
                {
                    "left": one.left,
                    "right": one.right,
                    "parts": list(one.parts),
                    "correlation": one.correlation,
                    "orientation": one.orientation,
                }
                for one in copies
            ]

        return {
            "states": self.states,
            "leaks": self.leaks,
            "cases": self.parts,
            "patient_unknown": self.unknown,
            "unreadable": self.unreadable,
            "groups": [{"group": group, "parts": parts} for group, parts in self.groups],
            "cases_in_two_parts": self.two_parts,
            "same_pixels": pairs(self.exact),
            "near_copies": pairs(self.near),
            "candidates": self.candidates,
            "candidates_left_out": self.cut,
            "recall": {name: {"found": found, "planted": planted} for name, (found, planted) in self.probe.items()},
            "false_positives": {"found": self.false[0], "pairs": self.false[1]},
        }


class Signatures:
    """The signatures of many cases; thumbnails stay in their Arrow files until they are asked for."""

    def __init__(self, files: Sequence[Path], keep: Callable[[str], bool] = lambda _: True) -> None:
        self.case_ids: list[str] = []
        self.pixels: list[str] = []
        self.unreadable = 0
        self._files = list(files)
        at: list[tuple[int, int, int]] = []
        count = sum(batch.num_rows for file in files for batch in read_arrow(file, []))
        self.codes = np.empty((count, len(WINDOWS), ORIENTATIONS), dtype=np.uint64)
        for number, file in enumerate(files):
            for place, batch in enumerate(read_arrow(file, ["case_id", "pixels", "codes"])):
                codes = _fixed(batch, "codes").view(np.uint64).reshape(-1, len(WINDOWS), ORIENTATIONS)
                for row, (case_id, pixels) in enumerate(
                    zip(batch.column("case_id").to_pylist(), batch.column("pixels").to_pylist(), strict=True)
                ):
                    if not keep(case_id):
                        continue
                    if pixels is None:
                        self.unreadable += 1
                        continue
                    self.codes[len(at)] = codes[row]
                    self.case_ids.append(case_id)
                    self.pixels.append(pixels)
                    at.append((number, place, row))
        self.codes = self.codes[: len(at)]
        self._at = np.array(at, dtype=np.int32).reshape(-1, 3)

    def thumbs(self, numbers: Iterable[int]) -> dict[int, Pixels]:
        """Return the thumbnails of some cases by their numbers."""
        by_file: dict[int, list[int]] = defaultdict(list)
        for one in sorted(set(numbers)):
            by_file[int(self._at[one, 0])].append(one)
        found: dict[int, Pixels] = {}
        for number, wanted in by_file.items():
            batches = list(read_arrow(self._files[number], ["thumb"]))
            for one in wanted:
                _, place, row = self._at[one]
                found[one] = _fixed(batches[place], "thumb")[row].reshape(THUMB, THUMB).copy()
        return found


def _fixed(batch: pa.RecordBatch, column: str) -> Any:
    array = batch.column(column)
    width = array.type.byte_width
    data = np.frombuffer(array.buffers()[1], dtype=np.uint8)
    return data[array.offset * width : (array.offset + len(array)) * width].reshape(-1, width)


def audit_cases(cases: Sequence[AuditCase], signatures: Signatures, limits: Limits = DEFAULT) -> Audit:
    """Compare the parts of a benchmark.

    Args:
        cases: all cases that items ask about.
        signatures: of the same cases.
        limits: what counts as a copy.
    """
    by_id = {case.case_id: case for case in cases}
    counts: dict[str, int] = defaultdict(int)
    groups: dict[str, set[str]] = defaultdict(set)
    for case in cases:
        for part in case.parts:
            counts[part] += 1
            groups[case.group].add(part)
    audit = Audit(
        parts=dict(sorted(counts.items())),
        unknown=sum(not case.patient_known for case in cases),
        groups=[(group, sorted(parts)) for group, parts in sorted(groups.items()) if len(parts) > 1],
        two_parts=sorted(case.case_id for case in cases if len(case.parts) > 1),
        unreadable=signatures.unreadable,
    )
    members: dict[str, list[int]] = defaultdict(list)
    for number, case_id in enumerate(signatures.case_ids):
        for part in by_id[case_id].parts:
            members[part].append(number)
    names = [*(part for part in PARTS if part in members), *sorted(set(members) - set(PARTS))]
    for one, other in combinations(names, 2):
        _compare(audit, signatures, (one, other), (members[one], members[other]), limits)
    return audit


def _compare(
    audit: Audit,
    signatures: Signatures,
    parts: tuple[str, str],
    members: tuple[list[int], list[int]],
    limits: Limits,
) -> None:
    left, right = members
    same: dict[str, list[int]] = defaultdict(list)
    for number in right:
        same[signatures.pixels[number]].append(number)
    ids = signatures.case_ids
    audit.exact += [
        Copy(ids[one], ids[other], parts, 1.0, 0)
        for one in left
        for other in same.get(signatures.pixels[one], ())
        if one != other
    ]
    pairs, judged, cut = near_copies(signatures, left, right, limits)
    audit.near += [
        Copy(ids[left[pair.left]], ids[right[pair.right]], parts, pair.correlation, pair.orientation) for pair in pairs
    ]
    audit.candidates += judged
    audit.cut += cut


def near_copies(
    signatures: Signatures, left: Sequence[int], right: Sequence[int], limits: Limits = DEFAULT, ordered: bool = False
) -> tuple[list[Pair], int, int]:
    """Return the copies between two lists of cases that are not the same pixels; see `duplicates.find_copies`.

    ordered: both lists are one, and each pair is wanted once.
    """

    def thumbs(pairs: Sequence[tuple[int, int]]) -> Iterator[tuple[Pixels, Pixels]]:
        found = signatures.thumbs([left[one] for one, _ in pairs] + [right[other] for _, other in pairs])
        for one, other in pairs:
            yield found[left[one]], found[right[other]]

    def skip(one: int, other: int) -> bool:
        if ordered and one >= other:
            return True
        return signatures.pixels[left[one]] == signatures.pixels[right[other]]

    codes = signatures.codes
    return find_copies(Picked(codes, left), Picked(codes, right), thumbs, limits, skip)


class Sign:
    """The stage that makes signatures alone, for an audit of a finished benchmark."""

    schema = SIGNED
    columns = ("case_id", "image")
    key: Mapping[str, Any] = {"stage": "sign", "version": 2}

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return one row of SIGNED for each case."""
        rows = []
        for row in batch.to_pylist():
            data = (row["image"] or {}).get("bytes")
            pixels = decode(data) if data else None
            found: dict[str, Any] = {"case_id": row["case_id"], "pixels": None, "codes": None, "thumb": None}
            if pixels is not None:
                one = sign(pixels)
                found |= {"pixels": one.pixels, "codes": one.codes.tobytes(), "thumb": one.thumb.tobytes()}
            rows.append(found)
        return pa.RecordBatch.from_pylist(rows, schema=SIGNED)


def audit(
    bench: Path | str, *, engine: Engine | None = None, probe: int = 40, seed: int = 0, limits: Limits = DEFAULT
) -> Audit:
    """Audit any benchmark folder.

    Args:
        bench: the folder.
        engine: where the images are looked at.
        probe: how many of its images are altered on purpose to measure what the search finds; 0 = none.
        seed: of the choice of those images.
        limits: what counts as a copy.

    Raises:
        BadInput: no benchmark folder, or a part of it is missing or broken.
    """
    folder = Folder.open(bench, "benchmark")
    parts: dict[str, set[str]] = defaultdict(set)
    for row in folder.rows("items", ["split", "images"]):
        for image in row["images"] or ():
            parts[image["case_id"]].add(row["split"] or "test")
    cases = [
        AuditCase(
            row["case_id"],
            tuple(sorted(parts[row["case_id"]])),
            row["group"] or row["case_id"],
            row["patient"] is not None,
        )
        for row in folder.rows("cases", ["case_id", "patient", "group"])
        if row["case_id"] in parts
    ]
    known = {case.case_id for case in cases}
    if missing := sorted(set(parts) - known):
        raise BadInput(f"items ask about a case that is not there: '{missing[0]}'", file=folder.path)
    worker = engine if engine is not None else LocalEngine()
    try:
        with tempfile.TemporaryDirectory() as scratch, WorkFolder(Path(scratch) / "audit") as work:
            files = work.run(worker, Sign(), folder)
            found = audit_cases(cases, Signatures(files, known.__contains__), limits)
    finally:
        if engine is None:
            worker.close()
    if probe:
        pictures = sample_pictures(folder.file("cases"), probe, seed)
        if pictures:
            found.probe, found.false = measure_detection(pictures, limits)
    return found


def audit_lines(found: Audit, most: int = 10) -> list[str]:
    """Return what a reader is told: each check with its state, the leaks, what the search can find."""
    parts = ", ".join(f"{number} {part}" for part, number in found.parts.items())
    lines = [f"cases: {parts or 'none'}"]
    lines += [f"{check}: {state}" for check, state in found.states.items()]
    if found.unknown and len(found.parts) > 1:
        lines.append(f"patient unknown for {found.unknown} cases: whether patients are in two parts {CANNOT}")
    if found.unreadable:
        lines.append(f"{found.unreadable} images cannot be read and were not compared")
    shown = [f"group in {' and '.join(parts)}: {group}" for group, parts in found.groups]
    shown += [f"case in two parts: {case_id}" for case_id in found.two_parts]
    shown += [f"same pixels: {one.left} ({one.parts[0]}), {one.right} ({one.parts[1]})" for one in found.exact]
    shown += [
        f"near copies: {one.left} ({one.parts[0]}), {one.right} ({one.parts[1]}), correlation {one.correlation:.2f}"
        for one in found.near
    ]
    lines += [f"leak: {line}" for line in shown[:most]]
    if len(shown) > most:
        lines.append(f"and {len(shown) - most} more leaks")
    if found.cut:
        lines.append(f"{found.cut} candidates were left out: an image had too many")
    if found.probe:
        lines.append("copies planted and found: " + ", ".join(f"{k} {a}/{b}" for k, (a, b) in found.probe.items()))
        lines.append(f"different images taken for copies: {found.false[0]} of {found.false[1]} pairs")
    return lines


def dump_audit(found: Audit) -> str:
    """Return the JSON of an audit, ending with a line break."""
    return json.dumps(found.to_json(), indent=1, ensure_ascii=False) + "\n"
